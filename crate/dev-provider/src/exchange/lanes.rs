//! `CreateLane`, `CloseLane`, `ListLanes` (§8, §13.2).

use std::sync::Arc;

use remuda_wire::chain::DeliveryClass;
use remuda_wire::grant::Verb;
use remuda_wire::lane::{LanePage, LaneRecord};
use remuda_wire::preimage::lane_id;
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::record::RecordId;
use remuda_wire::request::{CloseLaneRequest, CreateLaneRequest, ListLanesRequest};
use remuda_wire::response::LaneMutation;
use remuda_wire::{Bytes32, List};

use super::Exchange;
use crate::lane_book::{LaneBook, LaneChange};
use crate::refusal::{Code, Refusal};
use crate::session::Session;
use crate::store::StoredRecord;

/// `cbqs.max_lane_list_page`, default.
const MAX_PAGE: u32 = 256;

impl Exchange {
    pub(super) async fn create_lane(
        &self,
        body: &CreateLaneRequest,
        session: &Session,
    ) -> anyhow::Result<Result<LaneMutation, Refusal>> {
        if let Err(refusal) = check_admin(session, &lane_id(&body.stream_id, &body.lane_nonce)) {
            return Ok(Err(refusal));
        }
        let _one_at_a_time = self.lane_changes.lock().await;
        let (chain, admitted) = (&self.broker.chain, &session.admitted);
        let max_lanes = chain.records().stream.config.max_lanes;
        let grant = (&admitted.id, &admitted.grant);
        let planned = self.lanes.plan_creation(body, grant, max_lanes, chain.now_ms())?;
        self.change_lane(planned).await
    }

    pub(super) async fn close_lane(
        &self,
        body: &CloseLaneRequest,
        session: &Session,
    ) -> anyhow::Result<Result<LaneMutation, Refusal>> {
        if let Err(refusal) = check_admin(session, &body.lane_id) {
            return Ok(Err(refusal));
        }
        let _one_at_a_time = self.lane_changes.lock().await;
        let planned = self.lanes.plan_closing(&body.lane_id, self.broker.chain.now_ms())?;
        self.change_lane(planned).await
    }

    async fn change_lane(&self, planned: Result<LaneChange, Refusal>) -> anyhow::Result<Result<LaneMutation, Refusal>> {
        let (lane, event) = match planned {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(LaneChange::Repeated(mutation)) => return Ok(Ok(*mutation)),
            Ok(LaneChange::New(change)) => *change,
        };
        let receipt = self.commit_event(lane.clone(), event).await?;
        self.signal.raise();
        Ok(Ok(LaneMutation { lane, receipt }))
    }

    /// The lane, its event, the event's receipt and both tails: one transaction, also on a fast stream.
    async fn commit_event(&self, lane: LaneRecord, event: StoredRecord) -> anyhow::Result<AppendReceipt> {
        let (log, class) = (Arc::clone(&self.log), self.broker.chain.records().stream.delivery_class);
        match class {
            DeliveryClass::Fast => {
                let linked = event.clone();
                let commit = self.broker.append_event(event, move |transaction, id| {
                    let receipt = log.link_in(transaction, &linked, RecordId::Fast(id))?;
                    LaneBook::put_in(transaction, &lane, &receipt)?;
                    Ok(receipt)
                });
                commit.await
            }
            DeliveryClass::Standard => {
                let commit = move || {
                    log.store.write(|transaction| {
                        let receipt = log.append_in(transaction, event)?;
                        LaneBook::put_in(transaction, &lane, &receipt)?;
                        Ok(receipt)
                    })
                };
                self.broker.chain.clock().write(commit).await
            }
        }
    }

    /// One page of the lanes that the grant may know of. The default lane has no record.
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
        let listed = |lane: &Bytes32| grant.lane_scope.contains(lane);
        let (lanes, has_more) = self.lanes.page(body.after_lane_id.as_ref(), limit, listed)?;
        let next_after_lane_id = lanes.last().map(|last| last.lane_id).filter(|_| has_more);
        Ok(Ok(LanePage { lanes: List::new(lanes)?, next_after_lane_id }))
    }
}

fn check_admin(session: &Session, lane_id: &Bytes32) -> Result<(), Refusal> {
    let grant = &session.admitted.grant;
    if !grant.verbs.contains(Verb::LaneAdmin) {
        return Err(Refusal::new(Code::VerbDenied, "the grant lacks LANE_ADMIN"));
    }
    if grant.lane_scope.contains(lane_id) {
        Ok(())
    } else {
        Err(Refusal::new(Code::LaneScopeDenied, "the lane is outside the grant"))
    }
}
