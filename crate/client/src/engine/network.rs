//! What comes from outside: bodies, signatures, chain reads, time.

use alloc::rc::Rc;

use remuda_session::{
    ChannelOutput, CloseCause, ErrorKind, Output as SessionOutput, PostId, ProviderError, RequestHandle,
};
use remuda_session::{RoutedFrame, Slot, SocketId, TransportError};
use remuda_wire::chain::BrokerState;
use remuda_wire::context::FinalizedView;
use remuda_wire::response::ResponseBody;
use remuda_wire::verdict::{Refusal, VerifyError};
use remuda_wire::{Bytes32, Canonical, Remedy, Signature};

use super::{Engine, Output, Reread};
use crate::command::{Asker, PendingRequest};
use crate::event::{Connection, Event};
use crate::failure::Failure;
use crate::group::GroupUpdate;
use crate::outcome::ChainReadError;
use crate::subscription::SubscriptionState;
use crate::work::{Waiting, Work};

/// How much may wait to be applied before no more is asked for. What was asked for may still come: one body, or the
/// credit that is outstanding.
const MAX_WORK_BYTES: usize = 8 * 1024 * 1024;

impl Engine {
    /// A whole response body.
    pub fn handle_body(&mut self, slot: Slot, post: PostId, bytes: &[u8], now_ms: u64) {
        if slot == Slot::Poll {
            self.work_bytes = self.work_bytes.saturating_add(bytes.len());
        }
        self.channel.handle_body(slot, post, bytes, now_ms);
        self.handle_channel(now_ms);
    }

    /// An exchange failed.
    pub fn handle_transport_error(&mut self, slot: Slot, post: PostId, error: TransportError, now_ms: u64) {
        self.channel.handle_transport_error(slot, post, error, now_ms);
        self.handle_channel(now_ms);
    }

    /// A WebSocket is open.
    pub fn handle_connected(&mut self, socket: SocketId, now_ms: u64) {
        self.channel.handle_connected(socket, now_ms);
        self.handle_channel(now_ms);
    }

    /// One binary message came over a WebSocket.
    pub fn handle_message(&mut self, socket: SocketId, bytes: &[u8], now_ms: u64) {
        self.work_bytes = self.work_bytes.saturating_add(bytes.len());
        self.channel.handle_message(socket, bytes, now_ms);
        self.handle_channel(now_ms);
    }

    /// A WebSocket ended, or could not be opened.
    pub fn handle_disconnected(&mut self, socket: SocketId, error: TransportError, now_ms: u64) {
        self.channel.handle_disconnected(socket, error, now_ms);
        self.handle_channel(now_ms);
    }

    /// The holder signed.
    pub fn handle_signature(&mut self, slot: Slot, digest: &Bytes32, signature: Signature, now_ms: u64) {
        if !self.judge_holder(digest, Some(&signature), now_ms) {
            self.channel.handle_signature(slot, digest, signature, now_ms);
            self.handle_channel(now_ms);
        }
    }

    /// The holder did not sign.
    pub fn handle_signing_failed(&mut self, slot: Slot, digest: &Bytes32, now_ms: u64) {
        if !self.judge_holder(digest, None, now_ms) {
            self.channel.handle_signing_failed(slot, digest, now_ms);
            self.handle_channel(now_ms);
        }
    }

    /// The answer of a chain read, of the latest view or of the one named.
    pub fn handle_chain_read(
        &mut self,
        view: Option<&FinalizedView>,
        answer: Result<&[u8], ChainReadError>,
        now_ms: u64,
    ) {
        let generation = |engine: &Self| engine.stream().map(|stream| stream.encryption_generation);
        let generation_before = generation(self);
        match answer {
            Ok(bytes) => match self.keys.handle_read(bytes, view) {
                Ok(()) => {
                    if view.is_none() {
                        self.chain_reread = Reread::No;
                        self.tell(Event::ChainRead);
                    } else if generation(self) != generation_before {
                        // A later one may be active by now, and whoever seals must know.
                        self.read_chain();
                    }
                    if let (Some((_, recorder)), Ok(read)) = (&mut self.recorder, BrokerState::from_bytes(bytes)) {
                        recorder.chain_read(read);
                    }
                    self.chain_read(view, now_ms);
                }
                Err(refusal) => {
                    let failure = Failure::from(refusal);
                    view.into_iter().for_each(|view| self.hydrations_unread(view, &failure, now_ms));
                    self.chain_failed(view, failure, None, now_ms);
                }
            },
            Err(error) => {
                if let (ChainReadError::Gone, Some(view)) = (error, view) {
                    self.keys.handle_gone(view);
                    if self.keys.knows(view) {
                        self.chain_read(Some(view), now_ms);
                        return;
                    }
                }
                let failure = match error {
                    ChainReadError::Gone | ChainReadError::NotFound => Refusal::from(VerifyError::KeyUnresolved).into(),
                    ChainReadError::Transport(error) => Failure::from(&error),
                    ChainReadError::Disagreement => Failure::chain_disagreement(),
                };
                let retry_at_ms = self.chain_retry(now_ms);
                view.into_iter().for_each(|view| self.hydrations_unread(view, &failure, now_ms));
                self.chain_failed(view, failure, retry_at_ms, now_ms);
            }
        }
    }

    /// Whether a read of the latest view is what starts the session.
    fn awaits_start(&self) -> bool {
        self.connection == Connection::Connecting && self.channel.is_closed()
    }

    /// Whether the queue waits for this very read. Of a session that is gone it is of no more use, and what the queue waits
    /// for now must not be forgotten over it.
    fn awaits_read(&self, view: &FinalizedView) -> bool {
        matches!(&self.waiting, Waiting::Key { view: awaited, .. } if awaited == view)
    }

    fn chain_retry(&mut self, now_ms: u64) -> Option<u64> {
        let jitter = self.jitter();
        Some(now_ms.saturating_add(self.backoff.delay_ms(self.chain_attempts, jitter)))
    }

    /// A read is in the book: the first one starts the session, a pinned one lets its frame be judged.
    fn chain_read(&mut self, view: Option<&FinalizedView>, now_ms: u64) {
        self.chain_attempts = 0;
        if let Some(view) = view {
            if self.awaits_read(view) {
                self.waiting = Waiting::Nothing;
                self.handle_channel(now_ms);
            }
            self.advance_hydrations(now_ms);
            return;
        }
        self.start_channel(now_ms);
    }

    /// The first session is opened, once the stream is read and the signer holds the grant's key.
    pub(super) fn start_channel(&mut self, now_ms: u64) {
        // Closed meanwhile: it stays closed.
        if !self.awaits_start() {
            return;
        }
        let Some(stream) = self.keys.stream() else {
            self.chain_failed(None, Refusal::from(VerifyError::StreamMismatch).into(), None, now_ms);
            return;
        };
        if stream.encrypted != self.config.encrypted {
            let failure = Failure::encryption_mismatch(stream.encrypted);
            self.chain_failed(None, failure, None, now_ms);
            return;
        }
        let Some(transports) = self.transports() else {
            self.chain_failed(None, Failure::no_endpoint(), None, now_ms);
            return;
        };
        if !self.is_holder_proven() {
            return;
        }
        let seed = self.fresh_id().0;
        if let Err(misuse) = self.channel.handle_start(now_ms, seed, transports) {
            self.fail(None, misuse.into());
        }
        self.resend_refused(now_ms);
        self.handle_channel(now_ms);
    }

    /// A read failed: again at `retry_at_ms`, or for good.
    fn chain_failed(&mut self, view: Option<&FinalizedView>, failure: Failure, retry_at_ms: Option<u64>, now_ms: u64) {
        let is_awaited = view.map_or_else(|| self.awaits_start(), |view| self.awaits_read(view));
        if !is_awaited {
            if view.is_none() && self.chain_reread != Reread::No {
                let at_ms = retry_at_ms.or_else(|| self.chain_retry(now_ms)).unwrap_or(now_ms);
                self.chain_reread = Reread::At(at_ms);
            }
            return;
        }
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
            (_, None) => self.halt(now_ms),
        }
    }

    /// Time has passed. Give what has arrived first.
    pub fn handle_time(&mut self, now_ms: u64) {
        self.read_outbox_again(now_ms);
        if self.chain_retry_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.chain_retry_at_ms = None;
            self.set_connection(Connection::Connecting);
            self.outputs.push_back(Output::ReadChain { view: None });
        }
        if matches!(self.chain_reread, Reread::At(at_ms) if at_ms <= now_ms) {
            self.read_chain();
        }
        if let Waiting::Key { view, retry_at_ms } = &mut self.waiting {
            if retry_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
                *retry_at_ms = None;
                self.outputs.push_back(Output::ReadChain { view: Some(view.clone()) });
            }
        }
        self.renew_when_due(now_ms);
        self.resend_decisions(now_ms);
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
        self.settle_unsent(&Failure::from(&TransportError::Offline), now_ms);
        self.apply_work(now_ms);
        self.pace(now_ms);
        if self.send_outbox(now_ms) {
            self.handle_channel(now_ms);
        }
    }

    /// Requests that were never sent had no effect: they are kept for another grant, or refused with why.
    fn settle_unsent(&mut self, why: &Failure, now_ms: u64) {
        for request in core::mem::take(&mut self.unsent) {
            if let Asker::Lease(key, id) = request.asker {
                self.send_decision_later(key, id, false, now_ms);
                continue;
            }
            if let Err(request) = self.keep_for_grant(request) {
                self.settle_refused(request.asker, why.clone(), now_ms);
            }
        }
    }

    /// No more is asked for while too much waits to be applied: credit counts what has arrived, and a disk may be slower than a peer.
    fn pace(&mut self, now_ms: u64) {
        if self.work_bytes > MAX_WORK_BYTES {
            self.channel.pause();
        } else if self.channel.resume(now_ms) {
            self.handle_channel(now_ms);
        }
    }

    fn handle_session_output(&mut self, slot: Slot, output: SessionOutput, now_ms: u64) {
        match output {
            SessionOutput::Post { post, body } => self.outputs.push_back(Output::Post { slot, post, body }),
            SessionOutput::Abort { post } => self.outputs.push_back(Output::Abort { slot, post }),
            SessionOutput::Connect { socket } => self.outputs.push_back(Output::Connect { socket }),
            SessionOutput::Send { socket, message } => self.outputs.push_back(Output::Send { socket, message }),
            SessionOutput::Disconnect { socket } => self.outputs.push_back(Output::Disconnect { socket }),
            SessionOutput::Sign { digest } => self.outputs.push_back(Output::Sign { slot, digest }),
            // Subscriptions live in the other session. A provider that restarted may be met by either first.
            SessionOutput::Opened { .. } if slot == Slot::Command => self.outbox.session_opened(),
            SessionOutput::Opened { .. } => {
                self.in_session = true;
                self.sessions = self.sessions.saturating_add(1);
                self.outbox.session_opened();
                self.set_connection(Connection::Open { transport: slot.transport() });
                self.open_due(now_ms);
                self.send_all_decisions(now_ms);
            }
            SessionOutput::Answer { handle, result } => self.handle_answer(handle, result, now_ms),
            SessionOutput::Frame(frame) => self.handle_frame(frame, now_ms),
            SessionOutput::SubscriptionEnded { error, .. } if self.refused_grant(&error, now_ms) => {}
            SessionOutput::SubscriptionEnded { subscription_id, error }
                if self.tail_ended(&subscription_id, &error, now_ms) => {}
            SessionOutput::SubscriptionEnded { subscription_id, error } => {
                // After what came before it: the last batches of a subscription are as good as any.
                if let (ErrorKind::CursorTooOld, Some(key)) = (error.kind(), self.routes.get(&subscription_id)) {
                    self.work.push_back(self.refused_cursor(*key, subscription_id, &error));
                    return;
                }
                let mut failure = Failure::from(&error);
                if error.kind().invalidates_session() {
                    // The session is gone, not the right to subscribe: the next one takes it.
                    failure.remedy = Remedy::ReEnterAtBoundary;
                }
                self.work.push_back(Work::Ended(subscription_id, failure));
            }
            SessionOutput::PollTimeout { handle } | SessionOutput::Unanswered { handle } => {
                self.opening.remove(&handle);
                if let Some(request) = self.requests.remove(&handle) {
                    self.settle_unknown(request.asker, now_ms);
                }
            }
            SessionOutput::Unsent { handle } => {
                self.opening.remove(&handle);
                self.unsent.extend(self.requests.remove(&handle));
            }
            SessionOutput::Closed { cause, retry_at_ms } => self.handle_closed(slot, &cause, retry_at_ms, now_ms),
        }
    }

    fn handle_answer(&mut self, handle: RequestHandle, result: Result<ResponseBody, ProviderError>, now_ms: u64) {
        if self.answer_tail(handle, result.as_ref().err(), now_ms) {
            return;
        }
        if let Some(request) = self.requests.remove(&handle) {
            match (result, request.asker) {
                (Ok(body), _) => {
                    self.record_answer(&body);
                    self.work.push_back(Work::Answer(request, body));
                }
                (Err(error), Asker::Outbox(number)) => self.append_refused(number, &error, now_ms),
                // The session is gone, not the right to ask: it had no effect, and the next session takes it.
                (Err(error), _) if error.kind() == ErrorKind::InvalidProofOfPossession && !request.sent_again => {
                    self.send_request(PendingRequest { sent_again: true, ..request }, now_ms);
                }
                // Nor the right to ask for ever: it had no effect, and another grant may allow it.
                (Err(error), _) if !request.sent_again && self.refused_grant(&error, now_ms) => {
                    self.unsent.push(request);
                }
                // The peer has seen this very counter: a copy of ours was faster, and its answer is lost.
                (Err(error), asker) if error.kind() == ErrorKind::RequestReplay => self.settle_unknown(asker, now_ms),
                (Err(error), asker) => self.settle_refused(asker, Failure::from(&error), now_ms),
            }
        } else if let Some((key, subscription_id)) = self.opening.remove(&handle) {
            // One that has left meanwhile, or is being opened anew under another id, is not concerned.
            if self.routes.get(&subscription_id) != Some(&key) {
                return;
            }
            match result {
                // The session ends by it, and what was to be opened in it is opened in the next.
                Err(error) if error.kind().invalidates_session() => {}
                Ok(_) => {
                    if let Some(subscription) = self.subscriptions.get_mut(&key) {
                        subscription.state = SubscriptionState::Live;
                        subscription.live_since_ms = now_ms;
                        self.tell(Event::StatusChanged);
                    }
                }
                Err(error) if self.refused_grant(&error, now_ms) => {}
                Err(error) if error.kind() == ErrorKind::CursorTooOld => {
                    self.work.push_back(self.refused_cursor(key, subscription_id, &error));
                }
                Err(error) => self.subscription_failed(key, Failure::from(&error), now_ms),
            }
        }
    }

    fn handle_frame(&mut self, frame: RoutedFrame, now_ms: u64) {
        match frame {
            RoutedFrame::Delivery(delivery) => {
                let unpainted = self.paint(delivery.into_inner(), now_ms);
                self.work.extend(unpainted.map(|delivery| Work::Delivery(Rc::new(delivery))));
            }
            RoutedFrame::Checkpoint(frame) => self.work.push_back(Work::Checkpoint(frame.into_inner())),
            RoutedFrame::Transition(transition) => {
                self.tails_meet_transition();
                let transition = Rc::new(transition.into_inner());
                for subscription_id in self.routes.keys() {
                    self.work.push_back(Work::Transition(*subscription_id, Rc::clone(&transition)));
                }
            }
            RoutedFrame::GroupState(update) => self.queue_group_update(GroupUpdate::Group(update.into_inner())),
            RoutedFrame::DeliveryState(update) => self.queue_group_update(GroupUpdate::Record(update.into_inner())),
        }
    }

    /// A session ended: what waits of it is dropped, every subscription starts again at its boundary.
    fn handle_closed(&mut self, slot: Slot, cause: &CloseCause, retry_at_ms: Option<u64>, now_ms: u64) {
        self.closed_for_grant(cause, now_ms);
        self.withdraw_appends();
        if slot == Slot::Command {
            self.settle_unsent(&Failure::from(cause), now_ms);
            if !self.renewal.is_needed() && !matches!(cause, CloseCause::Requested | CloseCause::Expired) {
                self.fail(None, Failure::from(cause));
            }
            return;
        }
        self.in_session = false;
        // What was answered is answered, and what begins anew does, whatever became of the session.
        self.work.retain(|work| work.subscription_id().is_none());
        self.work_bytes = 0;
        // A commit that is under way goes on, and is told when it is done.
        if matches!(self.waiting, Waiting::Key { .. }) {
            self.waiting = Waiting::Nothing;
        }
        self.routes.clear();
        self.opening.clear();
        self.detach_tails(now_ms);
        for subscription in self.subscriptions.values_mut() {
            let had_begun = subscription.detach().is_some();
            if had_begun && subscription.state != SubscriptionState::Failed {
                subscription.state = SubscriptionState::Due { attempt: subscription.attempts, at_ms: now_ms };
            }
        }
        if self.renewal.is_needed() {
            return;
        }
        if !matches!(
            cause,
            CloseCause::Requested | CloseCause::Expired | CloseCause::PollGivenUp | CloseCause::TransportChanged
        ) {
            self.fail(None, Failure::from(cause));
        }
        match retry_at_ms {
            Some(retry_at_ms) => self.set_connection(Connection::Waiting { retry_at_ms }),
            None => {
                // Nothing more is asked of this peer, by commands either.
                self.channel.close(now_ms);
                self.set_connection(Connection::Closed);
            }
        }
    }
}
