//! Groups and leases (§11.2): verbs and scopes here, everything else is [`crate::groups`]'s.

use std::sync::Arc;

use remuda_wire::chain::DeliveryClass;
use remuda_wire::grant::Verb;
use remuda_wire::group::{DeliveryLeaseRef, DeliveryStateUpdate};
use remuda_wire::preimage::signing_key_id;
use remuda_wire::request::{OpenSubscriptionRequest, RequestBody, SubscriptionSource};
use remuda_wire::response::ResponseBody;
use remuda_wire::{Bytes32, Canonical};

use super::Exchange;
use crate::groups::{GroupId, Groups, Settlement};
use crate::refusal::{Code, Refusal};
use crate::session::{Session, SessionState};
use crate::subscription::{Group, Source};

impl Exchange {
    /// A request about a group or a lease.
    ///
    /// # Errors
    /// The outer when the store fails.
    pub(super) async fn about_groups(
        &self,
        body: RequestBody,
        session: &Session,
    ) -> anyhow::Result<Result<ResponseBody, Refusal>> {
        if let Err(refusal) = self.check_about_groups(&body, session) {
            return Ok(Err(refusal));
        }
        if let RequestBody::CreateGroup(body) = &body {
            if !self.lanes.exists(&body.config.lane_id)? {
                return Ok(Err(Refusal::new(Code::LaneNotFound, "no such lane")));
            }
        }
        let groups = Arc::clone(&self.groups);
        let holder = signing_key_id(&session.admitted.grant.holder_signing_key);
        self.broker.chain.clock().write(move || perform(&groups, body, &holder)).await
    }

    fn check_about_groups(&self, body: &RequestBody, session: &Session) -> Result<(), Refusal> {
        let records = self.broker.chain.records();
        let grant = &session.admitted.grant;
        if records.of(&grant.stream_id).is_none_or(|stream| stream.delivery_class == DeliveryClass::Fast) {
            return Err(Refusal::new(Code::FastModeHasNoLeases, "a fast stream has no groups and no leases"));
        }
        if grant.stream_id != records.stream.stream_id {
            return Err(Refusal::new(Code::VerbDenied, "a key stream is read by replay"));
        }
        let (verb, group) = match body {
            RequestBody::CreateGroup(body) => (Verb::GroupAdmin, (body.config.lane_id, body.config.group_id)),
            RequestBody::UpdateGroup(body) => (Verb::GroupAdmin, (body.lane_id, body.group_id)),
            RequestBody::DeleteGroup(body) => (Verb::GroupAdmin, (body.lane_id, body.group_id)),
            RequestBody::Ack(body) => (Verb::Acknowledge, named(&body.lease)),
            RequestBody::Nack(body) => (Verb::Acknowledge, named(&body.lease)),
            RequestBody::Extend(body) => (Verb::Acknowledge, named(&body.lease)),
            RequestBody::Reject(body) => (Verb::Acknowledge, named(&body.lease)),
            RequestBody::Redrive(body) => (Verb::Redrive, (body.lane_id, body.group_id)),
            _ => return Ok(()),
        };
        if !grant.verbs.contains(verb) {
            return Err(Refusal::new(Code::VerbDenied, format!("the grant lacks {}", verb.name())));
        }
        if !grant.lane_scope.contains(&group.0) {
            return Err(Refusal::new(Code::LaneScopeDenied, "the lane is outside the grant"));
        }
        if !grant.group_scope.contains(&group.1) {
            return Err(Refusal::new(Code::GroupScopeDenied, "the group is outside the grant"));
        }
        Ok(())
    }

    /// A subscription of a group, and where its session's updates of the group begin.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3918, 3917 with the group's anchor, 3940.
    pub(super) fn open_group(
        &self,
        body: &OpenSubscriptionRequest,
        session: &Session,
        state: &mut SessionState,
    ) -> anyhow::Result<Result<Source, Refusal>> {
        let (group, dead_letters) = match &body.source {
            SubscriptionSource::StandardGroup(source) => {
                (GroupId { lane_id: source.lane_id, group_id: source.group_id }, None)
            }
            SubscriptionSource::DeadLetters(source) => {
                let above = source.after.map(|id| id.sequence);
                (GroupId { lane_id: source.lane_id, group_id: source.group_id }, Some(above))
            }
            SubscriptionSource::StandardReplay(_) | SubscriptionSource::Fast(_) => anyhow::bail!("no group's source"),
        };
        let Some(row) = self.groups.row(&group)? else {
            return Ok(Err(Refusal::new(Code::GroupNotFound, "no such group")));
        };
        let Some(cursor) = self.groups.after(&group, body.after_group_receipt.as_ref())? else {
            let refusal = Refusal::new(Code::CursorTooOld, "this receipt is not retained");
            return Ok(Err(refusal.with_details(self.groups.anchor(&group, &row).to_bytes())));
        };
        let grant = &session.admitted.grant;
        let holder = signing_key_id(&grant.holder_signing_key);
        let groups = Arc::clone(&self.groups);
        let source = match dead_letters {
            Some(above) => Group::dead_letters(groups, group, row.updates, above),
            None if self.groups.held(&holder)? >= grant.max_in_flight => {
                let message = "this holder has as many leases as its grant allows";
                return Ok(Err(Refusal::new(Code::HolderInFlightLimitExceeded, message)));
            }
            None => Group::leases(groups, group, row.updates, holder, grant.max_in_flight),
        };
        // Another subscription of this session may follow the group already.
        state.subscriptions.retain(|it| *it.id() != body.subscription_id);
        if !state.subscriptions.iter().any(|it| it.follows(&group)) {
            state.group_cursors.insert(group, cursor);
        }
        Ok(Ok(Source::Group(source)))
    }
}

const fn named(lease: &DeliveryLeaseRef) -> (Bytes32, Bytes32) {
    (lease.lane_id, lease.group_id)
}

fn perform(groups: &Groups, body: RequestBody, holder: &Bytes32) -> anyhow::Result<Result<ResponseBody, Refusal>> {
    let settle = |lease: &DeliveryLeaseRef, settlement, answer: fn(DeliveryStateUpdate) -> ResponseBody| {
        Ok(groups.settle(lease, holder, settlement)?.map(answer))
    };
    match body {
        RequestBody::CreateGroup(body) => Ok(groups.create(body.config)?.map(ResponseBody::CreateGroup)),
        RequestBody::UpdateGroup(body) => {
            let group = GroupId { lane_id: body.lane_id, group_id: body.group_id };
            Ok(groups.update_config(&group, &body.config)?.map(ResponseBody::UpdateGroup))
        }
        RequestBody::DeleteGroup(body) => {
            let group = GroupId { lane_id: body.lane_id, group_id: body.group_id };
            Ok(groups.delete(&group)?.map(ResponseBody::DeleteGroup))
        }
        RequestBody::Ack(body) => settle(&body.lease, Settlement::Ack, ResponseBody::Ack),
        RequestBody::Nack(body) => {
            let settlement = Settlement::Nack { retry_after_ms: body.retry_after_ms };
            settle(&body.lease, settlement, ResponseBody::Nack)
        }
        RequestBody::Extend(body) => {
            let settlement = Settlement::Extend { extend_by_ms: body.extend_by_ms };
            settle(&body.lease, settlement, ResponseBody::Extend)
        }
        RequestBody::Reject(body) => {
            let settlement = Settlement::Reject { reason_hash: body.reason_hash };
            settle(&body.lease, settlement, ResponseBody::Reject)
        }
        RequestBody::Redrive(body) => Ok(groups.redrive(&body)?.map(ResponseBody::Redrive)),
        _ => anyhow::bail!("no request about a group"),
    }
}
