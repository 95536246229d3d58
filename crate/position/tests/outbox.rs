//! The outbox against a naive model: any order of enqueuing, settling, evidence, takeovers, aborts and unheard commits.
//! Nothing is lost, no number comes twice, what has ended never moves, and the head counts exactly what is open.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use remuda_position::memory::MemoryStore;
use remuda_position::outbox::{
    AppendFailure, DurableAppend, OutboxChange, OutboxChanges, OutboxKey, OutboxState, OutboxWrite, MAX_OPEN_ENTRIES,
};
use remuda_position::{Store, StoreError};
use remuda_wire::record::{FastRecordId, RecordId};
use remuda_wire::request::AppendRequest;
use remuda_wire::{Bytes, Bytes24, Bytes32, ProviderEpoch, Remedy};

const KEY: OutboxKey = OutboxKey(Bytes32([0xaa; 32]));

/// The memory store never waits: one poll is the whole future.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory has nothing to wait for"),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Enqueue(u8),
    /// States for entries by number; `None` forgets. Written again as often as said, as after a commit that went unheard.
    Settle(Vec<(u64, Option<u8>)>, u8),
    TakeOver,
    /// An owner of before writes.
    Stale(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let change = (1..24u64, prop_oneof![5 => (0..5u8).prop_map(Some), 1 => Just(None)]);
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Enqueue),
        4 => (prop::collection::vec(change, 1..6), 1..3u8).prop_map(|(changes, times)| Step::Settle(changes, times)),
        1 => Just(Step::TakeOver),
        1 => (1..24u64).prop_map(Step::Stale),
    ]
}

fn state(kind: u8, number: u64) -> OutboxState {
    let id = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: 0, sequence: number };
    match kind {
        0 => OutboxState::Queued,
        1 => OutboxState::Sent,
        2 => OutboxState::Provisional(id),
        3 => OutboxState::Durable(DurableAppend { record_id: RecordId::Fast(id), evidence: Bytes32([1; 32]) }),
        _ => OutboxState::Failed(AppendFailure::new("provider/lane-closed", Remedy::Surface, "", "closed")),
    }
}

fn request(mark: u8) -> AppendRequest {
    AppendRequest {
        stream_id: Bytes32([1; 32]),
        lane_id: Bytes32([2; 32]),
        client_message_id: Bytes32([mark; 32]),
        client_created_at_ms: 1,
        visible_after_ms: 0,
        expires_at_ms: 0,
        encryption_generation: 0,
        nonce: Bytes24::ZERO,
        payload: Bytes::new(vec![mark; usize::from(mark)]).expect("short"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn does_as_the_model(steps in prop::collection::vec(step(), 1..60)) {
        let store = MemoryStore::default();
        let mut fence = now(store.take_fence()).expect("a store in memory");
        let mut model: BTreeMap<u64, (AppendRequest, OutboxState)> = BTreeMap::new();
        let mut last = 0;
        for step in steps {
            match step {
                Step::Enqueue(mark) => {
                    last += 1;
                    prop_assert_eq!(now(store.enqueue(KEY, &request(mark))), Ok(last));
                    model.insert(last, (request(mark), OutboxState::Queued));
                }
                Step::Settle(changes, times) => {
                    let changes: Vec<_> = changes.into_iter().map(|(number, kind)| match kind {
                        Some(kind) => OutboxChange::Become { number, state: state(kind, number) },
                        None => OutboxChange::Forget { number },
                    }).collect();
                    let write = OutboxWrite { fence, changes: OutboxChanges { key: KEY, changes: changes.clone() } };
                    for _ in 0..times {
                        prop_assert_eq!(now(store.settle(&write)), Ok(()));
                        for change in &changes {
                            expect(&mut model, change);
                        }
                    }
                }
                Step::TakeOver => fence = now(store.take_fence()).expect("a store in memory"),
                Step::Stale(number) => {
                    let old = remuda_position::Fence(fence.0 - 1);
                    let changes = vec![OutboxChange::Become { number, state: state(4, number) }];
                    let write = OutboxWrite { fence: old, changes: OutboxChanges { key: KEY, changes } };
                    prop_assert_eq!(now(store.settle(&write)), Err(StoreError::Fenced));
                }
            }
            let entries = now(store.outbox_after(KEY, 0, usize::MAX)).expect("readable");
            let kept: BTreeMap<_, _> = entries.into_iter().map(|entry| (entry.number, (entry.request, entry.state))).collect();
            prop_assert_eq!(&kept, &model);
        }
        // The head counts what is open, however it came to be: exactly the rest still fits.
        let open = model.values().filter(|(_, state)| !state.is_ended()).count();
        for _ in open..usize::try_from(MAX_OPEN_ENTRIES).expect("few") {
            prop_assert!(now(store.enqueue(KEY, &request(0))).is_ok());
        }
        prop_assert_eq!(now(store.enqueue(KEY, &request(0))), Err(StoreError::OutboxFull));
    }
}

fn expect(model: &mut BTreeMap<u64, (AppendRequest, OutboxState)>, change: &OutboxChange) {
    let Some((request, is)) = model.get_mut(&change.number()) else { return };
    match change {
        OutboxChange::Forget { number } if is.is_ended() => drop(model.remove(number)),
        OutboxChange::Become { state, .. } if !is.is_ended() => {
            if matches!(state, OutboxState::Durable(_)) {
                request.payload = Bytes::default();
            }
            *is = state.clone();
        }
        _ => {}
    }
}
