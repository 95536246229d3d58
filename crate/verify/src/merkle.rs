//! `merkle_root_v1` (§12.2): an ordered, non-empty list, odd nodes promoted.
//!
//! A root alone does not commit its list: `[a, b]` and `[node(a, b)]` share one. Whoever uses a root commits the count
//! beside it.

use alloc::vec::Vec;

use remuda_wire::preimage::merkle_node;
use remuda_wire::Bytes32;

/// The root of `leaves`, or `None` for no leaf: an empty list has no root.
pub fn merkle_root(mut leaves: Vec<Bytes32>) -> Option<Bytes32> {
    while leaves.len() > 1 {
        let mut written = 0;
        for read in (0..leaves.len()).step_by(2) {
            // A trailing odd node is promoted unchanged, never duplicated.
            leaves[written] = match leaves.get(read + 1) {
                Some(right) => merkle_node(&leaves[read], right),
                None => leaves[read],
            };
            written += 1;
        }
        leaves.truncate(written);
    }
    leaves.pop()
}
