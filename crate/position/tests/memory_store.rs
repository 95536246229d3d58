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

#[test]
fn passes_the_suite_of_feeds() {
    assert_eq!(now(feed_suite::run(|_| SharedTopics(Rc::default()))), feed_suite::CASES);
}
