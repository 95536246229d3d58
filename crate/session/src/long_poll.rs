//! One virtual session over HTTPS long-poll (§13.2): one exchange at a time, by construction.
//!
//! ```text
//!  new --handle_start--> Challenge --> Signing --> Opening --> Open <--------------------+
//!            ^               |            |           |         | idle -> signing -> in flight
//!            |               +------------+-----------+---------+
//!            |                            | Closed { retry_at }
//!            +---- retry_at passes ---- Waiting        Closed { None }: until handle_start
//! ```
//!
//! | what happens | request in flight | subscriptions | session |
//! |---|---|---|---|
//! | response | `Answer` | as it says | goes on |
//! | error naming a subscription | `Answer` if it names the request | that one ends | goes on |
//! | error naming the request | `Answer` | stay | goes on, unless its proofs are refused |
//! | error naming neither | settled | end | closes; returns when the remedy is `retry` |
//! | empty batch | `PollTimeout`, grants nothing | stay | goes on (an `OpenSubscription`: closes, returns) |
//! | transport error | `Unanswered` | end | without subscriptions goes on; else closes, returns |
//! | any fault in a body | `Unanswered` | end | closes; nothing of the body is applied |
//!
//! A lost body may have held frames that the provider will not send again, so a session with subscriptions does not
//! outlive one: its subscriptions start again at a position that the caller knows to be durable.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use remuda_wire::frame::{ServerFrame, ServerFrameBatch};
use remuda_wire::request::RequestBody;
use remuda_wire::verdict::ProtocolViolation;
use remuda_wire::{Bytes32, Refusal, Remedy, Signature};

use crate::config::SessionConfig;
use crate::conversation::{Conversation, Pending};
use crate::entropy::Entropy;
use crate::handshake::{
    handshake_answer, is_forgotten_challenge, AwaitChallenge, AwaitOpened, AwaitSignature, HandshakeConfig, Open,
};
use crate::misuse::ApiMisuse;
use crate::output::{CloseCause, Output, PostId, RequestHandle, Slot};
use crate::provider_error::ProviderError;
use crate::queue::RequestQueue;
use crate::request::UnsignedRequest;
use crate::seen::SeenChallenges;
use crate::subscription::Subscriptions;
use crate::transport_error::TransportError;

/// An exchange that was posted, and when it is given up.
#[derive(Clone, Copy, Debug)]
struct Posted {
    post: PostId,
    deadline_ms: u64,
}

/// What an open session is doing.
#[derive(Debug)]
enum Exchange {
    Idle,
    Signing(Pending, Box<UnsignedRequest>),
    InFlight(Pending, Posted),
}

#[derive(Debug)]
struct OpenState {
    open: Open,
    /// From here on a new request opens a new session first.
    renew_at_ms: u64,
    /// No request is sent before: the exchange before it failed.
    resume_at_ms: u64,
    exchange: Exchange,
}

#[derive(Debug)]
enum State {
    Closed,
    Waiting { retry_at_ms: u64 },
    Challenge(AwaitChallenge, Posted),
    Signing(AwaitSignature),
    Opening(AwaitOpened, Posted),
    Open(OpenState),
}

/// The machine of one virtual session. See the [module](self) for its states and `crate` for how to drive it.
#[derive(Debug)]
pub struct LongPollSession {
    config: SessionConfig,
    entropy: Entropy,
    state: State,
    seen: SeenChallenges,
    /// Proofs of the holder that were refused in a row.
    refused_proofs: u32,
    subscriptions: Subscriptions,
    queue: RequestQueue,
    outputs: VecDeque<Output>,
    posts: u64,
    /// Failures since the last successful exchange.
    failures: u32,
}

impl LongPollSession {
    /// A machine that has not started.
    pub fn new(config: SessionConfig, slot: Slot) -> Self {
        Self {
            queue: RequestQueue::new(slot, config.max_queued_requests),
            config,
            entropy: Entropy::new([0; 32]),
            state: State::Closed,
            seen: SeenChallenges::default(),
            refused_proofs: 0,
            subscriptions: Subscriptions::default(),
            outputs: VecDeque::new(),
            posts: 0,
            failures: 0,
        }
    }

    /// Begins the handshake. `random` is fresh: request ids and jitter come of it.
    ///
    /// # Errors
    /// [`ApiMisuse::AlreadyStarted`] unless the machine is new or closed for good.
    pub fn handle_start(&mut self, now_ms: u64, random: [u8; 32]) -> Result<(), ApiMisuse> {
        if !self.is_closed() {
            return Err(ApiMisuse::AlreadyStarted);
        }
        self.seed(random);
        self.restart(now_ms);
        Ok(())
    }

    /// Takes fresh random bytes, before the first `restart`.
    pub(crate) fn seed(&mut self, random: [u8; 32]) {
        self.entropy = Entropy::new(random);
    }

    /// Begins the handshake of a closed machine with the entropy that it has.
    pub(crate) fn restart(&mut self, now_ms: u64) {
        self.failures = 0;
        self.begin(now_ms);
    }

    /// What the next handshake presents.
    pub fn set_handshake(&mut self, handshake: HandshakeConfig) {
        self.config.handshake = handshake;
    }

    /// Queues one request. Requests are sent in order, each after the one before it is settled.
    ///
    /// # Errors
    /// [`ApiMisuse::NotStarted`] when closed for good; `QueueFull`; `SubscriptionExists` for the id of a subscription that
    /// is open or being opened; `UnknownSubscription` for credit to, or the close of, one that is neither.
    pub fn submit(&mut self, body: RequestBody, now_ms: u64) -> Result<RequestHandle, ApiMisuse> {
        if self.is_closed() {
            return Err(ApiMisuse::NotStarted);
        }
        let (live, opening) = (&self.subscriptions, self.opening());
        let handle = self.queue.push(body, |id| live.is_live(id) || opening == Some(*id))?;
        self.advance(now_ms);
        Ok(handle)
    }

    /// Takes a request back that was not sent: it is settled by that. False when it was sent, or is settled.
    pub fn withdraw(&mut self, handle: RequestHandle) -> bool {
        self.queue.withdraw(handle)
    }

    /// Gives the signature of an [`Output::Sign`]. One of another digest than the one asked for last is ignored: it
    /// belongs to a session that is gone.
    pub fn handle_signature(&mut self, digest: &Bytes32, signature: Signature, now_ms: u64) {
        if !self.awaits_signature_of(digest) {
            return;
        }
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Signing(wait) => {
                let request_id = self.entropy.request_id();
                let (wait, body) = wait.sign(signature, request_id);
                let posted = self.post(body, now_ms);
                self.state = State::Opening(wait, posted);
            }
            State::Open(OpenState {
                exchange: Exchange::Signing(pending, request),
                open,
                renew_at_ms,
                resume_at_ms,
            }) => {
                let posted = self.post(request.sign(signature), now_ms);
                let exchange = Exchange::InFlight(pending, posted);
                self.state = State::Open(OpenState { open, renew_at_ms, resume_at_ms, exchange });
            }
            other => self.state = other,
        }
    }

    /// The holder key could not sign this digest: closes the session for good.
    pub fn handle_signing_failed(&mut self, digest: &Bytes32) {
        if self.awaits_signature_of(digest) {
            self.close_with(CloseCause::SigningFailed, None);
        }
    }

    /// Gives the whole response body of one exchange. It is decoded whole before any frame of it is applied, and a fault
    /// in any frame applies none and closes the session. The body of an exchange that was given up is ignored.
    pub fn handle_body(&mut self, post: PostId, bytes: &[u8], now_ms: u64) {
        if self.posted().is_none_or(|posted| posted.post != post) {
            return;
        }
        match ServerFrameBatch::from_bytes(bytes) {
            Ok(batch) => self.apply(batch.0, now_ms),
            Err(error) => self.fail(CloseCause::Violation(error.into()), now_ms),
        }
        self.advance(now_ms);
    }

    /// One exchange brought no body. That of an exchange that was given up is ignored.
    pub fn handle_transport_error(&mut self, post: PostId, error: TransportError, now_ms: u64) {
        if self.posted().is_none_or(|posted| posted.post != post) {
            return;
        }
        self.lose_exchange(error, now_ms);
        self.advance(now_ms);
    }

    /// Time passed: gives up an exchange past its deadline, begins a new handshake that is due, sends what may be sent.
    /// Give every body that has arrived before this, or a late timer discards it.
    pub fn handle_time(&mut self, now_ms: u64) {
        if let Some(posted) = self.posted().filter(|posted| posted.deadline_ms <= now_ms) {
            self.outputs.push_back(Output::Abort { post: posted.post });
            self.lose_exchange(TransportError::Timeout, now_ms);
        }
        self.advance(now_ms);
    }

    /// Closes for good and tells `cause` back: [`CloseCause::Requested`], or what the caller found false in its frames.
    /// Gives up what is in flight. A machine that is closed already stays as it is.
    pub fn close(&mut self, cause: CloseCause) {
        if self.is_closed() {
            return;
        }
        if let Some(posted) = self.posted() {
            self.outputs.push_back(Output::Abort { post: posted.post });
        }
        self.close_with(cause, None);
    }

    /// Gives up the exchange in flight and with it the session; a new one begins at once, in which the caller opens its
    /// subscriptions again. Frames of the answer may be lost, so nothing less is safe. Does nothing unless one is in flight.
    pub(crate) fn give_up_exchange(&mut self, cause: CloseCause, now_ms: u64) {
        if !matches!(self.state, State::Open(OpenState { exchange: Exchange::InFlight(..), .. })) {
            return;
        }
        if let Some(posted) = self.posted() {
            self.outputs.push_back(Output::Abort { post: posted.post });
        }
        self.close_with(cause, Some(now_ms));
        self.begin(now_ms);
    }

    /// The network is said to be back: a handshake that waits for its time begins now.
    pub fn handle_online(&mut self, now_ms: u64) {
        if let State::Waiting { retry_at_ms } = &mut self.state {
            *retry_at_ms = now_ms;
        }
        self.advance(now_ms);
    }

    /// The next thing to do or to know, until there is none.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Self::handle_time`] next has something to do. A time that has passed already means at once.
    pub fn wake_at(&self) -> Option<u64> {
        match &self.state {
            State::Closed | State::Signing(_) => None,
            State::Waiting { retry_at_ms } => Some(*retry_at_ms),
            State::Challenge(_, posted) | State::Opening(_, posted) => Some(posted.deadline_ms),
            State::Open(open) => match &open.exchange {
                Exchange::Idle => (!self.queue.is_empty()).then_some(open.resume_at_ms),
                Exchange::Signing(..) => None,
                Exchange::InFlight(_, posted) => Some(posted.deadline_ms),
            },
        }
    }

    /// True for a machine that only `handle_start` sets going.
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// True when every request that was submitted is settled.
    pub fn is_settled(&self) -> bool {
        let exchanging = matches!(&self.state, State::Open(open) if !matches!(open.exchange, Exchange::Idle));
        self.queue.is_empty() && !exchanging
    }

    /// True when the session is open, nothing is in flight, nothing waits, and a request would be sent now.
    pub fn is_idle(&self, now_ms: u64) -> bool {
        match &self.state {
            State::Open(open) => {
                matches!(open.exchange, Exchange::Idle) && self.queue.is_empty() && open.resume_at_ms <= now_ms
            }
            _ => false,
        }
    }

    /// The subscriptions that are open, with their credit.
    pub const fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// The stream.
    pub const fn stream_id(&self) -> &Bytes32 {
        self.config.handshake.stream_id()
    }

    /// The delay after one more failure.
    fn next_delay_ms(&mut self) -> u64 {
        let delay = self.config.backoff.delay_ms(self.failures, self.entropy.jitter());
        self.failures = self.failures.saturating_add(1);
        delay
    }

    fn post(&mut self, body: Vec<u8>, now_ms: u64) -> Posted {
        self.posts = self.posts.saturating_add(1);
        let post = PostId(self.posts);
        self.outputs.push_back(Output::Post { post, body });
        Posted { post, deadline_ms: now_ms.saturating_add(self.config.request_timeout_ms) }
    }

    fn posted(&self) -> Option<Posted> {
        match &self.state {
            State::Challenge(_, posted) | State::Opening(_, posted) => Some(*posted),
            State::Open(OpenState { exchange: Exchange::InFlight(_, posted), .. }) => Some(*posted),
            State::Open(_) | State::Signing(_) | State::Waiting { .. } | State::Closed => None,
        }
    }

    fn awaits_signature_of(&self, digest: &Bytes32) -> bool {
        match &self.state {
            State::Signing(wait) => wait.digest() == *digest,
            State::Open(OpenState { exchange: Exchange::Signing(_, request), .. }) => request.digest() == *digest,
            State::Open(_) | State::Challenge(..) | State::Opening(..) | State::Waiting { .. } | State::Closed => false,
        }
    }

    /// The subscription that the request on its way opens.
    fn opening(&self) -> Option<Bytes32> {
        match &self.state {
            State::Open(OpenState {
                exchange: Exchange::Signing(pending, _) | Exchange::InFlight(pending, _), ..
            }) => pending.opens(),
            _ => None,
        }
    }

    fn begin(&mut self, now_ms: u64) {
        let request_id = self.entropy.request_id();
        let (wait, body) = AwaitChallenge::new(&self.config.handshake, request_id);
        let posted = self.post(body, now_ms);
        self.state = State::Challenge(wait, posted);
    }

    /// Does what nothing stands in the way of any more.
    fn advance(&mut self, now_ms: u64) {
        match &self.state {
            State::Waiting { retry_at_ms } if *retry_at_ms <= now_ms => self.begin(now_ms),
            State::Open(open) if self.queue.is_empty() || open.resume_at_ms > now_ms => {}
            State::Open(OpenState { exchange: Exchange::Idle, renew_at_ms, .. }) if *renew_at_ms <= now_ms => {
                self.close_with(CloseCause::Expired, Some(now_ms));
                self.begin(now_ms);
            }
            State::Open(OpenState { exchange: Exchange::Idle, .. }) => self.send_next(now_ms),
            State::Open(_)
            | State::Waiting { .. }
            | State::Challenge(..)
            | State::Signing(_)
            | State::Opening(..)
            | State::Closed => {}
        }
    }

    /// Takes the first request of the queue to its signature.
    fn send_next(&mut self, now_ms: u64) {
        let State::Open(state) = &mut self.state else { return };
        let Some((handle, body)) = self.queue.pop() else { return };
        let request_id = self.entropy.request_id();
        match state.open.request(body, request_id) {
            Some(request) => {
                self.outputs.push_back(Output::Sign { digest: request.digest() });
                state.exchange = Exchange::Signing(Pending::new(handle, &request), Box::new(request));
            }
            None => {
                self.outputs.push_back(Output::Unsent { handle });
                self.close_with(CloseCause::Expired, Some(now_ms));
            }
        }
    }

    /// Applies the frames that answer the exchange in flight.
    fn apply(&mut self, frames: Vec<ServerFrame>, now_ms: u64) {
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Challenge(wait, _) => {
                let request_id = *wait.request_id();
                let seen = &mut self.seen;
                match judge_handshake(frames, &request_id, |frame| Ok(seen.admit(wait.handle(frame, now_ms)?)?)) {
                    Ok(wait) => {
                        self.outputs.push_back(Output::Sign { digest: wait.digest() });
                        self.state = State::Signing(wait);
                    }
                    Err(cause) => self.fail(cause, now_ms),
                }
            }
            State::Opening(wait, _) => {
                let request_id = *wait.request_id();
                match judge_handshake(frames, &request_id, |frame| wait.handle(frame, now_ms)) {
                    Ok(open) => {
                        self.refused_proofs = 0;
                        self.opened(open, now_ms);
                    }
                    Err(cause) if is_forgotten_challenge(&cause, self.refused_proofs) => {
                        self.refused_proofs += 1;
                        let retry_at_ms = now_ms.saturating_add(self.next_delay_ms());
                        self.close_with(cause, Some(retry_at_ms));
                    }
                    Err(cause) => self.fail(cause, now_ms),
                }
            }
            State::Open(OpenState { exchange: Exchange::InFlight(pending, _), open, renew_at_ms, resume_at_ms }) => {
                match judge(&pending, &self.subscriptions, frames) {
                    Ok(judged) => {
                        let exchange = Exchange::Idle;
                        self.state = State::Open(OpenState { open, renew_at_ms, resume_at_ms, exchange });
                        self.settle(judged, now_ms);
                    }
                    Err(refusal) => {
                        self.outputs.push_back(Output::Unanswered { handle: pending.handle() });
                        self.fail(CloseCause::Violation(refusal), now_ms);
                    }
                }
            }
            other => self.state = other,
        }
    }

    fn opened(&mut self, open: Open, now_ms: u64) {
        let (session_id, expires_at_ms) = (open.session_id(), open.expires_at_ms());
        let life_ms = expires_at_ms.saturating_sub(now_ms);
        let renew_at_ms = expires_at_ms.saturating_sub(self.config.renew_before_expiry_ms.min(life_ms / 2));
        self.state = State::Open(OpenState { open, renew_at_ms, resume_at_ms: now_ms, exchange: Exchange::Idle });
        self.outputs.push_back(Output::Opened { session_id, expires_at_ms });
    }

    fn settle(&mut self, judged: Judged, now_ms: u64) {
        self.subscriptions = judged.subscriptions;
        self.outputs.extend(judged.outputs);
        if judged.succeeded {
            self.failures = 0;
        }
        if let Some(error) = judged.session_error {
            // A refused proof in an open session says that the session is gone, not that the key is wrong: a handshake
            // tells, and there the same error is final.
            let returns = error.remedy() == Remedy::Retry || error.kind().invalidates_session();
            let retry_at_ms = returns.then(|| now_ms.saturating_add(self.next_delay_ms()));
            self.close_with(CloseCause::Provider(error), retry_at_ms);
        } else if judged.opening_unknown {
            self.fail(CloseCause::OutcomeUnknown, now_ms);
        }
    }

    /// The exchange in flight brings no body.
    fn lose_exchange(&mut self, error: TransportError, now_ms: u64) {
        let survives = self.subscriptions.is_empty() && error.remedy() == Remedy::Retry;
        if let State::Open(OpenState { exchange, resume_at_ms, .. }) = &mut self.state {
            if let Exchange::InFlight(pending, _) = exchange {
                if survives && pending.opens().is_none() {
                    self.outputs.push_back(Output::Unanswered { handle: pending.handle() });
                    let delay_ms = self.config.backoff.delay_ms(self.failures, self.entropy.jitter());
                    self.failures = self.failures.saturating_add(1);
                    (*exchange, *resume_at_ms) = (Exchange::Idle, now_ms.saturating_add(delay_ms));
                    return;
                }
            }
        }
        self.fail(CloseCause::Transport(error), now_ms);
    }

    /// Closes; comes back after a delay when the cause may pass by itself.
    fn fail(&mut self, cause: CloseCause, now_ms: u64) {
        let returns = cause.remedy() == Remedy::Retry;
        let retry_at_ms = returns.then(|| now_ms.saturating_add(self.next_delay_ms()));
        self.close_with(cause, retry_at_ms);
    }

    /// Settles what cannot be answered any more, ends the subscriptions, and says so. Requests that wait and name no
    /// subscription of the session are kept for the next one.
    fn close_with(&mut self, cause: CloseCause, retry_at_ms: Option<u64>) {
        let next = retry_at_ms.map_or(State::Closed, |retry_at_ms| State::Waiting { retry_at_ms });
        if let State::Open(open) = core::mem::replace(&mut self.state, next) {
            match open.exchange {
                Exchange::Idle => {}
                Exchange::Signing(pending, _) => self.outputs.push_back(Output::Unsent { handle: pending.handle() }),
                Exchange::InFlight(pending, _) => {
                    self.outputs.push_back(Output::Unanswered { handle: pending.handle() });
                }
            }
        }
        self.subscriptions = Subscriptions::default();
        let dropped = self.queue.end_session(retry_at_ms.is_some());
        self.outputs.extend(dropped.into_iter().map(|handle| Output::Unsent { handle }));
        self.outputs.push_back(Output::Closed { cause, retry_at_ms });
    }
}

/// A body without fault: what the session becomes by it, and what is told of it.
#[derive(Debug)]
struct Judged {
    subscriptions: Subscriptions,
    outputs: Vec<Output>,
    /// The request took effect, or was held to its poll timeout: the exchange was a success.
    succeeded: bool,
    /// An `OpenSubscription` was left without an answer: whether the provider opened it is unknown.
    opening_unknown: bool,
    /// An error that ends the session once the rest of the body is told.
    session_error: Option<ProviderError>,
}

/// Judges the frames of the answer to `pending` whole. `subscriptions` is not touched: a fault anywhere applies nothing.
///
/// # Errors
/// Those of [`Conversation::apply`]; the first failing frame decides.
fn judge(pending: &Pending, subscriptions: &Subscriptions, frames: Vec<ServerFrame>) -> Result<Judged, Refusal> {
    let is_timeout = frames.is_empty();
    let mut conversation = Conversation {
        pending: alloc::vec![*pending],
        subscriptions: subscriptions.clone(),
        outputs: Vec::with_capacity(frames.len()),
        ..Conversation::default()
    };
    for frame in frames {
        conversation.apply(frame.0)?;
    }
    let Conversation { pending: unanswered, subscriptions, mut outputs, succeeded, session_error } = conversation;
    let handles = unanswered.iter().map(Pending::handle);
    outputs.extend(handles.map(|handle| {
        if is_timeout {
            Output::PollTimeout { handle }
        } else {
            Output::Unanswered { handle }
        }
    }));
    Ok(Judged {
        subscriptions,
        outputs,
        succeeded: succeeded || is_timeout,
        opening_unknown: unanswered.iter().any(|pending| pending.opens().is_some()),
        session_error,
    })
}

/// A body of the handshake: one frame, judged by `handle`, or the provider's error.
fn judge_handshake<T>(
    frames: Vec<ServerFrame>,
    request_id: &Bytes32,
    handle: impl FnOnce(&ServerFrame) -> Result<T, Refusal>,
) -> Result<T, CloseCause> {
    let mut frames = frames.into_iter();
    let first = frames.next().ok_or(CloseCause::OutcomeUnknown)?;
    let next = handshake_answer(first, request_id, handle)?;
    if frames.next().is_some() {
        Err(CloseCause::Violation(ProtocolViolation::UnexpectedFrame.into()))
    } else {
        Ok(next)
    }
}
