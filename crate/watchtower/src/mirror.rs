//! Byte-layout mirrors: what whoever wraps or unwraps a content key hashes and binds. Plain concatenation, no CBOR.

use alloc::vec::Vec;

use remuda_wire::Bytes32;

use crate::message::StreamId;

/// The domain under which content keys of this family are wrapped.
pub const CIP7_CONTENT_KEY_IBE_DOMAIN: &str = "cbss/ibe/cip7-content-key/v1";

const IDENTITY_PREFIX: &[u8] = b"cip-7-content-key-v1";
const WRAPPED_DEK_PREFIX: &[u8] = b"cip-7-wd-v1";

/// Names one wrapping of one epoch's content key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentKeyIdentity {
    /// The chain of the stream.
    pub chain_id: u64,
    /// The stream.
    pub stream_id: StreamId,
    /// The epoch.
    pub key_epoch: u64,
    /// Which wrapping of it: starts at 1.
    pub generation: u64,
}

impl ContentKeyIdentity {
    fn fields(&self, prefix: &[u8]) -> Vec<u8> {
        let stream_id = self.stream_id.as_bytes();
        // A stream id is far below 4 GiB: it came in an answer.
        let length = u32::try_from(stream_id.len()).unwrap_or(u32::MAX);
        [
            prefix,
            &self.chain_id.to_be_bytes(),
            &length.to_be_bytes(),
            stream_id,
            &self.key_epoch.to_be_bytes(),
            &self.generation.to_be_bytes(),
        ]
        .concat()
    }

    /// `content_key_identity_bytes`: what is hashed to the curve.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.fields(IDENTITY_PREFIX)
    }

    /// `base_wrapped_dek_aad`: 112 bytes and the stream id. The override hash is of the stream's own committee; `None`
    /// stands for the default one.
    pub fn wrapped_dek_aad(
        &self,
        committee_epoch: u64,
        committee_override_hash: Option<&Bytes32>,
        release_key_material_hash: &Bytes32,
    ) -> Vec<u8> {
        let mut aad = self.fields(WRAPPED_DEK_PREFIX);
        aad.extend_from_slice(&committee_epoch.to_be_bytes());
        aad.push(u8::from(committee_override_hash.is_some()));
        aad.extend_from_slice(&committee_override_hash.unwrap_or(&Bytes32::ZERO).0);
        aad.extend_from_slice(&release_key_material_hash.0);
        aad
    }
}
