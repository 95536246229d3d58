//! One session over a WebSocket (§13): one frame a message, requests pipelined, frames pushed as credit allows.
//!
//! ```text
//!  new --handle_start--> Connecting --> Challenge --> Signing --> Opening --> Open
//!            ^               |              |            |           |         |
//!            |               +--------------+------------+-----------+---------+
//!            |                            | Closed { retry_at }
//!            +---- retry_at passes ---- Waiting        Closed { None }: until handle_start
//! ```
//!
//! A session lives as long as its connection. What it awaits when it ends is settled as `Unanswered`, its subscriptions
//! end, and they start again at a position that the caller knows to be durable.
//!
//! Requests are signed one after the other, since the holder key may be slow, and sent as they are signed: counters are
//! contiguous in the order of sending. A subscription is granted credit when what is outstanding fell below half of its
//! target. A connection that brought nothing for long is asked for a sign of life by a credit request that grants nothing,
//! because a browser tells of no ping.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use remuda_wire::frame::ServerFrame;
use remuda_wire::request::{Credit, CreditRequest, RequestBody};
use remuda_wire::response::ResponseBody;
use remuda_wire::{Bytes32, Remedy, Signature};

use crate::config::SessionConfig;
use crate::conversation::{Conversation, Pending};
use crate::credit::CreditTarget;
use crate::entropy::Entropy;
use crate::handshake::{
    handshake_answer, is_forgotten_challenge, AwaitChallenge, AwaitOpened, AwaitSignature, HandshakeConfig, Open,
};
use crate::misuse::ApiMisuse;
use crate::output::{CloseCause, Output, RequestHandle, Slot, SocketId};
use crate::queue::RequestQueue;
use crate::request::UnsignedRequest;
use crate::seen::SeenChallenges;
use crate::subscription::Subscriptions;
use crate::transport_error::TransportError;

/// A connection that is open or being opened, and when the step of the handshake that it is in is given up.
#[derive(Clone, Copy, Debug)]
struct Connection {
    socket: SocketId,
    deadline_ms: u64,
}

#[derive(Debug)]
struct OpenState {
    socket: SocketId,
    open: Open,
    /// From here on nothing new is sent: a new session is opened once nothing is awaited.
    renew_at_ms: u64,
    signing: Option<(Pending, Box<UnsignedRequest>)>,
    conversation: Conversation,
    /// When each request in flight is given up, in the order of sending.
    deadlines: VecDeque<(RequestHandle, u64)>,
    last_heard_ms: u64,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // There is one, and it is open nearly always.
enum State {
    Closed,
    Waiting { retry_at_ms: u64 },
    Connecting(Connection),
    Challenge(AwaitChallenge, Connection),
    Signing(AwaitSignature, SocketId),
    Opening(AwaitOpened, Connection),
    Open(OpenState),
}

/// The machine of one session. See the [module](self) for its states and `crate` for how to drive it.
#[derive(Debug)]
pub struct WebSocketSession {
    config: SessionConfig,
    default_target: CreditTarget,
    targets: BTreeMap<Bytes32, CreditTarget>,
    entropy: Entropy,
    state: State,
    seen: SeenChallenges,
    /// Proofs of the holder that were refused in a row.
    refused_proofs: u32,
    queue: RequestQueue,
    outputs: VecDeque<Output>,
    none: Subscriptions,
    /// Credit requests of our own that are on their way, by the subscription that they grant to.
    granting: BTreeMap<RequestHandle, Bytes32>,
    /// Whether no credit is to be granted.
    paused: bool,
    sockets: u64,
    /// Failures since the last request that took effect.
    failures: u32,
}

impl WebSocketSession {
    /// A machine that has not started. `credit` is the target of a subscription that has no other.
    pub fn new(config: SessionConfig, credit: CreditTarget) -> Self {
        Self {
            queue: RequestQueue::new(Slot::Socket, config.max_queued_requests),
            config,
            default_target: credit,
            targets: BTreeMap::new(),
            entropy: Entropy::new([0; 32]),
            state: State::Closed,
            seen: SeenChallenges::default(),
            refused_proofs: 0,
            outputs: VecDeque::new(),
            none: Subscriptions::default(),
            granting: BTreeMap::new(),
            paused: false,
            sockets: 0,
            failures: 0,
        }
    }

    /// Begins to connect. `random` is fresh: request ids and jitter come of it.
    ///
    /// # Errors
    /// [`ApiMisuse::AlreadyStarted`] unless the machine is new or closed for good.
    pub fn handle_start(&mut self, now_ms: u64, random: [u8; 32]) -> Result<(), ApiMisuse> {
        if !self.is_closed() {
            return Err(ApiMisuse::AlreadyStarted);
        }
        self.entropy = Entropy::new(random);
        self.failures = 0;
        self.paused = false;
        self.begin(now_ms);
        Ok(())
    }

    /// What the next handshake presents.
    pub fn set_handshake(&mut self, handshake: HandshakeConfig) {
        self.config.handshake = handshake;
    }

    /// Queues one request. Requests are sent in order.
    ///
    /// # Errors
    /// [`ApiMisuse::NotStarted`] when closed for good; `QueueFull`, `SubscriptionExists` and `UnknownSubscription` as over
    /// long-poll.
    pub fn submit(&mut self, body: RequestBody, now_ms: u64) -> Result<RequestHandle, ApiMisuse> {
        if self.is_closed() {
            return Err(ApiMisuse::NotStarted);
        }
        let state = &self.state;
        let handle = self.queue.push(body, |id| match state {
            State::Open(open) => open.knows(id),
            _ => false,
        })?;
        self.advance(now_ms);
        Ok(handle)
    }

    /// Takes a request back that was not sent: it is settled by that. False when it was sent, or is settled.
    pub fn withdraw(&mut self, handle: RequestHandle) -> bool {
        self.queue.withdraw(handle)
    }

    /// Keeps `subscription_id` at `target` from now on; may come before it is opened. Forgotten when the subscription or
    /// its session ends. Credit that is outstanding is not taken back.
    pub fn set_credit_target(&mut self, subscription_id: Bytes32, target: CreditTarget, now_ms: u64) {
        self.targets.insert(subscription_id, target);
        self.advance(now_ms);
    }

    /// The connection is open.
    pub fn handle_connected(&mut self, socket: SocketId, now_ms: u64) {
        let State::Connecting(connection) = &self.state else { return };
        if connection.socket != socket {
            return;
        }
        let request_id = self.entropy.request_id();
        let (wait, message) = AwaitChallenge::new(&self.config.handshake, request_id);
        self.outputs.push_back(Output::Send { socket, message });
        self.state = State::Challenge(wait, self.connection(socket, now_ms));
    }

    /// One binary message came. What comes of a connection that was given up is ignored.
    pub fn handle_message(&mut self, socket: SocketId, bytes: &[u8], now_ms: u64) {
        if self.socket() != Some(socket) {
            return;
        }
        match ServerFrame::from_bytes(bytes) {
            Ok(frame) => self.apply(frame, now_ms),
            Err(error) => self.fail(CloseCause::Violation(error.into()), now_ms),
        }
        self.advance(now_ms);
    }

    /// The connection ended, or could not be opened.
    pub fn handle_disconnected(&mut self, socket: SocketId, error: TransportError, now_ms: u64) {
        if self.socket() != Some(socket) {
            return;
        }
        let retry_at_ms = (error.remedy() == Remedy::Retry).then(|| now_ms.saturating_add(self.next_delay_ms()));
        self.settle_close(CloseCause::Transport(error), retry_at_ms);
        self.advance(now_ms);
    }

    /// Gives the signature of an [`Output::Sign`]. One of another digest than the one asked for last is ignored: it
    /// belongs to a session that is gone.
    pub fn handle_signature(&mut self, digest: &Bytes32, signature: Signature, now_ms: u64) {
        if !self.awaits_signature_of(digest) {
            return;
        }
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Signing(wait, socket) => {
                let request_id = self.entropy.request_id();
                let (wait, message) = wait.sign(signature, request_id);
                self.outputs.push_back(Output::Send { socket, message });
                self.state = State::Opening(wait, self.connection(socket, now_ms));
            }
            State::Open(mut open) => {
                if let Some((pending, request)) = open.signing.take() {
                    let deadline_ms = now_ms.saturating_add(self.config.request_timeout_ms);
                    open.deadlines.push_back((pending.handle(), deadline_ms));
                    open.conversation.pending.push(pending);
                    self.outputs.push_back(Output::Send { socket: open.socket, message: request.sign(signature) });
                }
                self.state = State::Open(open);
            }
            other => self.state = other,
        }
        self.advance(now_ms);
    }

    /// The holder key could not sign this digest: closes the session for good.
    pub fn handle_signing_failed(&mut self, digest: &Bytes32) {
        if self.awaits_signature_of(digest) {
            self.close(CloseCause::SigningFailed);
        }
    }

    /// Time passed: gives up a connection or a request past its deadline, connects again when that is due, asks for a sign
    /// of life. Give every message that has arrived before this, or a late timer discards it.
    pub fn handle_time(&mut self, now_ms: u64) {
        if self.deadline_ms().is_some_and(|deadline_ms| deadline_ms <= now_ms) {
            self.fail(CloseCause::Transport(TransportError::Timeout), now_ms);
        }
        self.advance(now_ms);
    }

    /// Grants no more credit until [`Self::resume`]; what was granted may still bring records.
    pub const fn pause(&mut self) {
        self.paused = true;
    }

    /// Grants credit again. True when it did not before.
    pub fn resume(&mut self, now_ms: u64) -> bool {
        let was_paused = core::mem::replace(&mut self.paused, false);
        if was_paused {
            self.advance(now_ms);
        }
        was_paused
    }

    /// The network is said to be back: a connection that waits for its time is opened now.
    pub fn handle_online(&mut self, now_ms: u64) {
        if let State::Waiting { retry_at_ms } = &mut self.state {
            *retry_at_ms = now_ms;
        }
        self.advance(now_ms);
    }

    /// Closes for good and tells `cause` back: [`CloseCause::Requested`], or what the caller found false in its frames.
    /// A machine that is closed already stays as it is.
    pub fn close(&mut self, cause: CloseCause) {
        if !self.is_closed() {
            self.close_with(cause, None);
        }
    }

    /// The next thing to do or to know, until there is none.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Self::handle_time`] next has something to do. A time that has passed already means at once.
    pub fn wake_at(&self) -> Option<u64> {
        match &self.state {
            State::Closed | State::Signing(..) => None,
            State::Waiting { retry_at_ms } => Some(*retry_at_ms),
            State::Connecting(_) | State::Challenge(..) | State::Opening(..) => self.deadline_ms(),
            State::Open(open) => {
                let heartbeat = open.heartbeat_at(self.config.heartbeat_ms);
                let renewal = open.is_quiet().then_some(open.renew_at_ms);
                [self.deadline_ms(), heartbeat, renewal].into_iter().flatten().min()
            }
        }
    }

    /// True for a machine that only `handle_start` sets going.
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Connections and sessions that failed since the last request that took effect.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// The subscriptions that are open, with their credit.
    pub const fn subscriptions(&self) -> &Subscriptions {
        match &self.state {
            State::Open(open) => &open.conversation.subscriptions,
            _ => &self.none,
        }
    }

    fn socket(&self) -> Option<SocketId> {
        match &self.state {
            State::Closed | State::Waiting { .. } => None,
            State::Connecting(connection) | State::Challenge(_, connection) | State::Opening(_, connection) => {
                Some(connection.socket)
            }
            State::Signing(_, socket) => Some(*socket),
            State::Open(open) => Some(open.socket),
        }
    }

    fn deadline_ms(&self) -> Option<u64> {
        match &self.state {
            State::Closed | State::Waiting { .. } | State::Signing(..) => None,
            State::Connecting(connection) | State::Challenge(_, connection) | State::Opening(_, connection) => {
                Some(connection.deadline_ms)
            }
            State::Open(open) => open.deadlines.front().map(|(_, deadline_ms)| *deadline_ms),
        }
    }

    const fn connection(&self, socket: SocketId, now_ms: u64) -> Connection {
        Connection { socket, deadline_ms: now_ms.saturating_add(self.config.request_timeout_ms) }
    }

    fn awaits_signature_of(&self, digest: &Bytes32) -> bool {
        match &self.state {
            State::Signing(wait, _) => wait.digest() == *digest,
            State::Open(open) => open.signing.as_ref().is_some_and(|(_, request)| request.digest() == *digest),
            _ => false,
        }
    }

    fn begin(&mut self, now_ms: u64) {
        self.sockets = self.sockets.saturating_add(1);
        let socket = SocketId(self.sockets);
        self.outputs.push_back(Output::Connect { socket });
        self.state = State::Connecting(self.connection(socket, now_ms));
    }

    fn apply(&mut self, frame: ServerFrame, now_ms: u64) {
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Challenge(wait, connection) => {
                let request_id = *wait.request_id();
                let seen = &mut self.seen;
                match handshake_answer(frame, &request_id, |frame| Ok(seen.admit(wait.handle(frame, now_ms)?)?)) {
                    Ok(wait) => {
                        self.outputs.push_back(Output::Sign { digest: wait.digest() });
                        self.state = State::Signing(wait, connection.socket);
                    }
                    Err(cause) => self.handshake_failed(cause, connection.socket, now_ms),
                }
            }
            State::Opening(wait, connection) => {
                let request_id = *wait.request_id();
                match handshake_answer(frame, &request_id, |frame| wait.handle(frame, now_ms)) {
                    Ok(open) => {
                        self.refused_proofs = 0;
                        self.opened(open, connection.socket, now_ms);
                    }
                    Err(cause) if is_forgotten_challenge(&cause, self.refused_proofs) => {
                        self.refused_proofs += 1;
                        self.outputs.push_back(Output::Disconnect { socket: connection.socket });
                        let retry_at_ms = now_ms.saturating_add(self.next_delay_ms());
                        self.settle_close(cause, Some(retry_at_ms));
                    }
                    Err(cause) => self.handshake_failed(cause, connection.socket, now_ms),
                }
            }
            State::Open(mut open) => {
                open.last_heard_ms = now_ms;
                let judged = open.conversation.apply(frame.0);
                let told = core::mem::take(&mut open.conversation.outputs);
                open.settle_deadlines();
                if core::mem::take(&mut open.conversation.succeeded) {
                    self.failures = 0;
                }
                let session_error = open.conversation.session_error.take();
                self.state = State::Open(open);
                self.tell(told);
                match (judged, session_error) {
                    (Err(refusal), _) => self.fail(CloseCause::Violation(refusal), now_ms),
                    (Ok(()), Some(error)) => {
                        // A refused proof in an open session says that the session is gone, not that the key is wrong: a
                        // handshake tells, and there the same error is final.
                        let returns = error.remedy() == Remedy::Retry || error.kind().invalidates_session();
                        let retry_at_ms = returns.then(|| now_ms.saturating_add(self.next_delay_ms()));
                        self.close_with(CloseCause::Provider(error), retry_at_ms);
                    }
                    (Ok(()), None) => {}
                }
            }
            // Nothing was asked yet, so nothing can come.
            State::Connecting(Connection { socket, .. }) | State::Signing(_, socket) => {
                let cause = CloseCause::Violation(remuda_wire::verdict::ProtocolViolation::UnexpectedFrame.into());
                self.handshake_failed(cause, socket, now_ms);
            }
            other => self.state = other,
        }
    }

    /// Tells what the caller did not do itself: our own credit requests are settled here, and credit targets end with
    /// their subscriptions.
    fn tell(&mut self, told: impl IntoIterator<Item = Output>) {
        for output in told {
            let settled = match &output {
                Output::Answer { handle, .. } | Output::Unanswered { handle } | Output::Unsent { handle } => {
                    self.granting.remove(handle).map(|_| ())
                }
                _ => None,
            };
            match &output {
                Output::SubscriptionEnded { subscription_id, .. } => {
                    self.targets.remove(subscription_id);
                }
                Output::Answer { result: Ok(ResponseBody::CloseSubscription(state)), .. } => {
                    self.targets.remove(&state.subscription_id);
                }
                _ => {}
            }
            if settled.is_none() {
                self.outputs.push_back(output);
            }
        }
    }

    fn handshake_failed(&mut self, cause: CloseCause, socket: SocketId, now_ms: u64) {
        self.outputs.push_back(Output::Disconnect { socket });
        let retry_at_ms = (cause.remedy() == Remedy::Retry).then(|| now_ms.saturating_add(self.next_delay_ms()));
        self.settle_close(cause, retry_at_ms);
    }

    fn opened(&mut self, open: Open, socket: SocketId, now_ms: u64) {
        let (session_id, expires_at_ms) = (open.session_id(), open.expires_at_ms());
        let life_ms = expires_at_ms.saturating_sub(now_ms);
        self.state = State::Open(OpenState {
            socket,
            open,
            renew_at_ms: expires_at_ms.saturating_sub(self.config.renew_before_expiry_ms.min(life_ms / 2)),
            signing: None,
            conversation: Conversation::default(),
            deadlines: VecDeque::new(),
            last_heard_ms: now_ms,
        });
        self.outputs.push_back(Output::Opened { session_id, expires_at_ms });
    }

    /// Does what nothing stands in the way of any more.
    fn advance(&mut self, now_ms: u64) {
        match &self.state {
            State::Waiting { retry_at_ms } if *retry_at_ms <= now_ms => self.begin(now_ms),
            State::Open(open) if open.renew_at_ms <= now_ms && open.is_quiet() => {
                self.close_with(CloseCause::Expired, Some(now_ms));
                self.begin(now_ms);
            }
            // What is awaited is awaited still.
            State::Open(open) if open.renew_at_ms <= now_ms => {}
            State::Open(_) => {
                self.grant_credit(now_ms);
                self.sign_next();
            }
            _ => {}
        }
    }

    /// Queues a credit request for each subscription that runs low and has none on its way, and a sign of life when the
    /// peer was silent for long.
    fn grant_credit(&mut self, now_ms: u64) {
        let State::Open(open) = &self.state else { return };
        let is_silent = open.heartbeat_at(self.config.heartbeat_ms).is_some_and(|at_ms| at_ms <= now_ms);
        let mut grants = alloc::vec::Vec::new();
        for id in open.conversation.subscriptions.ids() {
            if self.granting.values().any(|granted| granted == id) {
                continue;
            }
            let target = self.targets.get(id).copied().unwrap_or(self.default_target);
            let outstanding = open.conversation.subscriptions.credit(id).unwrap_or_default();
            match target.top_up(outstanding).filter(|_| !self.paused) {
                Some((records, bytes)) => grants.push(Credit { subscription_id: *id, records, bytes }),
                None if is_silent && self.granting.is_empty() && grants.is_empty() => {
                    grants.push(Credit { subscription_id: *id, records: 0, bytes: 0 });
                }
                None => {}
            }
        }
        let stream_id = *self.config.handshake.stream_id();
        for credit in grants {
            let subscription_id = credit.subscription_id;
            // A full queue is tried again when it has moved.
            if let Ok(handle) = self.queue.push(RequestBody::Credit(CreditRequest { stream_id, credit }), |_| true) {
                self.granting.insert(handle, subscription_id);
            }
        }
    }

    /// Takes the first request of the queue to its signature, when none is there already.
    fn sign_next(&mut self) {
        let State::Open(open) = &mut self.state else { return };
        if open.signing.is_some() || open.conversation.pending.len() >= self.config.max_requests_in_flight {
            return;
        }
        let Some((handle, body)) = self.queue.pop() else { return };
        let request_id = self.entropy.request_id();
        match open.open.request(body, request_id) {
            Some(request) => {
                self.outputs.push_back(Output::Sign { digest: request.digest() });
                open.signing = Some((Pending::new(handle, &request), Box::new(request)));
            }
            None => self.tell([Output::Unsent { handle }]),
        }
    }

    /// The delay after one more failure.
    fn next_delay_ms(&mut self) -> u64 {
        let delay = self.config.backoff.delay_ms(self.failures, self.entropy.jitter());
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// Closes; comes back after a delay when the cause may pass by itself.
    fn fail(&mut self, cause: CloseCause, now_ms: u64) {
        let returns = cause.remedy() == Remedy::Retry;
        let retry_at_ms = returns.then(|| now_ms.saturating_add(self.next_delay_ms()));
        self.close_with(cause, retry_at_ms);
    }

    fn close_with(&mut self, cause: CloseCause, retry_at_ms: Option<u64>) {
        if let Some(socket) = self.socket() {
            self.outputs.push_back(Output::Disconnect { socket });
        }
        self.settle_close(cause, retry_at_ms);
    }

    /// Settles what cannot be answered any more, ends the subscriptions, and says so. Requests that wait and name no
    /// subscription of the session are kept for the next one.
    fn settle_close(&mut self, cause: CloseCause, retry_at_ms: Option<u64>) {
        let next = retry_at_ms.map_or(State::Closed, |retry_at_ms| State::Waiting { retry_at_ms });
        if let State::Open(open) = core::mem::replace(&mut self.state, next) {
            let unsent = open.signing.map(|(pending, _)| Output::Unsent { handle: pending.handle() });
            let unanswered = open.conversation.pending.iter().map(|it| Output::Unanswered { handle: it.handle() });
            self.tell(unsent.into_iter().chain(unanswered).collect::<alloc::vec::Vec<_>>());
        }
        let dropped = self.queue.end_session(retry_at_ms.is_some());
        self.tell(dropped.into_iter().map(|handle| Output::Unsent { handle }));
        self.targets.clear();
        self.outputs.push_back(Output::Closed { cause, retry_at_ms });
    }
}

impl OpenState {
    /// True for a subscription that is open, or that a request on its way opens.
    fn knows(&self, subscription_id: &Bytes32) -> bool {
        let on_their_way = self.conversation.pending.iter().chain(self.signing.as_ref().map(|(pending, _)| pending));
        self.conversation.subscriptions.is_live(subscription_id)
            || on_their_way.filter_map(Pending::opens).any(|opens| opens == *subscription_id)
    }

    /// True when no answer is awaited.
    fn is_quiet(&self) -> bool {
        self.signing.is_none() && self.conversation.pending.is_empty()
    }

    /// When the peer is asked for a sign of life: while something is subscribed and no answer is awaited anyway.
    fn heartbeat_at(&self, heartbeat_ms: u64) -> Option<u64> {
        let listens = self.is_quiet() && !self.conversation.subscriptions.is_empty();
        listens.then(|| self.last_heard_ms.saturating_add(heartbeat_ms))
    }

    /// Forgets the deadlines of what is answered.
    fn settle_deadlines(&mut self) {
        let pending = &self.conversation.pending;
        self.deadlines.retain(|(handle, _)| pending.iter().any(|it| it.handle() == *handle));
    }
}
