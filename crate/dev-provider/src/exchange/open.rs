//! `OpenSubscription` (§12.2.2, §13.1): a verifying mode starts at a boundary that we check.

use std::sync::Arc;

use remuda_wire::bound::MAX_PROOF_LANES_PER_SUBSCRIPTION;
use remuda_wire::chain::DeliveryClass;
use remuda_wire::grant::{StreamGrant, Verb};
use remuda_wire::record::FastRecordId;
use remuda_wire::request::{
    FastSource, OpenSubscriptionRequest, StandardReplaySource, SubscriptionSource, VerificationMode,
};
use remuda_wire::response::SubscriptionState;
use remuda_wire::retention::FastRetentionAnchor;
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes32, Canonical, ProviderEpoch, Signature, Signed};

use super::Exchange;
use crate::epoch::Head;
use crate::keys::sign;
use crate::log::Log;
use crate::refusal::{Code, Refusal};
use crate::session::{Session, SessionState};
use crate::subscription::{Cursor, Fast, Replay, Source, Subscription};

/// `cbqs.max_subscriptions_per_connection`, default.
const MAX_SUBSCRIPTIONS: usize = 256;

impl Exchange {
    pub(super) fn open_subscription(
        &self,
        body: &OpenSubscriptionRequest,
        session: &Session,
        state: &mut SessionState,
    ) -> anyhow::Result<Result<SubscriptionState, Refusal>> {
        if let Err(refusal) = self.check_request(body, &session.admitted.grant) {
            return Ok(Err(refusal));
        }
        let source = match &body.source {
            SubscriptionSource::Fast(source) => self.open_fast(source, body.verification, &session.admitted.grant)?,
            SubscriptionSource::StandardReplay(source) => self.open_replay(&body.stream_id, source)?,
            SubscriptionSource::StandardGroup(_) | SubscriptionSource::DeadLetters(_) => {
                Err(Refusal::new(Code::GroupNotFound, "no such group"))
            }
        };
        let source = match source {
            Ok(source) => source,
            Err(refusal) => return Ok(Err(refusal)),
        };
        // The same id opened again begins again.
        state.subscriptions.retain(|it| *it.id() != body.subscription_id);
        if state.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Ok(Err(Refusal::new(Code::SubscriptionLimitExceeded, "too many subscriptions in this session")));
        }
        let holder = session.admitted.grant.holder_signing_key.0;
        state.subscriptions.push(Subscription::new(body.subscription_id, holder, source));
        Ok(Ok(SubscriptionState { stream_id: body.stream_id, subscription_id: body.subscription_id }))
    }

    fn open_fast(
        &self,
        source: &FastSource,
        mode: VerificationMode,
        grant: &StreamGrant,
    ) -> anyhow::Result<Result<Source, Refusal>> {
        let cursor = self.start(source, mode, grant)?;
        Ok(cursor.map(|cursor| Source::Fast(Fast::new(source.scope.clone(), mode, cursor))))
    }

    fn open_replay(
        &self,
        stream_id: &Bytes32,
        source: &StandardReplaySource,
    ) -> anyhow::Result<Result<Source, Refusal>> {
        let log = self.log_of(stream_id);
        let next_sequence = source.after.map_or(0, |id| id.sequence.saturating_add(1));
        Ok(Ok(Source::Replay(Replay::new(log, source.scope.clone(), next_sequence))))
    }

    /// The log of one of our streams.
    fn log_of(&self, stream_id: &Bytes32) -> Arc<Log> {
        let key = self.key_log.as_ref().filter(|log| log.stream_id == *stream_id);
        Arc::clone(key.unwrap_or(&self.log))
    }

    /// Where the subscription begins.
    fn start(
        &self,
        source: &FastSource,
        mode: VerificationMode,
        grant: &StreamGrant,
    ) -> anyhow::Result<Result<Cursor, Refusal>> {
        let head = self.broker.head().borrow().clone();
        let Some(after) = source.after else { return self.current_boundary(&head, mode).map(Ok) };
        if after.broker_epoch.saturating_add(1) < head.epoch {
            return self.cursor_too_old(&head).map(Err);
        }
        if mode != VerificationMode::None && !self.broker.is_boundary(after.broker_epoch, after.sequence)? {
            let message = "after names no checkpoint of the adopted or the preceding lineage";
            return Ok(Err(Refusal::new(Code::NotCheckpointBoundary, message)));
        }
        if after.broker_epoch > head.epoch {
            return Ok(Err(Refusal::new(Code::NotCheckpointBoundary, "after is of an epoch that has not begun")));
        }
        if is_before(&after, &head) && !grant.verbs.contains(Verb::Replay) {
            return Ok(Err(Refusal::new(Code::VerbDenied, "starting before the live head needs REPLAY")));
        }
        Ok(Ok(Cursor { epoch: after.broker_epoch, next_sequence: after.sequence.saturating_add(1) }))
    }

    /// Without `after`: the durable head. A verifying mode whose epoch has no checkpoint yet starts at the end of the
    /// preceding lineage, so that the transition is served and links what follows.
    fn current_boundary(&self, head: &Head, mode: VerificationMode) -> anyhow::Result<Cursor> {
        let at_head = Cursor { epoch: head.epoch, next_sequence: head.next_sequence };
        let Some(previous) = head.epoch.checked_sub(1) else { return Ok(at_head) };
        if mode == VerificationMode::None || head.next_sequence > 0 {
            return Ok(at_head);
        }
        let transition = self.broker.transition(head.epoch)?;
        let last = transition.last_durable_sequence;
        let boundary_is_there = match last {
            Some(last) => self.broker.is_boundary(previous, last)?,
            None => false,
        };
        let next_sequence = if boundary_is_there { last.map_or(0, |last| last.saturating_add(1)) } else { 0 };
        Ok(Cursor { epoch: previous, next_sequence })
    }

    /// The signed floor: the adopted epoch is kept from its first record on.
    fn cursor_too_old(&self, head: &Head) -> anyhow::Result<Refusal> {
        let chain = &self.broker.chain;
        let mut anchor = FastRetentionAnchor {
            context: chain.context().clone(),
            served_at: chain.view(),
            stream_id: chain.stream_id(),
            provider_epoch: ProviderEpoch,
            broker_epoch: head.epoch,
            first_retained_sequence: 0,
            previous_checkpoint: self.broker.transition(head.epoch)?.digest(),
            committed_at_ms: chain.now_ms(),
            signature: Signature::ZERO,
        };
        anchor.signature = sign(&self.broker.keys.provider, &anchor);
        let message = "the cursor is older than the preceding broker epoch";
        Ok(Refusal::new(Code::CursorTooOld, message).with_details(anchor.to_bytes()))
    }

    /// What needs no state: class, source, mode, verbs and scopes.
    fn check_request(&self, body: &OpenSubscriptionRequest, grant: &StreamGrant) -> Result<(), Refusal> {
        let records = self.broker.chain.records();
        let class = records.of(&body.stream_id).map(|stream| stream.delivery_class);
        let verifying = body.verification != VerificationMode::None;
        let fast = match &body.source {
            SubscriptionSource::Fast(source) if class == Some(DeliveryClass::Fast) => Some(source),
            SubscriptionSource::Fast(_) => return Err(incompatible("source", "this is a standard stream")),
            _ if verifying => return Err(incompatible("source", "a verifying mode needs a fast source")),
            _ if class == Some(DeliveryClass::Fast) => {
                return Err(Refusal::new(Code::FastModeHasNoLeases, "this is a fast stream"))
            }
            _ => None,
        };
        if let Some(source) = fast {
            check_mode(body.verification, &source.scope)?;
        }
        let (verb, group) = match &body.source {
            SubscriptionSource::StandardGroup(source) => (Verb::Consume, Some(source.group_id)),
            SubscriptionSource::DeadLetters(source) => (Verb::Consume, Some(source.group_id)),
            SubscriptionSource::StandardReplay(_) => (Verb::Replay, None),
            SubscriptionSource::Fast(_) => (Verb::Consume, None),
        };
        if body.after_group_receipt.is_some() && group.is_none() {
            return Err(incompatible("scope", "a group receipt is a cursor of groups alone"));
        }
        if !grant.verbs.contains(verb) {
            return Err(Refusal::new(Code::VerbDenied, format!("the grant lacks {}", verb.name())));
        }
        if !grant.lane_scope.covers(&scope_of(&body.source)) {
            return Err(Refusal::new(Code::LaneScopeDenied, "the scope is wider than the grant"));
        }
        if group.is_some_and(|group| !grant.group_scope.contains(&group)) {
            return Err(Refusal::new(Code::GroupScopeDenied, "the group is outside the grant"));
        }
        Ok(())
    }
}

fn incompatible(part: &str, message: &str) -> Refusal {
    Refusal::new(Code::VerificationModeIncompatible, message).with_details(part.as_bytes().to_vec())
}

fn scope_of(source: &SubscriptionSource) -> LaneScope {
    match source {
        SubscriptionSource::StandardGroup(source) => LaneScope::Exact(source.lane_id),
        SubscriptionSource::DeadLetters(source) => LaneScope::Exact(source.lane_id),
        SubscriptionSource::StandardReplay(source) => source.scope.clone(),
        SubscriptionSource::Fast(source) => source.scope.clone(),
    }
}

fn check_mode(mode: VerificationMode, scope: &LaneScope) -> Result<(), Refusal> {
    let lanes = scope.lanes().map(<[_]>::len);
    match mode {
        VerificationMode::ScopedProofs if lanes.is_none() => Err(incompatible("scope", "ScopedProofs names its lanes")),
        VerificationMode::FullStream if lanes.is_some() => Err(incompatible("scope", "FullStream is of every lane")),
        VerificationMode::ScopedProofs if lanes.is_some_and(|lanes| lanes > MAX_PROOF_LANES_PER_SUBSCRIPTION) => {
            Err(Refusal::new(Code::ProofScopeTooWide, "at most 512 lanes in one verifying subscription"))
        }
        _ => Ok(()),
    }
}

/// True when records below the durable head are asked for. The last boundary of the preceding lineage is the head
/// while the new epoch has none.
fn is_before(after: &FastRecordId, head: &Head) -> bool {
    let ends_previous = after.broker_epoch.saturating_add(1) == head.epoch
        && head.next_sequence == 0
        && head.last_durable_sequence == Some(after.sequence);
    !ends_previous && (after.broker_epoch, after.sequence.saturating_add(1)) < (head.epoch, head.next_sequence)
}
