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
        if self.is_answered_by(quote) { Ok(digest) } else { Err(VerifyError::ResultBinding) }
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
