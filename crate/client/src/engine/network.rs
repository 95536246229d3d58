//! What comes from outside: bodies, signatures, chain reads, time.

use alloc::rc::Rc;

use remuda_session::{ChannelOutput, CloseCause, Output as SessionOutput, PostId, ProviderError, RequestHandle};
use remuda_session::{RoutedFrame, Slot, TransportError};
use remuda_wire::context::FinalizedView;
use remuda_wire::response::ResponseBody;
use remuda_wire::verdict::{ProtocolViolation, Refusal, VerifyError};
use remuda_wire::{Bytes32, Signature};

use super::{Engine, Output};
use crate::append::AppendOutcome;
use crate::event::{Connection, Event};
use crate::failure::Failure;
use crate::outcome::ChainReadError;
use crate::subscription::SubscriptionState;
use crate::work::{Waiting, Work};

impl Engine {
    /// A whole response body.
    pub fn handle_body(&mut self, slot: Slot, post: PostId, bytes: &[u8], now_ms: u64) {
        self.channel.handle_body(slot, post, bytes, now_ms);
        self.handle_channel(now_ms);
    }

    /// An exchange failed.
    pub fn handle_transport_error(&mut self, slot: Slot, post: PostId, error: TransportError, now_ms: u64) {
        self.channel.handle_transport_error(slot, post, error, now_ms);
        self.handle_channel(now_ms);
    }

    /// The holder signed.
    pub fn handle_signature(&mut self, slot: Slot, digest: &Bytes32, signature: Signature, now_ms: u64) {
        self.channel.handle_signature(slot, digest, signature, now_ms);
        self.handle_channel(now_ms);
    }

    /// The holder did not sign.
    pub fn handle_signing_failed(&mut self, slot: Slot, digest: &Bytes32, now_ms: u64) {
        self.channel.handle_signing_failed(slot, digest, now_ms);
        self.handle_channel(now_ms);
    }

    /// The answer of a chain read, of the latest view or of the one named.
    pub fn handle_chain_read(
        &mut self,
        view: Option<&FinalizedView>,
        answer: Result<&[u8], ChainReadError>,
        now_ms: u64,
    ) {
        match answer {
            Ok(bytes) => match self.keys.handle_read(bytes, view) {
                Ok(()) => self.chain_read(view, now_ms),
                Err(refusal) => self.chain_failed(view, refusal.into(), None),
            },
            Err(ChainReadError::Gone) => {
                if let Some(view) = view {
                    self.keys.handle_gone(view);
                    self.waiting = Waiting::Nothing;
                    self.apply_work(now_ms);
                }
            }
            Err(ChainReadError::NotFound) => {
                let retry_at_ms = self.chain_retry(now_ms);
                self.chain_failed(view, Refusal::from(VerifyError::KeyUnresolved).into(), retry_at_ms);
            }
            Err(ChainReadError::Transport(error)) => {
                let retry_at_ms = self.chain_retry(now_ms);
                self.chain_failed(view, Failure::from(&error), retry_at_ms);
            }
        }
    }

    fn chain_retry(&mut self, now_ms: u64) -> Option<u64> {
        let jitter = self.jitter();
        Some(now_ms.saturating_add(self.backoff.delay_ms(self.chain_attempts, jitter)))
    }

    /// A read is in the book: the first one starts the session, a pinned one lets its frame be judged.
    fn chain_read(&mut self, view: Option<&FinalizedView>, now_ms: u64) {
        self.chain_attempts = 0;
        if view.is_some() {
            self.waiting = Waiting::Nothing;
            self.apply_work(now_ms);
            return;
        }
        if self.keys.stream().is_none() {
            self.chain_failed(None, Refusal::from(VerifyError::StreamMismatch).into(), None);
            return;
        }
        let seed = self.fresh_id().0;
        if let Err(misuse) = self.channel.handle_start(now_ms, seed) {
            self.fail(None, misuse.into());
        }
        self.handle_channel(now_ms);
    }

    /// A read failed: again at `retry_at_ms`, or for good.
    fn chain_failed(&mut self, view: Option<&FinalizedView>, failure: Failure, retry_at_ms: Option<u64>) {
        self.chain_attempts = self.chain_attempts.saturating_add(1);
        self.fail(None, failure);
        match (view, retry_at_ms) {
            (Some(view), Some(retry_at_ms)) => {
                self.waiting = Waiting::Key { view: view.clone(), retry_at_ms: Some(retry_at_ms) };
            }
            (None, Some(retry_at_ms)) => {
                self.chain_retry_at_ms = Some(retry_at_ms);
                self.set_connection(Connection::Waiting { retry_at_ms });
            }
            (_, None) => {
                self.work.clear();
                self.waiting = Waiting::Nothing;
                self.set_connection(Connection::Closed);
            }
        }
    }

    /// Time has passed. Give what has arrived first.
    pub fn handle_time(&mut self, now_ms: u64) {
        if self.chain_retry_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.chain_retry_at_ms = None;
            self.set_connection(Connection::Connecting);
            self.outputs.push_back(Output::ReadChain { view: None });
        }
        if let Waiting::Key { view, retry_at_ms } = &mut self.waiting {
            if retry_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
                *retry_at_ms = None;
                self.outputs.push_back(Output::ReadChain { view: Some(view.clone()) });
            }
        }
        self.channel.handle_time(now_ms);
        self.handle_channel(now_ms);
        self.open_due(now_ms);
    }

    /// Takes everything that the channel asks for or tells.
    pub(super) fn handle_channel(&mut self, now_ms: u64) {
        while let Some(output) = self.channel.poll_output() {
            match output {
                ChannelOutput::Session { slot, output } => self.handle_session_output(slot, output, now_ms),
                ChannelOutput::PollRefused { error, .. } => self.fail(None, Failure::from(&error)),
            }
        }
        self.apply_work(now_ms);
    }

    fn handle_session_output(&mut self, slot: Slot, output: SessionOutput, now_ms: u64) {
        match output {
            SessionOutput::Post { post, body } => self.outputs.push_back(Output::Post { slot, post, body }),
            SessionOutput::Abort { post } => self.outputs.push_back(Output::Abort { slot, post }),
            SessionOutput::Sign { digest } => self.outputs.push_back(Output::Sign { slot, digest }),
            SessionOutput::Opened { .. } if slot == Slot::Poll => {
                self.in_session = true;
                self.set_connection(Connection::Open);
                self.open_due(now_ms);
            }
            SessionOutput::Opened { .. } => {}
            SessionOutput::Answer { handle, result } => self.handle_answer(handle, result, now_ms),
            SessionOutput::Frame(frame) => self.handle_frame(frame),
            SessionOutput::SubscriptionEnded { subscription_id, error } => {
                if let Some(key) = self.routes.get(&subscription_id).copied() {
                    self.subscription_failed(key, Failure::from(&error), now_ms);
                }
            }
            SessionOutput::PollTimeout { handle } | SessionOutput::Unanswered { handle } => {
                self.opening.remove(&handle);
                if let Some(id) = self.appends.remove(&handle) {
                    self.tell(Event::Appended { id, outcome: AppendOutcome::Unknown });
                }
            }
            SessionOutput::Unsent { handle } => {
                self.opening.remove(&handle);
                if let Some(id) = self.appends.remove(&handle) {
                    let outcome = AppendOutcome::Refused(Failure::from(&TransportError::Offline));
                    self.tell(Event::Appended { id, outcome });
                }
            }
            SessionOutput::Closed { cause, retry_at_ms } => self.handle_closed(slot, &cause, retry_at_ms, now_ms),
        }
    }

    fn handle_answer(&mut self, handle: RequestHandle, result: Result<ResponseBody, ProviderError>, now_ms: u64) {
        if let Some(id) = self.appends.remove(&handle) {
            let outcome = match result {
                Ok(ResponseBody::Append(result)) => AppendOutcome::Accepted(result),
                // The session compared the methods: no other body answers an append.
                Ok(_) => AppendOutcome::Refused(Refusal::from(ProtocolViolation::ResponseMethod).into()),
                Err(error) => AppendOutcome::Refused(Failure::from(&error)),
            };
            self.tell(Event::Appended { id, outcome });
        } else if let Some(key) = self.opening.remove(&handle) {
            match result {
                Ok(_) => {
                    if let Some(subscription) = self.subscriptions.get_mut(&key) {
                        subscription.state = SubscriptionState::Live;
                        self.tell(Event::StatusChanged);
                    }
                }
                Err(error) => self.subscription_failed(key, Failure::from(&error), now_ms),
            }
        }
    }

    fn handle_frame(&mut self, frame: RoutedFrame) {
        match frame {
            RoutedFrame::Delivery(delivery) => self.work.push_back(Work::Delivery(Rc::new(delivery.into_inner()))),
            RoutedFrame::Checkpoint(frame) => self.work.push_back(Work::Checkpoint(frame.into_inner())),
            RoutedFrame::Transition(transition) => {
                let transition = Rc::new(transition.into_inner());
                for subscription_id in self.routes.keys() {
                    self.work.push_back(Work::Transition(*subscription_id, Rc::clone(&transition)));
                }
            }
            // Only subscriptions of groups receive these, and this engine opens none.
            RoutedFrame::GroupState(_) | RoutedFrame::DeliveryState(_) => {}
        }
    }

    /// A session ended: what waits of it is dropped, every subscription starts again at its boundary.
    fn handle_closed(&mut self, slot: Slot, cause: &CloseCause, retry_at_ms: Option<u64>, now_ms: u64) {
        if slot == Slot::Command {
            if !matches!(cause, CloseCause::Requested | CloseCause::Expired) {
                self.fail(None, Failure::from(cause));
            }
            return;
        }
        self.in_session = false;
        self.work.clear();
        if matches!(self.waiting, Waiting::Key { .. }) {
            self.waiting = Waiting::Nothing;
        }
        self.routes.clear();
        self.opening.clear();
        for subscription in self.subscriptions.values_mut() {
            subscription.detach();
            if subscription.state == SubscriptionState::Live || subscription.state == SubscriptionState::Opening {
                subscription.state = SubscriptionState::Due { attempt: subscription.attempts, at_ms: now_ms };
            }
        }
        if !matches!(cause, CloseCause::Requested | CloseCause::Expired) {
            self.fail(None, Failure::from(cause));
        }
        self.set_connection(match retry_at_ms {
            Some(retry_at_ms) => Connection::Waiting { retry_at_ms },
            None => Connection::Closed,
        });
    }
}
