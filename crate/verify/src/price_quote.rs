//! Price quotes (§4.4): an offer of exactly one stream at exactly one pricing generation.
//!
//! A quote is single-use by what it binds, not by memory: a creation quote names generation 1, which no update has, and
//! an update quote names one more than the record's.

use remuda_wire::bound::MIN_RATE_PER_BLOCK;
use remuda_wire::chain::{DeliveryClass, ProviderRecord, StreamConfig, StreamRecord};
use remuda_wire::context::SigningContext;
use remuda_wire::preimage::signing_key_id;
use remuda_wire::price::PriceQuote;
use remuda_wire::verdict::VerifyError;
use remuda_wire::{Address, Bytes32, Signed};

use crate::signature::PublicKey;

/// What a quote was asked for: the stream that the accepting instruction creates or updates.
#[derive(Clone, Copy, Debug)]
pub struct QuoteRequest<'a> {
    /// The chain.
    pub context: &'a SigningContext,
    /// The stream; before creation, the derived id (§4.1).
    pub stream_id: &'a Bytes32,
    /// Its owner.
    pub owner: &'a Address,
    /// Its class.
    pub delivery_class: DeliveryClass,
    /// 1 at creation, one more than the record's at an update.
    pub pricing_generation: u64,
    /// The requested configuration.
    pub config: &'a StreamConfig,
    /// The height at which the quote is to admit the stream.
    pub block_height: u64,
}

impl<'a> QuoteRequest<'a> {
    /// The request of an update of `stream` to `config`. `None` when no generation is left.
    pub fn update(
        context: &'a SigningContext,
        stream: &'a StreamRecord,
        config: &'a StreamConfig,
        block_height: u64,
    ) -> Option<Self> {
        Some(Self {
            context,
            stream_id: &stream.stream_id,
            owner: &stream.owner,
            delivery_class: stream.delivery_class,
            pricing_generation: stream.pricing_generation.checked_add(1)?,
            config,
            block_height,
        })
    }

    /// Verifies `quote` under the quote key of `provider`, its finalized record. Answers `quote_digest`, which
    /// `PricingBasisV1::ProviderQuote` stores.
    ///
    /// # Errors
    /// In this order: [`VerifyError::ContextMismatch`]; [`VerifyError::StreamMismatch`] for another stream, owner or
    /// provider; [`VerifyError::Signature`] for another key id or a false signature; [`VerifyError::ResultBinding`] for
    /// another class, generation or capacity, a rate below `CBQS_MIN_RATE_PER_BLOCK`, or a height after
    /// `valid_until_block`.
    pub fn verify(&self, quote: &PriceQuote, provider: &ProviderRecord) -> Result<Bytes32, VerifyError> {
        if quote.context != *self.context {
            return Err(VerifyError::ContextMismatch);
        }
        let ours = quote.stream_id == *self.stream_id && quote.owner == *self.owner;
        if !ours || quote.provider != provider.provider {
            return Err(VerifyError::StreamMismatch);
        }
        if quote.signing_key_id != signing_key_id(&provider.quote_key) {
            return Err(VerifyError::Signature);
        }
        let digest = quote.digest();
        let quote_key = PublicKey::from_signing_key(&provider.quote_key).ok_or(VerifyError::Signature)?;
        quote_key.verify_digest(quote, &digest)?;
        if self.is_answered_by(quote) {
            Ok(digest)
        } else {
            Err(VerifyError::ResultBinding)
        }
    }

    fn is_answered_by(&self, quote: &PriceQuote) -> bool {
        quote.delivery_class == self.delivery_class
            && quote.pricing_generation == self.pricing_generation
            && quote.retained_bytes == self.config.retained_bytes_limit
            && quote.append_bytes_sec == self.config.max_append_bytes_per_sec
            && quote.delivered_bytes_sec == self.config.max_delivered_bytes_per_sec
            && quote.rate_per_block >= MIN_RATE_PER_BLOCK
            && self.block_height <= quote.valid_until_block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use ed25519_dalek::{Signer, SigningKey};
    use remuda_wire::chain::{BaseRateAdmission, BaseRateReservationTotals, ProviderStatus};
    use remuda_wire::codec::VersionOne;
    use remuda_wire::key::SigningPublicKey;
    use remuda_wire::{Canonical, List, Signature};

    fn public(key: &SigningKey) -> SigningPublicKey {
        SigningPublicKey(Bytes32(key.verifying_key().to_bytes()))
    }

    fn provider(quote_key: &SigningKey) -> ProviderRecord {
        ProviderRecord {
            version: VersionOne,
            chain_instance_id: Bytes32([1; 32]),
            provider: Address([2; 20]),
            signing_key: public(&SigningKey::from_bytes(&[9; 32])),
            endpoints: List::new(Vec::new()).unwrap(),
            quote_key: public(quote_key),
            base_rate_admission: BaseRateAdmission {
                accepts_new: false,
                max_active_streams: 0,
                max_total_retained_bytes: 0,
                max_total_append_bytes_per_sec: 0,
                max_total_delivered_bytes_per_sec: 0,
            },
            base_rate_reserved: BaseRateReservationTotals {
                reserved_streams: 0,
                retained_bytes: 0,
                append_bytes_per_sec: 0,
                delivered_bytes_per_sec: 0,
            },
            live_assigned_streams: 0,
            status: ProviderStatus::Active,
            metadata_hash: Bytes32::ZERO,
            registered_block: 0,
        }
    }

    fn sign(mut quote: PriceQuote, key: &SigningKey) -> PriceQuote {
        quote.signature = Signature(key.sign(&quote.digest().0).to_bytes());
        quote
    }

    #[test]
    fn a_quote_admits_exactly_what_it_binds() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let provider = provider(&key);
        let context = SigningContext { version: VersionOne, chain_id: 5, chain_instance_id: Bytes32([1; 32]) };
        let (stream_id, owner) = (Bytes32([3; 32]), Address([4; 20]));
        let mut config = StreamConfig::from_bytes(&[0; StreamConfig::MIN_BYTES]).unwrap();
        (config.retained_bytes_limit, config.max_append_bytes_per_sec, config.max_delivered_bytes_per_sec) =
            (10, 20, 30);
        let request = QuoteRequest {
            context: &context,
            stream_id: &stream_id,
            owner: &owner,
            delivery_class: DeliveryClass::Fast,
            pricing_generation: 1,
            config: &config,
            block_height: 100,
        };
        let quote = PriceQuote {
            context: context.clone(),
            provider: provider.provider,
            owner,
            stream_id,
            pricing_generation: 1,
            delivery_class: DeliveryClass::Fast,
            retained_bytes: 10,
            append_bytes_sec: 20,
            delivered_bytes_sec: 30,
            rate_per_block: MIN_RATE_PER_BLOCK,
            valid_until_block: 100,
            signing_key_id: signing_key_id(&provider.quote_key),
            signature: Signature([0; 64]),
        };
        let good = sign(quote.clone(), &key);
        assert_eq!(request.verify(&good, &provider), Ok(good.digest()));
        let stranger = SigningKey::from_bytes(&[8; 32]);
        assert_eq!(request.verify(&sign(quote.clone(), &stranger), &provider), Err(VerifyError::Signature));
        let refused_after = |change: fn(&mut PriceQuote)| {
            let mut changed = quote.clone();
            change(&mut changed);
            request.verify(&sign(changed, &key), &provider).unwrap_err()
        };
        assert_eq!(refused_after(|quote| quote.context.chain_id += 1), VerifyError::ContextMismatch);
        assert_eq!(refused_after(|quote| quote.stream_id.0[0] ^= 1), VerifyError::StreamMismatch);
        assert_eq!(refused_after(|quote| quote.owner.0[0] ^= 1), VerifyError::StreamMismatch);
        assert_eq!(refused_after(|quote| quote.provider.0[0] ^= 1), VerifyError::StreamMismatch);
        assert_eq!(refused_after(|quote| quote.signing_key_id.0[0] ^= 1), VerifyError::Signature);
        assert_eq!(refused_after(|quote| quote.delivery_class = DeliveryClass::Standard), VerifyError::ResultBinding);
        assert_eq!(refused_after(|quote| quote.pricing_generation = 2), VerifyError::ResultBinding);
        assert_eq!(refused_after(|quote| quote.retained_bytes += 1), VerifyError::ResultBinding);
        assert_eq!(refused_after(|quote| quote.append_bytes_sec -= 1), VerifyError::ResultBinding);
        assert_eq!(refused_after(|quote| quote.delivered_bytes_sec += 1), VerifyError::ResultBinding);
        assert_eq!(refused_after(|quote| quote.rate_per_block -= 1), VerifyError::ResultBinding);
        assert_eq!(refused_after(|quote| quote.valid_until_block -= 1), VerifyError::ResultBinding);
    }
}
