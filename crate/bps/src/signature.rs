//! Signatures of single-owner chunks: secp256k1 over the Ethereum message of 32 bytes, with the signer recovered.

use core::fmt;

use k256::ecdsa::{RecoveryId, Signature, SigningKey, VerifyingKey};
use remuda_wire::preimage::keccak256;
use remuda_wire::{Address, Bytes32};

/// Length of `r || s || v`.
pub const SIGNATURE_BYTES: usize = 65;

/// `r || s || v`, `v` being 27 or 28.
pub type RecoverableSignature = [u8; SIGNATURE_BYTES];

const MESSAGE_PREFIX: &[u8] = b"\x19Ethereum Signed Message:\n32";

/// What is signed for a message of 32 bytes.
fn ethereum_digest(message: &Bytes32) -> Bytes32 {
    keccak256(&[MESSAGE_PREFIX, &message.0].concat())
}

fn address(key: &VerifyingKey) -> Address {
    let point = key.to_encoded_point(false);
    // The first byte says only that the point is uncompressed.
    let digest = keccak256(point.as_bytes().get(1..).unwrap_or_default());
    let mut address = Address::ZERO;
    address.0.iter_mut().zip(digest.0.iter().skip(12)).for_each(|(to, from)| *to = *from);
    address
}

/// Who signed a message of 32 bytes. `None` when nobody can have: `r` or `s` is zero or not below the group order, `v` is
/// neither 27 nor 28, or there is no such point. Either of the two equivalent `s` is taken.
pub fn recover(message: &Bytes32, signature: &RecoverableSignature) -> Option<Address> {
    let (scalars, v) = signature.split_last_chunk::<1>()?;
    let mut is_odd = match v {
        [27] => false,
        [28] => true,
        _ => return None,
    };
    let mut scalars = Signature::from_slice(scalars).ok()?;
    // The library takes the lower `s` only; the other one belongs to the opposite point.
    if let Some(lower) = scalars.normalize_s() {
        scalars = lower;
        is_odd = !is_odd;
    }
    let digest = ethereum_digest(message);
    let key = VerifyingKey::recover_from_prehash(&digest.0, &scalars, RecoveryId::new(is_odd, false)).ok()?;
    Some(address(&key))
}

/// A key that signs here, where no wallet does. Erased when dropped, never printed.
#[derive(Clone)]
pub struct LocalSigner(SigningKey);

impl LocalSigner {
    /// From a secret scalar. `None` for zero and what is not below the group order.
    pub fn new(secret: &[u8; 32]) -> Option<Self> {
        SigningKey::from_slice(secret).ok().map(Self)
    }

    /// The address that it signs as.
    pub fn address(&self) -> Address {
        address(self.0.verifying_key())
    }

    /// Signs a message of 32 bytes, the same way each time (RFC 6979). `None` for the one digest in 2^127 that a key
    /// cannot sign.
    pub fn sign(&self, message: &Bytes32) -> Option<RecoverableSignature> {
        let (scalars, recovery) = self.0.sign_prehash_recoverable(&ethereum_digest(message).0).ok()?;
        let mut signature = [27 + u8::from(recovery.is_y_odd()); SIGNATURE_BYTES];
        signature.iter_mut().zip(scalars.to_bytes()).for_each(|(to, from)| *to = from);
        Some(signature)
    }
}

impl fmt::Debug for LocalSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalSigner(…)")
    }
}
