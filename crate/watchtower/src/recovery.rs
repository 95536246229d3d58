//! The content key from the committee's combined signature (feature `recovery`): the last step of its delivery.
//!
//! ```text
//! K = HKDF-SHA256(salt = DST, ikm = GT, info = DST || base_aad || U)     GT = e(sigma, U), 288 bytes
//! content key = AES-256-GCM(K, nonce, ciphertext, associated data = base_aad || U)
//! ```

use alloc::vec::Vec;

use aes_gcm::aead::{Aead as _, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use ark_bls12_381::{Bls12_381, Fq12, Fq6, G1Affine, G2Affine};
use ark_ec::pairing::Pairing;
use ark_ec::AffineRepr;
use ark_ff::{BigInteger, Field, One, PrimeField};
use hkdf::Hkdf;
use remuda_verify::secret::SecretBytes;
use sha2::Sha256;

use crate::refusal::WatchtowerRefusal;

/// The only `version` of a wrapped key.
pub const WRAPPED_DEK_VERSION: u8 = 2;
/// Length of the nonce.
pub const NONCE_BYTES: usize = 12;
/// Length of a compressed G2 point.
pub const EPHEMERAL_U_BYTES: usize = 96;
/// Length of a sealed content key: 32 and the tag.
pub const CIPHERTEXT_BYTES: usize = 48;

/// `WrappedDek`: a content key, sealed to the committee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedDek {
    /// The format.
    pub version: u8,
    /// The sealed key and its tag.
    pub ciphertext: Vec<u8>,
    /// The nonce of AES-GCM.
    pub nonce: Vec<u8>,
    /// The ephemeral point `U`, compressed.
    pub ephemeral_u: Vec<u8>,
    /// What the sealing binds.
    pub aad: Vec<u8>,
}

/// Recovers a content key. `base_aad` is what *we* expect ([`crate::mirror::ContentKeyIdentity::wrapped_dek_aad`]), `sigma`
/// the committee's combined signature, `dst` the domain of the family.
///
/// # Errors
/// In this order: [`WatchtowerRefusal::WrappedDek`], [`WatchtowerRefusal::Point`] for `U` and then `sigma`,
/// [`WatchtowerRefusal::Aad`], [`WatchtowerRefusal::Aead`].
pub fn unwrap_content_key(
    dst: &str,
    sigma: &[u8],
    base_aad: &[u8],
    wrapped: &WrappedDek,
) -> Result<SecretBytes, WatchtowerRefusal> {
    let lengths = (wrapped.ciphertext.len(), wrapped.nonce.len(), wrapped.ephemeral_u.len());
    if wrapped.version != WRAPPED_DEK_VERSION || lengths != (CIPHERTEXT_BYTES, NONCE_BYTES, EPHEMERAL_U_BYTES) {
        return Err(WatchtowerRefusal::WrappedDek);
    }
    let ephemeral: G2Affine = point(&wrapped.ephemeral_u)?;
    let sigma: G1Affine = point(sigma)?;
    let aad = [base_aad, &wrapped.ephemeral_u].concat();
    if wrapped.aad != aad {
        return Err(WatchtowerRefusal::Aad);
    }
    let shared = compress(&Bls12_381::pairing(sigma, ephemeral).0).ok_or(WatchtowerRefusal::Aead)?;
    let key = SecretBytes::filled(|key| {
        let extracted = Hkdf::<Sha256>::new(Some(dst.as_bytes()), &shared);
        let expanded = extracted.expand_multi_info(&[dst.as_bytes(), &aad], key);
        debug_assert!(expanded.is_ok());
    });
    let cipher = Aes256Gcm::new(key.expose().into());
    let sealed = Payload { msg: &wrapped.ciphertext, aad: &aad };
    let opened = cipher.decrypt(Nonce::from_slice(&wrapped.nonce), sealed).map_err(|_| WatchtowerRefusal::Aead)?;
    opened.as_slice().try_into().map(SecretBytes::new).map_err(|_| WatchtowerRefusal::Aead)
}

/// A point of the prime-order subgroup other than the identity, in its one compressed encoding.
fn point<P: AffineRepr>(bytes: &[u8]) -> Result<P, WatchtowerRefusal> {
    let point = P::deserialize_compressed(bytes).map_err(|_| WatchtowerRefusal::Point)?;
    let mut again = Vec::new();
    point.serialize_compressed(&mut again).map_err(|_| WatchtowerRefusal::Point)?;
    if again != bytes || point.is_zero() {
        return Err(WatchtowerRefusal::Point);
    }
    Ok(point)
}

/// The torus compression of a pairing's result (Naehrig, Barreto, Schwabe, §4.1): `(c0 + 1) / c1`, six field elements of
/// 48 bytes, little-endian. `None` for one, which no two points of the subgroup other than the identity pair to.
fn compress(element: &Fq12) -> Option<Vec<u8>> {
    let torus: Fq6 = (element.c0 + Fq6::one()) * element.c1.inverse()?;
    let coefficients = [torus.c0, torus.c1, torus.c2].into_iter().flat_map(|pair| [pair.c0, pair.c1]);
    Some(coefficients.flat_map(|coefficient| coefficient.into_bigint().to_bytes_le()).collect())
}
