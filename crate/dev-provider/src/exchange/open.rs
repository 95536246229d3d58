//! `OpenSubscription` on a fast stream (§12.2.2, §13.1): a verifying mode starts at a boundary that we check.

use remuda_wire::bound::MAX_PROOF_LANES_PER_SUBSCRIPTION;
use remuda_wire::grant::{StreamGrant, Verb};
use remuda_wire::record::FastRecordId;
use remuda_wire::request::{FastSource, OpenSubscriptionRequest, SubscriptionSource, VerificationMode};
use remuda_wire::response::SubscriptionState;
use remuda_wire::retention::FastRetentionAnchor;
use remuda_wire::scope::LaneScope;
use remuda_wire::{Canonical, ProviderEpoch, Signature, Signed};

use super::Exchange;
use crate::epoch::Head;
use crate::keys::sign;
use crate::refusal::{Code, Refusal};
use crate::session::{Session, SessionState};
use crate::subscription::{Cursor, Subscription};

/// `cbqs.max_subscriptions_per_connection`, default.
const MAX_SUBSCRIPTIONS: usize = 256;

impl Exchange {
    pub(super) fn open_subscription(
        &self,
        body: &OpenSubscriptionRequest,
        session: &Session,
        state: &mut SessionState,
    ) -> anyhow::Result<Result<SubscriptionState, Refusal>> {
        let source = match check_request(body, &session.admitted.grant) {
            Ok(source) => source,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let cursor = match self.start(source, body.verification, &session.admitted.grant)? {
            Ok(cursor) => cursor,
            Err(refusal) => return Ok(Err(refusal)),
        };
        // The same id opened again begins again.
        state.subscriptions.retain(|it| *it.id() != body.subscription_id);
        if state.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Ok(Err(Refusal::new(Code::SubscriptionLimitExceeded, "too many subscriptions in this session")));
        }
        let holder = session.admitted.grant.holder_signing_key.0;
        let (id, scope) = (body.subscription_id, source.scope.clone());
        state.subscriptions.push(Subscription::new(id, holder, scope, body.verification, cursor));
        Ok(Ok(SubscriptionState { stream_id: body.stream_id, subscription_id: id }))
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
            stream_id: chain.stream().stream_id,
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
}

/// What needs no state: source, mode, verbs and scope.
fn check_request<'a>(body: &'a OpenSubscriptionRequest, grant: &StreamGrant) -> Result<&'a FastSource, Refusal> {
    let verifying = body.verification != VerificationMode::None;
    let source = match &body.source {
        SubscriptionSource::Fast(source) => source,
        _ if verifying => {
            let refusal = Refusal::new(Code::VerificationModeIncompatible, "a verifying mode needs a fast source");
            return Err(refusal.with_details(b"source".to_vec()));
        }
        _ => return Err(Refusal::new(Code::FastModeHasNoLeases, "this is a fast stream")),
    };
    let is_any = source.scope == LaneScope::Any;
    let scope_fits = match body.verification {
        VerificationMode::None => true,
        VerificationMode::ScopedProofs => !is_any,
        VerificationMode::FullStream => is_any,
    };
    if !scope_fits || body.after_group_receipt.is_some() {
        let refusal = Refusal::new(Code::VerificationModeIncompatible, "the scope cannot carry this verifying mode");
        return Err(refusal.with_details(b"scope".to_vec()));
    }
    if verifying && source.scope.lanes().is_some_and(|lanes| lanes.len() > MAX_PROOF_LANES_PER_SUBSCRIPTION) {
        return Err(Refusal::new(Code::ProofScopeTooWide, "at most 512 lanes in one verifying subscription"));
    }
    if !grant.verbs.contains(Verb::Consume) {
        return Err(Refusal::new(Code::VerbDenied, "the grant lacks CONSUME"));
    }
    if !grant.lane_scope.covers(&source.scope) {
        return Err(Refusal::new(Code::LaneScopeDenied, "the scope is wider than the grant"));
    }
    Ok(source)
}

/// True when records below the durable head are asked for. The last boundary of the preceding lineage is the head
/// while the new epoch has none.
fn is_before(after: &FastRecordId, head: &Head) -> bool {
    let ends_previous = after.broker_epoch.saturating_add(1) == head.epoch
        && head.next_sequence == 0
        && head.last_durable_sequence == Some(after.sequence);
    !ends_previous && (after.broker_epoch, after.sequence.saturating_add(1)) < (head.epoch, head.next_sequence)
}
