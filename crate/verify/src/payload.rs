//! Payloads under their headers (§9.1): sealed by whoever holds the data key of their generation.

use alloc::vec::Vec;

use chacha20poly1305::aead::{Aead as _, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use remuda_wire::preimage::aead_associated_data;
use remuda_wire::record::RecordHeader;
use remuda_wire::verdict::VerifyError;

use crate::secret::SecretBytes;

/// Opens the payload of a record under its header. Only client records are sealed: look at origin and kind first.
///
/// # Errors
/// [`VerifyError::Aead`].
pub fn open_payload(data_key: &SecretBytes, header: &RecordHeader, payload: &[u8]) -> Result<Vec<u8>, VerifyError> {
    let cipher = XChaCha20Poly1305::new(data_key.expose().into());
    let associated_data = aead_associated_data(header);
    let sealed = Payload { msg: payload, aad: &associated_data };
    cipher.decrypt(XNonce::from_slice(&header.nonce.0), sealed).map_err(|_| VerifyError::Aead)
}

/// Seals the payload of a record under its header, nonce included: `ciphertext || tag`.
///
/// A nonce is drawn at random for each record and never used twice under one key.
///
/// # Errors
/// [`VerifyError::Aead`] for a plaintext that the cipher cannot carry.
pub fn seal_payload(data_key: &SecretBytes, header: &RecordHeader, plaintext: &[u8]) -> Result<Vec<u8>, VerifyError> {
    let cipher = XChaCha20Poly1305::new(data_key.expose().into());
    let associated_data = aead_associated_data(header);
    let plain = Payload { msg: plaintext, aad: &associated_data };
    cipher.encrypt(XNonce::from_slice(&header.nonce.0), plain).map_err(|_| VerifyError::Aead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use remuda_wire::record::{RecordKind, RecordOrigin};
    use remuda_wire::{Bytes24, Bytes32};

    fn header() -> RecordHeader {
        RecordHeader {
            stream_id: Bytes32([1; 32]),
            lane_id: Bytes32([2; 32]),
            origin: RecordOrigin::Client,
            kind: RecordKind::Application,
            client_message_id: Bytes32([3; 32]),
            created_at_ms: 4,
            visible_after_ms: 0,
            expires_at_ms: 5,
            encryption_generation: 6,
            nonce: Bytes24([7; 24]),
        }
    }

    #[test]
    fn what_is_sealed_opens_under_its_own_header_only() {
        let (key, header) = (SecretBytes::new([8; 32]), header());
        let sealed = seal_payload(&key, &header, b"plain").unwrap();
        assert_eq!(sealed.len(), 5 + 16);
        assert_eq!(open_payload(&key, &header, &sealed).unwrap(), b"plain");
        let moved = RecordHeader { lane_id: Bytes32([9; 32]), ..header };
        assert_eq!(open_payload(&key, &moved, &sealed), Err(VerifyError::Aead));
    }

    #[test]
    fn a_secret_is_never_printed() {
        assert_eq!(alloc::format!("{:?}", SecretBytes::new([0xab; 32])), "SecretBytes(…)");
    }
}
