//! The path of one lane proof through the 256 levels of the map (§12.2), what is empty folded away.

use remuda_verify::sparse::{root_from_proof, Proof};
use remuda_wire::checkpoint::{bit, set_bits, CheckpointReceipt, LaneProof};
use remuda_wire::preimage::{empty_subtree, fast_ordered_range_root, lane_payload_digest, merkle_node};
use remuda_wire::Bytes32;
use serde_json::{json, Value};

use crate::json::{big, hex};

/// The proof, the levels on which something is beside its path, and whether it folds into what the checkpoint signs.
pub(crate) fn lane_proof(receipt: &CheckpointReceipt, proof: &LaneProof) -> Value {
    let leaf = proof.payload.as_ref().map(|payload| lane_payload_digest(&proof.lane_id, payload));
    let folded = Proof { key: &proof.lane_id, leaf, bitmap: &proof.bitmap, siblings: &proof.siblings };
    let root = root_from_proof(&folded).ok();
    let range = root.map(|root| {
        let CheckpointReceipt { context, stream_id, broker_epoch, first_sequence, last_sequence, .. } = receipt;
        let count = receipt.record_count();
        fast_ordered_range_root(context, stream_id, *broker_epoch, *first_sequence, *last_sequence, count, &root)
    });
    json!({
        "lane": hex(&proof.lane_id),
        "payload": proof.payload.as_ref().map(|payload| json!({
            "records": payload.lane_record_count,
            "first": big(payload.lane_first_sequence),
            "last": big(payload.lane_last_sequence),
            "root": hex(&payload.lane_sub_root),
        })),
        "leaf": leaf.as_ref().map(hex),
        "levels": levels(proof, leaf),
        "mapRoot": root.as_ref().map(hex),
        "isSigned": range == Some(receipt.ordered_range_root),
    })
}

/// From the root down, the levels that have a sibling which is not empty: its digest, and the node beside it on the path.
fn levels(proof: &LaneProof, leaf: Option<Bytes32>) -> Value {
    let mut siblings: Vec<_> = set_bits(&proof.bitmap).zip(proof.siblings.iter()).collect();
    let mut node = leaf.unwrap_or_else(|| empty_subtree(256));
    let mut rows = Vec::new();
    for depth in (0..=u8::MAX).rev() {
        let below = u16::from(depth) + 1;
        let sibling = siblings.pop_if(|(at, _)| *at == depth).map(|(_, sibling)| *sibling);
        let goes_right = bit(&proof.lane_id, depth);
        if let Some(sibling) = &sibling {
            rows.push(json!({ "depth": depth, "goes": if goes_right { 1 } else { 0 }, "node": hex(&node), "sibling": hex(sibling) }));
        }
        let beside = sibling.unwrap_or_else(|| empty_subtree(below));
        node = if goes_right { merkle_node(&beside, &node) } else { merkle_node(&node, &beside) };
    }
    rows.reverse();
    rows.into()
}
