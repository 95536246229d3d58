//! A run of receipts of one group that was verified: what moves a position in it.

use remuda_wire::Bytes32;

/// Receipts of one group, each authentic and right behind the one before it. Made only by [`super::GroupChain::take_segment`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSegment {
    pub(super) after: Option<Bytes32>,
    pub(super) receipt: Bytes32,
}

impl GroupSegment {
    /// The receipt before the first; `None` when it begins with the creation of the group.
    pub const fn after(&self) -> Option<Bytes32> {
        self.after
    }

    /// The last receipt.
    pub const fn receipt(&self) -> Bytes32 {
        self.receipt
    }
}
