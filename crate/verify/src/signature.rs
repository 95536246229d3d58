//! Strict Ed25519 (§9.1): the one place where a signature is judged.
//!
//! Browsers disagree on Ed25519's edge cases, so verification is never left to the platform.

mod fixed_key;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use ed25519_dalek::{Signature as DalekSignature, VerifyingKey};
use once_cell::race::OnceBox;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::verdict::VerifyError;
use remuda_wire::{Bytes32, Signature, Signed};

use fixed_key::FixedKey;

/// How many signatures of a key are judged before its table is computed, which costs as much as six or, the first time,
/// twelve.
const SIGNATURES_BEFORE_TABLE: u32 = 16;

/// A public key that is a canonical point, parsed once for all the signatures of its owner.
///
/// Its clones share what it learns: after a few signatures it computes a table of 113 KB, and judges the rest faster.
#[derive(Clone)]
pub struct PublicKey(Arc<Parsed>);

struct Parsed {
    key: VerifyingKey,
    judged: AtomicU32,
    /// `None` inside: the key is of small order.
    table: OnceBox<Option<FixedKey>>,
}

impl PublicKey {
    /// Parses 32 bytes. `None` when they are no point, or not the canonical bytes of one: such a key verifies nothing.
    pub fn parse(bytes: &Bytes32) -> Option<Self> {
        let key = VerifyingKey::from_bytes(&bytes.0).ok()?;
        // Decompression reduces an over-long coordinate silently; admitting it would give one key several names.
        let canonical = key.to_edwards().compress().to_bytes() == bytes.0;
        canonical.then(|| Self(Arc::new(Parsed { key, judged: AtomicU32::new(0), table: OnceBox::new() })))
    }

    /// Parses a tagged key.
    pub fn from_signing_key(key: &SigningPublicKey) -> Option<Self> {
        Self::parse(&key.0)
    }

    /// Its bytes.
    pub fn bytes(&self) -> Bytes32 {
        Bytes32(self.0.key.to_bytes())
    }

    /// Computes the table now, which a key otherwise does by itself once it has judged a few signatures. Verdicts are
    /// the same before and after.
    pub fn prepare(&self) {
        self.table();
    }

    /// How many signatures it has judged, its clones included: for tests that none is judged twice.
    pub fn judged(&self) -> u32 {
        self.0.judged.load(Ordering::Relaxed)
    }

    fn table(&self) -> Option<&FixedKey> {
        let Parsed { key, table, .. } = &*self.0;
        table.get_or_init(|| Box::new(FixedKey::new(self.bytes(), key.to_edwards()))).as_ref()
    }

    /// Judges a signature over `message` itself.
    ///
    /// # Errors
    /// [`VerifyError::Signature`], for whatever reason: `ed25519-dalek`'s `verify_strict` says no.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), VerifyError> {
        let Parsed { key, judged, table } = &*self.0;
        let before = judged.fetch_add(1, Ordering::Relaxed);
        if table.get().is_none() && before < SIGNATURES_BEFORE_TABLE {
            let signature = DalekSignature::from_bytes(&signature.0);
            return key.verify_strict(message, &signature).map_err(|_| VerifyError::Signature);
        }
        if self.table().is_some_and(|table| table.accepts(message, signature)) {
            Ok(())
        } else {
            Err(VerifyError::Signature)
        }
    }

    /// Judges a signed object over its already computed digest.
    ///
    /// # Errors
    /// [`VerifyError::Signature`].
    pub fn verify_digest<T: Signed>(&self, object: &T, digest: &Bytes32) -> Result<(), VerifyError> {
        self.verify(&digest.0, object.signature())
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicKey").field(&self.bytes()).finish()
    }
}

/// Judges a signature under a key that may be no point at all.
///
/// # Errors
/// [`VerifyError::Signature`].
pub fn verify_signature(public_key: &Bytes32, message: &[u8], signature: &Signature) -> Result<(), VerifyError> {
    PublicKey::parse(public_key).ok_or(VerifyError::Signature)?.verify(message, signature)
}
