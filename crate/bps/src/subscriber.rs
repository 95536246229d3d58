//! A subscriber of one cohort, over the bridge or directly: the machine without a socket.
//!
//! The cursor is durable together with what was delivered, and is all the replay protection there is: make a subscriber
//! anew from the stored one whenever storing fails.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use remuda_wire::{Address, Remedy};

use crate::bridge::{read_subscribed, subscribe_path};
use crate::broadcast::{judge, Cohort, Gap, Judged};
use crate::connection::{Attempts, CloseReason, Dial, Moment, Transport, DEADLINE_MS};
use crate::message::{Ack, Broadcast, Join, Status};
use crate::refusal::BpsRefusal;

/// What a subscription is about.
#[derive(Clone, Copy, Debug)]
pub struct SubscriberConfig {
    /// Which cohort.
    pub cohort: Cohort,
    /// Who we are on the stream: any address but the admin's.
    pub identity: Address,
    /// How the broker is reached.
    pub transport: Transport,
    /// The last index that was delivered and stored.
    pub cursor: Option<u64>,
}

/// An update to store and show, together with the cursor, which is its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What the author said.
    pub payload: Vec<u8>,
    /// What is missing before it.
    pub gap: Option<Gap>,
    /// The broadcast itself: whoever has it can verify it.
    pub broadcast: Broadcast,
}

/// One thing that the driver does or the application learns, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriberOutput {
    /// Connect; answer with [`Subscriber::handle_connected`] or [`Subscriber::handle_close`].
    Connect(Dial),
    /// Send this as one binary message.
    Send(Vec<u8>),
    /// A verified update.
    Deliver(Delivery),
    /// Close the connection; nothing that still comes of it is wanted.
    Disconnect,
    /// The connection ended.
    Ended {
        /// Why.
        reason: CloseReason,
        /// When it is made again; `None`: not by itself.
        retry_at_ms: Option<u64>,
    },
}

/// What was dropped without being a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounters {
    /// Broadcasts of a kind that we do not know.
    pub unknown_kind: u64,
    /// Updates at or below the cursor.
    pub replayed_index: u64,
    /// Claims, which are never delivered.
    pub claims: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle { due_ms: Option<u64> },
    Connecting,
    Joining { until_ms: u64 },
    Live,
}

/// A subscriber.
#[derive(Clone, Debug)]
pub struct Subscriber {
    config: SubscriberConfig,
    state: State,
    attempts: Attempts,
    dropped: DropCounters,
    outputs: VecDeque<SubscriberOutput>,
}

impl Subscriber {
    /// A subscriber that connects at once.
    pub fn new(config: SubscriberConfig) -> Self {
        Self {
            config,
            state: State::Idle { due_ms: Some(0) },
            attempts: Attempts::default(),
            dropped: DropCounters::default(),
            outputs: VecDeque::new(),
        }
    }

    /// The last index that was delivered.
    pub const fn cursor(&self) -> Option<u64> {
        self.config.cursor
    }

    /// What was dropped.
    pub const fn dropped(&self) -> DropCounters {
        self.dropped
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Option<SubscriberOutput> {
        self.outputs.pop_front()
    }

    /// When [`Self::handle_time`] is due.
    pub const fn wake_at(&self) -> Option<u64> {
        match self.state {
            State::Idle { due_ms } => due_ms,
            State::Joining { until_ms } => Some(until_ms),
            State::Connecting | State::Live => None,
        }
    }

    /// The clock says so.
    pub fn handle_time(&mut self, at: Moment) {
        match self.state {
            State::Idle { due_ms: Some(due_ms) } if due_ms <= at.now_ms => self.connect(),
            State::Joining { until_ms } if until_ms <= at.now_ms => self.disconnect(CloseReason::Deadline, at),
            _ => {}
        }
    }

    fn connect(&mut self) {
        let SubscriberConfig { cohort, identity, transport, cursor } = &self.config;
        let dial = match transport {
            Transport::Bridge { broker } => Dial::Bridge(subscribe_path(cohort, broker, identity, *cursor)),
            Transport::Direct => Dial::Direct,
        };
        self.state = State::Connecting;
        self.outputs.push_back(SubscriberOutput::Connect(dial));
    }

    /// The connection is open.
    pub fn handle_connected(&mut self, at: Moment) {
        if self.state != State::Connecting {
            return;
        }
        self.attempts.connected(at.now_ms);
        self.state = match self.config.transport {
            Transport::Bridge { .. } => State::Live,
            Transport::Direct => {
                let join = Join { cohort: self.config.cohort, addr: self.config.identity };
                self.outputs.push_back(SubscriberOutput::Send(join.to_bytes()));
                State::Joining { until_ms: at.now_ms.saturating_add(DEADLINE_MS) }
            }
        };
    }

    /// A binary message came.
    pub fn handle_message(&mut self, bytes: &[u8], at: Moment) {
        let handled = match (self.state, self.config.transport) {
            (State::Joining { .. }, _) => match Ack::from_bytes(bytes) {
                Ok(ack) => return self.take_ack(ack.status, at),
                Err(refusal) => Err(refusal),
            },
            (State::Live, Transport::Bridge { .. }) => read_subscribed(bytes).and_then(|frame| self.take(frame)),
            (State::Live, Transport::Direct) => Broadcast::from_bytes(bytes).and_then(|frame| self.take(frame)),
            // Of a connection that was given up.
            (State::Idle { .. } | State::Connecting, _) => return,
        };
        if let Err(refusal) = handled {
            self.disconnect(CloseReason::Violation(refusal), at);
        }
    }

    /// A text message came: there is none on either transport.
    pub fn handle_text(&mut self, at: Moment) {
        if matches!(self.state, State::Joining { .. } | State::Live) {
            self.disconnect(CloseReason::Violation(BpsRefusal::Frame), at);
        }
    }

    fn take_ack(&mut self, status: Status, at: Moment) {
        match status {
            Status::Ok => self.state = State::Live,
            Status::Full => self.disconnect(CloseReason::Exhausted, at),
            Status::Rejected => self.disconnect(CloseReason::Rejected, at),
        }
    }

    fn take(&mut self, broadcast: Broadcast) -> Result<(), BpsRefusal> {
        let counter = match judge(&self.config.cohort, &broadcast, self.config.cursor)? {
            Judged::Delivered { payload, gap } => {
                self.config.cursor = Some(broadcast.index);
                self.outputs.push_back(SubscriberOutput::Deliver(Delivery { payload, gap, broadcast }));
                return Ok(());
            }
            Judged::Claim => &mut self.dropped.claims,
            Judged::Dropped(BpsRefusal::ReplayedIndex) => &mut self.dropped.replayed_index,
            Judged::Dropped(_) => &mut self.dropped.unknown_kind,
        };
        *counter = counter.saturating_add(1);
        Ok(())
    }

    /// The connection ended, or could not be made: its close code, 1006 when there is none.
    pub fn handle_close(&mut self, code: u16, at: Moment) {
        if !matches!(self.state, State::Idle { .. }) {
            self.end(CloseReason::from_code(code), at);
        }
    }

    /// Closes for good.
    pub fn close(&mut self, at: Moment) {
        match self.state {
            State::Idle { .. } => self.end(CloseReason::Requested, at),
            _ => self.disconnect(CloseReason::Requested, at),
        }
    }

    fn disconnect(&mut self, reason: CloseReason, at: Moment) {
        self.outputs.push_back(SubscriberOutput::Disconnect);
        self.end(reason, at);
    }

    fn end(&mut self, reason: CloseReason, at: Moment) {
        let retry_at_ms = (reason.remedy() == Remedy::Retry).then(|| self.attempts.ended(at));
        self.state = State::Idle { due_ms: retry_at_ms };
        self.outputs.push_back(SubscriberOutput::Ended { reason, retry_at_ms });
    }
}
