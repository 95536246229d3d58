//! The one thing that may advance a received boundary.

use alloc::vec::Vec;

use crate::envelope::ReceivedEnvelope;
use crate::sequence::SequenceId;
use crate::topic::Topic;

/// Consecutive rows of one topic behind a known place, as an ordered source served them: a static stream or an ordered
/// query that was asked for what follows that place (STR-060).
///
/// Made only by [`crate::static_stream::StaticStream`] and [`crate::query::OrderedQuery`]. A target, the newest row, a
/// push hint and a publish reply are none, and nothing makes one of them (STR-062).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedPrefix {
    pub(crate) topic: Topic,
    pub(crate) after: SequenceId,
    pub(crate) rows: Vec<ReceivedEnvelope>,
}

impl OrderedPrefix {
    /// Whose rows they are.
    pub const fn topic(&self) -> Topic {
        self.topic
    }

    /// The exclusive start: nothing between it and the first row was left out by this source.
    pub const fn after(&self) -> SequenceId {
        self.after
    }

    /// The last row's place; the start when there is no row.
    pub fn through(&self) -> SequenceId {
        self.rows.last().map_or(self.after, ReceivedEnvelope::sequence_id)
    }

    /// The rows, strictly ascending.
    pub fn rows(&self) -> &[ReceivedEnvelope] {
        &self.rows
    }

    /// Bytes of all rows, as they came.
    pub fn byte_count(&self) -> usize {
        self.rows.iter().map(|row| row.bytes().len()).sum()
    }

    /// Divides it behind its first `rows` rows. Both are ordered prefixes: the second starts where the first ends.
    pub fn split_at(mut self, rows: usize) -> (Self, Option<Self>) {
        let rest = self.rows.split_off(rows.min(self.rows.len()));
        let after = self.through();
        let rest = if rest.is_empty() { None } else { Some(Self { topic: self.topic, after, rows: rest }) };
        (self, rest)
    }
}

/// Collects the rows of one message by topic, in the order in which the topics first occur.
#[derive(Default)]
pub(crate) struct Gathered {
    prefixes: Vec<OrderedPrefix>,
}

impl Gathered {
    /// The slot of a topic that begins after `after`.
    pub(crate) fn open(&mut self, topic: Topic, after: SequenceId) -> usize {
        self.prefixes.push(OrderedPrefix { topic, after, rows: Vec::new() });
        self.prefixes.len() - 1
    }

    pub(crate) fn push(&mut self, slot: usize, row: ReceivedEnvelope) {
        if let Some(prefix) = self.prefixes.get_mut(slot) {
            prefix.rows.push(row);
        }
    }

    pub(crate) fn into_prefixes(self) -> Vec<OrderedPrefix> {
        self.prefixes
    }
}
