//! What an application asks for.

use alloc::vec::Vec;

use remuda_position::{Boundary, PositionKey, StoreError, StoredPosition};
use remuda_session::ApiMisuse;
use remuda_wire::chain::Purpose;
use remuda_wire::preimage::signing_key_id;
use remuda_wire::request::{CloseSubscriptionRequest, RequestBody};

use super::{Engine, Output, Reread};
use crate::command::{Asker, CommandId, CommandOutcome, PendingRequest};
use crate::event::Event;
use crate::failure::Failure;
use crate::subscription::{Load, Subscription, SubscriptionSpec, SubscriptionState};
use crate::verifier::StreamFacts;
use crate::work::Waiting;

impl Engine {
    /// Subscribes; the position is loaded first. Subscribing to the same twice is once; a failed one starts again.
    pub fn subscribe(&mut self, spec: SubscriptionSpec) -> PositionKey {
        let key = spec.key(&self.config.context, &self.config.stream_id);
        let failed = self.subscriptions.get(&key).is_some_and(|known| known.state == SubscriptionState::Failed);
        if failed || !self.subscriptions.contains_key(&key) {
            self.subscriptions.insert(key, Subscription::new(spec, Boundary::empty(key)));
            self.ask_load(key);
        }
        key
    }

    /// Reads a position; only after the commit that moves it, when one is under way.
    pub(super) fn ask_load(&mut self, key: PositionKey) {
        let committing = self.is_committing(&key);
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        if committing {
            subscription.load = Load::Needed;
            subscription.state = SubscriptionState::Due { attempt: subscription.attempts, at_ms: 0 };
        } else {
            subscription.load = Load::Asked;
            subscription.state = SubscriptionState::Opening;
            self.outputs.push_back(Output::Load { key });
        }
    }

    /// Takes a loaded position: the subscription opens as soon as there is a session.
    pub fn handle_loaded(&mut self, key: PositionKey, stored: Option<StoredPosition>, now_ms: u64) {
        // Only what was asked for, and once: a later answer may be older than what was committed since.
        let Some(subscription) = self.subscriptions.get_mut(&key).filter(|it| it.load == Load::Asked) else { return };
        subscription.load = Load::Done;
        subscription.boundary = stored.map_or_else(|| Boundary::empty(key), |stored| Boundary::stored(key, stored));
        subscription.state = SubscriptionState::Due { attempt: subscription.attempts, at_ms: now_ms };
        self.tell(Event::StatusChanged);
        self.advance_hydrations(now_ms);
        self.open_due(now_ms);
    }

    /// A position could not be loaded: without it nothing is asked for, since nothing could be kept.
    pub fn handle_load_failed(&mut self, key: PositionKey, error: &StoreError, now_ms: u64) {
        if let Some(subscription) = self.subscriptions.get_mut(&key).filter(|it| it.load == Load::Asked) {
            subscription.load = Load::Needed;
            self.abandon_hydration(&key, &Failure::from(error));
            self.subscription_failed(key, Failure::from(error), now_ms);
        }
    }

    /// The network is said to be back: what waits to be tried again is tried now.
    pub fn handle_online(&mut self, now_ms: u64) {
        if let Some(retry_at_ms) = &mut self.chain_retry_at_ms {
            *retry_at_ms = now_ms;
        }
        if let Waiting::Key { retry_at_ms: Some(retry_at_ms), .. } = &mut self.waiting {
            *retry_at_ms = now_ms;
        }
        self.outbox.resume();
        self.channel.handle_online(now_ms);
        self.handle_time(now_ms);
    }

    /// Reads the latest view of the chain, which is told by [`Event::ChainRead`]: again and again until that succeeds.
    pub fn read_chain(&mut self) {
        self.chain_reread = Reread::Asked;
        self.outputs.push_back(Output::ReadChain { view: None });
    }

    /// Ends a subscription. What is durable stays.
    pub fn unsubscribe(&mut self, key: PositionKey, now_ms: u64) {
        self.leave(key, now_ms);
        self.abandon_hydration(&key, &Failure::not_subscribed());
        self.abandon_decisions(key, &Failure::outcome_unknown());
        self.subscriptions.remove(&key);
        self.tell(Event::StatusChanged);
    }

    /// Asks for one thing; settled by exactly one [`Event::Settled`]. Subscriptions are not asked for in this way, and
    /// records are not appended: they go through the outbox.
    pub fn command(&mut self, id: CommandId, request: RequestBody, now_ms: u64) {
        let asker = Asker::Command(id);
        if matches!(request, RequestBody::Append(_)) {
            self.settle_refused(asker, Failure::append_past_outbox(), now_ms);
            return;
        }
        self.send_request(PendingRequest { asker, request, sent_again: false }, now_ms);
        self.handle_channel(now_ms);
    }

    pub(super) fn send_request(&mut self, request: PendingRequest, now_ms: u64) {
        let Err(request) = self.keep_for_grant(request) else { return };
        match self.channel.submit(request.request.clone(), now_ms) {
            Ok(handle) => {
                if let Asker::Outbox(number) = request.asker {
                    self.outbox.submitted(number);
                }
                self.requests.insert(handle, request);
            }
            Err(misuse) => self.settle_refused(request.asker, misuse.into(), now_ms),
        }
    }

    /// A request had no effect.
    pub(super) fn settle_refused(&mut self, asker: Asker, failure: Failure, now_ms: u64) {
        match asker {
            Asker::Command(id) => self.tell(Event::Settled { id, outcome: CommandOutcome::Refused(failure) }),
            Asker::Outbox(number) => self.append_not_taken(number, now_ms),
            Asker::Lease(key, id) => self.decision_refused(key, id, failure, now_ms),
        }
    }

    /// A request was sent, and what came of it is not known.
    pub(super) fn settle_unknown(&mut self, asker: Asker, now_ms: u64) {
        match asker {
            Asker::Command(id) => self.tell(Event::Settled { id, outcome: CommandOutcome::Unknown }),
            Asker::Outbox(number) => self.append_unanswered(number, now_ms),
            Asker::Lease(key, id) => self.send_decision_later(key, id, true, now_ms),
        }
    }

    /// Closes for good.
    pub fn close(&mut self, now_ms: u64) {
        self.halt(now_ms);
    }

    /// Opens every subscription whose time has come, or reads its position first.
    pub(super) fn open_due(&mut self, now_ms: u64) {
        self.open_due_tails(now_ms);
        let is_due = |it: &Subscription| it.due_at().is_some_and(|at_ms| at_ms <= now_ms);
        let keys: Vec<_> = self
            .subscriptions
            .iter()
            .filter(|(key, it)| is_due(it) && self.can_open(key, it))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            // The one before it may have changed what this one waits for.
            let Some(subscription) = self.subscriptions.get(&key).filter(|it| is_due(it)) else { continue };
            if !self.can_open(&key, subscription) {
                continue;
            }
            if subscription.load == Load::Needed {
                self.ask_load(key);
            } else if let Err(misuse) = self.open(key, now_ms) {
                self.subscription_failed(key, Failure::from(misuse), now_ms);
            }
        }
    }

    fn open(&mut self, key: PositionKey, now_ms: u64) -> Result<(), ApiMisuse> {
        let (session, fresh_id) = (self.sessions, self.fresh_id());
        let is_recorded = self.recorder_of(&key).is_some();
        let stream = StreamFacts {
            context: self.config.context.clone(),
            stream_id: self.config.stream_id,
            // There is no session before the stream was read.
            encrypted: self.keys.stream().is_none_or(|stream| stream.encrypted),
            purpose: self.keys.stream().map_or(Purpose::Main, |stream| stream.purpose),
            holder_signing_key_id: signing_key_id(&self.config.grant.holder_signing_key),
        };
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return Ok(()) };
        let subscription_id = if is_recorded { subscription.name(session, fresh_id) } else { fresh_id };
        let request = subscription.open(&stream, subscription_id);
        if let Some(recorder) = self.recorder_of(&key) {
            recorder.subscription(&request);
        }
        let handle = self.channel.submit(RequestBody::OpenSubscription(request), now_ms)?;
        self.opening.insert(handle, (key, subscription_id));
        self.routes.insert(subscription_id, key);
        self.handle_channel(now_ms);
        Ok(())
    }

    /// Takes a subscription out of the session; frames of it that are still on their way are ignored.
    pub(super) fn leave(&mut self, key: PositionKey, now_ms: u64) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        let Some(subscription_id) = subscription.detach() else { return };
        if let Some(recorder) = self.recorder_of(&key) {
            recorder.end();
        }
        self.routes.remove(&subscription_id);
        let close = CloseSubscriptionRequest { stream_id: self.config.stream_id, subscription_id };
        // Not open there any more is as good as closed.
        if self.channel.submit(RequestBody::CloseSubscription(close), now_ms).is_ok() {
            self.handle_channel(now_ms);
        }
    }
}
