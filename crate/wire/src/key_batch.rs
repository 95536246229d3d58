//! Key envelopes, rotation batches and their receipt (§9.3).

use core::ops::Deref;

use crate::bound;
use crate::bytes::{Bytes32, Signature};
use crate::codec::{Canonical, List, ProviderEpoch};
use crate::context::{FinalizedView, SigningContext};
use crate::error::DecodeError;
use crate::key::HpkePublicKey;
use crate::reader::Reader;
use crate::writer::Writer;

/// A sealed data key: 32-byte encapsulated key, then 48 bytes of AEAD output. Any other length is refused as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpkeCiphertext(pub [u8; bound::HPKE_CIPHERTEXT_BYTES]);

impl Deref for HpkeCiphertext {
    type Target = [u8; bound::HPKE_CIPHERTEXT_BYTES];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Canonical for HpkeCiphertext {
    const MIN_BYTES: usize = 4 + bound::HPKE_CIPHERTEXT_BYTES;

    fn read(reader: &mut Reader<'_>) -> Self {
        let length = usize::try_from(u32::read(reader));
        reader.require(length == Ok(bound::HPKE_CIPHERTEXT_BYTES), DecodeError::EnvelopeLength);
        Self(reader.array())
    }

    fn encode(&self, writer: &mut Writer) {
        writer.length(self.0.len());
        writer.raw(&self.0);
    }
}

object! {
    /// `KeyEnvelopeV1`: one member's data key of one generation. `stream_id` is the main stream's.
    pub struct KeyEnvelope {
        stream_id: Bytes32,
        encryption_generation: u64,
        recipient_hpke_key: HpkePublicKey,
        hpke_ciphertext: HpkeCiphertext,
    }
}

object! {
    /// `KeyRotationBatchV1`: signed by the stream's rotation key. `stream_id` is the main stream's.
    pub struct KeyRotationBatch {
        context: SigningContext,
        stream_id: Bytes32,
        encryption_generation: u64,
        previous_batch_digest: Bytes32,
        sorted_envelope_digests: List<Bytes32, { bound::MAX_KEY_ENVELOPES_PER_BATCH }>,
        membership_set_digest: Bytes32,
        created_at_ms: u64,
        signature: Signature,
    }
    check |batch: &KeyRotationBatch| {
        if batch.sorted_envelope_digests.is_empty() { Err(DecodeError::Empty) } else { Ok(()) }
    };
}

object! {
    /// `KeyBatchReceiptV1`: the provider made one batch durable on the key stream.
    #[derive(Copy)]
    pub struct KeyBatchReceipt {
        context: SigningContext,
        served_at: FinalizedView,
        key_stream_id: Bytes32,
        main_stream_id: Bytes32,
        provider_epoch: ProviderEpoch,
        encryption_generation: u64,
        batch_digest: Bytes32,
        envelope_count: u32,
        envelope_root: Bytes32,
        first_sequence: u64,
        last_sequence: u64,
        previous_global_receipt: Bytes32,
        final_append_receipt: Bytes32,
        signature: Signature,
    }
    check |receipt: &KeyBatchReceipt| {
        let count = receipt.envelope_count;
        let counted = usize::try_from(count).is_ok_and(|count| (1..=bound::MAX_KEY_ENVELOPES_PER_BATCH).contains(&count));
        let ranged = receipt.first_sequence.checked_add(u64::from(count)) == Some(receipt.last_sequence);
        let committed = !receipt.envelope_root.is_zero() && !receipt.batch_digest.is_zero();
        if counted && ranged && committed { Ok(()) } else { Err(DecodeError::KeyReceiptShape) }
    };
}
