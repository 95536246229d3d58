//! What was fetched and is not durable yet: bounded, and offered topic by topic in turns (STR-063, STR-066).

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use remuda_position::topic::limits::{MAX_ADMISSION, MAX_FETCHED};
use remuda_streaming::{OrderedPrefix, SequenceId, Topic};

/// Prefixes by topic, in the order in which they came.
#[derive(Debug, Default)]
pub struct Inbox {
    waiting: BTreeMap<Topic, VecDeque<OrderedPrefix>>,
    /// Topics with something to offer, whose turn comes in this order.
    ready: VecDeque<Topic>,
    /// Topics that wait for capacity.
    paused: BTreeSet<Topic>,
    rows: usize,
    bytes: usize,
}

impl Inbox {
    /// Whether more may be fetched. The message that is being read may exceed the bound, and is the last.
    pub fn has_room(&self) -> bool {
        self.rows < MAX_FETCHED.rows && self.bytes < MAX_FETCHED.bytes
    }

    /// Whether rows of this topic wait here.
    pub fn holds(&self, topic: &Topic) -> bool {
        self.waiting.contains_key(topic)
    }

    /// Whether a topic has something to offer.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes what a source served.
    pub fn offer(&mut self, prefixes: Vec<OrderedPrefix>) {
        for prefix in prefixes {
            let topic = prefix.topic();
            self.count(&prefix);
            let queue = self.waiting.entry(topic).or_default();
            queue.push_back(prefix);
            if queue.len() == 1 && !self.paused.contains(&topic) {
                self.ready.push_back(topic);
            }
        }
    }

    /// The first prefix of each topic whose turn it is, as much as one transaction takes. What follows it waits for the next.
    pub fn take_batch(&mut self) -> Vec<OrderedPrefix> {
        let (mut batch, mut rows, mut bytes) = (Vec::new(), 0, 0);
        for _ in 0..self.ready.len() {
            if rows >= MAX_ADMISSION.rows || bytes >= MAX_ADMISSION.bytes {
                break;
            }
            let Some(topic) = self.ready.pop_front() else { break };
            let Some(queue) = self.waiting.get_mut(&topic) else { continue };
            let first = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&topic);
            } else {
                self.ready.push_back(topic);
            }
            if let Some(prefix) = first {
                self.uncount(&prefix);
                rows += prefix.rows().len();
                bytes += prefix.byte_count();
                batch.push(prefix);
            }
        }
        batch
    }

    /// Puts back what was not taken, in front of what came later.
    pub fn give_back(&mut self, prefixes: impl IntoIterator<Item = OrderedPrefix>) {
        for prefix in prefixes {
            let topic = prefix.topic();
            self.count(&prefix);
            self.waiting.entry(topic).or_default().push_front(prefix);
            if !self.paused.contains(&topic) && !self.ready.contains(&topic) {
                self.ready.push_back(topic);
            }
        }
    }

    /// Puts back what had no room, and offers nothing of its topic until there is some. The others go on.
    pub fn pause(&mut self, topic: Topic, rest: Option<OrderedPrefix>) {
        self.paused.insert(topic);
        self.ready.retain(|ready| *ready != topic);
        self.give_back(rest);
    }

    /// There may be room again: every topic gets a turn, in the order of the topics that waited.
    pub fn resume(&mut self) {
        for topic in core::mem::take(&mut self.paused) {
            if self.waiting.contains_key(&topic) {
                self.ready.push_back(topic);
            }
        }
    }

    /// Drops what waits of a topic, because a prefix before it is missing; returns the last place that was dropped.
    pub fn drop_topic(&mut self, topic: &Topic) -> Option<SequenceId> {
        let dropped = self.waiting.remove(topic)?;
        self.ready.retain(|ready| ready != topic);
        dropped.iter().for_each(|prefix| self.uncount(prefix));
        dropped.back().map(OrderedPrefix::through)
    }

    fn count(&mut self, prefix: &OrderedPrefix) {
        self.rows = self.rows.saturating_add(prefix.rows().len());
        self.bytes = self.bytes.saturating_add(prefix.byte_count());
    }

    fn uncount(&mut self, prefix: &OrderedPrefix) {
        self.rows = self.rows.saturating_sub(prefix.rows().len());
        self.bytes = self.bytes.saturating_sub(prefix.byte_count());
    }
}
