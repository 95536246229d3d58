//! F, P and D against a naive model: ordered sources that overlap, start too late or contradict, a store that fails at every
//! moment, limits that fill, tabs that overtake each other, owners that come and go. No row is lost, skipped or there twice;
//! P is never above F; D never passes an item that was not acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use remuda_position::topic::consumer::{delivered, Consumer, DeliveryError, DeliveryRefused, HandoffToken, Scope};
use remuda_position::topic::limits::{ReceiptLimits, DEFAULT_CONSUMER_LEASE_DURATION_MS};
use remuda_position::topic::processing::{process, rejections, Step};
use remuda_position::topic::reader::{beginning, ReplayReader};
use remuda_position::topic::receipt::{receive, ReceiptRefused};
use remuda_position::topic::welcome::{process_welcome, unresolved};
use remuda_position::StoreError;
use remuda_streaming::{OrderedPrefix, SequenceId, Topic};
use remuda_testkit::builder::rows::{group, prefix};
use remuda_wire::Bytes32;

use crate::support::{
    identity, now, place, places, small_limits, stable_id, store_with_groups, welcome, FailingStore, Fault, Script,
};

/// The topics of every history, by index.
fn topics() -> [Topic; 4] {
    [group(1), group(2), identity(3), welcome()]
}

#[derive(Clone, Debug)]
enum Action {
    /// The backend publishes to a topic: which command.
    Publish(usize, u8),
    /// An ordered source serves some topics: from how many rows before F, or behind it, and how many rows.
    Receive(Vec<(usize, i8, u8)>),
    /// A source serves the last pending row otherwise.
    Contradict(usize),
    Process(usize),
    /// Pull, acknowledging what was handed over or not.
    Pull(bool),
    /// The page of the consumer is gone, and so much time passes.
    Abandon(u16),
    Fault(u8),
}

fn action() -> impl Strategy<Value = Action> {
    let topic = 0..4usize;
    let served = (topic.clone(), -3..2i8, 0..5u8);
    prop_oneof![
        6 => (topic.clone(), any::<u8>()).prop_map(|(topic, command)| Action::Publish(topic, command)),
        6 => proptest::collection::vec(served, 1..4).prop_map(Action::Receive),
        1 => topic.clone().prop_map(Action::Contradict),
        6 => topic.prop_map(Action::Process),
        4 => any::<bool>().prop_map(Action::Pull),
        1 => any::<u16>().prop_map(Action::Abandon),
        2 => (0..3u8).prop_map(Action::Fault),
    ]
}

/// One topic, as the backend has it and as we should.
#[derive(Default)]
struct ModelTopic {
    /// Place and payload.
    published: Vec<(u64, Vec<u8>)>,
    /// How many of them are received.
    received: usize,
    /// How many of them are processed; of the welcome topic, which of them are resolved.
    processed: usize,
    resolved: BTreeSet<u64>,
    rejected: Vec<u64>,
}

impl ModelTopic {
    fn f(&self) -> u64 {
        self.received.checked_sub(1).map_or(0, |last| self.published[last].0)
    }

    fn pending(&self) -> u64 {
        u64::try_from(self.received - self.processed - self.resolved.len()).expect("few")
    }
}

struct World {
    store: FailingStore,
    topics: Vec<ModelTopic>,
    next_place: u64,
    /// Stable ids in delivery order, with their group.
    messages: Vec<(Bytes32, Topic)>,
    consumer: Option<Consumer>,
    handed: Option<(HandoffToken, usize)>,
    /// Messages that are acknowledged, by index.
    acknowledged: BTreeMap<Topic, usize>,
    now_ms: u64,
    owners: u8,
}

impl World {
    fn new() -> Self {
        let topics = topics().map(|_| ModelTopic::default()).into();
        let store = store_with_groups(&[1, 2]);
        let (messages, acknowledged) = (Vec::new(), BTreeMap::new());
        Self {
            store,
            topics,
            next_place: 1,
            messages,
            consumer: None,
            handed: None,
            acknowledged,
            now_ms: 0,
            owners: 0,
        }
    }

    fn publish(&mut self, index: usize, command: u8) {
        let payload = match (index, command % 8) {
            (3, 0..=3) => vec![b'r'],
            (3, _) => vec![b't'],
            (_, 0) => vec![b'r'],
            (_, 1) => vec![b't'],
            (2, _) => vec![b's'],
            _ => vec![b'a', command],
        };
        self.topics[index].published.push((self.next_place, payload));
        self.next_place += 1 + u64::from(command % 3);
    }

    /// What an honest source serves that was asked for what follows the row `distance` rows from F.
    fn served(&self, index: usize, distance: i8, rows: u8) -> OrderedPrefix {
        let topic = &self.topics[index];
        let start = topic.received.saturating_add_signed(distance.into()).min(topic.published.len());
        let after = start.checked_sub(1).map_or(0, |last| topic.published[last].0);
        let rows = topic.published[start..].iter().take(rows.into());
        let rows: Vec<_> = rows.map(|(place, payload)| (*place, payload.as_slice())).collect();
        prefix(&topics()[index], after, &rows)
    }

    fn receive(&mut self, served: &[(usize, i8, u8)]) {
        let prefixes: Vec<_> =
            served.iter().map(|(index, distance, rows)| self.served(*index, *distance, *rows)).collect();
        let fault = self.store.fault.get();
        let limits = small_limits();
        match now(receive(&self.store, &limits, prefixes.clone())) {
            Ok(receipts) => {
                for ((receipt, prefix), (index, ..)) in receipts.iter().zip(&prefixes).zip(served) {
                    let topic = &mut self.topics[*index];
                    if receipt.refused == Some(ReceiptRefused::Gap) {
                        assert!(prefix.after().get() > topic.f() && receipt.admitted == 0);
                    }
                    topic.received += receipt.admitted;
                    assert!(topic.received <= topic.published.len());
                    let left = receipt.rest.as_ref().map_or(0, |rest| rest.rows().len());
                    assert!(
                        receipt.refused.is_some() || receipt.admitted + left <= prefix.rows().len(),
                        "nothing is made up"
                    );
                }
            }
            Err(error) => {
                assert!(fault.is_some(), "{error:?} without a fault");
                if fault == Some(Fault::Unheard) {
                    self.resynchronise_received();
                }
            }
        }
        self.store.fault.set(None);
        self.check_budgets(&limits);
    }

    /// After a commit that nobody heard of, F says what happened; that it is a legal F is checked like any other.
    fn resynchronise_received(&mut self) {
        for (index, topic) in topics().iter().enumerate() {
            let (f, ..) = places(&self.store, topic);
            let model = &mut self.topics[index];
            model.received = model.published.iter().take_while(|(place, _)| *place <= f).count();
        }
    }

    fn check_budgets(&self, limits: &ReceiptLimits) {
        let pending: Vec<_> = self.topics.iter().map(ModelTopic::pending).collect();
        let within = |rows: u64, limit: usize| assert!(rows <= u64::try_from(limit).expect("small"));
        pending.iter().for_each(|rows| within(*rows, limits.topic.rows));
        within(pending[0] + pending[1], limits.group.rows);
        within(pending[2], limits.identity.rows);
        within(pending[3], limits.welcome.rows);
    }

    fn contradict(&mut self, index: usize) {
        let topic = &self.topics[index];
        let Some((at, _)) = topic.received.checked_sub(1).map(|last| topic.published[last].clone()) else { return };
        if topic.processed == topic.received || topic.resolved.contains(&at) {
            return;
        }
        let before = at - 1;
        let forged = prefix(&topics()[index], before, &[(at, b"forged"), (at + 1, b"and more")]);
        let receipts = now(receive(&self.store, &small_limits(), vec![forged])).expect("no fault");
        assert_eq!((receipts[0].admitted, receipts[0].refused), (0, Some(ReceiptRefused::Conflict)));
    }

    fn process(&mut self, index: usize) {
        let topic = topics()[index];
        let fault = self.store.fault.get();
        let script = Script { transient: self.next_place.is_multiple_of(2) };
        let (at, step) = if index == 3 {
            let open = now(unresolved(&self.store, &topic, SequenceId::MAX)).expect("a store");
            let Some(at) = open.get(usize::try_from(self.next_place).expect("small") % open.len().max(1)) else {
                return;
            };
            (at.get(), now(process_welcome(&self.store, &script, &topic, *at, self.now_ms)))
        } else {
            let model = &self.topics[index];
            let at = model.published.get(model.processed).map_or(0, |(at, _)| *at);
            (at, now(process(&self.store, &script, &topic, &BTreeSet::new())))
        };
        let applied = fault == Some(Fault::Unheard);
        match step {
            Ok(Step::Applied { sequence_id, messages }) => {
                assert_eq!(sequence_id, place(at), "the head, and no other");
                self.applied(index, at, false);
                assert!(messages <= 1);
            }
            Ok(Step::Rejected { sequence_id, .. }) => {
                assert_eq!(sequence_id, place(at));
                self.applied(index, at, true);
            }
            Ok(Step::Idle) => assert_eq!(self.topics[index].processed, self.topics[index].received),
            Ok(Step::Retry { .. } | Step::Blocked { .. } | Step::Inactive) => {}
            // Only a commit of this very step can have gone unheard; a welcome's may have been its deadline.
            Err(StoreError::Aborted) if applied => {
                let command = self.topics[index].published.iter().find(|(place, _)| *place == at).expect("published");
                if index != 3 || command.1[0] == b'r' {
                    let rejected = command.1[0] == b'r';
                    self.applied(index, at, rejected);
                }
            }
            Err(error) => assert!(fault.is_some(), "{error:?} without a fault"),
        }
        self.store.fault.set(None);
    }

    fn applied(&mut self, index: usize, at: u64, rejected: bool) {
        let topic = &mut self.topics[index];
        if index == 3 {
            topic.resolved.insert(at);
        } else {
            topic.processed += 1;
        }
        if rejected {
            topic.rejected.push(at);
        } else if index < 2 {
            self.messages.push((stable_id(&topics()[index], at), topics()[index]));
        }
    }

    fn pull(&mut self, acknowledge: bool) {
        if self.consumer.is_none() {
            self.owners += 1;
            let fault = self.store.fault.get();
            let owner = Bytes32([self.owners; 32]);
            match now(Consumer::acquire(&self.store, owner, Scope::AllGroups, self.now_ms)) {
                Ok(consumer) => self.consumer = Some(consumer),
                Err(error) => {
                    let expected = DeliveryError::Refused(DeliveryRefused::AlreadyActive);
                    assert!(fault.is_some() || error == expected, "{error:?} without a fault");
                    return;
                }
            }
        }
        let consumer = self.consumer.as_mut().expect("acquired");
        let token = self.handed.filter(|_| acknowledge);
        let fault = self.store.fault.get();
        match now(consumer.next(&self.store, token.map(|(token, _)| token), |_| true, self.now_ms)) {
            Ok(next) => {
                if let Some((_, index)) = token {
                    self.acknowledged.insert(self.messages[index].1, index + 1);
                }
                let unread = |(index, (_, group)): &(usize, &(Bytes32, Topic))| {
                    *index >= self.acknowledged.get(group).copied().unwrap_or_default()
                };
                let expected = self.messages.iter().enumerate().find(unread);
                assert_eq!(
                    next.as_ref().map(|handoff| handoff.delivery.message.stable_id),
                    expected.map(|(_, (id, _))| *id),
                    "the first that is not acknowledged"
                );
                self.handed = next.zip(expected).map(|(handoff, (index, _))| (handoff.token, index));
            }
            Err(DeliveryError::Refused(DeliveryRefused::NotOwner)) => {
                (self.consumer, self.handed) = (None, None);
            }
            Err(error) => {
                assert!(fault.is_some(), "{error:?} without a fault");
                if let (Some(Fault::Unheard), Some((_, index))) = (fault, token) {
                    self.acknowledged.insert(self.messages[index].1, index + 1);
                }
            }
        }
        self.store.fault.set(None);
    }

    fn play(&mut self, action: &Action) {
        match action {
            Action::Publish(index, command) => self.publish(*index, *command),
            Action::Receive(served) => self.receive(served),
            Action::Contradict(index) => self.contradict(*index),
            Action::Process(index) => self.process(*index),
            Action::Pull(acknowledge) => self.pull(*acknowledge),
            Action::Abandon(ms) => {
                (self.consumer, self.handed) = (None, None);
                self.now_ms += u64::from(*ms) % (2 * DEFAULT_CONSUMER_LEASE_DURATION_MS);
            }
            Action::Fault(fault) => {
                let faults = [Fault::Aborts, Fault::Unheard, Fault::Quota];
                self.store.fault.set(Some(faults[usize::from(*fault)]));
            }
        }
    }

    /// What holds whatever happened.
    fn check(&self) {
        for (index, topic) in topics().iter().enumerate() {
            let model = &self.topics[index];
            let (f, p, pending) = places(&self.store, topic);
            assert_eq!((f, pending), (model.f(), model.pending()), "F and the rows behind it, topic {index}");
            let processed = model.processed.checked_sub(1).map_or(0, |last| model.published[last].0);
            assert_eq!(p, processed, "P, topic {index}");
            assert!(p <= f, "P is never above F");
            let rejected = now(rejections(&self.store, topic)).expect("a store");
            let rejected: BTreeSet<_> = rejected.iter().map(|(at, _)| at.get()).collect();
            assert_eq!(rejected, model.rejected.iter().copied().collect(), "rejections are recorded with P");
        }
        let start = now(beginning(&self.store)).expect("a store");
        let mut reader = now(ReplayReader::open(&self.store, start, Scope::AllGroups)).expect("ours");
        let stored = std::iter::from_fn(|| now(reader.next(&self.store, |_| true, 0)).expect("a store"));
        let stored: Vec<_> = stored.map(|next| (next.message.stable_id, next.message.group)).collect();
        assert_eq!(stored, self.messages, "every message once, in the order in which it became deliverable");
        for number in [1, 2] {
            let d = now(delivered(&self.store, &group(number))).expect("a store").number().get();
            let acknowledged = self.acknowledged.get(&group(number)).copied().unwrap_or_default();
            assert_eq!(usize::try_from(d), Ok(acknowledged), "D is at what was acknowledged and nowhere else");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn receipt_processing_and_delivery_move_each_by_its_own_commit(
        actions in proptest::collection::vec(action(), 1..60),
    ) {
        let mut world = World::new();
        for action in &actions {
            world.play(action);
            world.check();
        }
    }
}
