//! Positions against a naive model: random histories, offered in any order, replayed, forked, and committed to a store
//! that fails at every moment it can. A position is never ahead of its rows or behind them, and no item is there twice.

use std::cell::Cell;
use std::cmp::Ordering;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use remuda_position::memory::MemoryStore;
use remuda_position::outbox::{OutboxEntry, OutboxKey, OutboxWrite};
use remuda_position::{
    commit, AdmissionBudget, Boundary, DeliveredRecord, Fence, PositionKey, Store, StoreError, StoredItem,
    StoredItemBody, StoredPosition, StoredRow, WriteSet,
};
use remuda_testkit::honest::HonestStream;
use remuda_verify::fast::{AdoptedTransition, FastState, FastSubscription, VerifiedBatch};
use remuda_wire::codec::Canonical;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::preimage::keccak256;
use remuda_wire::request::AppendRequest;
use remuda_wire::transition::{BrokerEpochTransition, TransitionKind};
use remuda_wire::verdict::{AdmissionRefused, Contradiction, Refusal, VerifyError};
use remuda_wire::Bytes32;

const KEY: PositionKey = PositionKey(Bytes32([0xaa; 32]));

/// The memory store never waits: one poll is the whole future.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory has nothing to wait for"),
    }
}

/// What happens to one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The transaction aborts.
    Aborts,
    /// The transaction completes, and the page never hears of it.
    Unheard,
    /// Another owner of the same generation commits the same first.
    Overtaken,
    /// Another tab has taken over since.
    Fenced,
    /// The budget does not allow a single item.
    NoBudget,
}

/// A store in memory that fails when told to.
#[derive(Default)]
struct FailingStore {
    memory: MemoryStore,
    fault: Cell<Option<Fault>>,
}

impl Store for FailingStore {
    async fn take_fence(&self) -> Result<Fence, StoreError> {
        self.memory.take_fence().await
    }

    async fn load(&self, key: PositionKey) -> Result<Option<StoredPosition>, StoreError> {
        self.memory.load(key).await
    }

    async fn apply(&self, write: &WriteSet) -> Result<(), StoreError> {
        match self.fault.take() {
            Some(Fault::Aborts) => Err(StoreError::Aborted),
            Some(Fault::Unheard) => {
                self.memory.apply(write).await?;
                Err(StoreError::Aborted)
            }
            Some(Fault::Overtaken) => {
                self.memory.apply(write).await?;
                self.memory.apply(write).await
            }
            Some(Fault::Fenced) => {
                self.memory.take_fence().await?;
                self.memory.apply(write).await
            }
            _ => self.memory.apply(write).await,
        }
    }

    async fn rows_after(&self, key: PositionKey, after: u64, max_bytes: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.memory.rows_after(key, after, max_bytes).await
    }

    async fn enqueue(&self, key: OutboxKey, request: &AppendRequest) -> Result<u64, StoreError> {
        self.memory.enqueue(key, request).await
    }

    async fn outbox_after(&self, key: OutboxKey, after: u64, max_bytes: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        self.memory.outbox_after(key, after, max_bytes).await
    }

    async fn settle(&self, write: &OutboxWrite) -> Result<(), StoreError> {
        self.memory.settle(write).await
    }
}

/// One object of the provider's history, with the state that it follows.
#[derive(Clone)]
struct Object {
    before: FastState,
    after: FastState,
    body: Body,
    /// What it adds to the rows, by name.
    items: Vec<Bytes32>,
    digest: Bytes32,
}

impl Object {
    /// Where it ends in the order of the stream: lineage, then the sequence that comes next.
    fn end(&self) -> (Option<u64>, Option<u64>) {
        (self.after.broker_epoch, self.after.next_sequence)
    }

    /// Whether it continues what ends in `tail`: a checkpoint names what it follows, a transition only its lineage and
    /// checkpoint.
    fn follows(&self, tail: &FastState) -> bool {
        match &self.body {
            Body::Batch(_) => self.before.tail == tail.tail,
            Body::Transition(transition) => {
                transition.previous_lineage.map(|lineage| lineage.broker_epoch) == tail.broker_epoch
                    && Some(transition.last_durable_checkpoint) == tail.last_checkpoint
            }
        }
    }
}

#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "a handful, in a test")]
enum Body {
    Batch(Vec<RecordDelivery>),
    Transition(BrokerEpochTransition),
}

#[allow(clippy::large_enum_variant, reason = "a few dozen of them")]
enum Proven {
    Batch(VerifiedBatch<DeliveredRecord>),
    Transition(AdoptedTransition),
}

/// How the history goes on.
#[derive(Clone, Debug)]
enum Step {
    Batch(u8),
    Clean,
    Void,
}

#[derive(Clone, Debug)]
enum Offer {
    Honest,
    /// Another object in the place of this one, ending at the same point.
    Fork,
    /// Another batch in the place of this one, one record longer.
    Longer,
}

/// Which object is offered: by its distance from the next one, so that most offers are near it.
type Offered = (i8, Offer, Fault);

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![4 => (1..5u8).prop_map(Step::Batch), 1 => Just(Step::Clean), 1 => Just(Step::Void)]
}

fn offered() -> impl Strategy<Value = Offered> {
    let fault = prop_oneof![
        6 => Just(Fault::None),
        1 => Just(Fault::Aborts),
        1 => Just(Fault::Unheard),
        1 => Just(Fault::Overtaken),
        1 => Just(Fault::Fenced),
        1 => Just(Fault::NoBudget),
    ];
    let offer = prop_oneof![6 => Just(Offer::Honest), 1 => Just(Offer::Fork), 1 => Just(Offer::Longer)];
    (prop_oneof![4 => Just(0i8), 3 => -3..4i8, 1 => -20..20i8], offer, fault)
}

fn item_name(item: &StoredItem) -> Bytes32 {
    match &item.body {
        StoredItemBody::Record(record) => keccak256(&record.record_id.to_bytes()),
        StoredItemBody::Transition(transition) => transition.digest,
        StoredItemBody::StandardRecord(record) => record.receipt,
        StoredItemBody::Gap(gap) => keccak256(&gap.to_bytes()),
        StoredItemBody::Snapshot(snapshot) => keccak256(&snapshot.to_bytes()),
    }
}

struct World {
    stream: HonestStream,
    history: Vec<Object>,
}

impl World {
    fn new(steps: &[Step]) -> Self {
        let mut world = Self { stream: HonestStream::default(), history: Vec::new() };
        let mut state = FastState::default();
        let genesis = Body::Transition(world.stream.transition(&state, TransitionKind::Clean, 0));
        state = world.extend(state, genesis);
        for step in steps {
            let body = match step {
                Step::Batch(count) => Body::Batch(world.records(&state, u64::from(*count), b"honest")),
                Step::Clean => Body::Transition(world.stream.transition(&state, TransitionKind::Clean, 0)),
                Step::Void => Body::Transition(world.stream.transition(&state, TransitionKind::Void, 0)),
            };
            state = world.extend(state, body);
        }
        world
    }

    fn records(&self, state: &FastState, count: u64, payload: &[u8]) -> Vec<RecordDelivery> {
        let (epoch, first) = (state.broker_epoch.expect("a lineage"), state.next_sequence.expect("a sequence"));
        let lane = |sequence: u64| Bytes32([u8::try_from(sequence % 3).expect("small") + 0x40; 32]);
        (first..first + count).map(|sequence| self.stream.record(epoch, sequence, lane(sequence), payload)).collect()
    }

    fn object(&self, before: FastState, body: Body) -> (Object, Proven) {
        let proven = self.prove(&before, &body);
        let (digest, after) = match &proven {
            Proven::Batch(batch) => (batch.receipt().digest(), batch.state().clone()),
            Proven::Transition(adopted) => (adopted.transition().digest(), adopted.state().clone()),
        };
        let items = match &body {
            Body::Batch(records) => records.iter().map(|record| keccak256(&record.record_id.to_bytes()[1..])).collect(),
            Body::Transition(_) => vec![digest],
        };
        (Object { before, after, body, items, digest }, proven)
    }

    fn extend(&mut self, before: FastState, body: Body) -> FastState {
        let (object, _) = self.object(before, body);
        let after = object.after.clone();
        self.history.push(object);
        after
    }

    /// Verified from the state that it follows: whatever we hold, the evidence itself is good.
    fn prove(&self, before: &FastState, body: &Body) -> Proven {
        let keys = self.stream.keys();
        let mut subscription = FastSubscription::new(self.stream.full_stream(), before.clone());
        match body {
            Body::Batch(records) => {
                let frame = self.stream.checkpoint(before, records);
                for record in records {
                    let kept = DeliveredRecord::new(Rc::new(record.clone()));
                    subscription.handle_delivery(record, kept).expect("an honest record");
                }
                Proven::Batch(subscription.handle_checkpoint(frame, &keys).expect("an honest checkpoint"))
            }
            Body::Transition(transition) => {
                let adopted = subscription.handle_transition(transition.clone(), &keys);
                Proven::Transition(adopted.expect("an honest transition"))
            }
        }
    }

    fn bent(&self, at: usize, offer: &Offer) -> Body {
        let Object { before, body, .. } = &self.history[at];
        match (offer, body) {
            (Offer::Honest, body) => body.clone(),
            (Offer::Fork, Body::Batch(records)) => {
                Body::Batch(self.records(before, u64::try_from(records.len()).expect("few"), b"forked"))
            }
            (Offer::Longer, Body::Batch(records)) => {
                Body::Batch(self.records(before, u64::try_from(records.len()).expect("few") + 1, b"honest"))
            }
            (Offer::Fork | Offer::Longer, Body::Transition(honest)) => {
                Body::Transition(self.stream.transition(before, honest.kind, 1))
            }
        }
    }
}

/// What a naive reader of §12 keeps: the last object that is durable, and the names of all items.
#[derive(Default)]
struct Model {
    /// Its place in the honest history, also when it is another object in that place.
    head: Option<usize>,
    tail: Option<Object>,
    items: Vec<Bytes32>,
}

enum Expected {
    Planned,
    /// All durable already, or a transition before the first checkpoint.
    NothingToWrite,
    Refused(Refusal),
}

impl Model {
    fn expect(&self, object: &Object) -> Expected {
        let Some(tail) = &self.tail else {
            return match object.body {
                Body::Batch(_) => Expected::Planned,
                Body::Transition(_) => Expected::NothingToWrite,
            };
        };
        match object.end().cmp(&tail.end()) {
            Ordering::Less => Expected::NothingToWrite,
            Ordering::Equal if object.digest == tail.digest => Expected::NothingToWrite,
            Ordering::Equal => Expected::Refused(match object.body {
                Body::Batch(_) => Contradiction::CheckpointFork.into(),
                Body::Transition(_) => Contradiction::TransitionFork.into(),
            }),
            Ordering::Greater if object.follows(&tail.after) => Expected::Planned,
            Ordering::Greater => Expected::Refused(VerifyError::CheckpointPredecessor.into()),
        }
    }

    fn admit(&mut self, at: usize, object: Object) {
        self.items.extend(&object.items);
        self.head = Some(at);
        self.tail = Some(object);
    }
}

fn durable_items(store: &FailingStore) -> Vec<Bytes32> {
    let rows = now(store.rows_after(KEY, 0, usize::MAX)).expect("rows are readable");
    let mut items = Vec::new();
    for row in rows {
        let row = StoredRow::from_bytes(&row).expect("a row is canonical");
        for (number, item) in row.numbered() {
            assert_eq!(usize::try_from(number), Ok(items.len() + 1), "items are numbered without a gap");
            items.push(item_name(&item));
        }
    }
    items
}

fn load(store: &FailingStore) -> Boundary {
    now(store.load(KEY))
        .expect("a position is readable")
        .map_or_else(|| Boundary::empty(KEY), |stored| Boundary::stored(KEY, stored))
}

/// What holds whatever happened.
fn check_invariants(store: &FailingStore, model: &Model) {
    let (boundary, items) = (load(store), durable_items(store));
    assert_eq!(items, model.items, "rows are those of the objects that were committed");
    assert_eq!(
        usize::try_from(boundary.last_item()),
        Ok(items.len()),
        "a position is neither ahead of its rows nor behind"
    );
    let distinct: std::collections::BTreeSet<_> = items.iter().collect();
    assert_eq!(distinct.len(), items.len(), "no item is there twice");
}

fn play(steps: &[Step], join: usize, offers: &[Offered]) {
    let world = World::new(steps);
    let store = FailingStore::default();
    let mut fence = now(store.take_fence()).expect("ownership");
    let mut boundary = Boundary::empty(KEY);
    let mut model = Model::default();
    // The first batch at or after where we join: before one, nothing can become durable.
    let batches = |at: &usize| matches!(world.history[*at].body, Body::Batch(_));
    let joined = join % world.history.len();
    let join = (joined..world.history.len()).chain(0..joined).find(batches).unwrap_or(joined);
    for (distance, offer, fault) in offers {
        let next = model.head.map_or(join, |head| head + 1);
        let Some(at) = next.checked_add_signed(isize::from(*distance)).filter(|at| *at < world.history.len()) else {
            continue;
        };
        let (object, proven) = world.object(world.history[at].before.clone(), world.bent(at, offer));
        let budget = match fault {
            Fault::NoBudget => AdmissionBudget { max_items: 0, ..AdmissionBudget::default() },
            _ => AdmissionBudget::default(),
        };
        let planned = match proven {
            Proven::Batch(batch) => boundary.plan(batch, fence, &budget),
            Proven::Transition(adopted) => boundary.plan(adopted, fence, &budget),
        };
        let expected = match model.expect(&object) {
            Expected::Planned if *fault == Fault::NoBudget => Expected::Refused(AdmissionRefused::BatchTooLarge.into()),
            other => other,
        };
        match (planned, expected) {
            (Ok(Some(admission)), Expected::Planned) => {
                store.fault.set(Some(*fault));
                let reached = admission.planned().clone();
                match (now(commit(&store, admission)), fault) {
                    (Ok(committed), Fault::None) => {
                        boundary = committed.into_boundary();
                        assert_eq!(boundary, reached);
                        model.admit(at, object);
                    }
                    (Err(StoreError::Aborted), Fault::Aborts) => {}
                    (Err(StoreError::Aborted), Fault::Unheard) | (Err(StoreError::Conflict), Fault::Overtaken) => {
                        model.admit(at, object);
                    }
                    (Err(StoreError::Fenced), Fault::Fenced) => {
                        fence = now(store.take_fence()).expect("ownership");
                    }
                    (outcome, fault) => panic!("{outcome:?} after {fault:?}"),
                }
                store.fault.set(None);
                // Whatever went wrong, the store says where we are.
                if *fault != Fault::None {
                    boundary = load(&store);
                }
            }
            (Ok(None), Expected::NothingToWrite) => {}
            (Err(refusal), Expected::Refused(expected)) => assert_eq!(refusal, expected, "object {at}, {offer:?}"),
            (planned, _) => panic!("object {at}, {offer:?}: planned {planned:?} after {:?}", model.head),
        }
        assert_eq!(boundary, load(&store), "the boundary is the durable one");
        check_invariants(&store, &model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_position_moves_only_with_its_rows(
        steps in proptest::collection::vec(step(), 1..12),
        join in any::<usize>(),
        offers in proptest::collection::vec(offered(), 1..24),
    ) {
        play(&steps, join, &offers);
    }
}

/// The provider withholds the only batch of a lineage and shows the restart after it: the transition names a checkpoint
/// that we do not have.
#[test]
fn a_transition_over_a_checkpoint_that_we_never_saw_is_a_gap() {
    let steps = [Step::Batch(2), Step::Clean, Step::Batch(2), Step::Clean];
    let offers = [(0, Offer::Honest, Fault::None), (2, Offer::Honest, Fault::None), (0, Offer::Honest, Fault::None)];
    play(&steps, 0, &offers);
}
