//! The next batch of a stream, from its membership to its signature.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use remuda_verify::key_batch::KeyBatchPosition;
use remuda_verify::open::seal_envelope;
use remuda_verify::secret::SecretBytes;
use remuda_wire::key::HpkePublicKey;
use remuda_wire::key_batch::{KeyEnvelope, KeyRotationBatch};
use remuda_wire::preimage::{
    envelope_digest, key_batch_genesis, key_stream_id, membership_set_digest, recipient_order_key,
};
use remuda_wire::verdict::{Refusal, VerifyError};
use remuda_wire::{bound, Bytes32, List, Remedy, Signature, Signed};

use super::KeyBatchUpload;
use crate::failure::Failure;

/// A batch whose envelopes are sealed, to be signed by the rotation key.
///
/// Made in the order that §9.3 fixes: membership and predecessor, their digests, envelopes, their digests, signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBatchDraft {
    batch: KeyRotationBatch,
    envelopes: Vec<KeyEnvelope>,
}

impl KeyBatchDraft {
    /// Seals `data_key` for each recipient. For the next generation `recipients` is its whole membership: whoever is not named is
    /// removed by it. For the active one it adds members to those of `position`, and removes nobody (§9.4).
    ///
    /// `data_key` is the generation's only one. `created_at_ms` is the clock of the rotation workload. `fresh` gives secret random
    /// bytes, others at each call.
    ///
    /// # Errors
    /// `encryption/empty-rotation` without recipients; `encryption/membership-too-large`; `verify/key-generation` for a generation
    /// that is neither the active one nor the next; `verify/hpke` for a recipient to whom nothing can be sealed.
    pub fn compose(
        position: &KeyBatchPosition<'_>,
        generation: u64,
        recipients: &[HpkePublicKey],
        data_key: &SecretBytes,
        created_at_ms: u64,
        mut fresh: impl FnMut() -> SecretBytes,
    ) -> Result<Self, Failure> {
        let active = position.active_generation;
        if generation != active && Some(generation) != active.checked_add(1) {
            return Err(refused(VerifyError::KeyGeneration));
        }
        let mut in_order = BTreeMap::new();
        for recipient in recipients {
            in_order.insert(recipient_order_key(recipient), *recipient);
        }
        let recipients: Vec<_> = in_order.into_values().collect();
        if recipients.is_empty() {
            return Err(empty_rotation());
        }
        let members: Vec<_> = position.members.iter().chain(&recipients).copied().collect();
        let key_stream_id = key_stream_id(position.main_stream_id);
        let mut batch = KeyRotationBatch {
            context: position.context.clone(),
            stream_id: *position.main_stream_id,
            encryption_generation: generation,
            previous_batch_digest: position
                .batch_tail
                .unwrap_or_else(|| key_batch_genesis(position.context, &key_stream_id)),
            sorted_envelope_digests: List::EMPTY,
            membership_set_digest: membership_set_digest(&members),
            created_at_ms,
            signature: Signature::ZERO,
        };
        if recipients.len() > bound::MAX_KEY_ENVELOPES_PER_BATCH {
            return Err(membership_too_large());
        }
        let envelopes: Result<Vec<_>, _> =
            recipients.iter().map(|recipient| seal_envelope(recipient, &batch, data_key, &fresh())).collect();
        let envelopes = envelopes.map_err(refused)?;
        let digests = envelopes.iter().map(envelope_digest).collect();
        batch.sorted_envelope_digests = List::new(digests).map_err(|_| membership_too_large())?;
        Ok(Self { batch, envelopes })
    }

    /// The batch digest: what the rotation key signs.
    pub fn digest(&self) -> Bytes32 {
        self.batch.digest()
    }

    /// Takes the signature of the rotation key. The batch is judged as every reader will.
    ///
    /// # Errors
    /// Those of [`KeyBatchPosition::verify`]: [`VerifyError::Signature`] for a key that is not the stream's.
    pub fn sign(self, signature: Signature, position: &KeyBatchPosition<'_>) -> Result<KeyBatchUpload, Failure> {
        let batch = KeyRotationBatch { signature, ..self.batch };
        position.verify(batch, self.envelopes).map(KeyBatchUpload::new).map_err(refused)
    }
}

fn refused(refusal: VerifyError) -> Failure {
    Refusal::from(refusal).into()
}

fn empty_rotation() -> Failure {
    Failure {
        code: "encryption/empty-rotation".into(),
        remedy: Remedy::FixRequest,
        rule: "CIP-39 §9.4".into(),
        meaning: "a batch has at least one recipient: the last reader is removed by closing the stream".into(),
    }
}

fn membership_too_large() -> Failure {
    Failure {
        code: "encryption/membership-too-large".into(),
        remedy: Remedy::FixRequest,
        rule: "CIP-39 §18".into(),
        meaning: "a batch has at most 65,536 recipients".into(),
    }
}
