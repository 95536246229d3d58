//! A store that fails when told to, and a processor that does what an envelope's first letter says.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use remuda_position::topic::key::KeyRange;
use remuda_position::topic::limits::{Limit, ReceiptLimits};
use remuda_position::topic::memory::MemoryTopicStore;
use remuda_position::topic::message::{found, MessageKind, NewMessage};
use remuda_position::topic::processing::{install_created_group, process, progress, Progress, Step};
use remuda_position::topic::processor::{
    Applied, Attempt, Block, IdentityReference, Join, JoinAnchor, Outcome, Processor, RejectionReason,
};
use remuda_position::topic::receipt::{receive, Receipt};
use remuda_position::topic::store::{Change, Entry, TopicStore};
use remuda_position::StoreError;
use remuda_streaming::{OrderedPrefix, SequenceId, Topic, TopicKind};
use remuda_testkit::builder::rows::{data_of, group, prefix, topic};
use remuda_wire::preimage::keccak256;
use remuda_wire::Bytes32;

/// A store in memory never waits: one poll is the whole future.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory has nothing to wait for"),
    }
}

/// What happens to the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The transaction aborts.
    Aborts,
    /// The transaction completes, and the page never hears of it.
    Unheard,
    /// The quota is used up.
    Quota,
}

#[derive(Default)]
pub struct FailingStore {
    pub memory: MemoryTopicStore,
    pub fault: Cell<Option<Fault>>,
    /// Commits that were tried.
    pub commits: Cell<usize>,
}

impl TopicStore for FailingStore {
    async fn read(&self, ranges: &[KeyRange]) -> Result<Vec<Vec<Entry>>, StoreError> {
        self.memory.read(ranges).await
    }

    async fn commit(&self, change: &Change) -> Result<(), StoreError> {
        self.commits.set(self.commits.get() + 1);
        match self.fault.take() {
            Some(Fault::Aborts) => Err(StoreError::Aborted),
            Some(Fault::Quota) => Err(StoreError::Quota),
            Some(Fault::Unheard) => {
                self.memory.commit(change).await?;
                Err(StoreError::Aborted)
            }
            None => self.memory.commit(change).await,
        }
    }
}

pub const DATABASE: Bytes32 = Bytes32([0xdb; 32]);

/// A founded store.
pub fn store() -> FailingStore {
    let store = FailingStore::default();
    now(found(&store, DATABASE)).expect("a database");
    store
}

/// A founded store with these groups of ours.
pub fn store_with_groups(groups: &[u8]) -> FailingStore {
    let store = store();
    for number in groups {
        now(install_created_group(&store, &group(*number), Applied::default())).expect("a new group");
    }
    store
}

pub fn identity(number: u8) -> Topic {
    topic(TopicKind::Identity, number)
}

pub fn welcome() -> Topic {
    topic(TopicKind::Welcome, 0x77)
}

pub fn place(number: u64) -> SequenceId {
    SequenceId::new(number).expect("in range")
}

/// Receives rows of one topic behind `after`, under the limits of every build.
pub fn receive_rows(store: &impl TopicStore, topic: &Topic, after: u64, rows: &[(u64, &[u8])]) -> Receipt {
    receive_one(store, &ReceiptLimits::default(), prefix(topic, after, rows))
}

pub fn receive_one(store: &impl TopicStore, limits: &ReceiptLimits, prefix: OrderedPrefix) -> Receipt {
    now(receive(store, limits, vec![prefix])).expect("a store").remove(0)
}

/// One attempt at a topic's head.
pub fn step(store: &impl TopicStore, topic: &Topic) -> Step {
    now(process(store, &Script::default(), topic, &BTreeSet::new())).expect("a store")
}

pub fn progress_of(store: &impl TopicStore, topic: &Topic) -> Progress {
    now(progress(store, topic)).expect("a store")
}

/// F, P and how many rows are pending.
pub fn places(store: &impl TopicStore, topic: &Topic) -> (u64, u64, u64) {
    let progress = progress_of(store, topic);
    let processed = progress.processed.map_or(0, |processed| processed.sequence_id().get());
    (progress.received.sequence_id().get(), processed, progress.pending)
}

/// Small enough to be filled by hand.
pub fn small_limits() -> ReceiptLimits {
    let rows = |rows| Limit { rows, bytes: 100_000 };
    ReceiptLimits { admission: rows(4), topic: rows(5), group: rows(8), welcome: rows(3), identity: rows(3) }
}

pub fn stable_id(topic: &Topic, sequence_id: u64) -> Bytes32 {
    keccak256(&[topic.as_bytes(), &sequence_id.to_be_bytes()].concat())
}

pub fn message(group: &Topic, sequence_id: u64, content: &[u8]) -> NewMessage {
    let (stable_id, kind) = (stable_id(group, sequence_id), MessageKind::Application);
    NewMessage { stable_id, kind, group: *group, disappears_at_ms: None, content: content.to_vec() }
}

/// A processor whose state is the list of places that it applied, with the epoch in front.
///
/// | payload | what it does |
/// |---|---|
/// | `a…` | applies, with one message of the whole payload |
/// | `s` | applies, with no message |
/// | `c` | applies: the next epoch |
/// | `e` epoch | an application message of that epoch: applies in it, is rejected in another |
/// | `x` | applies: removes this installation |
/// | `r` | is rejected |
/// | `t` | fails transiently while [`Script::transient`] |
/// | `u` | is of a version that nobody supports |
/// | `m` | misses state that was there |
/// | `i` inbox, place | needs that identity, and then applies |
/// | `j` group, anchor, epoch | joins; anchor 0 is an initial state |
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub transient: bool,
}

fn number(bytes: &[u8]) -> u64 {
    u64::from(bytes.first().copied().unwrap_or_default())
}

impl Processor for Script {
    fn process(&self, attempt: &Attempt<'_>) -> Outcome {
        let data = data_of(attempt.envelope);
        let before = attempt.state.map(<[u8]>::to_vec).unwrap_or_default();
        let epoch = before.first().copied().unwrap_or_default();
        let applied = |epoch: u8, messages: Vec<NewMessage>, removes_us| {
            let mut state = if before.is_empty() { vec![0] } else { before.clone() };
            state[0] = epoch;
            state.extend(attempt.sequence_id.get().to_be_bytes());
            Outcome::Applied(Applied { state, epoch: epoch.into(), messages, removes_us })
        };
        let our_message = || vec![message(&attempt.topic, attempt.sequence_id.get(), &data)];
        let (command, rest) = data.split_first().expect("a command");
        match command {
            b'a' => applied(epoch, our_message(), false),
            b's' => applied(epoch, vec![], false),
            b'c' => applied(epoch + 1, vec![], false),
            b'e' if rest[0] == epoch => applied(epoch, our_message(), false),
            b'e' | b'r' => Outcome::Rejected(RejectionReason::Validation(1)),
            b'x' => applied(epoch, vec![], true),
            b't' if self.transient => Outcome::Retry,
            b't' => applied(epoch, our_message(), false),
            b'u' => Outcome::Blocked(Block::Unsupported),
            b'm' => Outcome::Blocked(Block::MissingState),
            b'i' => {
                let reference = IdentityReference { inbox: identity(rest[0]), at: place(number(&rest[1..])) };
                match attempt.identity(&reference) {
                    Some(_) => applied(epoch, our_message(), false),
                    None => Outcome::Blocked(Block::Identity(reference)),
                }
            }
            b'j' => {
                let anchor = match number(&rest[1..]) {
                    0 => JoinAnchor::InitialState,
                    anchor => JoinAnchor::At(place(anchor)),
                };
                let (group, epoch) = (group(rest[0]), number(&rest[2..]));
                let messages = vec![message(&group, 1_000_000 + attempt.sequence_id.get(), b"joined")];
                Outcome::Joined(Join { group, anchor, epoch, state: vec![rest[2]], messages })
            }
            other => panic!("no command {other}"),
        }
    }
}
