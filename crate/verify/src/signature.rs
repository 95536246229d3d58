//! Strict Ed25519 (§9.1): the one place where a signature is judged.
//!
//! Browsers disagree on Ed25519's edge cases, so verification is never left to the platform.

use ed25519_dalek::{Signature as DalekSignature, VerifyingKey};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::verdict::VerifyError;
use remuda_wire::{Bytes32, Signature, Signed};

/// A public key that is a canonical point, parsed once for all the signatures of its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Parses 32 bytes. `None` when they are no point, or not the canonical bytes of one: such a key verifies nothing.
    pub fn parse(bytes: &Bytes32) -> Option<Self> {
        let key = VerifyingKey::from_bytes(&bytes.0).ok()?;
        // Decompression reduces an over-long coordinate silently; admitting it would give one key several names.
        (key.to_edwards().compress().to_bytes() == bytes.0).then_some(Self(key))
    }

    /// Parses a tagged key.
    pub fn from_signing_key(key: &SigningPublicKey) -> Option<Self> {
        Self::parse(&key.0)
    }

    /// Judges a signature over `message` itself.
    ///
    /// # Errors
    /// [`VerifyError::Signature`], for whatever reason: `ed25519-dalek`'s `verify_strict` says no.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), VerifyError> {
        let signature = DalekSignature::from_bytes(&signature.0);
        self.0.verify_strict(message, &signature).map_err(|_| VerifyError::Signature)
    }

    /// Judges a signed object over its already computed digest.
    ///
    /// # Errors
    /// [`VerifyError::Signature`].
    pub fn verify_digest<T: Signed>(&self, object: &T, digest: &Bytes32) -> Result<(), VerifyError> {
        self.verify(&digest.0, object.signature())
    }
}

/// Judges a signature under a key that may be no point at all.
///
/// # Errors
/// [`VerifyError::Signature`].
pub fn verify_signature(public_key: &Bytes32, message: &[u8], signature: &Signature) -> Result<(), VerifyError> {
    PublicKey::parse(public_key).ok_or(VerifyError::Signature)?.verify(message, signature)
}
