//! Content-addressed chunks: a span, a payload, and the root of the binary Merkle tree over it.

use alloc::vec::Vec;

use remuda_wire::preimage::keccak256;
use remuda_wire::Bytes32;

use crate::refusal::BpsRefusal;

/// Length of the span in front of a payload.
pub const SPAN_BYTES: usize = 8;
/// The longest payload.
pub const MAX_PAYLOAD_BYTES: usize = 4_096;

const SEGMENT_BYTES: usize = 32;
/// Levels above the 128 segments.
const LEVELS: usize = 7;

/// The address of a chunk, `span || payload`: `keccak256(span || root)`. The span is hashed as it is.
///
/// # Errors
/// [`BpsRefusal::ChunkLength`].
pub fn chunk_address(chunk: &[u8]) -> Result<Bytes32, BpsRefusal> {
    let (span, payload) = chunk.split_first_chunk::<SPAN_BYTES>().ok_or(BpsRefusal::ChunkLength)?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(BpsRefusal::ChunkLength);
    }
    Ok(keccak256(&[span.as_slice(), &tree_root(payload).0].concat()))
}

/// The root over the payload, zero-padded to 4,096 bytes. Subtrees of nothing but padding are hashed once for each level.
fn tree_root(payload: &[u8]) -> Bytes32 {
    let mut nodes: Vec<Bytes32> = payload.chunks(SEGMENT_BYTES).map(segment).collect();
    let mut padding = Bytes32::ZERO;
    for _ in 0..LEVELS {
        nodes = nodes
            .chunks(2)
            .map(|pair| parent(pair.first().unwrap_or(&padding), pair.get(1).unwrap_or(&padding)))
            .collect();
        padding = parent(&padding, &padding);
    }
    nodes.first().copied().unwrap_or(padding)
}

fn segment(bytes: &[u8]) -> Bytes32 {
    let mut segment = Bytes32::ZERO;
    segment.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    segment
}

fn parent(left: &Bytes32, right: &Bytes32) -> Bytes32 {
    keccak256(&[left.0, right.0].concat())
}
