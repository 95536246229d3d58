//! Keys of rows: one ordered space of byte strings, a table byte first.
//!
//! ```text
//! table || topic (kind byte, identifier) || u64 big-endian
//! ```
//! A topic's length follows from its kind, so no key is a prefix of another topic's.

use alloc::vec::Vec;

use remuda_streaming::{SequenceId, Topic, TopicKind};
use remuda_wire::Bytes32;

use super::limits::Limit;
use super::place::DeliveryNumber;

/// A row's key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<u8>);

macro_rules! tables {
    ($($name:ident = $tag:literal;)+) => { $(const $name: u8 = $tag;)+ };
}

tables! {
    DATABASE = 0;
    TOPIC = 1;
    KIND = 2;
    PENDING = 3;
    STATE = 4;
    REJECTED = 5;
    SNAPSHOT = 6;
    MESSAGE = 7;
    STABLE_ID = 8;
    DELIVERED = 9;
    LEASE = 10;
    DISCOVERED = 11;
    FEED_CURSOR = 12;
    FEED_ITEM = 13;
}

impl Key {
    /// Its bytes, in whose order rows are.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A key as a store kept it.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    fn of(parts: &[&[u8]]) -> Self {
        Self(parts.concat())
    }

    pub(crate) fn database() -> Self {
        Self::of(&[&[DATABASE]])
    }

    pub(crate) fn lease() -> Self {
        Self::of(&[&[LEASE]])
    }

    pub(crate) fn topic(topic: &Topic) -> Self {
        Self::of(&[&[TOPIC], topic.as_bytes()])
    }

    pub(crate) fn kind(kind: TopicKind) -> Self {
        Self::of(&[&[KIND, kind.tag()]])
    }

    pub(crate) fn state(topic: &Topic) -> Self {
        Self::of(&[&[STATE], topic.as_bytes()])
    }

    pub(crate) fn pending(topic: &Topic, place: SequenceId) -> Self {
        Self::placed(PENDING, topic, place)
    }

    pub(crate) fn rejected(topic: &Topic, place: SequenceId) -> Self {
        Self::placed(REJECTED, topic, place)
    }

    pub(crate) fn snapshot(topic: &Topic, place: SequenceId) -> Self {
        Self::placed(SNAPSHOT, topic, place)
    }

    pub(crate) fn message(number: DeliveryNumber) -> Self {
        Self::of(&[&[MESSAGE], &number.0.to_be_bytes()])
    }

    pub(crate) fn stable_id(id: &Bytes32) -> Self {
        Self::of(&[&[STABLE_ID], &id.0])
    }

    pub(crate) fn delivered(group: &Topic) -> Self {
        Self::of(&[&[DELIVERED], group.as_bytes()])
    }

    pub(crate) fn discovered(group: &Topic) -> Self {
        Self::of(&[&[DISCOVERED], group.as_bytes()])
    }

    pub(crate) fn feed_cursor(source: &Bytes32) -> Self {
        Self::of(&[&[FEED_CURSOR], &source.0])
    }

    pub(crate) fn feed_item(source: &Bytes32, item: u64) -> Self {
        Self::of(&[&[FEED_ITEM], &source.0, &item.to_be_bytes()])
    }

    fn placed(table: u8, topic: &Topic, place: SequenceId) -> Self {
        Self::of(&[&[table], topic.as_bytes(), &place.get().to_be_bytes()])
    }

    /// The number at the end of a key that has one.
    pub(crate) fn last_number(&self) -> Option<u64> {
        self.0.last_chunk::<8>().map(|number| u64::from_be_bytes(*number))
    }

    /// The topic behind the table byte.
    pub(crate) fn only_topic(&self) -> Option<Topic> {
        Topic::from_bytes(self.0.get(1..)?).ok()
    }
}

/// Consecutive keys, both ends included, read ascending: at least one row where there is one, then no more than `limit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Where it begins.
    pub first: Key,
    /// Where it ends.
    pub last: Key,
    /// How much one read takes of it.
    pub limit: Limit,
}

impl KeyRange {
    pub(crate) fn one(key: Key) -> Self {
        Self { first: key.clone(), last: key, limit: Limit { rows: 1, bytes: usize::MAX } }
    }

    /// Pending rows behind `after`, up to `through`.
    pub(crate) fn pending(topic: &Topic, after: SequenceId, through: SequenceId, limit: Limit) -> Self {
        let first = SequenceId::new(after.get().saturating_add(1)).unwrap_or(SequenceId::MAX);
        Self { first: Key::pending(topic, first), last: Key::pending(topic, through), limit }
    }

    /// Messages numbered above `after`, up to `through`.
    pub(crate) fn messages(after: DeliveryNumber, through: DeliveryNumber, limit: Limit) -> Self {
        let first = DeliveryNumber(after.0.saturating_add(1));
        Self { first: Key::message(first), last: Key::message(through), limit }
    }

    pub(crate) fn rejections(topic: &Topic) -> Self {
        let unlimited = Limit { rows: usize::MAX, bytes: usize::MAX };
        let (first, last) = (SequenceId::BEGINNING, SequenceId::MAX);
        Self { first: Key::rejected(topic, first), last: Key::rejected(topic, last), limit: unlimited }
    }

    pub(crate) fn discoveries(limit: Limit) -> Self {
        Self { first: Key::of(&[&[DISCOVERED]]), last: Key::of(&[&[DISCOVERED + 1]]), limit }
    }

    /// Items of a source above `after`.
    pub(crate) fn feed_items(source: &Bytes32, after: u64, limit: Limit) -> Self {
        let first = Key::feed_item(source, after.saturating_add(1));
        Self { first, last: Key::feed_item(source, u64::MAX), limit }
    }

    /// True when no key can be in it.
    pub fn is_empty(&self) -> bool {
        self.first > self.last
    }
}
