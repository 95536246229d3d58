//! Seeded schedules: interests that change, streams that break in every way, commits that fail, pages that are killed. In the
//! end every row is there once, in order, and no cursor was ever ahead of what was durable.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use prost::Message;
use remuda_client::receiver::{Output, QueryId, Receiver, ReceiverEvent, StreamId, StreamsConfig};
use remuda_position::topic::limits::{Limit, ReceiptLimits};
use remuda_position::topic::memory::MemoryTopicStore;
use remuda_position::topic::message::found;
use remuda_position::topic::place::Received;
use remuda_position::topic::processing::{install_created_group, process, Step};
use remuda_position::topic::processor::{Applied, Attempt, Outcome, Processor};
use remuda_position::topic::receipt::{receive, received};
use remuda_session::entropy::Entropy;
use remuda_session::Backoff;
use remuda_streaming::{proto, Bytes, SequenceId, Topic};
use remuda_testkit::builder::rows::group;
use remuda_wire::Bytes32;

use crate::backend::{topics_of, Backend, Fault, Sent, FAULTS, HEADERS};

pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory has nothing to wait for"),
    }
}

pub fn config(seed: u8) -> StreamsConfig {
    StreamsConfig { backoff: Backoff { base_ms: 100, cap_ms: 2_000 }, entropy: Entropy::new([seed; 32]) }
}

/// Remembers in its state which places it applied.
pub struct Remember;

impl Processor for Remember {
    fn process(&self, attempt: &Attempt<'_>) -> Outcome {
        let mut state = attempt.state.map(<[u8]>::to_vec).unwrap_or_default();
        state.extend(attempt.sequence_id.get().to_be_bytes());
        Outcome::Applied(Applied { state, ..Applied::default() })
    }
}

#[derive(Clone, Debug)]
enum Action {
    Publish(u8, u8),
    Interests(u8),
    Hint(u8),
    Process(u8),
    CommitFails,
    Kill,
    Time(u16),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (1..5u8, any::<u8>()).prop_map(|(topic, count)| Action::Publish(topic, count)),
        2 => any::<u8>().prop_map(Action::Interests),
        1 => (1..5u8).prop_map(Action::Hint),
        4 => (1..5u8).prop_map(Action::Process),
        2 => Just(Action::CommitFails),
        1 => Just(Action::Kill),
        8 => (0..1_500u16).prop_map(Action::Time),
    ]
}

struct World {
    backend: Backend,
    store: MemoryTopicStore,
    receiver: Receiver,
    interests: BTreeSet<Topic>,
    queries: VecDeque<(QueryId, Vec<u8>)>,
    now_ms: u64,
    faults: VecDeque<u8>,
    commit_fails: bool,
    lives: u8,
    processed: Vec<(Topic, u64)>,
    /// Every F that there was.
    was_durable: BTreeSet<(Topic, u64)>,
}

/// Small enough that capacity runs out and comes back.
fn limits() -> ReceiptLimits {
    let rows = |rows| Limit { rows, bytes: 1 << 20 };
    ReceiptLimits { topic: rows(6), group: rows(14), ..ReceiptLimits::default() }
}

impl World {
    fn new(faults: Vec<u8>, lag_ms: u64) -> Self {
        let store = MemoryTopicStore::default();
        now(found(&store, Bytes32([1; 32]))).expect("a database");
        for number in 1..5 {
            now(install_created_group(&store, &group(number), Applied::default())).expect("a group");
        }
        Self {
            backend: Backend::with_lag(lag_ms),
            store,
            receiver: Receiver::new(config(0), 0),
            interests: BTreeSet::new(),
            queries: VecDeque::new(),
            now_ms: 0,
            faults: faults.into(),
            commit_fails: false,
            lives: 0,
            processed: Vec::new(),
            was_durable: BTreeSet::new(),
        }
    }

    fn durable(&self, topics: &BTreeSet<Topic>) -> Vec<(Topic, Received)> {
        now(received(&self.store, &topics.iter().copied().collect::<Vec<_>>())).expect("a store")
    }

    fn set_interests(&mut self, interests: BTreeSet<Topic>) {
        self.interests = interests;
        let topics = self.durable(&self.interests);
        self.receiver.set_interests(&topics, self.now_ms);
        self.drain();
    }

    /// The page is killed: what was in memory is gone, the server's streams too.
    fn kill(&mut self) {
        self.lives += 1;
        self.receiver = Receiver::new(config(self.lives), self.now_ms);
        self.queries.clear();
        self.backend.open_streams().into_iter().for_each(|id| self.backend.cancel(id));
        self.set_interests(self.interests.clone());
    }

    fn drain(&mut self) {
        while let Some(output) = self.receiver.poll_output() {
            match output {
                Output::Open { stream, message } => {
                    let request = proto::SubscribeStaticRequest::decode(message.as_slice()).expect("protobuf");
                    let topics = topics_of(&request.topics);
                    self.check_cursors(&topics);
                    let byte = self.faults.pop_front().unwrap_or_default();
                    let fault = FAULTS[usize::from(byte) % FAULTS.len()];
                    self.backend.open(stream, topics, fault, u32::from(byte / 64) + 1, self.now_ms);
                }
                Output::Cancel { stream } => self.backend.cancel(stream),
                Output::Query { query, message } => {
                    let request = proto::QueryRequest::decode(message.as_slice()).expect("protobuf");
                    self.check_cursors(&topics_of(&request.queries));
                    self.queries.push_back((query, message));
                }
                Output::Receive(batch) => {
                    let fails = std::mem::take(&mut self.commit_fails);
                    let receipts = (!fails).then(|| now(receive(&self.store, &limits(), batch)).expect("a store"));
                    let places = receipts.iter().flatten().map(|receipt| (receipt.topic, receipt.received));
                    self.was_durable.extend(places.map(|(topic, place)| (topic, place.sequence_id().get())));
                    self.receiver.handle_receipts(receipts, self.now_ms);
                }
                Output::Event(ReceiverEvent::Received(topic, place)) => {
                    assert!(self.durable(&BTreeSet::from([topic])).contains(&(topic, place)), "F is what is durable");
                }
                Output::Event(ReceiverEvent::Failed(status)) => panic!("{status:?}"),
                Output::Event(_) => {}
            }
        }
    }

    /// STR-036, STR-054: what is asked for begins at a place that was durable when it was planned, never ahead of one.
    fn check_cursors(&self, topics: &[(Topic, u64)]) {
        for (topic, cursor) in topics {
            let durable = self.durable(&BTreeSet::from([*topic]))[0].1.sequence_id().get();
            assert!(*cursor <= durable, "{cursor} is ahead of {durable}");
            assert!(*cursor == 0 || self.was_durable.contains(&(*topic, *cursor)), "{cursor} was never F");
        }
    }

    fn advance(&mut self, ms: u64) {
        let until = self.now_ms + ms;
        while self.now_ms < until {
            self.now_ms = (self.now_ms + 100).min(until);
            for id in self.backend.open_streams() {
                for sent in self.backend.send(id, self.now_ms) {
                    self.hand_over(id, sent);
                }
            }
            while let Some((query, request)) = self.queries.pop_front() {
                let answer = self.faults.pop_front().is_none_or(|byte| byte % 4 > 0);
                let answer = answer.then(|| self.backend.query(&request, self.now_ms));
                self.receiver.handle_page(query, answer, self.now_ms);
                self.drain();
            }
            self.receiver.handle_time(self.now_ms);
            self.drain();
        }
    }

    fn hand_over(&mut self, id: StreamId, sent: Sent) {
        match sent {
            Sent::Head => self.receiver.handle_head(id, 200, &HEADERS, self.now_ms),
            Sent::Bytes(bytes) => {
                let cut = bytes.len() / 2;
                self.receiver.handle_chunk(id, &bytes[..cut], self.now_ms);
                self.receiver.handle_chunk(id, &bytes[cut..], self.now_ms);
            }
            Sent::End => {
                self.receiver.handle_end(id, self.now_ms);
                self.backend.cancel(id);
            }
        }
        self.drain();
    }

    fn process_all(&mut self, topic: Topic) {
        while let Step::Applied { sequence_id, .. } =
            now(process(&self.store, &Remember, &topic, &BTreeSet::new())).expect("a store")
        {
            self.processed.push((topic, sequence_id.get()));
        }
        self.receiver.handle_capacity(self.now_ms);
        self.drain();
    }

    fn play(&mut self, action: &Action) {
        match action {
            Action::Publish(number, count) => {
                for index in 0..count % 5 {
                    self.backend.publish(group(*number), b"row", u64::from(index % 3), self.now_ms);
                }
            }
            Action::Interests(bits) => {
                let wanted = (1..5u8).filter(|number| bits & (1 << number) != 0).map(group).collect();
                self.set_interests(wanted);
            }
            Action::Hint(number) => {
                let topic = self.durable(&BTreeSet::from([group(*number)]))[0];
                let head = SequenceId::new(self.backend.head(&group(*number))).expect("small");
                self.receiver.fetch(topic, head, self.now_ms);
                self.drain();
            }
            Action::Process(number) => self.process_all(group(*number)),
            Action::CommitFails => self.commit_fails = true,
            Action::Kill => self.kill(),
            Action::Time(ms) => self.advance(u64::from(*ms)),
        }
    }

    /// Faults are over: everything is wanted, and comes.
    fn settle(&mut self) {
        self.faults.clear();
        self.commit_fails = false;
        self.set_interests((1..5).map(group).collect());
        // A head that never comes is given up after three intervals of the client's own.
        for _ in 0..130 {
            self.advance(1_000);
            (1..5).for_each(|number| self.process_all(group(number)));
        }
        for number in 1..5 {
            let topic = group(number);
            let published: Vec<_> =
                self.backend.rows.get(&topic).into_iter().flatten().map(|(place, ..)| *place).collect();
            let processed: Vec<_> =
                self.processed.iter().filter(|(of, _)| *of == topic).map(|(_, place)| *place).collect();
            assert_eq!(processed, published, "every row once, in order");
        }
        assert_eq!(self.receiver.active_topics(), self.interests);
        assert_eq!(self.backend.open_streams().len(), 1, "what is replaced is cancelled");
        let opened = self.backend.opened;
        self.advance(20_000);
        assert_eq!(self.backend.opened, opened, "a healthy stream stays open");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_breaks_every_row_is_received_once_and_in_order(
        actions in proptest::collection::vec(action(), 1..50),
        faults in proptest::collection::vec(any::<u8>(), 0..24),
        lag_ms in prop_oneof![Just(0u64), 0..800u64],
    ) {
        let mut world = World::new(faults, lag_ms);
        for action in &actions {
            world.play(action);
        }
        world.settle();
    }
}

#[test]
fn each_fault_alone_is_survived() {
    for (index, fault) in FAULTS.iter().enumerate() {
        let mut world = World::new(vec![u8::try_from(index).expect("few")], 0);
        let publish =
            |world: &mut World| (0..5).for_each(|gap| world.backend.publish(group(1), b"row", gap, world.now_ms));
        publish(&mut world);
        world.set_interests(BTreeSet::from([group(1)]));
        world.advance(1_000);
        publish(&mut world);
        world.settle();
        let opened = if *fault == Fault::None { 2 } else { 3 };
        assert!(world.backend.opened <= opened, "{fault:?}: {} openings", world.backend.opened);
    }
}

/// A message of the wire, where a test needs one.
pub fn decode<M: Message + Default>(bytes: &[u8]) -> M {
    M::decode(Bytes::copy_from_slice(bytes)).expect("protobuf")
}
