//! Where a fast subscription stands in its checkpoint chain.

use remuda_wire::Bytes32;

/// What is known of the chain so far. A `None` is not known, and what it would be compared with is not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastState {
    /// The adopted lineage.
    pub broker_epoch: Option<u64>,
    /// The sequence that the next checkpoint starts at.
    pub next_sequence: Option<u64>,
    /// What the next checkpoint names as its predecessor: the last checkpoint's digest or the adopted transition's.
    pub tail: Option<Bytes32>,
    /// The last verified checkpoint's digest, or checkpoint genesis.
    pub last_checkpoint: Option<Bytes32>,
    /// The last sequence of that checkpoint; `None` for genesis.
    pub last_durable_sequence: Option<u64>,
}
