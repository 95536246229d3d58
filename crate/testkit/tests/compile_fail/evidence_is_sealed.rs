//! Nobody outside can say what counts as evidence.

use remuda_position::{AdoptedLineage, Boundary, CheckpointEnd, Evidence, StoredItem};
use remuda_wire::verdict::Contradiction;
use remuda_wire::Bytes32;

struct Hint;

impl Evidence for Hint {
    fn follows(&self, _: &Boundary) -> bool {
        true
    }

    fn fork(&self) -> Contradiction {
        Contradiction::CheckpointFork
    }

    fn ends_with(&self) -> Bytes32 {
        Bytes32::ZERO
    }

    fn checkpoint(&self) -> Option<CheckpointEnd> {
        None
    }

    fn adopted(&self) -> Option<AdoptedLineage> {
        None
    }

    fn into_items(self) -> Vec<StoredItem> {
        vec![]
    }
}

fn main() {}
