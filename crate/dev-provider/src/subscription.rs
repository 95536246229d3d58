//! One open subscription (§13): what it is owed next, computed before anything moves.

use remuda_wire::frame::ServerMessage;
use remuda_wire::request::Credit;
use remuda_wire::Bytes32;

use crate::exchange::Exchange;
use crate::outbox::Outbox;

mod fast;
mod replay;

pub use fast::{Cursor, Fast};
pub use replay::Replay;

/// The credit that is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Records.
    pub records: u32,
    /// Payload bytes.
    pub bytes: u64,
}

impl Window {
    /// True when both counters cover one record of `bytes`.
    pub const fn covers(&self, bytes: u64) -> bool {
        self.records > 0 && self.bytes >= bytes
    }

    const fn spend(&mut self, bytes: u64) {
        self.records = self.records.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// What a subscription reads from.
#[derive(Debug)]
pub enum Source {
    /// Batches of a fast stream.
    Fast(Fast),
    /// Records of a standard stream.
    Replay(Replay),
}

/// One open subscription.
#[derive(Debug)]
pub struct Subscription {
    id: Bytes32,
    holder: Bytes32,
    window: Window,
    source: Source,
}

/// What sending a frame will change.
#[derive(Clone, Copy, Debug)]
enum Then {
    Fast(fast::Then),
    Replay(replay::Then),
    /// The subscription is over: its frame said so.
    End,
}

/// A frame that is owed now, not yet sent.
#[derive(Debug)]
pub struct Owed {
    /// The frame.
    pub message: ServerMessage,
    then: Then,
}

/// Whether a subscription goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It does.
    Open,
    /// Its last frame was sent.
    Ended,
}

impl Subscription {
    /// A subscription of this holder key, without credit.
    pub fn new(id: Bytes32, holder: Bytes32, source: Source) -> Self {
        Self { id, holder, window: Window::default(), source }
    }

    /// Its id.
    pub const fn id(&self) -> &Bytes32 {
        &self.id
    }

    /// Adds credit.
    pub const fn grant_credit(&mut self, credit: &Credit) {
        self.window.records = self.window.records.saturating_add(credit.records);
        self.window.bytes = self.window.bytes.saturating_add(credit.bytes);
    }

    /// The credit in force, to be put back by [`Self::restore_credit`].
    pub const fn credit(&self) -> Window {
        self.window
    }

    /// Puts a credit back.
    pub const fn restore_credit(&mut self, window: Window) {
        self.window = window;
    }

    /// The next frame, or `None` when nothing is ready or credit does not cover it. Nothing moves before
    /// [`Self::sent`], unless it cannot fail any more: then `outbox` has room for the frame.
    ///
    /// # Errors
    /// When the store fails.
    pub fn owed(&mut self, exchange: &Exchange, _outbox: &Outbox) -> anyhow::Result<Option<Owed>> {
        match &mut self.source {
            Source::Fast(fast) => fast.owed((&self.id, &self.holder), self.window, &exchange.broker, &exchange.liar),
            Source::Replay(replay) => replay.owed(&self.id, self.window),
        }
    }

    /// Moves past a frame that is on its way.
    pub fn sent(&mut self, owed: &Owed, exchange: &Exchange) -> Life {
        match (owed.then, &mut self.source) {
            (Then::Fast(then), Source::Fast(fast)) => fast.sent(then, &self.holder, &mut self.window, &exchange.liar),
            (Then::Replay(then), Source::Replay(replay)) => replay.sent(then, &mut self.window),
            _ => return Life::Ended,
        }
        Life::Open
    }
}
