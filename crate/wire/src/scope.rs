//! Which lanes and groups (§7, §7.2, §13.2).

use alloc::vec::Vec;
use core::ops::Deref;

use crate::bound;
use crate::bytes::Bytes32;
use crate::codec::{Canonical, List, OverBound};
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::writer::Writer;

/// Lane ids, strictly ascending, at least one, at most 16,384.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneSet(List<Bytes32, { bound::MAX_LANE_IDS_PER_GRANT }>);

impl LaneSet {
    /// Sorts and removes duplicates. `None` when no lane is left.
    ///
    /// # Errors
    /// [`OverBound`] above 16,384 distinct lanes.
    pub fn new(mut lanes: Vec<Bytes32>) -> Result<Option<Self>, OverBound> {
        lanes.sort_unstable();
        lanes.dedup();
        let lanes = List::new(lanes)?;
        Ok(if lanes.is_empty() { None } else { Some(Self(lanes)) })
    }

    /// True when `lane_id` is listed.
    pub fn contains(&self, lane_id: &Bytes32) -> bool {
        self.0.binary_search(lane_id).is_ok()
    }
}

impl Deref for LaneSet {
    type Target = [Bytes32];

    fn deref(&self) -> &[Bytes32] {
        &self.0
    }
}

impl Canonical for LaneSet {
    const MIN_BYTES: usize = 4;

    fn read(reader: &mut Reader<'_>) -> Self {
        let lanes = List::<Bytes32, { bound::MAX_LANE_IDS_PER_GRANT }>::read(reader);
        reader.require(!lanes.is_empty(), DecodeError::Empty);
        reader.require(lanes.is_sorted_by(|a, b| a < b), DecodeError::NotAscending);
        Self(lanes)
    }

    fn encode(&self, writer: &mut Writer) {
        self.0.encode(writer);
    }
}

union! {
    /// `lane_scope` of a grant and `SubscriptionScopeV1` of a subscription: the same three forms, the same bytes.
    pub enum LaneScope: u8 {
        Any = 1,
        Exact(lane_id: Bytes32) = 2,
        Set(lanes: LaneSet) = 3,
    }
}

impl LaneScope {
    /// True when `lane_id` is inside.
    pub fn contains(&self, lane_id: &Bytes32) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(lane) => lane == lane_id,
            Self::Set(lanes) => lanes.contains(lane_id),
        }
    }

    /// The lanes by name, ascending; `None` for `Any`.
    pub fn lanes(&self) -> Option<&[Bytes32]> {
        match self {
            Self::Any => None,
            Self::Exact(lane) => Some(core::slice::from_ref(lane)),
            Self::Set(lanes) => Some(lanes),
        }
    }

    /// True when every lane of `requested` is inside: `Any` only in `Any` (§13.2).
    pub fn covers(&self, requested: &Self) -> bool {
        match requested.lanes() {
            None => matches!(self, Self::Any),
            Some(lanes) => lanes.iter().all(|lane| self.contains(lane)),
        }
    }
}

union! {
    /// `group_scope` of a grant.
    pub enum GroupScope: u8 {
        Any = 1,
        Exact(group_id: Bytes32) = 2,
    }
}

impl GroupScope {
    /// True when `group_id` is inside.
    pub fn contains(&self, group_id: &Bytes32) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(group) => group == group_id,
        }
    }
}
