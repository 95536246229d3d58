//! Keys derived from a stream root (§9.2): `HKDF-SHA256(stream_root, info)`, extract-then-expand with an empty salt.

use ed25519_dalek::SigningKey;
use hkdf::Hkdf;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::Bytes32;
use sha2::Sha256;

pub use crate::secret::SecretBytes;

/// `rotation_seed`: the Ed25519 seed of a stream's rotation key.
pub fn rotation_seed(stream_root: &SecretBytes, stream_id: &Bytes32) -> SecretBytes {
    derive(stream_root, &[b"cbqs/rotation-signing/v1", &stream_id.0])
}

/// The public key of [`rotation_seed`], which both linked stream records hold.
pub fn rotation_public_key(stream_root: &SecretBytes, stream_id: &Bytes32) -> SigningPublicKey {
    let key = SigningKey::from_bytes(rotation_seed(stream_root, stream_id).expose());
    SigningPublicKey(Bytes32(key.verifying_key().to_bytes()))
}

/// `data_key[generation]`: what payloads of one generation are sealed under.
pub fn data_key(stream_root: &SecretBytes, stream_id: &Bytes32, encryption_generation: u64) -> SecretBytes {
    derive(stream_root, &[b"cbqs/data-key/v1", &stream_id.0, &encryption_generation.to_be_bytes()])
}

fn derive(stream_root: &SecretBytes, info: &[&[u8]]) -> SecretBytes {
    SecretBytes::filled(|output| {
        // One hash output of the 255 that HKDF can expand to: the length is never refused.
        let expanded = Hkdf::<Sha256>::new(None, stream_root.expose()).expand_multi_info(info, output);
        debug_assert!(expanded.is_ok());
    })
}
