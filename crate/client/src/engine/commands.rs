//! What an application asks for.

use alloc::vec::Vec;

use remuda_position::{Boundary, PositionKey, StoreError, StoredPosition};
use remuda_session::ApiMisuse;
use remuda_wire::chain::Purpose;
use remuda_wire::request::{CloseSubscriptionRequest, RequestBody};

use super::{Engine, Output};
use crate::append_check::check_append;
use crate::command::{CommandId, CommandOutcome, PendingCommand};
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
    fn ask_load(&mut self, key: PositionKey) {
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
        self.open_due(now_ms);
    }

    /// A position could not be loaded: without it nothing is asked for, since nothing could be kept.
    pub fn handle_load_failed(&mut self, key: PositionKey, error: &StoreError, now_ms: u64) {
        if let Some(subscription) = self.subscriptions.get_mut(&key).filter(|it| it.load == Load::Asked) {
            subscription.load = Load::Needed;
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
        self.channel.handle_online(now_ms);
        self.handle_time(now_ms);
    }

    /// Ends a subscription. What is durable stays.
    pub fn unsubscribe(&mut self, key: PositionKey, now_ms: u64) {
        self.leave(key, now_ms);
        self.subscriptions.remove(&key);
        self.tell(Event::StatusChanged);
    }

    /// Asks for one thing for the first time, an append sealed already where the stream is encrypted; settled by exactly
    /// one [`Event::Settled`]. An append that no broker would take is refused unsent. Subscriptions are not asked for in
    /// this way.
    pub fn command(&mut self, id: CommandId, request: RequestBody, now_ms: u64) {
        let checked = match (&request, self.keys.stream()) {
            (RequestBody::Append(append), Some(stream)) => check_append(append, stream, now_ms),
            _ => Ok(()),
        };
        match checked {
            Ok(()) => self.send_command(PendingCommand { id, request, sent_again: false }, now_ms),
            Err(failure) => self.tell(Event::Settled { id, outcome: CommandOutcome::Refused(failure) }),
        }
        self.handle_channel(now_ms);
    }

    pub(super) fn send_command(&mut self, command: PendingCommand, now_ms: u64) {
        let Err(command) = self.keep_for_grant(command) else { return };
        match self.channel.submit(command.request.clone(), now_ms) {
            Ok(handle) => {
                self.commands.insert(handle, command);
            }
            Err(misuse) => {
                self.tell(Event::Settled { id: command.id, outcome: CommandOutcome::Refused(misuse.into()) })
            }
        }
    }

    /// Closes for good.
    pub fn close(&mut self, now_ms: u64) {
        self.halt(now_ms);
    }

    /// Opens every subscription whose time has come, or reads its position first.
    pub(super) fn open_due(&mut self, now_ms: u64) {
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
        let stream = StreamFacts {
            context: self.config.context.clone(),
            stream_id: self.config.stream_id,
            // There is no session before the stream was read.
            encrypted: self.keys.stream().is_none_or(|stream| stream.encrypted),
            purpose: self.keys.stream().map_or(Purpose::Main, |stream| stream.purpose),
        };
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return Ok(()) };
        let subscription_id = subscription.name(session, fresh_id);
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
