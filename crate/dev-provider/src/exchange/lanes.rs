//! `ListLanes` (§8, §13.2): one page of the lanes that the grant may know of.

use remuda_wire::grant::Verb;
use remuda_wire::lane::{LanePage, LaneRecord, LaneStatus};
use remuda_wire::request::ListLanesRequest;
use remuda_wire::{Bytes32, List};

use super::Exchange;
use crate::refusal::{Code, Refusal};
use crate::session::Session;

/// `cbqs.max_lane_list_page`, default.
const MAX_PAGE: u32 = 256;

impl Exchange {
    /// The default lane has no record, and demo lanes are as old as the stream: their `created_at_ms` is zero.
    pub(super) fn list_lanes(
        &self,
        body: &ListLanesRequest,
        session: &Session,
    ) -> anyhow::Result<Result<LanePage, Refusal>> {
        let grant = &session.admitted.grant;
        if ![Verb::Consume, Verb::Replay, Verb::LaneAdmin].into_iter().any(|verb| grant.verbs.contains(verb)) {
            return Ok(Err(Refusal::new(Code::VerbDenied, "listing needs CONSUME, REPLAY or LANE_ADMIN")));
        }
        let limit = usize::try_from(body.limit.clamp(1, MAX_PAGE))?;
        let authorized = |lane: &&Bytes32| {
            !lane.is_zero() && grant.lane_scope.contains(lane) && body.after_lane_id.is_none_or(|after| **lane > after)
        };
        let mut rest = self.lanes.iter().filter(authorized);
        let lanes: Vec<_> = rest.by_ref().take(limit).map(|lane_id| demo_lane(&body.stream_id, lane_id)).collect();
        let next_after_lane_id = rest.next().and(lanes.last()).map(|last| last.lane_id);
        Ok(Ok(LanePage { lanes: List::new(lanes)?, next_after_lane_id }))
    }
}

const fn demo_lane(stream_id: &Bytes32, lane_id: &Bytes32) -> LaneRecord {
    let (stream_id, lane_id, status) = (*stream_id, *lane_id, LaneStatus::Active);
    LaneRecord { stream_id, lane_id, status, created_at_ms: 0, metadata_hash: Bytes32::ZERO }
}
