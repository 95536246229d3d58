//! Published rows: one global sequence with gaps, seen by readers only after the replica's lag.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message;
use remuda_streaming::proto::{self, message_hash};
use remuda_streaming::{Bytes, Topic};
use remuda_wire::preimage::keccak256;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::time::Clock;

/// One row.
#[derive(Debug)]
pub struct Row {
    /// Whose row it is.
    pub topic: Topic,
    /// Its place in its topic.
    pub sequence_id: u64,
    /// As it is served.
    pub envelope: proto::ServerEnvelope,
    /// Bytes of [`Row::envelope`].
    pub bytes: usize,
    visible_at: Instant,
}

/// All rows.
#[derive(Debug)]
pub struct Rows {
    log: Mutex<Log>,
    published: watch::Sender<()>,
    sequence_gap: u64,
    lag: Duration,
}

#[derive(Debug, Default)]
struct Log {
    rows: Vec<Arc<Row>>,
    /// Indexes into `rows`, ascending.
    by_topic: HashMap<Topic, Vec<usize>>,
    last_sequence: u64,
}

/// How much one read may take.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Rows.
    pub rows: usize,
    /// Bytes of envelopes.
    pub bytes: usize,
}

/// What one read took.
#[derive(Debug)]
pub struct Read {
    /// The rows, ascending.
    pub rows: Vec<Arc<Row>>,
    /// There are more behind them.
    pub more: bool,
}

impl Rows {
    pub(super) fn new(sequence_gap: u64, lag: Duration) -> Self {
        Self { log: Mutex::default(), published: watch::channel(()).0, sequence_gap, lag }
    }

    /// Publishes one row: allocates its sequence id and says what was stored.
    pub fn publish(&self, topic: &Topic, envelope: proto::ClientEnvelope) -> proto::EnvelopeMeta {
        let mut log = self.lock();
        // Not in step with anything, and the same in every run.
        let skipped = log.last_sequence.wrapping_mul(7).wrapping_add(3) % self.sequence_gap.saturating_add(1);
        let sequence_id = log.last_sequence + 1 + skipped;
        log.last_sequence = sequence_id;
        let hash = Bytes::copy_from_slice(&keccak256(&envelope.encode_to_vec()).0);
        let meta = proto::EnvelopeMeta {
            cursor: Some(proto::Cursor { sequence_id }),
            server_ns: Clock::System.now_ms().saturating_mul(1_000_000),
            message_hash: Some(proto::MessageHash { hash: Some(message_hash::Hash::Sha256(hash)) }),
            topic: Some(wire_topic(topic)),
            expiry_ns: 0,
            is_commit_or_proposal: false,
        };
        let envelope = proto::ServerEnvelope { meta: Some(meta.clone()), envelope: Some(envelope) };
        let bytes = envelope.encoded_len();
        let visible_at = Instant::now() + self.lag;
        let index = log.rows.len();
        log.rows.push(Arc::new(Row { topic: *topic, sequence_id, envelope, bytes, visible_at }));
        log.by_topic.entry(*topic).or_default().push(index);
        drop(log);
        self.published.send_replace(());
        meta
    }

    /// Changes with every publication, whether its row is visible yet or not.
    pub fn published(&self) -> watch::Receiver<()> {
        self.published.subscribe()
    }

    /// The newest visible row of a topic.
    pub fn newest(&self, topic: &Topic) -> Option<Arc<Row>> {
        let log = self.lock();
        let visible = log.visible();
        let indexes = log.by_topic.get(topic)?;
        indexes.iter().rev().find(|index| **index < visible).and_then(|index| log.rows.get(*index)).cloned()
    }

    /// Visible rows of a topic above `after`. Of a budget that no row fits, none.
    pub fn after(&self, topic: &Topic, after: u64, budget: Budget) -> Read {
        let log = self.lock();
        let visible = log.visible();
        let indexes = log.by_topic.get(topic).map(Vec::as_slice).unwrap_or_default();
        let rows = indexes.iter().take_while(|index| **index < visible).filter_map(|index| log.rows.get(*index));
        let mut read = Read { rows: Vec::new(), more: false };
        let mut bytes = 0;
        for row in rows.filter(|row| row.sequence_id > after) {
            bytes += row.bytes;
            if read.rows.len() == budget.rows || bytes > budget.bytes {
                read.more = true;
                break;
            }
            read.rows.push(Arc::clone(row));
        }
        read
    }

    /// How many rows are visible: a position in the order of all topics.
    pub fn position(&self) -> usize {
        self.lock().visible()
    }

    /// The topics of the rows that became visible behind `position`, repeats included, and the position after them.
    pub fn topics_since(&self, position: usize) -> (Vec<Topic>, usize) {
        let log = self.lock();
        let visible = log.visible().max(position);
        (log.rows.get(position..visible).unwrap_or_default().iter().map(|row| row.topic).collect(), visible)
    }

    /// When the next row behind `position` becomes visible; `None` while there is none.
    pub fn next_visible(&self, position: usize) -> Option<Instant> {
        self.lock().rows.get(position).map(|row| row.visible_at)
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn visible(&self) -> usize {
        let now = Instant::now();
        self.rows.partition_point(|row| row.visible_at <= now)
    }
}

/// A topic as it is on the wire.
pub fn wire_topic(topic: &Topic) -> proto::Topic {
    proto::Topic { topic: Bytes::copy_from_slice(topic.as_bytes()) }
}
