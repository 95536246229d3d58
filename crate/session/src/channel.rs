//! A command session beside a poll session: appends do not wait for a held poll, and each session keeps to one exchange.
//!
//! Subscriptions live in the poll session, everything else is sent in the command session, which is opened by the first
//! command. While a subscription is open the poll session is never idle: it sends `Credit`, which is the poll (§13.2).
//! Each poll names the next subscription in turn, first those whose outstanding credit fell below half of their target;
//! when none did, it grants nothing and only polls.

use alloc::collections::{BTreeMap, VecDeque};

use remuda_wire::request::{Credit, CreditRequest, RequestBody};
use remuda_wire::response::ResponseBody;
use remuda_wire::{Bytes32, Remedy, Signature};

use crate::backoff::Backoff;
use crate::config::SessionConfig;
use crate::credit::CreditTarget;
use crate::entropy::Entropy;
use crate::handshake::HandshakeConfig;
use crate::long_poll::LongPollSession;
use crate::misuse::ApiMisuse;
use crate::output::{CloseCause, Output, PostId, RequestHandle, Slot};
use crate::provider_error::ProviderError;
use crate::subscription::Subscriptions;
use crate::transport_error::TransportError;

/// How long an `OpenSubscription` waits behind a held poll before the poll is given up: a stream that is alive answers the
/// poll sooner, and on one that is silent nothing is lost with it.
const POLL_PATIENCE_MS: u64 = 500;

/// The configuration of a [`LongPollChannel`].
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    /// Of both sessions.
    pub session: SessionConfig,
    /// The credit target of a subscription that has no other.
    pub credit: CreditTarget,
}

/// An output and the session that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // As `Output`.
pub enum ChannelOutput {
    /// What a session asks for or tells. The channel's own polls are settled inside.
    Session {
        /// Which session.
        slot: Slot,
        /// What.
        output: Output,
    },
    /// The provider refused a poll for now; the next is sent at `resume_at_ms`.
    PollRefused {
        /// What it answered.
        error: ProviderError,
        /// When the next poll is sent.
        resume_at_ms: u64,
    },
}

/// The pair of sessions. Driven like one: every input names its [`Slot`], every `Post` and `Sign` comes with one.
#[derive(Debug)]
pub struct LongPollChannel {
    command: LongPollSession,
    poll: LongPollSession,
    default_target: CreditTarget,
    targets: BTreeMap<Bytes32, CreditTarget>,
    backoff: Backoff,
    entropy: Entropy,
    /// The poll on its way, if one is.
    polling: Option<RequestHandle>,
    /// The subscription that was polled last.
    last_polled: Bytes32,
    resume_at_ms: u64,
    /// When the poll on its way is given up for the subscription that waits behind it.
    give_up_at_ms: Option<u64>,
    /// Whether no poll is to be sent.
    paused: bool,
    refusals: u32,
    started: bool,
    outputs: VecDeque<ChannelOutput>,
}

impl LongPollChannel {
    /// A channel that has not started.
    pub fn new(config: ChannelConfig) -> Self {
        Self {
            backoff: config.session.backoff,
            command: LongPollSession::new(config.session.clone(), Slot::Command),
            poll: LongPollSession::new(config.session, Slot::Poll),
            default_target: config.credit,
            targets: BTreeMap::new(),
            entropy: Entropy::new([0; 32]),
            polling: None,
            last_polled: Bytes32::ZERO,
            resume_at_ms: 0,
            give_up_at_ms: None,
            paused: false,
            refusals: 0,
            started: false,
            outputs: VecDeque::new(),
        }
    }

    /// Begins the handshake of the poll session. `random` is fresh.
    ///
    /// # Errors
    /// [`ApiMisuse::AlreadyStarted`] unless the poll session is new or closed for good.
    pub fn handle_start(&mut self, now_ms: u64, random: [u8; 32]) -> Result<(), ApiMisuse> {
        // Both sessions draw from one seed; the first bit of the ids tells them apart.
        let (mut poll_seed, mut command_seed) = (random, random);
        poll_seed[0] &= 0x7f;
        command_seed[0] |= 0x80;
        self.poll.handle_start(now_ms, poll_seed)?;
        self.command.seed(command_seed);
        self.paused = false;
        self.entropy = Entropy::new(random);
        self.started = true;
        self.resume_at_ms = now_ms;
        self.settle(now_ms);
        Ok(())
    }

    /// What every handshake from now on presents.
    pub fn set_handshake(&mut self, handshake: HandshakeConfig) {
        self.command.set_handshake(handshake.clone());
        self.poll.set_handshake(handshake);
    }

    /// Queues a request in the session that it belongs to. A command opens the command session when it is closed.
    ///
    /// # Errors
    /// Those of [`LongPollSession::submit`]; [`ApiMisuse::NotStarted`] before `handle_start`.
    pub fn submit(&mut self, body: RequestBody, now_ms: u64) -> Result<RequestHandle, ApiMisuse> {
        if !self.started {
            return Err(ApiMisuse::NotStarted);
        }
        let slot = Slot::of(&body);
        if slot == Slot::Command && self.command.is_closed() {
            self.command.restart(now_ms);
        }
        let opens = matches!(body, RequestBody::OpenSubscription(_));
        let handle = self.session(slot).submit(body, now_ms)?;
        if opens && self.polling.is_some() && self.give_up_at_ms.is_none() {
            self.give_up_at_ms = Some(now_ms.saturating_add(POLL_PATIENCE_MS));
        }
        self.settle(now_ms);
        Ok(handle)
    }

    /// Keeps `subscription_id` at `target` from the next poll on; may come before it is opened. Forgotten when the
    /// subscription or its session ends. Credit that is outstanding is not taken back.
    pub fn set_credit_target(&mut self, subscription_id: Bytes32, target: CreditTarget, now_ms: u64) {
        self.targets.insert(subscription_id, target);
        self.settle(now_ms);
    }

    /// [`LongPollSession::handle_signature`] of one session.
    pub fn handle_signature(&mut self, slot: Slot, digest: &Bytes32, signature: Signature, now_ms: u64) {
        self.session(slot).handle_signature(digest, signature, now_ms);
        self.settle(now_ms);
    }

    /// [`LongPollSession::handle_signing_failed`] of one session.
    pub fn handle_signing_failed(&mut self, slot: Slot, digest: &Bytes32, now_ms: u64) {
        self.session(slot).handle_signing_failed(digest);
        self.settle(now_ms);
    }

    /// [`LongPollSession::handle_body`] of one session.
    pub fn handle_body(&mut self, slot: Slot, post: PostId, bytes: &[u8], now_ms: u64) {
        self.session(slot).handle_body(post, bytes, now_ms);
        self.settle(now_ms);
    }

    /// [`LongPollSession::handle_transport_error`] of one session.
    pub fn handle_transport_error(&mut self, slot: Slot, post: PostId, error: TransportError, now_ms: u64) {
        self.session(slot).handle_transport_error(post, error, now_ms);
        self.settle(now_ms);
    }

    /// [`LongPollSession::handle_time`] of both.
    pub fn handle_time(&mut self, now_ms: u64) {
        self.command.handle_time(now_ms);
        self.poll.handle_time(now_ms);
        self.collect(now_ms);
        if self.give_up_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.give_up_at_ms = None;
            self.poll.give_up_exchange(CloseCause::PollGivenUp, now_ms);
        }
        self.settle(now_ms);
    }

    /// Sends no more polls until [`Self::resume_polls`]; what is on its way may still bring a body.
    pub const fn pause_polls(&mut self) {
        self.paused = true;
    }

    /// Polls again. True when it did not before.
    pub fn resume_polls(&mut self, now_ms: u64) -> bool {
        let was_paused = core::mem::replace(&mut self.paused, false);
        if was_paused {
            self.settle(now_ms);
        }
        was_paused
    }

    /// Closes both sessions for good: nothing is sent until [`Self::handle_start`].
    pub fn close(&mut self, now_ms: u64) {
        self.started = false;
        self.command.close(CloseCause::Requested);
        self.close_poll(CloseCause::Requested, now_ms);
    }

    /// Closes the poll session for good and tells `cause` back, as when what it delivered is false. Commands go on.
    pub fn close_poll(&mut self, cause: CloseCause, now_ms: u64) {
        self.poll.close(cause);
        self.settle(now_ms);
    }

    /// [`LongPollSession::handle_online`] of both.
    pub fn handle_online(&mut self, now_ms: u64) {
        self.command.handle_online(now_ms);
        self.poll.handle_online(now_ms);
        self.settle(now_ms);
    }

    /// The next thing to do or to know, until there is none.
    pub fn poll_output(&mut self) -> Option<ChannelOutput> {
        self.outputs.pop_front()
    }

    /// When [`Self::handle_time`] next has something to do.
    pub fn wake_at(&self) -> Option<u64> {
        let held_back = !self.paused && self.poll.is_idle(u64::MAX) && !self.poll.subscriptions().is_empty();
        let poll_due = held_back.then_some(self.resume_at_ms);
        [self.command.wake_at(), self.poll.wake_at(), poll_due, self.give_up_at_ms].into_iter().flatten().min()
    }

    /// The subscriptions that are open, with their credit.
    pub const fn subscriptions(&self) -> &Subscriptions {
        self.poll.subscriptions()
    }

    /// True while a command was sent, or waits to be, and is not settled.
    pub fn awaits_command(&self) -> bool {
        !self.command.is_settled()
    }

    /// True when the poll session is closed for good.
    pub const fn is_closed(&self) -> bool {
        self.poll.is_closed()
    }

    const fn session(&mut self, slot: Slot) -> &mut LongPollSession {
        match slot {
            Slot::Command => &mut self.command,
            Slot::Poll | Slot::Socket => &mut self.poll,
        }
    }

    /// Takes what the sessions told, settles polls, and sends the next poll when there is room for one.
    fn settle(&mut self, now_ms: u64) {
        self.collect(now_ms);
        if let Some(body) = self.next_poll(now_ms) {
            if let Ok(handle) = self.poll.submit(RequestBody::Credit(body), now_ms) {
                self.polling = Some(handle);
            }
            self.collect(now_ms);
        }
    }

    fn collect(&mut self, now_ms: u64) {
        self.collect_outputs(now_ms);
        if self.polling.is_none() {
            self.give_up_at_ms = None;
        }
    }

    fn collect_outputs(&mut self, now_ms: u64) {
        while let Some(output) = self.command.poll_output() {
            self.outputs.push_back(ChannelOutput::Session { slot: Slot::Command, output });
        }
        while let Some(output) = self.poll.poll_output() {
            match output {
                Output::Answer { handle, result } if self.polling == Some(handle) => {
                    self.polling = None;
                    match result {
                        Ok(_) => self.refusals = 0,
                        Err(error) => self.poll_refused(error, now_ms),
                    }
                }
                Output::PollTimeout { handle } if self.polling == Some(handle) => {
                    self.polling = None;
                    self.refusals = 0;
                }
                Output::Unanswered { handle } | Output::Unsent { handle } if self.polling == Some(handle) => {
                    self.polling = None;
                }
                output => {
                    self.forget_targets(&output);
                    self.outputs.push_back(ChannelOutput::Session { slot: Slot::Poll, output });
                }
            }
        }
    }

    /// A credit target lasts as long as its subscription.
    fn forget_targets(&mut self, output: &Output) {
        match output {
            Output::Closed { .. } => self.targets.clear(),
            Output::SubscriptionEnded { subscription_id, .. } => {
                self.targets.remove(subscription_id);
            }
            Output::Answer { result: Ok(ResponseBody::CloseSubscription(state)), .. } => {
                self.targets.remove(&state.subscription_id);
            }
            _ => {}
        }
    }

    /// A refused poll by its remedy: later again, or never in this session.
    fn poll_refused(&mut self, error: ProviderError, now_ms: u64) {
        // It named a subscription, which ended by it, and the others are polled on; or the session closed by itself.
        if error.subscription_id.is_some() || error.kind().invalidates_session() {
            return;
        }
        if error.remedy() == Remedy::Retry {
            let delay_ms = self.backoff.delay_ms(self.refusals, self.entropy.jitter());
            self.refusals = self.refusals.saturating_add(1);
            self.resume_at_ms = now_ms.saturating_add(delay_ms);
            self.outputs.push_back(ChannelOutput::PollRefused { error, resume_at_ms: self.resume_at_ms });
        } else {
            self.poll.close(CloseCause::Provider(error));
        }
    }

    /// The next poll, when the poll session is idle and something is subscribed.
    fn next_poll(&mut self, now_ms: u64) -> Option<CreditRequest> {
        if self.paused || self.polling.is_some() || self.resume_at_ms > now_ms || !self.poll.is_idle(now_ms) {
            return None;
        }
        let live = self.poll.subscriptions();
        let mut turn = live.next_after(&self.last_polled)?;
        let mut grant = (0, 0);
        let mut candidate = turn;
        for _ in live.ids() {
            let target = self.targets.get(&candidate).copied().unwrap_or(self.default_target);
            if let Some(low) = live.credit(&candidate).and_then(|outstanding| target.top_up(outstanding)) {
                (turn, grant) = (candidate, low);
                break;
            }
            candidate = live.next_after(&candidate)?;
        }
        self.last_polled = turn;
        let (records, bytes) = grant;
        let credit = Credit { subscription_id: turn, records, bytes };
        Some(CreditRequest { stream_id: *self.poll.stream_id(), credit })
    }
}
