//! Opening what a member was sent: the data key in its envelope (§9.3).

use alloc::vec::Vec;

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable, Kem, OpModeR, Serializable};
use remuda_wire::key::HpkePublicKey;
use remuda_wire::key_batch::{KeyEnvelope, KeyRotationBatch};
use remuda_wire::preimage::recipient_order_key;
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

use crate::key_batch::batch_context_digest;
use crate::secret::SecretBytes;

/// The `info` of every envelope.
const ENVELOPE_INFO: &[u8] = b"cbqs/key-envelope-hpke/v1";

/// Length of the X25519 encapsulated key at the start of an HPKE ciphertext.
const ENCAPSULATED_KEY_BYTES: usize = 32;

/// The public key that envelopes for this X25519 secret key name. `None` for a secret that is no key.
pub fn hpke_public_key(recipient_secret_key: &SecretBytes) -> Option<HpkePublicKey> {
    let secret = parse_secret(recipient_secret_key)?;
    let public = X25519HkdfSha256::sk_to_pk(&secret).to_bytes();
    Some(HpkePublicKey(Bytes32(public.into())))
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
    let of_batch =
        envelope.stream_id == batch.stream_id && envelope.encryption_generation == batch.encryption_generation;
    if !of_batch || hpke_public_key(recipient_secret_key) != Some(envelope.recipient_hpke_key) {
        return Err(VerifyError::KeyIdentity);
    }
    let secret = parse_secret(recipient_secret_key).ok_or(VerifyError::Hpke)?;
    let (encapsulated, sealed) = envelope.hpke_ciphertext.split_at(ENCAPSULATED_KEY_BYTES);
    let encapsulated = Deserializable::from_bytes(encapsulated).map_err(|_| VerifyError::Hpke)?;
    let associated_data = envelope_associated_data(envelope, batch);
    let opened = hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeR::Base,
        &secret,
        &encapsulated,
        ENVELOPE_INFO,
        sealed,
        &associated_data,
    );
    let opened = zeroize::Zeroizing::new(opened.map_err(|_| VerifyError::Hpke)?);
    let data_key = opened.as_slice().try_into().map_err(|_| VerifyError::Hpke)?;
    Ok(SecretBytes::new(data_key))
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

fn parse_secret(secret: &SecretBytes) -> Option<<X25519HkdfSha256 as Kem>::PrivateKey> {
    Deserializable::from_bytes(secret.expose()).ok()
}
