//! The conformance suite of sources over a store: what every store keeps for them, in memory, in a page and in a worker.

use alloc::vec;
use alloc::vec::Vec;

use remuda_wire::Bytes32;

use super::{items_after, standing, Ledger, SourceKey, Standing};
use crate::store::StoreError;
use crate::topic::suite::TopicDatabase;

/// How many cases there are: a runner that executed fewer did not run the suite.
pub const CASES: usize = 4;

const A: SourceKey = SourceKey(Bytes32([0xaa; 32]));
const B: SourceKey = SourceKey(Bytes32([0xab; 32]));

/// Runs every case, each on a fresh database from `fresh(case)`; returns how many ran.
pub async fn run<D: TopicDatabase>(fresh: impl Fn(&str) -> D) -> usize {
    a_cursor_moves_with_its_items(&fresh("feed-moves")).await;
    of_two_writers_one_is_refused(&fresh("feed-writers")).await;
    sources_do_not_mix(&fresh("feed-sources")).await;
    a_page_of_a_feed_is_one_transaction(&fresh("feed-page")).await;
    CASES
}

async fn ledger<D: TopicDatabase>(database: &D, source: SourceKey) -> Ledger<D::Store> {
    Ledger::open(database.open().await, source).await.expect("a source opens")
}

async fn a_cursor_moves_with_its_items(database: &impl TopicDatabase) {
    let mut writer = ledger(database, A).await;
    assert_eq!((writer.cursor(), writer.last_item()), (None, 0), "a source that was never written stands nowhere");
    assert_eq!(writer.advance(vec![vec![1], vec![2; 9]], b"two").await, Ok(2), "items are numbered from 1");
    assert_eq!(writer.advance(vec![], b"still two").await, Ok(2), "a cursor may move without items");
    assert_eq!(writer.advance(vec![vec![3]], b"three").await, Ok(3));
    let again = ledger(database, A).await;
    assert_eq!((again.cursor(), again.last_item()), (Some(b"three".as_slice()), 3), "the end survives reopening");
    let store = database.open().await;
    let expected = Standing { last_item: 3, cursor: Some(b"three".to_vec()) };
    assert_eq!(standing(&store, A).await, Ok(expected), "readers see what the writer holds");
    assert_eq!(items_after(&store, A, 0, 1 << 20).await, Ok(vec![(1, vec![1]), (2, vec![2; 9]), (3, vec![3])]));
    assert_eq!(items_after(&store, A, 1, 5).await, Ok(vec![(2, vec![2; 9])]), "one item is always read");
    assert_eq!(items_after(&store, A, 3, 1 << 20).await, Ok(vec![]));
    assert_eq!(items_after(&store, A, u64::MAX, 1 << 20).await, Ok(vec![]));
}

async fn of_two_writers_one_is_refused(database: &impl TopicDatabase) {
    let (mut one, mut two) = (ledger(database, A).await, ledger(database, A).await);
    assert_eq!(one.advance(vec![vec![1]], b"one").await, Ok(1));
    assert_eq!(two.advance(vec![vec![2]], b"two").await, Err(StoreError::Conflict), "the first one was faster");
    assert_eq!((two.cursor(), two.last_item()), (None, 0), "who was refused stands where it stood");
    let store = database.open().await;
    assert_eq!(items_after(&store, A, 0, 1 << 20).await, Ok(vec![(1, vec![1])]), "a refused write leaves no item");
    let mut two = ledger(database, A).await;
    assert_eq!(two.advance(vec![vec![2]], b"two").await, Ok(2), "from what is there it goes on");
}

async fn sources_do_not_mix(database: &impl TopicDatabase) {
    let (mut a, mut b) = (ledger(database, A).await, ledger(database, B).await);
    assert_eq!(a.advance(vec![vec![1]], b"a").await, Ok(1));
    assert_eq!(b.advance(vec![vec![2], vec![3]], b"b").await, Ok(2));
    let store = database.open().await;
    assert_eq!(items_after(&store, A, 0, 1 << 20).await, Ok(vec![(1, vec![1])]));
    assert_eq!(items_after(&store, B, 1, 1 << 20).await, Ok(vec![(2, vec![3])]));
}

async fn a_page_of_a_feed_is_one_transaction(database: &impl TopicDatabase) {
    let mut writer = ledger(database, A).await;
    let page: Vec<_> = (0..500).map(|_| vec![7; 1_000]).collect();
    assert_eq!(writer.advance(page.clone(), b"500").await, Ok(500), "a full page commits");
    assert_eq!(writer.advance(page, b"1000").await, Ok(1_000));
    let store = database.open().await;
    let mut read = 0;
    while let Some((last, bytes)) = items_after(&store, A, read, 100_000).await.expect("readable").pop() {
        assert_eq!(bytes, [7; 1_000]);
        assert!(last <= read + 100, "a read is bounded by bytes");
        read = last;
    }
    assert_eq!(read, 1_000, "every item is there");
}
