//! Paid mode: content keys by epoch, sealed payloads.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use chacha20poly1305::aead::{Aead as _, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
pub use remuda_verify::secret::SecretBytes;
use remuda_wire::Bytes24;
use sha2::Sha256;

use crate::message::{StreamId, StreamMessage, MAX_INLINE_PAYLOAD_BYTES};
use crate::refusal::WatchtowerRefusal;
use crate::signing::associated_data;

const CONTENT_KEY_LABEL: &[u8] = b"cip-7-content-key-v1";

/// Length of the nonce in front of a sealed payload.
pub const NONCE_BYTES: usize = 24;

/// Length of the tag at its end.
pub const TAG_BYTES: usize = 16;

/// The longest plaintext of a sealed payload.
pub const MAX_EFFECTIVE_PLAINTEXT_BYTES: usize = MAX_INLINE_PAYLOAD_BYTES - NONCE_BYTES - TAG_BYTES;

/// `derive_content_key`: HKDF-SHA256 of the publisher's stream secret, for one epoch.
pub fn derive_content_key(
    stream_secret: &SecretBytes,
    chain_id: u64,
    stream_id: &StreamId,
    key_epoch: u64,
) -> SecretBytes {
    let info: [&[u8]; 3] = [&chain_id.to_be_bytes(), stream_id.as_bytes(), &key_epoch.to_be_bytes()];
    SecretBytes::filled(|key| {
        // One hash output of the 255 that HKDF can expand to: the length is never refused.
        let extracted = Hkdf::<Sha256>::new(Some(CONTENT_KEY_LABEL), stream_secret.expose());
        let expanded = extracted.expand_multi_info(&info, key);
        debug_assert!(expanded.is_ok());
    })
}

/// The content keys that the application was given, by stream and epoch.
#[derive(Clone, Debug, Default)]
pub struct ContentKeys(BTreeMap<(StreamId, u64), SecretBytes>);

impl ContentKeys {
    /// Keeps a key; a new one for the same epoch takes the place of the old one.
    pub fn insert(&mut self, stream_id: StreamId, key_epoch: u64, key: SecretBytes) {
        self.0.insert((stream_id, key_epoch), key);
    }

    /// The key of an epoch.
    pub fn get(&self, stream_id: &StreamId, key_epoch: u64) -> Option<&SecretBytes> {
        self.0.get(&(stream_id.clone(), key_epoch))
    }
}

/// Why a payload stays closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenRefused {
    /// No key for this stream and epoch: to be asked for again when one is given.
    StreamAccessRequired {
        /// The epoch whose key is missing.
        key_epoch: u64,
    },
    /// The payload does not open under the key of its epoch.
    Aead,
}

impl OpenRefused {
    /// As a verdict.
    pub const fn verdict(self) -> WatchtowerRefusal {
        match self {
            Self::StreamAccessRequired { .. } => WatchtowerRefusal::AccessRequired,
            Self::Aead => WatchtowerRefusal::Aead,
        }
    }
}

/// An opened payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// What the publisher sealed, or the payload itself when it was not sealed.
    pub plaintext: Vec<u8>,
    /// What bound it to its envelope; `None` when it was not sealed.
    pub associated_data: Option<Vec<u8>>,
}

/// Opens the payload of a message. Looks at neither hash nor signature: verify first.
///
/// # Errors
/// [`OpenRefused`].
pub fn open(keys: &ContentKeys, message: &StreamMessage) -> Result<Opened, OpenRefused> {
    let Some(key_epoch) = message.key_epoch else {
        return Ok(Opened { plaintext: message.payload_inline.clone(), associated_data: None });
    };
    let key = keys.get(&message.stream_id, key_epoch).ok_or(OpenRefused::StreamAccessRequired { key_epoch })?;
    let aad = message_associated_data(message, key_epoch);
    let (nonce, sealed) = message.payload_inline.split_at_checked(NONCE_BYTES).ok_or(OpenRefused::Aead)?;
    let payload = Payload { msg: sealed, aad: &aad };
    let cipher = XChaCha20Poly1305::new(key.expose().into());
    let plaintext = cipher.decrypt(XNonce::from_slice(nonce), payload).map_err(|_| OpenRefused::Aead)?;
    Ok(Opened { plaintext, associated_data: Some(aad) })
}

/// Seals a plaintext for the envelope that `message` describes: `nonce || ciphertext || tag`. The nonce is drawn at random
/// for each message and never used twice under one key.
///
/// # Errors
/// [`WatchtowerRefusal::PayloadTooLarge`] above [`MAX_EFFECTIVE_PLAINTEXT_BYTES`].
pub(crate) fn seal(
    key: &SecretBytes,
    nonce: &Bytes24,
    message: &StreamMessage,
    key_epoch: u64,
    plaintext: &[u8],
) -> Result<Vec<u8>, WatchtowerRefusal> {
    if plaintext.len() > MAX_EFFECTIVE_PLAINTEXT_BYTES {
        return Err(WatchtowerRefusal::PayloadTooLarge);
    }
    let aad = message_associated_data(message, key_epoch);
    let payload = Payload { msg: plaintext, aad: &aad };
    let cipher = XChaCha20Poly1305::new(key.expose().into());
    let sealed =
        cipher.encrypt(XNonce::from_slice(&nonce.0), payload).map_err(|_| WatchtowerRefusal::PayloadTooLarge)?;
    Ok([nonce.0.as_slice(), &sealed].concat())
}

fn message_associated_data(message: &StreamMessage, key_epoch: u64) -> Vec<u8> {
    associated_data(&message.stream_id, message.sequence, key_epoch, &message.kind, &message.content_type)
}
