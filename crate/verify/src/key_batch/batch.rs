//! A batch against the chain that it extends, and its receipt.

use alloc::vec::Vec;

use remuda_wire::context::SigningContext;
use remuda_wire::key::{HpkePublicKey, SigningPublicKey};
use remuda_wire::key_batch::{KeyBatchReceipt, KeyEnvelope, KeyRotationBatch};
use remuda_wire::preimage;
use remuda_wire::verdict::VerifyError;
use remuda_wire::{Bytes32, Signed};

use crate::authentic::{Authority, KeySource, Verified};
use crate::signature::PublicKey;

/// Where the key-batch chain of one stream stands.
#[derive(Clone, Copy, Debug)]
pub struct KeyBatchPosition<'a> {
    /// The chain.
    pub context: &'a SigningContext,
    /// The encrypted main stream.
    pub main_stream_id: &'a Bytes32,
    /// The rotation key of its record.
    pub rotation_key: &'a SigningPublicKey,
    /// The generation that is active on the chain.
    pub active_generation: u64,
    /// The digest of the last committed batch; `None` before the first.
    pub batch_tail: Option<Bytes32>,
    /// The recipients of the earlier batches of the generation that the next batch is for, in any order.
    pub members: &'a [HpkePublicKey],
}

/// A batch that extends the chain, with exactly the envelopes that it lists. Says nothing of what is durable.
///
/// Made only by [`KeyBatchPosition::verify`].
#[derive(Clone, Debug)]
pub struct VerifiedKeyBatch {
    pub(super) batch: KeyRotationBatch,
    pub(super) digest: Bytes32,
    pub(super) key_stream_id: Bytes32,
    pub(super) envelopes: Vec<KeyEnvelope>,
    envelope_root: Bytes32,
    members: Vec<HpkePublicKey>,
}

impl KeyBatchPosition<'_> {
    /// Verifies the next batch with its envelopes, in record order.
    ///
    /// # Errors
    /// In this order: [`VerifyError::ContextMismatch`], [`VerifyError::StreamMismatch`], [`VerifyError::Signature`],
    /// [`VerifyError::KeyGeneration`], [`VerifyError::KeyBatchPredecessor`], [`VerifyError::EnvelopeDigest`],
    /// [`VerifyError::KeyIdentity`], [`VerifyError::EnvelopeOrder`], [`VerifyError::MembershipDigest`].
    pub fn verify(
        &self,
        batch: KeyRotationBatch,
        envelopes: Vec<KeyEnvelope>,
    ) -> Result<VerifiedKeyBatch, VerifyError> {
        let digest = self.authenticate(&batch)?;
        let key_stream_id = preimage::key_stream_id(self.main_stream_id);
        self.check_link(&batch, &key_stream_id)?;
        self.check_envelopes(&batch, &envelopes)?;
        // The membership of a generation is the union over its batches: a supplemental batch removes no one.
        let members: Vec<_> =
            self.members.iter().copied().chain(envelopes.iter().map(|envelope| envelope.recipient_hpke_key)).collect();
        if batch.membership_set_digest != preimage::membership_set_digest(&members) {
            return Err(VerifyError::MembershipDigest);
        }
        let envelope_root = preimage::envelope_root(
            self.context,
            &key_stream_id,
            batch.encryption_generation,
            &digest,
            &batch.sorted_envelope_digests,
        );
        Ok(VerifiedKeyBatch { batch, digest, key_stream_id, envelopes, envelope_root, members })
    }

    fn authenticate(&self, batch: &KeyRotationBatch) -> Result<Bytes32, VerifyError> {
        if batch.context != *self.context {
            return Err(VerifyError::ContextMismatch);
        }
        if batch.stream_id != *self.main_stream_id {
            return Err(VerifyError::StreamMismatch);
        }
        let digest = batch.digest();
        let rotation_key = PublicKey::from_signing_key(self.rotation_key).ok_or(VerifyError::Signature)?;
        rotation_key.verify_digest(batch, &digest)?;
        Ok(digest)
    }

    fn check_link(&self, batch: &KeyRotationBatch, key_stream_id: &Bytes32) -> Result<(), VerifyError> {
        let active = self.active_generation;
        let generation = batch.encryption_generation;
        if generation != active && Some(generation) != active.checked_add(1) {
            return Err(VerifyError::KeyGeneration);
        }
        let tail = self.batch_tail.unwrap_or_else(|| preimage::key_batch_genesis(self.context, key_stream_id));
        if batch.previous_batch_digest == tail {
            Ok(())
        } else {
            Err(VerifyError::KeyBatchPredecessor)
        }
    }

    fn check_envelopes(&self, batch: &KeyRotationBatch, envelopes: &[KeyEnvelope]) -> Result<(), VerifyError> {
        let listed = &batch.sorted_envelope_digests;
        let as_listed = envelopes.len() == listed.len()
            && envelopes
                .iter()
                .zip(listed.iter())
                .all(|(envelope, digest)| preimage::envelope_digest(envelope) == *digest);
        if !as_listed {
            return Err(VerifyError::EnvelopeDigest);
        }
        let ours = |envelope: &KeyEnvelope| {
            envelope.stream_id == *self.main_stream_id && envelope.encryption_generation == batch.encryption_generation
        };
        if !envelopes.iter().all(ours) {
            return Err(VerifyError::KeyIdentity);
        }
        let order_key = |envelope: &KeyEnvelope| preimage::recipient_order_key(&envelope.recipient_hpke_key);
        let order_keys: Vec<_> = envelopes.iter().map(order_key).collect();
        if order_keys.is_sorted_by(|a, b| a < b) {
            Ok(())
        } else {
            Err(VerifyError::EnvelopeOrder)
        }
    }
}

impl VerifiedKeyBatch {
    /// The batch digest: the next tail of the chain.
    pub const fn digest(&self) -> Bytes32 {
        self.digest
    }

    /// The batch.
    pub const fn batch(&self) -> &KeyRotationBatch {
        &self.batch
    }

    /// The envelopes, in record order.
    pub fn envelopes(&self) -> &[KeyEnvelope] {
        &self.envelopes
    }

    /// The complete membership of the generation so far; a member of several batches is listed more than once.
    pub fn members(&self) -> &[HpkePublicKey] {
        &self.members
    }

    /// What a receipt of this batch commits.
    pub const fn envelope_root(&self) -> Bytes32 {
        self.envelope_root
    }

    /// The key stream of the batch's main stream.
    pub const fn key_stream_id(&self) -> Bytes32 {
        self.key_stream_id
    }

    /// Verifies that the provider committed exactly this batch.
    ///
    /// # Errors
    /// In this order: [`VerifyError::ContextMismatch`], [`VerifyError::StreamMismatch`] for another main stream, then as
    /// [`Authority::authenticate`], [`VerifyError::KeyIdentity`], [`VerifyError::EnvelopeRoot`].
    pub fn verify_receipt(
        &self,
        receipt: KeyBatchReceipt,
        keys: &impl KeySource,
    ) -> Result<Verified<KeyBatchReceipt>, VerifyError> {
        let context = &self.batch.context;
        if receipt.context == *context && receipt.main_stream_id != self.batch.stream_id {
            return Err(VerifyError::StreamMismatch);
        }
        // A receipt is of a stream by either of its ids: its main stream is ours, so a key stream that does not derive
        // is a false identity of our receipt, not a receipt of another stream.
        let claimed_key_stream_id = receipt.key_stream_id;
        let receipt = Authority { context, stream_id: &claimed_key_stream_id, keys }.authenticate(receipt)?;
        self.check_receipt(&receipt)?;
        Ok(receipt)
    }

    /// Checks that an authentic receipt is of exactly this batch.
    ///
    /// # Errors
    /// [`VerifyError::KeyIdentity`], then [`VerifyError::EnvelopeRoot`].
    pub fn check_receipt(&self, receipt: &Verified<KeyBatchReceipt>) -> Result<(), VerifyError> {
        let same = receipt.key_stream_id == self.key_stream_id
            && receipt.main_stream_id == self.batch.stream_id
            && receipt.encryption_generation == self.batch.encryption_generation
            && receipt.batch_digest == self.digest
            && usize::try_from(receipt.envelope_count) == Ok(self.envelopes.len());
        if !same {
            return Err(VerifyError::KeyIdentity);
        }
        if receipt.envelope_root == self.envelope_root {
            Ok(())
        } else {
            Err(VerifyError::EnvelopeRoot)
        }
    }
}

/// The identity of a batch before its envelopes are sealed: what every envelope of it binds.
pub fn batch_context_digest(batch: &KeyRotationBatch) -> Bytes32 {
    preimage::batch_context_digest(
        &batch.context,
        &batch.stream_id,
        batch.encryption_generation,
        &batch.previous_batch_digest,
        &batch.membership_set_digest,
        batch.created_at_ms,
    )
}
