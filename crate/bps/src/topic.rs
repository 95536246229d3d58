//! Feed identifiers, salted with the challenge of the stream that they were signed on.

use alloc::vec::Vec;

use remuda_wire::preimage::keccak256;
use remuda_wire::Bytes32;

/// `Kind` of a feed update.
pub const KIND_DATA: u8 = 1;
/// `Kind` of a claim without an update.
pub const KIND_AUTH: u8 = 2;

const SERVICE_PREFIX: &[u8] = b"bps-service:v1";

/// What separates the feeds of the kinds: nothing for DATA. Still open upstream, so it is nowhere but here.
fn prefix(kind: u8) -> Vec<u8> {
    if kind == KIND_DATA {
        Vec::new()
    } else {
        [SERVICE_PREFIX, &[kind]].concat()
    }
}

/// `topic_s`: the feed that a publisher writes under one challenge.
pub fn session_topic(topic: &Bytes32, kind: u8, challenge: &Bytes32) -> Bytes32 {
    keccak256(&[prefix(kind).as_slice(), &topic.0, &challenge.0].concat())
}

/// The identifier of one update of that feed.
pub fn update_id(session_topic: &Bytes32, index: u64) -> Bytes32 {
    keccak256(&[session_topic.0.as_slice(), &index.to_be_bytes()].concat())
}
