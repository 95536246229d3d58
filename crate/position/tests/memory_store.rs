//! The memory stores pass the suites of every store.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use remuda_position::feed::suite as feed_suite;
use remuda_position::memory::MemoryStore;
use remuda_position::suite::{self, Database};
use remuda_position::topic::memory::MemoryTopicStore;
use remuda_position::topic::suite::{self as topic_suite, TopicDatabase};
use remuda_position::{
    Anchor, Boundary, CheckpointEnd, FastPosition, PositionKey, RowBytes, Store, StoredPosition, WriteSet,
};
use remuda_wire::codec::VersionOne;
use remuda_wire::context::SigningContext;
use remuda_wire::request::VerificationMode;
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes32, Canonical};

/// The memory store never waits: one poll is the whole future.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory has nothing to wait for"),
    }
}

struct Shared(Rc<MemoryStore>);

impl Database for Shared {
    type Store = Rc<MemoryStore>;

    async fn open(&self) -> Self::Store {
        Rc::clone(&self.0)
    }
}

#[test]
fn passes_the_store_suite() {
    assert_eq!(now(suite::run(|_| Shared(Rc::default()))), suite::CASES);
}

struct SharedTopics(Rc<MemoryTopicStore>);

impl TopicDatabase for SharedTopics {
    type Store = Rc<MemoryTopicStore>;

    async fn open(&self) -> Self::Store {
        Rc::clone(&self.0)
    }
}

#[test]
fn passes_the_suite_of_topics() {
    assert_eq!(now(topic_suite::run(|_| SharedTopics(Rc::default()))), topic_suite::CASES);
}

/// After a re-genesis the chain id, the stream id and the scope may all be what they were.
#[test]
fn rows_of_another_chain_instance_are_never_resumed_from() {
    let chain =
        |instance| SigningContext { version: VersionOne, chain_id: 7, chain_instance_id: Bytes32([instance; 32]) };
    let stream_id = Bytes32([1; 32]);
    let (mode, scope) = (VerificationMode::ScopedProofs, LaneScope::Exact(Bytes32([2; 32])));
    let derived = |instance| {
        let context = chain(instance);
        let fast = PositionKey::derive(&context, &stream_id, mode, &scope);
        let group = PositionKey::derive_group(&context, &stream_id, &Bytes32([2; 32]), &Bytes32([5; 32]));
        [fast, PositionKey::derive_standard(&context, &stream_id, &scope), group]
    };
    let store = MemoryStore::default();
    let fence = now(store.take_fence()).expect("ownership");
    let checkpoint = Some(CheckpointEnd { broker_epoch: 0, last_sequence: 9, digest: Bytes32([3; 32]) });
    let stored = StoredPosition::Fast(FastPosition {
        revision: 1,
        anchor: Anchor::Genesis,
        checkpoint,
        adopted: None,
        last_item: 1,
    });
    for key in derived(1) {
        let rows = vec![RowBytes { first_item: 1, bytes: vec![4; 10] }];
        let write = WriteSet { key, expected: None, fence, position: stored.to_bytes(), rows, outbox: None };
        now(store.apply(&write)).expect("a commit");
    }
    for (foreign, ours) in derived(1).into_iter().zip(derived(2)) {
        assert_eq!(now(store.load(ours)), Ok(None), "nothing to resume from");
        assert_eq!(now(store.rows_after(ours, 0, usize::MAX)), Ok(vec![]));
        assert_eq!(Boundary::empty(ours).cursor(), None, "it begins anew");
        assert_eq!(now(store.load(foreign)), Ok(Some(stored.clone())), "history is kept under its own name");
    }
}

#[test]
fn passes_the_suite_of_feeds() {
    assert_eq!(now(feed_suite::run(|_| SharedTopics(Rc::default()))), feed_suite::CASES);
}
