//! One feed, pulled: the machine without a socket, a clock or randomness.
//!
//! Give one input, take every output until there is none, then sleep until [`Feed::wake_at`]. One request is under way at
//! a time. What is verified waits, in order, until it can be delivered: a sealed message whose key is missing holds back
//! everything after it, so the position never passes what was not delivered. A full page's worth of that is as much as is
//! ever held.

mod cadence;
mod output;
mod settle;

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use remuda_wire::backoff::Backoff;

pub use cadence::Cadence;
pub use output::{Batch, Content, Gap, Item, Output};

use crate::cbor::{decode, Value};
use crate::content_key::{ContentKeys, SecretBytes};
use crate::evidence::Equivocation;
use crate::filter::Filter;
use crate::message::{StreamId, StreamMessage};
use crate::refusal::WatchtowerRefusal;
use crate::schedule::{KeyEntry, KeySchedule};
use crate::signing::Profile;
use crate::transport::{
    read_key_history, CursorTooOld, Page, Request, MAX_ANSWER_BYTES, MAX_GET_SINCE_LIMIT, STATUS_REFUSED,
};
use crate::verifier::{Cursor, Refused, Step, VerifiedMessage, Verifier};

/// Where a feed begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Behind what is durable.
    After(Cursor),
    /// At the head: only what is published from now on. The head is the provider's word.
    Head,
    /// At the oldest message that is retained.
    Floor,
}

/// How messages come (CIP-7 §4), as far as a page can have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `PULL`: by asking.
    #[default]
    Pull,
    /// `PUSH_WITH_PULL_FALLBACK`: the application hands in what reaches it; what does not is asked for.
    PushWithPullFallback,
}

/// What a feed is about.
#[derive(Clone, Debug)]
pub struct FeedConfig {
    /// Which stream.
    pub stream_id: StreamId,
    /// Where it begins.
    pub start: Start,
    /// The key schedule as far as it is known: pinned by the application, or stored before.
    pub schedule: Vec<KeyEntry>,
    /// Content keys that are there already.
    pub keys: ContentKeys,
    /// What is wanted.
    pub filter: Filter,
    /// How messages come.
    pub mode: Mode,
    /// How often an idle feed is asked.
    pub cadence: Cadence,
    /// How a failed request is repeated.
    pub backoff: Backoff,
}

impl FeedConfig {
    /// A feed with everything else as usual.
    pub fn new(stream_id: StreamId, start: Start) -> Self {
        Self {
            stream_id,
            start,
            schedule: Vec::new(),
            keys: ContentKeys::default(),
            filter: Filter::default(),
            mode: Mode::default(),
            cadence: Cadence::default(),
            backoff: Backoff::DEFAULT,
        }
    }
}

/// When an input comes, and the randomness for what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Any 64 bits; only delays come of them.
    pub random: u64,
}

/// What the application chooses when its position is no longer retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Go on with the oldest message that is retained.
    Resume,
    /// Go on at the head.
    Reattach,
}

/// Counters of what needs no action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages verified.
    pub verified: u64,
    /// Of those, what the filter did not want.
    pub filtered: u64,
    /// Messages that came again.
    pub repeats: u64,
    /// Pushed messages that were refused, or came when they could not be taken.
    pub pushes_dropped: u64,
    /// Requests made.
    pub requests: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Asks again at this time.
    Idle { due_ms: u64 },
    /// A request is under way.
    Awaiting(Request),
    /// Pending messages fill the room there is: a key must come.
    Full,
    /// The application chooses.
    TooOld(CursorTooOld),
    /// Refused, until resumed.
    Failed,
}

/// What waits for its turn to be delivered.
#[derive(Clone, Debug)]
enum Waiting {
    Message(Box<VerifiedMessage>),
    /// A jump to this sequence, and what it leaves out.
    Jump {
        to: u64,
        gap: Option<Gap>,
    },
}

/// One feed.
#[derive(Clone, Debug)]
pub struct Feed {
    verifier: Verifier,
    /// Not known yet: [`Start::Head`] or [`Start::Floor`].
    unplaced: Option<Start>,
    /// The last message that was verified, once it left the queue.
    last_message: Option<StreamMessage>,
    keys: ContentKeys,
    filter: Filter,
    mode: Mode,
    cadence: Cadence,
    backoff: Backoff,
    phase: Phase,
    /// Of the answer in hand: not judged yet.
    held: VecDeque<Value>,
    /// The schedule was fetched for the message in hand.
    history_is_fresh: bool,
    /// The answer in hand was full: there is probably more.
    full: bool,
    /// Something came of the answer in hand.
    advanced: bool,
    waiting: VecDeque<Waiting>,
    epochs_asked: BTreeSet<u64>,
    idle: u32,
    failures: u32,
    /// A push came while a request was under way.
    pull_again: bool,
    counters: Counters,
    outputs: VecDeque<Output>,
}

impl Feed {
    /// A feed that is due at once.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::KeySchedule`] for a schedule that is none.
    pub fn new(config: FeedConfig) -> Result<Self, WatchtowerRefusal> {
        let (cursor, unplaced) = match config.start {
            Start::After(cursor) => (cursor, None),
            start => (Cursor::default(), Some(start)),
        };
        let schedule = KeySchedule::new(config.schedule)?;
        Ok(Self {
            verifier: Verifier { stream_id: config.stream_id, profile: Profile::default(), schedule, cursor },
            unplaced,
            last_message: None,
            keys: config.keys,
            filter: config.filter,
            mode: config.mode,
            cadence: config.cadence,
            backoff: config.backoff,
            phase: Phase::Idle { due_ms: 0 },
            held: VecDeque::new(),
            history_is_fresh: false,
            full: false,
            advanced: false,
            waiting: VecDeque::new(),
            epochs_asked: BTreeSet::new(),
            idle: 0,
            failures: 0,
            pull_again: false,
            counters: Counters::default(),
            outputs: VecDeque::new(),
        })
    }

    /// What was verified last, delivered or not.
    pub const fn verified_cursor(&self) -> Cursor {
        self.verifier.cursor
    }

    /// How many messages wait for a content key.
    pub fn pending(&self) -> usize {
        self.waiting.len()
    }

    /// What needed no action.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Self::handle_time`] is due; `None` while something else must happen first.
    pub const fn wake_at(&self) -> Option<u64> {
        match self.phase {
            Phase::Idle { due_ms } => Some(due_ms),
            _ => None,
        }
    }

    /// The clock says so.
    pub fn handle_time(&mut self, now_ms: u64) {
        if matches!(self.phase, Phase::Idle { due_ms } if due_ms <= now_ms) {
            self.pull();
        }
    }

    fn ask(&mut self, request: Request) {
        self.counters.requests = self.counters.requests.saturating_add(1);
        self.phase = Phase::Awaiting(request);
        self.outputs.push_back(Output::Request(request));
    }

    fn pull(&mut self) {
        if self.verifier.schedule.entries().len() == 0 && !self.history_is_fresh {
            return self.ask_history();
        }
        let limit = match self.unplaced {
            Some(Start::Head) => 1,
            _ => MAX_GET_SINCE_LIMIT.saturating_sub(self.waiting.len()),
        };
        if limit == 0 {
            self.phase = Phase::Full;
            return;
        }
        self.ask(Request::GetSince { cursor: self.verifier.cursor.last_sequence, limit });
    }

    fn ask_history(&mut self) {
        let known = u64::try_from(self.verifier.schedule.entries().len()).unwrap_or(u64::MAX);
        self.ask(Request::GetKeyHistory { from_signing_key_id: known.saturating_add(1), limit: MAX_GET_SINCE_LIMIT });
    }

    /// The request under way could not be made or answered: it is repeated, later each time.
    pub fn handle_transport_failure(&mut self, at: Moment) {
        if matches!(self.phase, Phase::Awaiting(_)) {
            let delay_ms = self.backoff.delay_ms(self.failures, at.random);
            self.failures = self.failures.saturating_add(1);
            self.phase = Phase::Idle { due_ms: at.now_ms.saturating_add(delay_ms) };
        }
    }

    /// The answer of the request under way: its HTTP status and its body.
    pub fn handle_answer(&mut self, status: u16, body: &[u8], at: Moment) {
        let Phase::Awaiting(request) = self.phase else { return };
        if !matches!(status, 200 | STATUS_REFUSED) {
            return self.handle_transport_failure(at);
        }
        let judged = if body.len() > MAX_ANSWER_BYTES {
            Err(WatchtowerRefusal::PayloadTooLarge)
        } else {
            match (request, status) {
                (Request::GetSince { limit, .. }, 200) => self.take_page(body, limit),
                (Request::GetSince { cursor, .. }, _) => match CursorTooOld::from_bytes(body, cursor) {
                    Ok(Some(refused)) => {
                        self.failures = 0;
                        return self.take_too_old(refused, at);
                    }
                    Ok(None) => return self.handle_transport_failure(at),
                    Err(verdict) => Err(verdict),
                },
                (Request::GetKeyHistory { limit, .. }, 200) => {
                    match read_key_history(body, limit).and_then(|entries| self.take_history(&entries, limit)) {
                        Ok(true) => return self.ask_history(),
                        Ok(false) if self.held.is_empty() => return self.pull(),
                        Ok(false) => Ok(()),
                        Err(verdict) => Err(verdict),
                    }
                }
                (Request::GetKeyHistory { .. }, _) => return self.handle_transport_failure(at),
            }
        };
        self.failures = 0;
        match judged {
            Ok(()) => self.judge_held(at),
            Err(verdict) => self.fail(verdict),
        }
    }

    fn take_page(&mut self, body: &[u8], limit: usize) -> Result<(), WatchtowerRefusal> {
        let page = Page::from_bytes(body, limit)?;
        if self.unplaced.take() == Some(Start::Head) {
            // The one message that came is before the head, or is the head itself.
            self.jump(page.head_sequence, None);
            self.full = false;
            return Ok(());
        }
        self.full = page.messages.len() == limit;
        self.advanced = false;
        self.held = page.messages.into();
        Ok(())
    }

    fn take_too_old(&mut self, refused: CursorTooOld, at: Moment) {
        match self.unplaced.take() {
            // Nothing was ever held, so nothing is lost.
            Some(start) => {
                let head = matches!(start, Start::Head);
                self.jump(if head { refused.head_sequence } else { refused.floor_sequence - 1 }, None);
                self.full = true;
                self.settle(at);
            }
            None => {
                self.phase = Phase::TooOld(refused);
                self.outputs.push_back(Output::CursorTooOld(refused));
            }
        }
    }

    /// Adds to the schedule; answers whether there is more to ask for.
    fn take_history(&mut self, entries: &[KeyEntry], limit: usize) -> Result<bool, WatchtowerRefusal> {
        let before = self.verifier.schedule.entries().len();
        self.verifier.schedule.extend(entries)?;
        // A full answer of what is known already would go on for ever.
        let more = entries.len() == limit && self.verifier.schedule.entries().len() > before;
        self.history_is_fresh = !more;
        if !entries.is_empty() && !more {
            self.outputs.push_back(Output::KeyHistory(self.verifier.schedule.entries().copied().collect()));
        }
        Ok(more)
    }

    /// Judges what is in hand, up to the first message that is refused.
    fn judge_held(&mut self, at: Moment) {
        while let Some(value) = self.held.pop_front() {
            match StreamMessage::from_value(value) {
                Ok(message) => match self.verifier.verify(message) {
                    Ok(step) => self.take_step(step),
                    Err(refused) => return self.take_refused(*refused),
                },
                Err(verdict) => return self.fail(verdict),
            }
        }
        self.settle(at);
    }

    fn take_step(&mut self, step: Step) {
        self.history_is_fresh = false;
        match step {
            Step::Repeat => self.counters.repeats = self.counters.repeats.saturating_add(1),
            Step::Verified(message) => {
                self.counters.verified = self.counters.verified.saturating_add(1);
                self.advanced = true;
                self.waiting.push_back(Waiting::Message(Box::new(message)));
            }
        }
    }

    fn take_refused(&mut self, refused: Refused) {
        let Refused { verdict, message } = refused;
        match verdict {
            // A rotation that we do not know yet looks like this: the history is fetched once.
            WatchtowerRefusal::KeySchedule if !self.history_is_fresh => {
                self.held.push_front(message.to_value());
                self.ask_history();
            }
            WatchtowerRefusal::Equivocation => {
                self.report_equivocation(message);
                self.fail(verdict);
            }
            _ => self.fail(verdict),
        }
    }

    fn report_equivocation(&mut self, message: StreamMessage) {
        let held = match self.waiting.back() {
            Some(Waiting::Message(last)) => Some((***last).clone()),
            _ => self.last_message.clone(),
        };
        let held = held.filter(|held| held.sequence == message.sequence);
        let Verifier { stream_id, schedule, .. } = &self.verifier;
        let evidence =
            held.and_then(|held| Equivocation::judge(stream_id, schedule, held, message.clone()).ok().flatten());
        self.outputs.push_back(Output::Equivocation { evidence: evidence.map(Box::new), message: Box::new(message) });
    }

    /// What was verified before the refused message is delivered first.
    fn fail(&mut self, verdict: WatchtowerRefusal) {
        self.held.clear();
        self.history_is_fresh = false;
        self.deliver();
        self.phase = Phase::Failed;
        self.outputs.push_back(Output::Failed(verdict));
    }

    /// Asks again after a failure, from where we stand.
    pub fn resume(&mut self) {
        if self.phase == Phase::Failed {
            self.pull();
        }
    }

    /// What to do about [`Output::CursorTooOld`]. The gap is reported with the batch that passes it.
    pub fn choose(&mut self, choice: Choice, at: Moment) {
        let Phase::TooOld(refused) = self.phase else { return };
        let to = match choice {
            Choice::Resume => refused.floor_sequence - 1,
            Choice::Reattach => refused.head_sequence,
        };
        let first = self.verifier.cursor.last_sequence.saturating_add(1);
        self.jump(to, Some(Gap { first, last: to }));
        self.full = true;
        self.settle(at);
    }

    /// A content key came. What waits for it is delivered.
    pub fn give_key(&mut self, key_epoch: u64, key: SecretBytes) {
        self.keys.insert(self.verifier.stream_id.clone(), key_epoch, key);
        self.epochs_asked.remove(&key_epoch);
        self.deliver();
        if self.phase == Phase::Full {
            self.pull();
        }
    }

    /// A message that reached the page some other way: one encoded `StreamMessage`. It counts when it is the next one and
    /// verifies; whatever else it is, the next pull brings the truth.
    pub fn handle_push(&mut self, bytes: &[u8], at: Moment) {
        let Phase::Idle { .. } = self.phase else {
            self.pull_again |= matches!(self.phase, Phase::Awaiting(_));
            return self.drop_push();
        };
        let message = decode(bytes).and_then(StreamMessage::from_value);
        let room = self.waiting.len() < MAX_GET_SINCE_LIMIT;
        let (Ok(message), Mode::PushWithPullFallback, None, true) = (message, self.mode, self.unplaced, room) else {
            return self.drop_push();
        };
        match self.verifier.verify(message) {
            Ok(step) => {
                let advanced = matches!(step, Step::Verified(_));
                self.take_step(step);
                self.deliver();
                if advanced {
                    // While pushes come, asking is the exception.
                    let delay_ms = self.cadence.delay_ms(u32::MAX, at.random);
                    self.phase = Phase::Idle { due_ms: at.now_ms.saturating_add(delay_ms) };
                }
            }
            Err(refused) => match refused.verdict {
                WatchtowerRefusal::Equivocation => self.take_refused(*refused),
                WatchtowerRefusal::Gap | WatchtowerRefusal::KeySchedule => {
                    self.drop_push();
                    self.pull();
                }
                _ => self.drop_push(),
            },
        }
    }

    fn drop_push(&mut self) {
        self.counters.pushes_dropped = self.counters.pushes_dropped.saturating_add(1);
    }
}
