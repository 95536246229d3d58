//! Tails: records of a fast stream as they come, before any proof (`VerificationMode::None`, §12.2.1).
//!
//! A tail paints, a verifying subscription confirms: nothing of a tail is kept, it has no position, and after a cut it goes
//! on with what comes then. What it checks is order, lineage and scope; even the lineage is the provider's word.

use alloc::rc::Rc;
use alloc::vec::Vec;

use remuda_position::PositionKey;
use remuda_session::{ApiMisuse, ProviderError, RequestHandle};
use remuda_verify::fast::{FastState, FastSubscription, FastSubscriptionConfig, Verification};
use remuda_wire::context::SigningContext;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::request::{
    CloseSubscriptionRequest, FastSource, OpenSubscriptionRequest, RequestBody, SubscriptionSource, VerificationMode,
};
use remuda_wire::scope::LaneScope;
use remuda_wire::Bytes32;

use super::apply::{may_help, MAX_RE_ENTRIES};
use super::Engine;
use crate::event::Event;
use crate::failure::Failure;
use crate::subscription::SubscriptionState;

/// The name of a tail: one per scope. It names no stored position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TailKey(pub Bytes32);

impl TailKey {
    /// Of a scope of a stream.
    pub fn derive(context: &SigningContext, stream_id: &Bytes32, scope: &LaneScope) -> Self {
        Self(PositionKey::derive(context, stream_id, VerificationMode::None, scope).0)
    }
}

/// One tail.
#[derive(Debug)]
pub(super) struct Tail {
    scope: LaneScope,
    state: SubscriptionState,
    attempts: u32,
    /// Its id and its judge in the open session.
    open: Option<(Bytes32, FastSubscription<()>)>,
}

impl Tail {
    pub(super) const fn due_at(&self) -> Option<u64> {
        match self.state {
            SubscriptionState::Due { at_ms, .. } => Some(at_ms),
            SubscriptionState::Opening | SubscriptionState::Live | SubscriptionState::Failed => None,
        }
    }

    const fn due(&mut self, at_ms: u64) {
        self.state = SubscriptionState::Due { attempt: self.attempts, at_ms };
    }
}

impl Engine {
    /// Begins a tail of these lanes. The same twice is once; a failed one starts again.
    pub fn tail(&mut self, scope: LaneScope, now_ms: u64) -> TailKey {
        let key = TailKey::derive(&self.config.context, &self.config.stream_id, &scope);
        let failed = self.tails.get(&key).is_some_and(|tail| tail.state == SubscriptionState::Failed);
        if failed || !self.tails.contains_key(&key) {
            let state = SubscriptionState::Due { attempt: 0, at_ms: now_ms };
            self.tails.insert(key, Tail { scope, state, attempts: 0, open: None });
            self.open_due(now_ms);
        }
        key
    }

    /// Ends a tail.
    pub fn end_tail(&mut self, key: TailKey, now_ms: u64) {
        self.leave_tail(key, now_ms);
        self.tails.remove(&key);
    }

    /// Opens every tail whose time has come.
    pub(super) fn open_due_tails(&mut self, now_ms: u64) {
        let is_due = |tail: &Tail| tail.due_at().is_some_and(|at_ms| at_ms <= now_ms);
        let keys: Vec<_> = self.tails.iter().filter(|(_, tail)| is_due(tail)).map(|(key, _)| *key).collect();
        for key in keys {
            if !self.in_session {
                return;
            }
            if let Err(misuse) = self.open_tail(key, now_ms) {
                self.tail_failed(key, Failure::from(misuse), now_ms);
            }
        }
    }

    fn open_tail(&mut self, key: TailKey, now_ms: u64) -> Result<(), ApiMisuse> {
        let subscription_id = self.fresh_id();
        let Some(tail) = self.tails.get_mut(&key) else { return Ok(()) };
        let scope = tail.scope.clone();
        let config = FastSubscriptionConfig {
            context: self.config.context.clone(),
            stream_id: self.config.stream_id,
            encrypted: self.keys.stream().is_none_or(|stream| stream.encrypted),
            subscription_id,
            verification: Verification::None(scope.clone()),
        };
        tail.open = Some((subscription_id, FastSubscription::new(config, FastState::default())));
        tail.state = SubscriptionState::Opening;
        let request = OpenSubscriptionRequest {
            stream_id: self.config.stream_id,
            subscription_id,
            source: SubscriptionSource::Fast(FastSource { scope, after: None }),
            after_group_receipt: None,
            verification: VerificationMode::None,
        };
        let handle = self.channel.submit(RequestBody::OpenSubscription(request), now_ms)?;
        self.opening_tails.insert(handle, (key, subscription_id));
        self.handle_channel(now_ms);
        Ok(())
    }

    fn leave_tail(&mut self, key: TailKey, now_ms: u64) {
        let Some((subscription_id, _)) = self.tails.get_mut(&key).and_then(|tail| tail.open.take()) else { return };
        let close = CloseSubscriptionRequest { stream_id: self.config.stream_id, subscription_id };
        // Not open there any more is as good as closed.
        if self.channel.submit(RequestBody::CloseSubscription(close), now_ms).is_ok() {
            self.handle_channel(now_ms);
        }
    }

    fn tail_of(&self, subscription_id: &Bytes32) -> Option<TailKey> {
        let is_it = |tail: &Tail| tail.open.as_ref().is_some_and(|(id, _)| id == subscription_id);
        self.tails.iter().find(|(_, tail)| is_it(tail)).map(|(key, _)| *key)
    }

    /// The answer to the opening of a tail; false for every other answer.
    pub(super) fn answer_tail(&mut self, handle: RequestHandle, refused: Option<&ProviderError>, now_ms: u64) -> bool {
        let Some((key, subscription_id)) = self.opening_tails.remove(&handle) else { return false };
        if self.tail_of(&subscription_id) != Some(key) {
            return true;
        }
        match refused {
            None => {
                if let Some(tail) = self.tails.get_mut(&key) {
                    tail.state = SubscriptionState::Live;
                }
            }
            // The session ends by it, and what was to be opened in it is opened in the next.
            Some(error) if error.kind().invalidates_session() || self.refused_grant(error, now_ms) => {}
            Some(error) => self.tail_failed(key, Failure::from(error), now_ms),
        }
        true
    }

    /// Paints a record of a tail at once, whatever the queue waits for; gives back every other.
    pub(super) fn paint(&mut self, delivery: RecordDelivery, now_ms: u64) -> Option<RecordDelivery> {
        let Some(key) = self.tail_of(&delivery.subscription_id) else { return Some(delivery) };
        let tail = self.tails.get_mut(&key)?;
        let (_, judge) = tail.open.as_mut()?;
        match judge.handle_delivery(&delivery, ()) {
            Ok(()) => {
                tail.attempts = 0;
                self.tell(Event::Painted { key, record: Rc::new(delivery) });
            }
            Err(refusal) => self.tail_failed(key, refusal.into(), now_ms),
        }
        None
    }

    /// A transition: from here on another lineage is no surprise.
    pub(super) fn tails_meet_transition(&mut self) {
        for (_, judge) in self.tails.values_mut().filter_map(|tail| tail.open.as_mut()) {
            judge.forget();
        }
    }

    /// The provider ended a subscription; false when it was no tail.
    pub(super) fn tail_ended(&mut self, subscription_id: &Bytes32, error: &ProviderError, now_ms: u64) -> bool {
        let Some(key) = self.tail_of(subscription_id) else { return false };
        if let Some(tail) = self.tails.get_mut(&key) {
            tail.open = None;
        }
        self.tail_failed(key, Failure::from(error), now_ms);
        true
    }

    /// The session is over: tails go on in the next one.
    pub(super) fn detach_tails(&mut self, now_ms: u64) {
        self.opening_tails.clear();
        for tail in self.tails.values_mut().filter(|tail| tail.open.is_some()) {
            tail.open = None;
            tail.due(now_ms);
        }
    }

    fn tail_failed(&mut self, key: TailKey, failure: Failure, now_ms: u64) {
        self.leave_tail(key, now_ms);
        let jitter = self.jitter();
        let Some(tail) = self.tails.get_mut(&key) else { return };
        if may_help(&failure) && tail.attempts < MAX_RE_ENTRIES {
            let delay_ms = self.backoff.delay_ms(tail.attempts, jitter);
            tail.attempts += 1;
            tail.due(now_ms.saturating_add(delay_ms));
        } else {
            tail.state = SubscriptionState::Failed;
            self.tell(Event::TailFailed { key, failure });
        }
    }
}
