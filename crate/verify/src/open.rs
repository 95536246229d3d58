//! What a member is sent: the data key in its envelope (§9.3), sealed and opened.

use alloc::vec::Vec;

use remuda_wire::key::HpkePublicKey;
use remuda_wire::key_batch::{HpkeCiphertext, KeyEnvelope, KeyRotationBatch};
use remuda_wire::preimage::recipient_order_key;
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

use crate::hpke::{self, MessageKey};
use crate::key_batch::batch_context_digest;
use crate::secret::SecretBytes;

/// The `info` of every envelope.
const ENVELOPE_INFO: &[u8] = b"cbqs/key-envelope-hpke/v1";

/// The public key that envelopes for this X25519 secret key name.
pub fn hpke_public_key(recipient_secret_key: &SecretBytes) -> HpkePublicKey {
    HpkePublicKey(hpke::public_key(recipient_secret_key))
}

/// The X25519 key at the start of an HPKE ciphertext: what the recipient's key is to agree with.
pub fn encapsulated_key(envelope: &KeyEnvelope) -> Bytes32 {
    envelope.hpke_ciphertext.first_chunk().copied().map_or(Bytes32::ZERO, Bytes32)
}

/// Opens our envelope of a trusted batch: the data key of its generation.
///
/// # Errors
/// [`VerifyError::KeyIdentity`] when the envelope is not of this batch or not for this key, then [`VerifyError::Hpke`].
pub fn open_envelope(
    envelope: &KeyEnvelope,
    batch: &KeyRotationBatch,
    recipient_secret_key: &SecretBytes,
) -> Result<SecretBytes, VerifyError> {
    check_identity(envelope, batch, &hpke_public_key(recipient_secret_key))?;
    let agreed = hpke::agree(recipient_secret_key, &encapsulated_key(envelope)).ok_or(VerifyError::Hpke)?;
    open_agreed(envelope, batch, &agreed)
}

/// Opens an envelope of a trusted batch by what its recipient agreed on: X25519 of the recipient's private key and [`encapsulated_key`].
///
/// # Errors
/// [`VerifyError::KeyIdentity`] when the envelope is not of this batch, then [`VerifyError::Hpke`].
pub fn open_agreed(
    envelope: &KeyEnvelope,
    batch: &KeyRotationBatch,
    agreed: &SecretBytes,
) -> Result<SecretBytes, VerifyError> {
    let recipient = envelope.recipient_hpke_key;
    check_identity(envelope, batch, &recipient)?;
    let key = MessageKey::derive(agreed, &encapsulated_key(envelope), &recipient.0, ENVELOPE_INFO);
    let key = key.ok_or(VerifyError::Hpke)?;
    let sealed = envelope.hpke_ciphertext.get(Bytes32::ZERO.0.len()..).unwrap_or_default();
    let opened = key.open(sealed, &envelope_associated_data(envelope, batch)).ok_or(VerifyError::Hpke)?;
    let data_key = opened.as_slice().try_into().map_err(|_| VerifyError::Hpke)?;
    Ok(SecretBytes::new(data_key))
}

/// Seals the data key of `batch`'s generation for one member. Of the batch only its identity before its envelopes is looked at:
/// context, stream, generation, predecessor, membership and time. `ephemeral` is fresh secret random bytes, used for nothing else.
///
/// # Errors
/// [`VerifyError::Hpke`] for a recipient key of small order: nobody could open what is sealed for it.
pub fn seal_envelope(
    recipient: &HpkePublicKey,
    batch: &KeyRotationBatch,
    data_key: &SecretBytes,
    ephemeral: &SecretBytes,
) -> Result<KeyEnvelope, VerifyError> {
    let mut envelope = KeyEnvelope {
        stream_id: batch.stream_id,
        encryption_generation: batch.encryption_generation,
        recipient_hpke_key: *recipient,
        hpke_ciphertext: HpkeCiphertext([0; 80]),
    };
    let encapsulated = hpke::public_key(ephemeral);
    let agreed = hpke::agree(ephemeral, &recipient.0).ok_or(VerifyError::Hpke)?;
    let key = MessageKey::derive(&agreed, &encapsulated, &recipient.0, ENVELOPE_INFO).ok_or(VerifyError::Hpke)?;
    let sealed = key.seal(data_key.expose(), &envelope_associated_data(&envelope, batch)).ok_or(VerifyError::Hpke)?;
    let ciphertext = [&encapsulated.0[..], &sealed].concat();
    envelope.hpke_ciphertext = HpkeCiphertext(ciphertext.try_into().map_err(|_| VerifyError::Hpke)?);
    Ok(envelope)
}

fn check_identity(
    envelope: &KeyEnvelope,
    batch: &KeyRotationBatch,
    recipient: &HpkePublicKey,
) -> Result<(), VerifyError> {
    let of_batch =
        envelope.stream_id == batch.stream_id && envelope.encryption_generation == batch.encryption_generation;
    if of_batch && envelope.recipient_hpke_key == *recipient {
        Ok(())
    } else {
        Err(VerifyError::KeyIdentity)
    }
}

/// What an envelope binds: `stream_id || generation || recipient order key || batch_context_digest`, 104 bytes.
pub fn envelope_associated_data(envelope: &KeyEnvelope, batch: &KeyRotationBatch) -> Vec<u8> {
    [
        envelope.stream_id.0.as_slice(),
        &envelope.encryption_generation.to_be_bytes(),
        &recipient_order_key(&envelope.recipient_hpke_key).0,
        &batch_context_digest(batch).0,
    ]
    .concat()
}
