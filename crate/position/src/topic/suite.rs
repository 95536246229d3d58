//! The conformance suite of [`TopicStore`]: what every store passes, in memory, in a page and in a worker.
//!
//! Each case gets a database of its own, opens it as often as it likes, and panics with a sentence where the store breaks
//! its promise.

use alloc::vec;
use alloc::vec::Vec;

use super::key::{Key, KeyRange};
use super::limits::Limit;
use super::store::{Change, TopicStore};
use crate::store::StoreError;

/// One database that a case can open again: what was committed before is there after.
#[allow(async_fn_in_trait, reason = "a page has one thread: its futures are never sent to another")]
pub trait TopicDatabase {
    /// The store under test.
    type Store: TopicStore;

    /// Opens the database; a second opening sees the same data as the first.
    async fn open(&self) -> Self::Store;
}

/// How many cases there are: a runner that executed fewer did not run the suite.
pub const CASES: usize = 6;

/// Runs every case, each on a fresh database from `fresh(case)`; returns how many ran.
pub async fn run<D: TopicDatabase>(fresh: impl Fn(&str) -> D) -> usize {
    empty_store_holds_nothing(&fresh("empty")).await;
    committed_is_there_after_reopening(&fresh("reopen")).await;
    a_row_that_differs_writes_nothing(&fresh("compare")).await;
    ranges_are_ordered_and_bounded(&fresh("ranges")).await;
    removed_is_absent(&fresh("remove")).await;
    many_rows_are_one_transaction(&fresh("large")).await;
    CASES
}

fn key(bytes: &[u8]) -> Key {
    Key::from_bytes(bytes.to_vec())
}

fn all() -> KeyRange {
    KeyRange { first: key(&[]), last: key(&[0xff; 40]), limit: Limit { rows: usize::MAX, bytes: usize::MAX } }
}

fn puts(rows: &[(&[u8], u8, usize)]) -> Vec<(Key, Option<Vec<u8>>)> {
    rows.iter().map(|(name, mark, length)| (key(name), Some(vec![*mark; *length]))).collect()
}

async fn names(store: &impl TopicStore, range: KeyRange) -> Vec<Vec<u8>> {
    let mut answers = store.read(&[range]).await.expect("rows are readable");
    assert_eq!(answers.len(), 1, "one answer for one range");
    answers.remove(0).into_iter().map(|(key, _)| key.as_bytes().to_vec()).collect()
}

async fn empty_store_holds_nothing(database: &impl TopicDatabase) {
    let store = database.open().await;
    assert_eq!(store.read(&[all(), all()]).await, Ok(vec![vec![], vec![]]), "an empty store has no rows");
    assert_eq!(store.read(&[]).await, Ok(vec![]), "no range has no answer");
    store.commit(&Change::default()).await.expect("an empty change is one");
}

async fn committed_is_there_after_reopening(database: &impl TopicDatabase) {
    let store = database.open().await;
    let writes = puts(&[(&[1], 1, 10), (&[2], 2, 0)]);
    store.commit(&Change { expected: vec![(key(&[1]), None)], writes }).await.expect("the first write commits");
    let again = database.open().await;
    let rows = again.read(&[all()]).await.expect("rows are readable").concat();
    assert_eq!(
        rows,
        [(key(&[1]), vec![1; 10]), (key(&[2]), vec![])],
        "what was committed survives reopening, bytes and all"
    );
    let expected = vec![(key(&[1]), Some(vec![1; 10])), (key(&[2]), Some(vec![]))];
    again.commit(&Change { expected, writes: puts(&[(&[1], 3, 1)]) }).await.expect("what was read is what is compared");
}

async fn a_row_that_differs_writes_nothing(database: &impl TopicDatabase) {
    let (store, other) = (database.open().await, database.open().await);
    store.commit(&Change { expected: vec![], writes: puts(&[(&[1], 1, 4)]) }).await.expect("a write commits");
    for expected in [None, Some(vec![1; 3]), Some(vec![2; 4]), Some(vec![])] {
        let stale = Change { expected: vec![(key(&[1]), expected)], writes: puts(&[(&[1], 9, 1), (&[2], 9, 1)]) };
        assert_eq!(
            other.commit(&stale).await,
            Err(StoreError::Conflict),
            "a change is of the rows that it was planned from"
        );
    }
    let absent = Change { expected: vec![(key(&[7]), Some(vec![]))], writes: puts(&[(&[2], 9, 1)]) };
    assert_eq!(other.commit(&absent).await, Err(StoreError::Conflict), "an empty row is not an absent one");
    assert_eq!(names(&store, all()).await, [[1]], "a refused change leaves no row");
}

async fn ranges_are_ordered_and_bounded(database: &impl TopicDatabase) {
    let store = database.open().await;
    let rows = puts(&[(&[2, 0xff], 1, 100), (&[2], 1, 100), (&[2, 0], 1, 100), (&[1, 9], 1, 100), (&[3], 1, 100)]);
    store.commit(&Change { expected: vec![], writes: rows }).await.expect("a write commits");
    let range = |first: &[u8], last: &[u8], rows, bytes| KeyRange {
        first: key(first),
        last: key(last),
        limit: Limit { rows, bytes },
    };
    let ascending: [&[u8]; 5] = [&[1, 9], &[2], &[2, 0], &[2, 0xff], &[3]];
    assert_eq!(names(&store, all()).await, ascending, "byte by byte, a shorter key first");
    assert_eq!(names(&store, range(&[2], &[2, 0xff], 9, 9_999)).await, ascending[1..4], "both ends are included");
    assert_eq!(names(&store, range(&[2], &[3], 2, 9_999)).await, ascending[1..3], "a read is bounded by rows");
    assert_eq!(names(&store, range(&[2], &[3], 9, 250)).await, ascending[1..3], "a read is bounded by bytes");
    assert_eq!(names(&store, range(&[2], &[3], 9, 1)).await, ascending[1..2], "one row is always read");
    assert!(names(&store, range(&[3], &[2], 9, 9_999)).await.is_empty(), "a range that ends before it begins is empty");
    let two = store.read(&[range(&[3], &[3], 9, 9_999), range(&[1], &[1, 9], 9, 9_999)]).await;
    let two: Vec<_> = two.expect("rows are readable").into_iter().map(|rows| rows.len()).collect();
    assert_eq!(two, [1, 1], "answers are in the order of their ranges");
}

async fn removed_is_absent(database: &impl TopicDatabase) {
    let store = database.open().await;
    let writes = puts(&[(&[1], 1, 4), (&[2], 1, 4)]);
    store.commit(&Change { expected: vec![], writes }).await.expect("a write commits");
    let writes = vec![(key(&[1]), None), (key(&[5]), None)];
    store.commit(&Change { expected: vec![], writes }).await.expect("what is absent can be removed");
    assert_eq!(names(&database.open().await, all()).await, [[2]], "what was removed is gone");
    store.commit(&Change { expected: vec![(key(&[1]), None)], writes: vec![] }).await.expect("and is absent");
}

async fn many_rows_are_one_transaction(database: &impl TopicDatabase) {
    let store = database.open().await;
    let many = (0..300u16).map(|number| (key(&number.to_be_bytes()), Some(vec![1; 1_000])));
    let writes: Vec<_> = many.chain([(key(&[9, 9]), Some(vec![7; 1 << 20]))]).collect();
    store.commit(&Change { expected: vec![], writes }).await.expect("a large change commits");
    let rows = database.open().await.read(&[all()]).await.expect("rows are readable").concat();
    assert_eq!(rows.len(), 301, "every row of the transaction is there");
    assert_eq!(rows.last().map(|(_, value)| value.len()), Some(1 << 20), "a large row is whole");
}
