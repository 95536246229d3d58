//! One conversation over whichever transport works: a WebSocket where the provider offers one, long-poll where it does not
//! or where something between us and it lets no WebSocket pass (§13).
//!
//! ```text
//!  handle_start --> WebSocket --two failures without a session--> long-poll --later--> long-poll, and a WebSocket on trial
//!                       ^                                            ^                        | opened         | failed
//!                       +--------------------------------------------|------------------------+                |
//!                                                                    +-----------------------------------------+
//! ```
//! A WebSocket on trial disturbs nothing until it has a session. Then new commands go to it, and once no command awaits its
//! answer over long-poll the subscriptions follow: they end with `Closed` and start again at their durable position.

use alloc::collections::VecDeque;

use remuda_wire::request::RequestBody;
use remuda_wire::{Bytes32, Signature};

use crate::channel::{ChannelConfig, ChannelOutput, LongPollChannel};
use crate::credit::CreditTarget;
use crate::entropy::Entropy;
use crate::handshake::HandshakeConfig;
use crate::misuse::ApiMisuse;
use crate::output::{CloseCause, Output, PostId, RequestHandle, Slot, SocketId};
use crate::subscription::Subscriptions;
use crate::transport_error::TransportError;
use crate::web_socket::WebSocketSession;

/// Connections without a session after which long-poll takes over.
const MAX_SOCKET_FAILURES: u32 = 2;
/// The first trial of a WebSocket comes this long after long-poll took over, each further one after twice the time.
const FIRST_TRIAL_AFTER_MS: u64 = 60_000;
/// Trials are at most this far apart.
const LAST_TRIAL_AFTER_MS: u64 = 900_000;

/// The transports that a provider offers and the caller may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transports {
    /// Long-poll alone.
    LongPoll,
    /// A WebSocket alone.
    WebSocket,
    /// A WebSocket, and long-poll where it does not pass.
    Both,
}

impl Transports {
    /// What is offered; `None` when nothing is.
    pub const fn of(web_socket: bool, long_poll: bool) -> Option<Self> {
        match (web_socket, long_poll) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::WebSocket),
            (false, true) => Some(Self::LongPoll),
            (false, false) => None,
        }
    }
}

/// A WebSocket beside a conversation over long-poll.
#[derive(Debug)]
enum Trial {
    /// None, and none is to come.
    Never,
    /// The next begins at this time.
    At(u64),
    /// It connects, or is in the handshake.
    Connecting,
    /// It has a session; commands that were sent over long-poll still await their answers.
    Ready { session_id: Bytes32, expires_at_ms: u64 },
}

#[derive(Debug)]
enum Active {
    WebSocket,
    LongPoll(Trial),
}

/// The conversation. Driven like one session: every input names its [`Slot`] or its connection.
#[derive(Debug)]
pub struct Link {
    socket: WebSocketSession,
    polls: LongPollChannel,
    offered: Transports,
    active: Active,
    /// Trials since a WebSocket last had a session.
    trials: u32,
    entropy: Entropy,
    outputs: VecDeque<ChannelOutput>,
}

impl Link {
    /// A conversation that has not started.
    pub fn new(config: ChannelConfig) -> Self {
        Self {
            socket: WebSocketSession::new(config.session.clone(), config.credit),
            polls: LongPollChannel::new(config),
            offered: Transports::LongPoll,
            active: Active::LongPoll(Trial::Never),
            trials: 0,
            entropy: Entropy::new([0; 32]),
            outputs: VecDeque::new(),
        }
    }

    /// Begins. `random` is fresh.
    ///
    /// # Errors
    /// [`ApiMisuse::AlreadyStarted`] unless the conversation is new or closed for good.
    pub fn handle_start(&mut self, now_ms: u64, random: [u8; 32], offered: Transports) -> Result<(), ApiMisuse> {
        if !self.is_closed() {
            return Err(ApiMisuse::AlreadyStarted);
        }
        self.entropy = Entropy::new(random);
        (self.offered, self.trials) = (offered, 0);
        match offered {
            Transports::LongPoll => {
                self.active = Active::LongPoll(Trial::Never);
                let seed = self.seed();
                self.polls.handle_start(now_ms, seed)?;
            }
            Transports::WebSocket | Transports::Both => {
                self.active = Active::WebSocket;
                let seed = self.seed();
                self.socket.handle_start(now_ms, seed)?;
            }
        }
        self.collect(now_ms);
        Ok(())
    }

    /// What every handshake from now on presents. Sessions that are open go on.
    pub fn set_handshake(&mut self, handshake: HandshakeConfig) {
        self.socket.set_handshake(handshake.clone());
        self.polls.set_handshake(handshake);
    }

    /// Queues a request in the session that it belongs to.
    ///
    /// # Errors
    /// Those of [`WebSocketSession::submit`] or [`LongPollChannel::submit`].
    pub fn submit(&mut self, body: RequestBody, now_ms: u64) -> Result<RequestHandle, ApiMisuse> {
        let handle = match &self.active {
            Active::WebSocket => self.socket.submit(body, now_ms)?,
            Active::LongPoll(Trial::Ready { .. }) if Slot::of(&body) == Slot::Command => {
                self.socket.submit(body, now_ms)?
            }
            Active::LongPoll(_) => self.polls.submit(body, now_ms)?,
        };
        self.collect(now_ms);
        Ok(handle)
    }

    /// Keeps `subscription_id` at `target` from now on; may come before it is opened. Forgotten when the subscription or
    /// its session ends. Credit that is outstanding is not taken back.
    pub fn set_credit_target(&mut self, subscription_id: Bytes32, target: CreditTarget, now_ms: u64) {
        match self.active {
            Active::WebSocket => self.socket.set_credit_target(subscription_id, target, now_ms),
            Active::LongPoll(_) => self.polls.set_credit_target(subscription_id, target, now_ms),
        }
        self.collect(now_ms);
    }

    /// Gives the signature of an [`Output::Sign`].
    pub fn handle_signature(&mut self, slot: Slot, digest: &Bytes32, signature: Signature, now_ms: u64) {
        match slot {
            Slot::Socket => self.socket.handle_signature(digest, signature, now_ms),
            Slot::Command | Slot::Poll => self.polls.handle_signature(slot, digest, signature, now_ms),
        }
        self.collect(now_ms);
    }

    /// The holder key could not sign this digest: the session closes for good.
    pub fn handle_signing_failed(&mut self, slot: Slot, digest: &Bytes32, now_ms: u64) {
        match slot {
            Slot::Socket => self.socket.handle_signing_failed(digest),
            Slot::Command | Slot::Poll => self.polls.handle_signing_failed(slot, digest, now_ms),
        }
        self.collect(now_ms);
    }

    /// [`LongPollChannel::handle_body`].
    pub fn handle_body(&mut self, slot: Slot, post: PostId, bytes: &[u8], now_ms: u64) {
        self.polls.handle_body(slot, post, bytes, now_ms);
        self.collect(now_ms);
    }

    /// [`LongPollChannel::handle_transport_error`].
    pub fn handle_transport_error(&mut self, slot: Slot, post: PostId, error: TransportError, now_ms: u64) {
        self.polls.handle_transport_error(slot, post, error, now_ms);
        self.collect(now_ms);
    }

    /// [`WebSocketSession::handle_connected`].
    pub fn handle_connected(&mut self, socket: SocketId, now_ms: u64) {
        self.socket.handle_connected(socket, now_ms);
        self.collect(now_ms);
    }

    /// [`WebSocketSession::handle_message`].
    pub fn handle_message(&mut self, socket: SocketId, bytes: &[u8], now_ms: u64) {
        self.socket.handle_message(socket, bytes, now_ms);
        self.collect(now_ms);
    }

    /// [`WebSocketSession::handle_disconnected`].
    pub fn handle_disconnected(&mut self, socket: SocketId, error: TransportError, now_ms: u64) {
        self.socket.handle_disconnected(socket, error, now_ms);
        self.collect(now_ms);
    }

    /// Time passed. Give everything that has arrived before this, or a late timer discards it.
    pub fn handle_time(&mut self, now_ms: u64) {
        self.socket.handle_time(now_ms);
        self.polls.handle_time(now_ms);
        if matches!(self.active, Active::LongPoll(Trial::At(at_ms)) if at_ms <= now_ms) {
            self.begin_trial(now_ms);
        }
        self.collect(now_ms);
    }

    /// Asks for no more records until [`Self::resume`]; what was asked for may still come.
    pub const fn pause(&mut self) {
        self.socket.pause();
        self.polls.pause_polls();
    }

    /// Asks for records again. True when it did not before.
    pub fn resume(&mut self, now_ms: u64) -> bool {
        let was_paused = self.socket.resume(now_ms) | self.polls.resume_polls(now_ms);
        self.collect(now_ms);
        was_paused
    }

    /// Closes for good: nothing is sent until [`Self::handle_start`].
    pub fn close(&mut self, now_ms: u64) {
        self.socket.close(CloseCause::Requested);
        self.polls.close(now_ms);
        self.collect(now_ms);
    }

    /// The network is said to be back: what waits for its time begins now.
    pub fn handle_online(&mut self, now_ms: u64) {
        self.socket.handle_online(now_ms);
        self.polls.handle_online(now_ms);
        if matches!(self.active, Active::LongPoll(Trial::At(_))) {
            self.begin_trial(now_ms);
        }
        self.collect(now_ms);
    }

    /// The next thing to do or to know, until there is none.
    pub fn poll_output(&mut self) -> Option<ChannelOutput> {
        self.outputs.pop_front()
    }

    /// When [`Self::handle_time`] next has something to do.
    pub fn wake_at(&self) -> Option<u64> {
        let trial = match self.active {
            Active::LongPoll(Trial::At(at_ms)) => Some(at_ms),
            _ => None,
        };
        [self.socket.wake_at(), self.polls.wake_at(), trial].into_iter().flatten().min()
    }

    /// The subscriptions that are open, with their credit.
    pub const fn subscriptions(&self) -> &Subscriptions {
        match self.active {
            Active::WebSocket => self.socket.subscriptions(),
            Active::LongPoll(_) => self.polls.subscriptions(),
        }
    }

    /// True when only `handle_start` sets it going.
    pub const fn is_closed(&self) -> bool {
        match self.active {
            Active::WebSocket => self.socket.is_closed(),
            Active::LongPoll(_) => self.polls.is_closed(),
        }
    }

    /// Fresh enough for another machine: unique, which is all that ids need.
    fn seed(&mut self) -> [u8; 32] {
        let mut seed = self.entropy.request_id().0;
        for (place, byte) in seed[16..].iter_mut().zip(self.entropy.jitter().to_be_bytes()) {
            *place ^= byte;
        }
        seed
    }

    fn begin_trial(&mut self, now_ms: u64) {
        let seed = self.seed();
        if self.socket.handle_start(now_ms, seed).is_ok() {
            self.active = Active::LongPoll(Trial::Connecting);
        }
    }

    /// Takes what both machines told, and goes over to the other where that says so.
    fn collect(&mut self, now_ms: u64) {
        while let Some(output) = self.socket.poll_output() {
            self.take_socket_output(output, now_ms);
        }
        while let Some(output) = self.polls.poll_output() {
            self.outputs.push_back(output);
        }
        self.complete_trial(now_ms);
    }

    fn take_socket_output(&mut self, output: Output, now_ms: u64) {
        let passed_on = match (&mut self.active, output) {
            (Active::WebSocket, Output::Closed { cause, retry_at_ms: Some(_) })
                if self.offered == Transports::Both && self.socket.failures() >= MAX_SOCKET_FAILURES =>
            {
                self.fall_back(cause, now_ms);
                return;
            }
            (Active::LongPoll(trial), Output::Opened { session_id, expires_at_ms }) => {
                *trial = Trial::Ready { session_id, expires_at_ms };
                return;
            }
            (Active::LongPoll(trial), Output::Closed { .. }) => {
                let delay_ms = FIRST_TRIAL_AFTER_MS.saturating_mul(1_u64.checked_shl(self.trials).unwrap_or(u64::MAX));
                *trial = Trial::At(now_ms.saturating_add(delay_ms.min(LAST_TRIAL_AFTER_MS)));
                self.trials = self.trials.saturating_add(1);
                // Not again by itself: what it still says of its end is said already.
                self.socket.close(CloseCause::Requested);
                while let Some(output) = self.socket.poll_output() {
                    if !matches!(output, Output::Closed { .. }) {
                        self.outputs.push_back(ChannelOutput::Session { slot: Slot::Socket, output });
                    }
                }
                return;
            }
            (_, output) => output,
        };
        self.outputs.push_back(ChannelOutput::Session { slot: Slot::Socket, output: passed_on });
    }

    /// No WebSocket passes: long-poll takes over.
    fn fall_back(&mut self, cause: CloseCause, now_ms: u64) {
        self.active = Active::LongPoll(Trial::Connecting);
        let output = Output::Closed { cause, retry_at_ms: Some(now_ms) };
        self.outputs.push_back(ChannelOutput::Session { slot: Slot::Socket, output });
        let seed = self.seed();
        // It was never started or was closed for good, so it starts.
        if self.polls.handle_start(now_ms, seed).is_ok() {
            self.socket.close(CloseCause::Requested);
        }
    }

    /// A WebSocket on trial has a session, and nothing is awaited over long-poll but records: they come over it from now on.
    fn complete_trial(&mut self, now_ms: u64) {
        let Active::LongPoll(Trial::Ready { session_id, expires_at_ms }) = self.active else { return };
        if self.polls.awaits_command() {
            return;
        }
        self.active = Active::WebSocket;
        self.trials = 0;
        self.polls.close(now_ms);
        while let Some(output) = self.polls.poll_output() {
            match output {
                ChannelOutput::Session { output: Output::Closed { .. }, .. } => {}
                other => self.outputs.push_back(other),
            }
        }
        let closed = Output::Closed { cause: CloseCause::TransportChanged, retry_at_ms: Some(now_ms) };
        self.outputs.push_back(ChannelOutput::Session { slot: Slot::Poll, output: closed });
        let opened = Output::Opened { session_id, expires_at_ms };
        self.outputs.push_back(ChannelOutput::Session { slot: Slot::Socket, output: opened });
    }
}
