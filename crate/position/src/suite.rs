//! The conformance suite of [`Store`]: what every store passes, in memory, in a page and in a worker.
//!
//! Each case gets a database of its own, opens it as often as it likes, and panics with a sentence where the store breaks
//! its promise.

mod outbox;

use alloc::vec;
use alloc::vec::Vec;

use remuda_wire::codec::Canonical;
use remuda_wire::Bytes32;

use crate::boundary::{Anchor, CheckpointEnd, FastPosition, GroupPosition, PositionKey, StoredPosition};
use crate::item::RowBytes;
use crate::store::{Fence, Store, StoreError, WriteSet};

/// One database that a case can open again: what was committed before is there after.
#[allow(async_fn_in_trait, reason = "a page has one thread: its futures are never sent to another")]
pub trait Database {
    /// The store under test.
    type Store: Store;

    /// Opens the database; a second opening sees the same data as the first.
    async fn open(&self) -> Self::Store;
}

/// The names of the cases, in order: a runner that executed fewer did not run the suite.
pub const CASES: usize = 9 + outbox::CASES;

/// Runs every case, each on a fresh database from `fresh(case)`; returns how many ran.
pub async fn run<D: Database>(fresh: impl Fn(&str) -> D) -> usize {
    empty_store_holds_nothing(&fresh("empty")).await;
    committed_is_there_after_reopening(&fresh("reopen")).await;
    stale_revision_writes_nothing(&fresh("revision")).await;
    stale_fence_writes_nothing(&fresh("fence")).await;
    fences_only_rise(&fresh("rise")).await;
    rows_are_read_from_any_item(&fresh("rows")).await;
    positions_do_not_mix(&fresh("keys")).await;
    a_position_of_a_group_needs_no_rows(&fresh("groups")).await;
    large_and_many_rows_are_one_transaction(&fresh("large")).await;
    outbox::run(&fresh).await;
    CASES
}

const A: PositionKey = PositionKey(Bytes32([0xaa; 32]));
const B: PositionKey = PositionKey(Bytes32([0xab; 32]));

fn position(revision: u64, last_item: u64) -> StoredPosition {
    StoredPosition::Fast(FastPosition {
        revision,
        anchor: Anchor::Provider,
        checkpoint: Some(CheckpointEnd { broker_epoch: 3, last_sequence: u64::MAX, digest: Bytes32([7; 32]) }),
        adopted: None,
        last_item,
    })
}

fn row(first_item: u64, bytes: usize) -> RowBytes {
    let mark = u8::try_from(first_item % 251).unwrap_or(0);
    RowBytes { first_item, bytes: vec![mark; bytes] }
}

fn write(key: PositionKey, fence: Fence, expected: Option<u64>, last_item: u64, rows: Vec<RowBytes>) -> WriteSet {
    let revision = expected.map_or(1, |revision| revision + 1);
    WriteSet { key, expected, fence, position: position(revision, last_item).to_bytes(), rows, outbox: None }
}

async fn first_bytes(store: &impl Store, key: PositionKey, after_item: u64, max_bytes: usize) -> Vec<(u8, usize)> {
    let rows = store.rows_after(key, after_item, max_bytes).await.expect("rows are readable");
    rows.iter().map(|row| (row[0], row.len())).collect()
}

async fn empty_store_holds_nothing(database: &impl Database) {
    let store = database.open().await;
    assert_eq!(store.load(A).await, Ok(None), "an empty store has no position");
    assert_eq!(store.rows_after(A, 0, 1 << 20).await, Ok(vec![]), "an empty store has no rows");
}

async fn committed_is_there_after_reopening(database: &impl Database) {
    let store = database.open().await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    store.apply(&write(A, fence, None, 2, vec![row(1, 10), row(2, 20)])).await.expect("the first write commits");
    store.apply(&write(A, fence, Some(1), 3, vec![row(3, 30)])).await.expect("the second write commits");
    let again = database.open().await;
    assert_eq!(again.load(A).await, Ok(Some(position(2, 3))), "a committed position survives reopening");
    assert_eq!(
        first_bytes(&again, A, 0, 1 << 20).await,
        [(1, 10), (2, 20), (3, 30)],
        "committed rows survive reopening"
    );
}

async fn stale_revision_writes_nothing(database: &impl Database) {
    let store = database.open().await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    store.apply(&write(A, fence, None, 1, vec![row(1, 10)])).await.expect("the first write commits");
    for expected in [None, Some(2)] {
        let stale = store.apply(&write(A, fence, expected, 9, vec![row(2, 10)])).await;
        assert_eq!(stale, Err(StoreError::Conflict), "a position moves only from the revision that it has");
    }
    assert_eq!(store.load(A).await, Ok(Some(position(1, 1))), "a refused write moves no position");
    assert_eq!(first_bytes(&store, A, 0, 1 << 20).await, [(1, 10)], "a refused write leaves no row");
}

async fn stale_fence_writes_nothing(database: &impl Database) {
    let (first, second) = (database.open().await, database.open().await);
    let old = first.take_fence().await.expect("ownership can be taken");
    first.apply(&write(A, old, None, 1, vec![row(1, 10)])).await.expect("an owner writes");
    let new = second.take_fence().await.expect("ownership can be taken over");
    let fenced = first.apply(&write(A, old, Some(1), 2, vec![row(2, 10)])).await;
    assert_eq!(fenced, Err(StoreError::Fenced), "a former owner writes nothing");
    assert_eq!(first_bytes(&second, A, 0, 1 << 20).await, [(1, 10)], "a fenced write leaves no row");
    second.apply(&write(A, new, Some(1), 2, vec![row(2, 10)])).await.expect("the new owner writes");
}

async fn fences_only_rise(database: &impl Database) {
    let store = database.open().await;
    let mut last = Fence(0);
    for _ in 0..4 {
        let next = database.open().await.take_fence().await.expect("ownership can be taken");
        assert!(next > last, "every owner has a higher generation");
        last = next;
    }
    assert_eq!(store.take_fence().await, Ok(Fence(last.0 + 1)), "generations are shared by all connections");
}

async fn rows_are_read_from_any_item(database: &impl Database) {
    let store = database.open().await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    // Three rows: items 1 to 4, 5 to 9, and 10.
    let rows = vec![row(1, 100), row(5, 100), row(10, 100)];
    store.apply(&write(A, fence, None, 10, rows)).await.expect("a write commits");
    assert_eq!(first_bytes(&store, A, 0, 1 << 20).await, [(1, 100), (5, 100), (10, 100)]);
    assert_eq!(
        first_bytes(&store, A, 3, 1 << 20).await,
        [(1, 100), (5, 100), (10, 100)],
        "item 4 is inside the first row"
    );
    assert_eq!(first_bytes(&store, A, 4, 1 << 20).await, [(5, 100), (10, 100)]);
    assert_eq!(first_bytes(&store, A, 9, 1 << 20).await, [(10, 100)]);
    assert_eq!(first_bytes(&store, A, 0, 250).await, [(1, 100), (5, 100)], "a read is bounded by bytes");
    assert_eq!(first_bytes(&store, A, 0, 1).await, [(1, 100)], "one row is always read, whatever the bound");
}

async fn positions_do_not_mix(database: &impl Database) {
    let store = database.open().await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    store.apply(&write(A, fence, None, 1, vec![row(1, 10)])).await.expect("a write commits");
    store.apply(&write(B, fence, None, 1, vec![row(1, 11)])).await.expect("another position starts on its own");
    assert_eq!(first_bytes(&store, A, 0, 1 << 20).await, [(1, 10)]);
    assert_eq!(first_bytes(&store, B, 0, 1 << 20).await, [(1, 11)]);
}

async fn a_position_of_a_group_needs_no_rows(database: &impl Database) {
    let store = database.open().await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    let position = |revision, mark| {
        let receipt = Bytes32([mark; 32]);
        StoredPosition::Group(GroupPosition { revision, anchor: Anchor::Genesis, receipt })
    };
    for (expected, revision) in [(None, 1), (Some(1), 2)] {
        let bytes = position(revision, 7).to_bytes();
        let write = WriteSet { key: A, expected, fence, position: bytes, rows: vec![], outbox: None };
        store.apply(&write).await.expect("a position moves without rows");
    }
    let bytes = position(2, 8).to_bytes();
    let stale = WriteSet { key: A, expected: Some(1), fence, position: bytes, rows: vec![], outbox: None };
    assert_eq!(store.apply(&stale).await, Err(StoreError::Conflict), "a stale revision writes nothing");
    let again = database.open().await;
    assert_eq!(again.load(A).await, Ok(Some(position(2, 7))), "a position of a group survives reopening");
    assert_eq!(again.rows_after(A, 0, 1 << 20).await, Ok(vec![]), "it has no rows");
}

async fn large_and_many_rows_are_one_transaction(database: &impl Database) {
    let store = database.open().await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    let many: Vec<_> = (1..=300).map(|first_item| row(first_item, 1_000)).chain([row(301, 1 << 20)]).collect();
    store.apply(&write(A, fence, None, 301, many)).await.expect("a large write commits");
    let again = database.open().await;
    let read = first_bytes(&again, A, 0, 4 << 20).await;
    assert_eq!(read.len(), 301, "every row of the transaction is there");
    assert_eq!(read.last().map(|(_, length)| *length), Some(1 << 20), "a large row is whole");
    assert_eq!(again.load(A).await, Ok(Some(position(1, 301))));
}
