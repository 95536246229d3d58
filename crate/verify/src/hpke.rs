//! HPKE base mode (RFC 9180), suite `X25519-HKDF-SHA256/ChaCha20Poly1305`, behind a Diffie-Hellman secret that somebody else computed.
//!
//! The member's private key may be one that no code can read: then only its owner can agree, and what follows is here. Libraries
//! take the private key itself.

use alloc::vec::Vec;

use chacha20poly1305::aead::{Aead as _, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use curve25519_dalek::constants::X25519_BASEPOINT;
use curve25519_dalek::montgomery::MontgomeryPoint;
use hkdf::Hkdf;
use remuda_wire::Bytes32;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::secret::SecretBytes;

/// `"KEM" || I2OSP(kem_id, 2)`.
const KEM_SUITE: &[u8] = b"KEM\x00\x20";
/// `"HPKE" || I2OSP(kem_id, 2) || I2OSP(kdf_id, 2) || I2OSP(aead_id, 2)`.
const SUITE: &[u8] = b"HPKE\x00\x20\x00\x01\x00\x03";
const VERSION: &[u8] = b"HPKE-v1";
const MODE_BASE: &[u8] = &[0];

/// X25519 (RFC 7748) of a secret and a public key. `None` when the answer is all zero, as for every point of small order.
pub fn agree(secret_key: &SecretBytes, public_key: &Bytes32) -> Option<SecretBytes> {
    let shared =
        SecretBytes::filled(|out| *out = MontgomeryPoint(public_key.0).mul_clamped(*secret_key.expose()).to_bytes());
    is_contributory(&shared).then_some(shared)
}

/// The X25519 public key of a secret key.
pub fn public_key(secret_key: &SecretBytes) -> Bytes32 {
    Bytes32(X25519_BASEPOINT.mul_clamped(*secret_key.expose()).to_bytes())
}

/// What one message is sealed under.
pub(crate) struct MessageKey {
    key: SecretBytes,
    nonce: Zeroizing<[u8; 12]>,
}

impl MessageKey {
    /// Derives it from the agreed secret of the encapsulated key and the recipient's, for this `info`. `None` when the secret is
    /// all zero.
    pub(crate) fn derive(
        agreed: &SecretBytes,
        encapsulated: &Bytes32,
        recipient: &Bytes32,
        info: &[u8],
    ) -> Option<Self> {
        if !is_contributory(agreed) {
            return None;
        }
        let (_, extracted) = extract(&[], KEM_SUITE, b"eae_prk", agreed.expose());
        let shared = SecretBytes::filled(|out| {
            expand(&extracted, KEM_SUITE, b"shared_secret", &[&encapsulated.0, &recipient.0], out)
        });
        let (no_psk, _) = extract(&[], SUITE, b"psk_id_hash", &[]);
        let (info_hash, _) = extract(&[], SUITE, b"info_hash", info);
        let (_, secret) = extract(shared.expose(), SUITE, b"secret", &[]);
        let context: [&[u8]; 3] = [MODE_BASE, &*no_psk, &*info_hash];
        let key = SecretBytes::filled(|out| expand(&secret, SUITE, b"key", &context, out));
        let mut nonce = Zeroizing::new([0; 12]);
        expand(&secret, SUITE, b"base_nonce", &context, &mut *nonce);
        Some(Self { key, nonce })
    }

    /// Opens the only message. `None` when it is not of this key and associated data.
    pub(crate) fn open(&self, sealed: &[u8], associated_data: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let sealed = Payload { msg: sealed, aad: associated_data };
        self.cipher().decrypt(Nonce::from_slice(&*self.nonce), sealed).ok().map(Zeroizing::new)
    }

    /// Seals the only message: `ciphertext || tag`. `None` for one that the cipher cannot carry.
    pub(crate) fn seal(&self, plaintext: &[u8], associated_data: &[u8]) -> Option<Vec<u8>> {
        let plain = Payload { msg: plaintext, aad: associated_data };
        self.cipher().encrypt(Nonce::from_slice(&*self.nonce), plain).ok()
    }

    fn cipher(&self) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new(self.key.expose().into())
    }
}

/// RFC 9180 §7.1.4: an all-zero secret is refused.
fn is_contributory(agreed: &SecretBytes) -> bool {
    !agreed.is_same(&SecretBytes::new([0; 32]))
}

/// `LabeledExtract`.
fn extract(salt: &[u8], suite: &[u8], label: &[u8], input: &[u8]) -> (Zeroizing<[u8; 32]>, Hkdf<Sha256>) {
    let input = Zeroizing::new([VERSION, suite, label, input].concat());
    let (extracted, expander) = Hkdf::<Sha256>::extract(Some(salt), &input);
    (Zeroizing::new(extracted.into()), expander)
}

/// `LabeledExpand`, to a length that HKDF never refuses.
fn expand(secret: &Hkdf<Sha256>, suite: &[u8], label: &[u8], info: &[&[u8]], out: &mut [u8]) {
    let length = u16::try_from(out.len()).unwrap_or(u16::MAX).to_be_bytes();
    let labeled: Vec<&[u8]> = [&length, VERSION, suite, label].into_iter().chain(info.iter().copied()).collect();
    let expanded = secret.expand_multi_info(&labeled, out);
    debug_assert!(expanded.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        let digits: Vec<u8> = hex.chars().map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap()).collect();
        let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        bytes.try_into().unwrap()
    }

    /// RFC 9180, A.2.1: the first message of base mode.
    #[test]
    fn the_published_vector_opens() {
        let info = bytes::<20>("4f6465206f6e2061204772656369616e2055726e");
        let secret = SecretBytes::new(bytes("8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb"));
        let recipient = Bytes32(bytes("4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a"));
        let encapsulated = Bytes32(bytes("1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a"));
        assert_eq!(public_key(&secret), recipient);
        let agreed = agree(&secret, &encapsulated).unwrap();
        let key = MessageKey::derive(&agreed, &encapsulated, &recipient, &info).unwrap();
        let sealed =
            bytes::<45>("1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28");
        let opened = key.open(&sealed, &bytes::<7>("436f756e742d30")).unwrap();
        assert_eq!(&**opened, b"Beauty is truth, truth beauty");
        assert!(key.open(&sealed, b"Count-1").is_none());
    }

    #[test]
    fn a_secret_of_zeros_makes_no_key() {
        let zeros = SecretBytes::new([0; 32]);
        assert!(MessageKey::derive(&zeros, &Bytes32([1; 32]), &Bytes32([2; 32]), b"").is_none());
        assert!(agree(&SecretBytes::new([9; 32]), &Bytes32([0; 32])).is_none());
    }
}
