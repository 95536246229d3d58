//! Lanes (§8).

use crate::bound;
use crate::bytes::Bytes32;
use crate::codec::List;
use crate::error::DecodeError;

tags! {
    /// The status of a lane.
    pub enum LaneStatus: u8 { Active = 1, Closed = 2, }
}

object! {
    /// `LaneRecordV1`.
    pub struct LaneRecord {
        stream_id: Bytes32,
        lane_id: Bytes32,
        status: LaneStatus,
        created_at_ms: u64,
        metadata_hash: Bytes32,
    }
}

object! {
    /// `LaneEventV1`: the payload of a provider event on the default lane.
    pub struct LaneEvent {
        stream_id: Bytes32,
        lane_id: Bytes32,
        status: LaneStatus,
        metadata_hash: Bytes32,
        occurred_at_ms: u64,
    }
}

object! {
    /// `LanePageV1` (§13.2): strictly ascending, and its cursor is its last lane.
    pub struct LanePage {
        lanes: List<LaneRecord, { bound::MAX_LANE_LIST_PAGE }>,
        next_after_lane_id: Option<Bytes32>,
    }
    check |page: &LanePage| {
        if !page.lanes.is_sorted_by(|a, b| a.lane_id < b.lane_id) {
            return Err(DecodeError::NotAscending);
        }
        match (page.next_after_lane_id, page.lanes.last()) {
            (Some(next), Some(last)) if next == last.lane_id => Ok(()),
            (None, _) => Ok(()),
            (Some(_), _) => Err(DecodeError::PageShape),
        }
    };
}
