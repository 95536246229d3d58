//! Strict Ed25519 (§9.1): the one place where a signature is judged.
//!
//! Browsers disagree on Ed25519's edge cases, so verification is never left to the platform.

mod comb;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::{EdwardsPoint, Scalar};
use once_cell::race::OnceBox;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::verdict::VerifyError;
use remuda_wire::{Bytes32, Signature, Signed};
use sha2::{Digest, Sha512};

use comb::{Comb, Size};

/// How many signatures of a key are judged before its large table is computed, which costs as much as six or, the first
/// time, twelve.
const SIGNATURES_BEFORE_TABLE: u32 = 16;

/// A public key that is a canonical point, parsed once for all the signatures of its owner.
///
/// Its clones share what it learns: after a few signatures it computes a table of 113 KB, and judges the rest faster.
///
/// ```text
/// accept  <=>  A not of small order,  S < l,  compress(S B - k A) = R bytes,  S B - k A not of small order
/// ```
/// where `k = SHA-512(R || A || M) mod l`. This is `ed25519-dalek`'s `verify_strict` exactly: it decodes `R` only to refuse
/// an `R` of small order, and compares the compressed point with `R`'s bytes. Bytes equal to a compressed point are
/// canonical and decode to it, so the order of the point that was computed is the order of `R`.
#[derive(Clone)]
pub struct PublicKey(Arc<Parsed>);

struct Parsed {
    /// Its canonical bytes.
    encoded: Bytes32,
    point: EdwardsPoint,
    /// A key of small order verifies nothing.
    is_small_order: bool,
    judged: AtomicU32,
    small: OnceBox<Comb>,
    large: OnceBox<Comb>,
}

impl PublicKey {
    /// Parses 32 bytes. `None` when they are no point, or not the canonical bytes of one: such a key verifies nothing.
    pub fn parse(bytes: &Bytes32) -> Option<Self> {
        let point = CompressedEdwardsY(bytes.0).decompress()?;
        // Decompression reduces an over-long coordinate silently; admitting it would give one key several names.
        let canonical = point.compress().to_bytes() == bytes.0;
        canonical.then(|| {
            Self(Arc::new(Parsed {
                encoded: *bytes,
                is_small_order: point.is_small_order(),
                point,
                judged: AtomicU32::new(0),
                small: OnceBox::new(),
                large: OnceBox::new(),
            }))
        })
    }

    /// Parses a tagged key.
    pub fn from_signing_key(key: &SigningPublicKey) -> Option<Self> {
        Self::parse(&key.0)
    }

    /// Its bytes.
    pub fn bytes(&self) -> Bytes32 {
        self.0.encoded
    }

    /// Computes the large table now, which a key otherwise does by itself once it has judged a few signatures. Verdicts
    /// are the same before and after.
    pub fn prepare(&self) {
        self.table(Size::Large);
    }

    /// How many signatures it has judged, its clones included: for tests that none is judged twice.
    pub fn judged(&self) -> u32 {
        self.0.judged.load(Ordering::Relaxed)
    }

    fn table(&self, size: Size) -> &Comb {
        let table = match size {
            Size::Small => &self.0.small,
            Size::Large => &self.0.large,
        };
        table.get_or_init(|| Box::new(Comb::new(self.0.point, size)))
    }

    /// Judges a signature over `message` itself.
    ///
    /// # Errors
    /// [`VerifyError::Signature`], for whatever reason: `ed25519-dalek`'s `verify_strict` says no.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), VerifyError> {
        let Parsed { encoded, is_small_order, judged, large, .. } = &*self.0;
        let before = judged.fetch_add(1, Ordering::Relaxed);
        let few = large.get().is_none() && before < SIGNATURES_BEFORE_TABLE;
        let (commitment, response) = signature.0.split_at(32);
        let mut wide = [0; 64];
        wide[..32].copy_from_slice(response);
        // What reducing changes is not below l.
        let reduced = Scalar::from_bytes_mod_order_wide(&wide);
        if *is_small_order || reduced.as_bytes() != response {
            return Err(VerifyError::Signature);
        }
        let hash = Sha512::new().chain_update(commitment).chain_update(encoded.0).chain_update(message);
        let challenge = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
        let size = if few { Size::Small } else { Size::Large };
        let point = comb::difference(&reduced, &challenge, self.table(size));
        if point.compress().as_bytes() == commitment && !point.is_small_order() {
            Ok(())
        } else {
            Err(VerifyError::Signature)
        }
    }

    /// Judges a signed object over its already computed digest.
    ///
    /// # Errors
    /// [`VerifyError::Signature`].
    pub fn verify_digest(&self, object: &dyn Signed, digest: &Bytes32) -> Result<(), VerifyError> {
        self.verify(&digest.0, object.signature())
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.encoded == other.0.encoded
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
