//! What a feed asks for and tells.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::evidence::Equivocation;
use crate::refusal::WatchtowerRefusal;
use crate::schedule::KeyEntry;
use crate::transport::{CursorTooOld, Request};
use crate::verifier::{Cursor, VerifiedMessage};

/// Sequences that are not retained any more, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// What a message contained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The payload, opened where it was sealed.
    Plain(Vec<u8>),
    /// It is sealed and does not open under the key of its epoch: `watchtower/aead`. The message keeps the envelope.
    Unopened,
}

/// One message that the filter wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The message.
    pub message: VerifiedMessage,
    /// What was in it.
    pub content: Content,
}

/// What becomes durable together, in one transaction: rows, gaps and the position behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Messages in order.
    pub items: Vec<Item>,
    /// What was lost on the way, ascending.
    pub gaps: Vec<Gap>,
    /// The position after it.
    pub cursor: Cursor,
}

/// One thing that the driver does or the application learns, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// POST this to the endpoint; answer with [`super::Feed::handle_answer`] or [`super::Feed::handle_transport_failure`].
    Request(Request),
    /// Store this durably, all or nothing.
    Store(Batch),
    /// The key schedule as it is known now: keep it with the position.
    KeyHistory(Vec<KeyEntry>),
    /// Messages wait for the content key of this epoch; answer with [`super::Feed::give_key`].
    StreamAccessRequired {
        /// Which epoch.
        key_epoch: u64,
    },
    /// What we want next is no longer retained. Nothing goes on before [`super::Feed::choose`].
    CursorTooOld(CursorTooOld),
    /// The publisher signed two messages for one sequence; the feed stands still. The pair is there unless the other
    /// message was verified before this feed was made: the store has it, and [`Equivocation::judge`] makes the pair.
    Equivocation {
        /// The pair.
        evidence: Option<Box<Equivocation>>,
        /// The later of the two messages.
        message: Box<crate::message::StreamMessage>,
    },
    /// The answer was refused; what was verified before it counts. Nothing goes on before [`super::Feed::resume`].
    Failed(WatchtowerRefusal),
}
