//! "Canonical Hashing and Signing": the bytes that a publisher signs, and those that bind a ciphertext to its envelope.

use alloc::vec::Vec;

use remuda_wire::Bytes32;
use sha2::{Digest, Sha256};

use crate::cbor::map;
use crate::message::{StreamId, StreamMessage, VERSION};

/// Which fields are signed. Later revisions sign more than the document; each would be another profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// The document's eleven.
    #[default]
    Cip7,
}

impl Profile {
    /// The signing payload of a message: deterministic CBOR of exactly the signed fields.
    pub fn signing_bytes(self, message: &StreamMessage) -> Vec<u8> {
        match self {
            Self::Cip7 => map([
                ("stream_id", message.stream_id.to_value()),
                ("version", VERSION.into()),
                ("sequence", message.sequence.into()),
                ("timestamp_unix_ms", message.timestamp_unix_ms.into()),
                ("kind", message.kind.as_str().into()),
                ("content_type", message.content_type.as_str().into()),
                ("tags", message.tags_value()),
                ("payload_format", message.payload_format().name().into()),
                ("payload_hash", message.payload_hash.0.as_slice().into()),
                ("key_epoch", message.key_epoch_value()),
                ("signing_key_id", message.signing_key_id.into()),
            ])
            .to_bytes(),
        }
    }
}

/// The associated data of a sealed payload: deterministic CBOR of the five fields that bind it to its envelope.
pub fn associated_data(stream_id: &StreamId, sequence: u64, key_epoch: u64, kind: &str, content_type: &str) -> Vec<u8> {
    map([
        ("stream_id", stream_id.to_value()),
        ("sequence", sequence.into()),
        ("key_epoch", key_epoch.into()),
        ("kind", kind.into()),
        ("content_type", content_type.into()),
    ])
    .to_bytes()
}

/// SHA-256, by which payloads and signing payloads are named.
pub fn sha256(bytes: &[u8]) -> Bytes32 {
    Bytes32(Sha256::digest(bytes).into())
}
