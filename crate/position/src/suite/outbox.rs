//! The cases of outboxes: what was enqueued is there until it is settled, whoever wrote it and however often it is repeated.

use alloc::vec;
use alloc::vec::Vec;

use remuda_wire::record::{FastRecordId, RecordId};
use remuda_wire::request::AppendRequest;
use remuda_wire::{bound, Bytes, Bytes24, Bytes32, ProviderEpoch, Remedy};

use super::{position, row, write, Database, A as POSITION};
use crate::outbox::{
    AppendFailure, DurableAppend, OutboxChange, OutboxChanges, OutboxEntry, OutboxKey, OutboxState, OutboxWrite,
    MAX_OPEN_BYTES, MAX_OPEN_ENTRIES,
};
use crate::store::{Fence, Store, StoreError};

pub(super) const CASES: usize = 6;

pub(super) async fn run<D: Database>(fresh: impl Fn(&str) -> D) -> usize {
    enqueued_is_there_after_reopening(&fresh("enqueue")).await;
    outboxes_do_not_mix(&fresh("outboxes")).await;
    changes_are_one_transaction_of_the_owner(&fresh("settle")).await;
    what_has_ended_stays_as_it_ended(&fresh("ended")).await;
    evidence_settles_with_its_rows(&fresh("evidence")).await;
    as_much_waits_as_fits(&fresh("full")).await;
    CASES
}

const A: OutboxKey = OutboxKey(Bytes32([0xaa; 32]));
const B: OutboxKey = OutboxKey(Bytes32([0xab; 32]));

fn request(mark: u8, bytes: usize) -> AppendRequest {
    AppendRequest {
        stream_id: Bytes32([1; 32]),
        lane_id: Bytes32([2; 32]),
        client_message_id: Bytes32([mark; 32]),
        client_created_at_ms: 4,
        visible_after_ms: 0,
        expires_at_ms: 5,
        encryption_generation: 6,
        nonce: Bytes24([mark; 24]),
        payload: Bytes::new(vec![mark; bytes]).unwrap_or_default(),
    }
}

fn to(number: u64, state: OutboxState) -> OutboxChange {
    OutboxChange::Become { number, state }
}

fn settlement(key: OutboxKey, fence: Fence, changes: Vec<OutboxChange>) -> OutboxWrite {
    OutboxWrite { fence, changes: OutboxChanges { key, changes } }
}

fn provisional(sequence: u64) -> OutboxState {
    OutboxState::Provisional(FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: 1, sequence })
}

fn durable(sequence: u64) -> OutboxState {
    let record_id = RecordId::Fast(FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: 1, sequence });
    OutboxState::Durable(DurableAppend { record_id, evidence: Bytes32([9; 32]) })
}

fn failed() -> OutboxState {
    OutboxState::Failed(AppendFailure::new("provider/lane-closed", Remedy::Surface, "CIP-39 §17", "the lane is closed"))
}

async fn entries(store: &impl Store, key: OutboxKey) -> Vec<OutboxEntry> {
    store.outbox_after(key, 0, usize::MAX).await.expect("an outbox is readable")
}

async fn states(store: &impl Store, key: OutboxKey) -> Vec<(u64, OutboxState)> {
    entries(store, key).await.into_iter().map(|entry| (entry.number, entry.state)).collect()
}

async fn enqueued_is_there_after_reopening(database: &impl Database) {
    let store = database.open().await;
    assert_eq!(entries(&store, A).await, [], "a new outbox is empty");
    for mark in 1..=3 {
        let number = store.enqueue(A, &request(mark, 100)).await;
        assert_eq!(number, Ok(u64::from(mark)), "numbers ascend from one, without an owner");
    }
    let again = database.open().await;
    let kept = entries(&again, A).await;
    assert_eq!(kept.len(), 3, "what was enqueued survives reopening");
    for (entry, mark) in kept.iter().zip(1..) {
        assert_eq!(entry.request, request(mark, 100), "byte for byte");
        assert_eq!(entry.state, OutboxState::Queued);
    }
    let page = |after, max_bytes| again.outbox_after(A, after, max_bytes);
    let numbers = |page: Vec<OutboxEntry>| page.iter().map(|entry| entry.number).collect::<Vec<_>>();
    assert_eq!(numbers(page(1, usize::MAX).await.expect("a page")), [2, 3], "a page begins behind a number");
    assert_eq!(numbers(page(0, 600).await.expect("a page")), [1, 2], "a page is bounded by bytes");
    assert_eq!(numbers(page(0, 1).await.expect("a page")), [1], "one entry is always read");
    assert_eq!(again.enqueue(A, &request(4, 1)).await, Ok(4), "numbers go on after reopening");
}

async fn outboxes_do_not_mix(database: &impl Database) {
    let store = database.open().await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    assert_eq!(store.enqueue(A, &request(1, 10)).await, Ok(1));
    assert_eq!(store.enqueue(B, &request(2, 10)).await, Ok(1), "each outbox has numbers of its own");
    store.settle(&settlement(A, fence, vec![to(1, durable(0))])).await.expect("an owner settles");
    assert_eq!(states(&store, B).await, [(1, OutboxState::Queued)]);
}

async fn changes_are_one_transaction_of_the_owner(database: &impl Database) {
    let store = database.open().await;
    let old = store.take_fence().await.expect("ownership can be taken");
    for mark in 1..=2 {
        store.enqueue(A, &request(mark, 10)).await.expect("room");
    }
    let both = vec![to(1, OutboxState::Sent), to(2, OutboxState::Sent)];
    store.settle(&settlement(A, old, both)).await.expect("an owner settles");
    let new = database.open().await.take_fence().await.expect("ownership can be taken over");
    let stale = store.settle(&settlement(A, old, vec![to(1, failed())])).await;
    assert_eq!(stale, Err(StoreError::Fenced), "an owner of before settles nothing");
    assert_eq!(states(&store, A).await, [(1, OutboxState::Sent), (2, OutboxState::Sent)]);
    store.enqueue(A, &request(3, 10)).await.expect("who does not own enqueues");
    let acknowledged = vec![to(1, provisional(7)), to(3, OutboxState::Sent), to(9, failed())];
    store.settle(&settlement(A, new, acknowledged)).await.expect("an entry that is not there needs no change");
    let kept = [(1, provisional(7)), (2, OutboxState::Sent), (3, OutboxState::Sent)];
    assert_eq!(states(&database.open().await, A).await, kept);
}

async fn what_has_ended_stays_as_it_ended(database: &impl Database) {
    let store = database.open().await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    for mark in 1..=3 {
        store.enqueue(A, &request(mark, 10)).await.expect("room");
    }
    let ends = settlement(A, fence, vec![to(1, durable(0)), to(2, failed())]);
    for _ in 0..2 {
        store.settle(&ends).await.expect("the same again is nothing new");
    }
    let late = vec![
        to(1, OutboxState::Queued),
        to(2, provisional(1)),
        OutboxChange::Forget { number: 1 },
        OutboxChange::Forget { number: 3 },
    ];
    store.settle(&settlement(A, fence, late)).await.expect("late changes");
    assert_eq!(states(&store, A).await, [(2, failed()), (3, OutboxState::Queued)], "what waits is never forgotten");
    assert_eq!(entries(&store, A).await[0].request, request(2, 10), "what failed keeps its payload");
    assert_eq!(store.enqueue(A, &request(4, 1)).await, Ok(4), "a forgotten number is not used again");
}

async fn evidence_settles_with_its_rows(database: &impl Database) {
    let store = database.open().await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    store.enqueue(A, &request(1, 10)).await.expect("room");
    let outbox = Some(OutboxChanges { key: A, changes: vec![to(1, durable(0))] });
    let mut refused = write(POSITION, fence, Some(7), 1, vec![row(1, 10)]);
    refused.outbox.clone_from(&outbox);
    assert_eq!(store.apply(&refused).await, Err(StoreError::Conflict));
    assert_eq!(states(&store, A).await, [(1, OutboxState::Queued)], "a refused write settles nothing");
    let mut first = write(POSITION, fence, None, 1, vec![row(1, 10)]);
    first.outbox = outbox;
    store.apply(&first).await.expect("a write commits");
    let again = database.open().await;
    assert_eq!(again.load(POSITION).await, Ok(Some(position(1, 1))));
    assert_eq!(states(&again, A).await, [(1, durable(0))], "position, rows and appends move together");
    assert!(entries(&again, A).await[0].request.payload.is_empty(), "what is durable is not kept here");
}

async fn as_much_waits_as_fits(database: &impl Database) {
    let store = database.open().await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    let largest = request(1, bound::MAX_INLINE_MESSAGE_BYTES);
    let mut numbers = Vec::new();
    let full = loop {
        match store.enqueue(A, &largest).await {
            Ok(number) => numbers.push(number),
            Err(error) => break error,
        }
    };
    assert_eq!(full, StoreError::OutboxFull, "a queue ends at its bound");
    let taken = numbers.len().saturating_mul(bound::MAX_INLINE_MESSAGE_BYTES);
    assert!(u64::try_from(taken).is_ok_and(|taken| taken <= MAX_OPEN_BYTES), "bytes are bounded");
    let ends = numbers.iter().map(|number| to(*number, durable(*number)));
    store.settle(&settlement(A, fence, ends.collect())).await.expect("an owner settles");
    for _ in 0..MAX_OPEN_ENTRIES {
        store.enqueue(A, &request(2, 1)).await.expect("what has ended takes no room");
    }
    assert_eq!(store.enqueue(A, &request(2, 1)).await, Err(StoreError::OutboxFull), "entries are bounded");
}
