//! The store in IndexedDB: the suite of every store, and what only a real database can do to one.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use js_sys::{Array, Function, Object, Promise, Reflect};
use remuda_position::feed::{items_after, standing, suite as feed_suite, Ledger, SourceKey};
use remuda_position::outbox::{OutboxChange, OutboxChanges, OutboxKey, OutboxState, OutboxWrite};
use remuda_position::suite::{self, Database};
use remuda_position::topic::suite::{self as topic_suite, TopicDatabase};
use remuda_position::{
    Anchor, CheckpointEnd, FastPosition, Fence, PositionKey, RowBytes, Store, StoreError, StoredPosition, WriteSet,
};
use remuda_web::IdbStore;
use remuda_wire::codec::Canonical;
use remuda_wire::request::AppendRequest;
use remuda_wire::{Bytes, Bytes24, Bytes32};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::harness::{both, dom_exception, in_time, Spy, Started};

const KEY: PositionKey = PositionKey(Bytes32([0x5a; 32]));

/// A database of its own for one case: a name that no earlier run of the browser has used.
pub struct Fresh(String);

impl Fresh {
    /// A database for the case `case`.
    pub fn new(case: &str) -> Self {
        Self(format!("remuda-test-{case}-{}-{}", js_sys::Date::now(), js_sys::Math::random()))
    }
}

impl Database for Fresh {
    type Store = IdbStore;

    async fn open(&self) -> IdbStore {
        IdbStore::open(&self.0).await.expect("a database opens")
    }
}

/// Runs the suite of every store.
pub async fn passes_the_suite() {
    assert_eq!(suite::run(Fresh::new).await, suite::CASES);
}

impl TopicDatabase for Fresh {
    type Store = IdbStore;

    async fn open(&self) -> IdbStore {
        Database::open(self).await
    }
}

/// Runs the suite of every store of ordered rows.
pub async fn passes_the_suite_of_topics() {
    assert_eq!(topic_suite::run(Fresh::new).await, topic_suite::CASES);
}

/// Runs the suite of every store of feeds.
pub async fn passes_the_suite_of_feeds() {
    assert_eq!(feed_suite::run(Fresh::new).await, feed_suite::CASES);
}

/// An ordered row and a position of one database do not know of each other, and a step that is refused leaves both.
pub async fn ordered_rows_are_beside_the_streams() {
    let (fresh, store, fence) = owned("beside").await;
    let source = SourceKey(Bytes32([0x5a; 32]));
    let mut ledger = Ledger::open(Rc::new(Database::open(&fresh).await), source).await.expect("a source opens");
    assert_eq!(ledger.advance(vec![vec![1; 100]], b"one").await, Ok(1));
    let mut puts = 0;
    let spy = Spy::on_class("IDBObjectStore", "put", move |original, this, arguments| {
        puts += 1;
        // The cursor: its items were put before.
        if puts == 3 {
            Err(dom_exception("QuotaExceededError"))
        } else {
            original.apply(this, arguments)
        }
    });
    assert_eq!(ledger.advance(vec![vec![2; 9], vec![3; 9]], b"three").await, Err(StoreError::Quota));
    drop(spy);
    let standing = standing(&store, source).await.expect("readable");
    assert_eq!((standing.last_item, standing.cursor.as_deref()), (1, Some(b"one".as_slice())), "the cursor stayed");
    assert_eq!(items_after(&store, source, 1, 1 << 20).await, Ok(vec![]), "and its items with it");
    store.apply(&write(fence, Some(1), 3)).await.expect("the stream goes on");
    assert_eq!(ledger.advance(vec![vec![2; 9]], b"two").await, Ok(2), "and so does the source");
    assert_eq!((revision(&store).await, rows(&store).await), (Some(2), 4));
}

/// A database of the first version keeps what it has, and gains what it lacks.
pub async fn an_older_version_is_upgraded() {
    let fresh = Fresh::new("upgraded");
    let make = Function::new_with_args(
        "name",
        "return new Promise((resolve, reject) => { const request = indexedDB.open(name, 1); \
         request.onupgradeneeded = () => ['meta', 'positions', 'rows'].forEach((store) => request.result.createObjectStore(store)); \
         request.onsuccess = () => { const database = request.result; const writing = database.transaction('meta', 'readwrite'); \
         writing.objectStore('meta').put(new Uint8Array([0, 0, 0, 0, 0, 0, 0, 6]), 'fence'); \
         writing.oncomplete = () => { database.close(); resolve(); }; }; request.onerror = () => reject(request.error); })",
    );
    let made: Promise = make.call1(&JsValue::UNDEFINED, &fresh.0.as_str().into()).expect("a promise").unchecked_into();
    JsFuture::from(made).await.expect("a database of the first version");
    let store = Database::open(&fresh).await;
    assert_eq!(store.take_fence().await, Ok(Fence(7)), "what was there is there");
    let mut ledger = Ledger::open(Rc::new(store), SourceKey(KEY.0)).await.expect("a source opens");
    assert_eq!(ledger.advance(vec![vec![1]], b"one").await, Ok(1), "what was not there is");
}

fn write(fence: Fence, expected: Option<u64>, item: u64) -> WriteSet {
    let position = StoredPosition::Fast(FastPosition {
        revision: expected.map_or(1, |revision| revision + 1),
        anchor: Anchor::Provider,
        checkpoint: Some(CheckpointEnd { broker_epoch: 1, last_sequence: item, digest: Bytes32([1; 32]) }),
        adopted: None,
        last_item: item,
    });
    let rows = vec![
        RowBytes { first_item: item, bytes: vec![7; 100] },
        RowBytes { first_item: item + 1, bytes: vec![8; 100] },
    ];
    WriteSet { key: KEY, expected, fence, position: position.to_bytes(), rows, outbox: None }
}

async fn revision(store: &IdbStore) -> Option<u64> {
    store.load(KEY).await.expect("a position is readable").map(|position| position.revision())
}

async fn rows(store: &IdbStore) -> usize {
    store.rows_after(KEY, 0, 1 << 20).await.expect("rows are readable").len()
}

async fn owned(case: &str) -> (Fresh, IdbStore, Fence) {
    let fresh = Fresh::new(case);
    let store = Database::open(&fresh).await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    store.apply(&write(fence, None, 1)).await.expect("the first write commits");
    (fresh, store, fence)
}

/// A put that throws in the middle of a transaction leaves nothing of it: neither the rows before it nor the position.
pub async fn a_put_that_throws_leaves_nothing() {
    let (fresh, store, fence) = owned("throws").await;
    for (name, expected) in [
        ("QuotaExceededError", StoreError::Quota),
        ("DataCloneError", StoreError::Aborted),
        ("TransactionInactiveError", StoreError::Aborted),
    ] {
        let mut puts = 0;
        let spy = Spy::on_class("IDBObjectStore", "put", move |original, this, arguments| {
            puts += 1;
            // The second row: one was put before, one position would follow.
            if puts == 2 {
                Err(dom_exception(name))
            } else {
                original.apply(this, arguments)
            }
        });
        assert_eq!(store.apply(&write(fence, Some(1), 3)).await, Err(expected), "{name} has its meaning");
        drop(spy);
    }
    let again = Database::open(&fresh).await;
    assert_eq!(
        (revision(&again).await, rows(&again).await),
        (Some(1), 2),
        "nothing of the aborted transactions is there"
    );
    store.apply(&write(fence, Some(1), 3)).await.expect("the store works on");
    assert_eq!((revision(&again).await, rows(&again).await), (Some(2), 4));
}

/// A transaction that aborts after every put was accepted resolves as an error: `complete` alone is success.
pub async fn an_abort_after_the_last_put_is_an_error() {
    let (fresh, store, fence) = owned("abort").await;
    let mut puts = 0;
    let spy = Spy::on_class("IDBObjectStore", "put", move |original, this, arguments| {
        let request = original.apply(this, arguments)?;
        puts += 1;
        if puts == 3 {
            let transaction = Reflect::get(this, &"transaction".into())?;
            let abort: Function = Reflect::get(&transaction, &"abort".into())?.dyn_into()?;
            abort.call0(&transaction)?;
        }
        Ok(request)
    });
    assert_eq!(store.apply(&write(fence, Some(1), 3)).await, Err(StoreError::Aborted));
    drop(spy);
    let again = Database::open(&fresh).await;
    assert_eq!(
        (revision(&again).await, rows(&again).await),
        (Some(1), 2),
        "nothing of the aborted transaction is there"
    );
}

/// A request that fails by itself aborts the transaction with its own error as the cause, which is read and kept.
pub async fn a_failed_request_names_the_cause() {
    let (fresh, store, fence) = owned("cause").await;
    // `add` where a row exists fails after the fact, with ConstraintError, as a full disk would with its own error.
    let spy = Spy::on_class("IDBObjectStore", "put", move |original, this, arguments| {
        let add: Function = Reflect::get(this, &"add".into())?.dyn_into()?;
        let _ = original;
        add.apply(this, arguments)
    });
    assert_eq!(store.apply(&write(fence, Some(1), 1)).await, Err(StoreError::Aborted));
    drop(spy);
    let mut spied = 0;
    // The transaction's own error, as a full disk sets it when committing.
    let spy = Spy::on_class("IDBObjectStore", "put", move |original, this, arguments| {
        spied += 1;
        if spied == 1 {
            let transaction = Reflect::get(this, &"transaction".into())?;
            let property = Object::new();
            Reflect::set(&property, &"value".into(), &dom_exception("QuotaExceededError"))?;
            Object::define_property(transaction.unchecked_ref::<Object>(), &"error".into(), &property);
        }
        let add: Function = Reflect::get(this, &"add".into())?.dyn_into()?;
        let _ = original;
        add.apply(this, arguments)
    });
    assert_eq!(store.apply(&write(fence, Some(1), 1)).await, Err(StoreError::Quota));
    drop(spy);
    let again = Database::open(&fresh).await;
    assert_eq!((revision(&again).await, rows(&again).await), (Some(1), 2));
}

/// A write that is given up half-way is either whole or absent, and leaves the store usable.
pub async fn a_dropped_write_is_whole_or_absent() {
    let (_fresh, store, fence) = owned("dropped").await;
    let set = write(fence, Some(1), 3);
    {
        let mut pending = pin!(store.apply(&set));
        let waker = Waker::noop();
        let polled = pending.as_mut().poll(&mut Context::from_waker(waker));
        assert!(polled.is_pending(), "a transaction takes time");
    }
    assert_eq!((revision(&store).await, rows(&store).await), (Some(1), 2), "before its puts nothing is written");
    store.apply(&set).await.expect("the store works on");
}

/// Another connection that deletes the database is not held up, and the store says what happened.
pub async fn deletion_by_another_evicts() {
    let (fresh, store, fence) = owned("deleted").await;
    let name = fresh.0.clone();
    let deleted = in_time(async move { IdbStore::delete(&name).await }).await;
    assert_eq!(deleted, Some(Ok(())), "an open connection gives way");
    assert!(store.is_evicted());
    let store = Rc::new(store);
    let (reader, writer, owner, scanner) = (Rc::clone(&store), Rc::clone(&store), Rc::clone(&store), store);
    assert_eq!(in_time(async move { reader.load(KEY).await }).await, Some(Err(StoreError::Evicted)));
    assert_eq!(
        in_time(async move { writer.apply(&write(fence, Some(1), 3)).await }).await,
        Some(Err(StoreError::Evicted))
    );
    assert_eq!(in_time(async move { owner.take_fence().await }).await, Some(Err(StoreError::Evicted)));
    assert_eq!(in_time(async move { scanner.rows_after(KEY, 0, 1).await }).await, Some(Err(StoreError::Evicted)));
    assert_eq!(Database::open(&fresh).await.load(KEY).await, Ok(None), "opened anew it is empty, and says so");
}

/// What was asked for before the deletion is still committed, or refused: never half of it.
pub async fn deletion_during_a_write_never_hangs() {
    let (fresh, store, fence) = owned("deleting").await;
    let name = fresh.0.clone();
    let deletion = Started::new(async move { IdbStore::delete(&name).await });
    let mut expected = Some(1);
    let outcome = in_time(async move {
        loop {
            match store.apply(&write(fence, expected, 3)).await {
                Ok(()) => expected = expected.map(|revision| revision + 1),
                Err(fault) => break fault,
            }
        }
    });
    assert_eq!(outcome.await, Some(StoreError::Evicted));
    assert_eq!(deletion.end().await, Some(Ok(())), "the deletion goes through once the write has ended");
}

/// Of two owners only the last may write, whoever asks first.
pub async fn two_owners_race_for_the_fence() {
    let fresh = Fresh::new("owners");
    let (a, b) = (Database::open(&fresh).await, Database::open(&fresh).await);
    let (first, second) = both(a.take_fence(), b.take_fence()).await;
    let (first, second) = (first.expect("ownership can be taken"), second.expect("ownership can be taken"));
    assert_ne!(first, second, "no two owners share a generation");
    let (one, two) = both_sets(&a, write(first, None, 1), &b, write(second, None, 1)).await;
    let (winner, loser) = if first > second { (one, two) } else { (two, one) };
    assert_eq!((winner, loser), (Ok(()), Err(StoreError::Fenced)));
}

/// Two connections with the same fence race for twenty revisions: each is won once.
pub async fn two_connections_race_for_each_revision() {
    let fresh = Fresh::new("commits");
    let (a, b) = (Database::open(&fresh).await, Database::open(&fresh).await);
    let fence = a.take_fence().await.expect("ownership can be taken");
    let mut expected = None;
    for step in 0..20 {
        let item = 1 + 2 * step;
        let outcomes = both_sets(&a, write(fence, expected, item), &b, write(fence, expected, item)).await;
        let won_once = matches!(outcomes, (Ok(()), Err(StoreError::Conflict)) | (Err(StoreError::Conflict), Ok(())));
        assert!(won_once, "revision after {expected:?}: {outcomes:?}");
        expected = Some(step + 1);
    }
    assert_eq!((revision(&b).await, rows(&b).await), (Some(20), 40), "and its rows are there once");
}

/// Every writing transaction asks for strict durability; reading ones ask for nothing.
pub async fn durability_is_strict() {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&asked);
    let spy = Spy::on_class("IDBDatabase", "transaction", move |original, this, arguments| {
        let durability = Reflect::get(&arguments.get(2), &"durability".into()).ok().and_then(|value| value.as_string());
        let transaction = original.apply(this, arguments)?;
        let granted = Reflect::get(&transaction, &"durability".into())?.as_string();
        seen.borrow_mut().push((arguments.get(1).as_string(), durability, granted));
        Ok(transaction)
    });
    let (_fresh, store, _) = owned("strict").await;
    assert_eq!((revision(&store).await, rows(&store).await), (Some(1), 2));
    drop(spy);
    let strict = (Some("readwrite".to_owned()), Some("strict".to_owned()), Some("strict".to_owned()));
    let asked = asked.borrow();
    assert_eq!(asked[..2], [strict.clone(), strict], "both writes ask for it, and the browser grants it");
    assert!(asked[2..].iter().all(|(mode, durability, _)| mode.as_deref() == Some("readonly") && durability.is_none()));
    assert_eq!(asked.len(), 4, "every method is one transaction");
}

/// A database of version 1, which had no outbox, is upgraded as it is: what it holds is there, and its owner goes on.
pub async fn an_older_version_is_upgraded_without_loss() {
    let (source, source_store, fence) = owned("older-source").await;
    let fresh = Fresh::new("older");
    // Made as version 1 made it, with the very entries that it wrote: they have not changed since.
    let copy = Function::new_with_args("from, to", COPY_AS_VERSION_ONE);
    let copied = copy.call2(&JsValue::UNDEFINED, &source.0.as_str().into(), &fresh.0.as_str().into());
    let copied: Promise = copied.expect("a copy begins").dyn_into().expect("a promise");
    JsFuture::from(copied).await.expect("a database of version 1");
    drop(source_store);
    let store = Database::open(&fresh).await;
    assert_eq!((revision(&store).await, rows(&store).await), (Some(1), 2), "position and rows are there");
    store.apply(&write(fence, Some(1), 3)).await.expect("the owner of before goes on");
    let key = OutboxKey(KEY.0);
    assert_eq!(store.outbox_after(key, 0, 1 << 20).await, Ok(Vec::new()));
    assert_eq!(store.enqueue(key, &append(7)).await, Ok(1), "and what is new works");
    let again = Database::open(&fresh).await;
    assert_eq!((revision(&again).await, rows(&again).await), (Some(2), 4));
    assert_eq!(again.outbox_after(key, 0, 1 << 20).await.map(|entries| entries.len()), Ok(1));
}

/// Reads every object store of one database, then writes them to another of version 1.
const COPY_AS_VERSION_ONE: &str = "
    const names = ['meta', 'positions', 'rows'];
    const done = (request) => new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    return (async () => {
        const source = await done(indexedDB.open(from));
        const read = source.transaction(names);
        const all = names.flatMap((name) => [done(read.objectStore(name).getAllKeys()), done(read.objectStore(name).getAll())]);
        const entries = await Promise.all(all);
        source.close();
        const request = indexedDB.open(to, 1);
        request.onupgradeneeded = () => names.forEach((name) => request.result.createObjectStore(name));
        const target = await done(request);
        const written = target.transaction(names, 'readwrite');
        names.forEach((name, at) => entries[2 * at].forEach((key, index) => {
            written.objectStore(name).put(entries[2 * at + 1][index], key);
        }));
        await new Promise((resolve, reject) => {
            written.oncomplete = resolve;
            written.onabort = () => reject(written.error);
        });
        target.close();
    })();
";

fn append(mark: u8) -> AppendRequest {
    AppendRequest {
        stream_id: Bytes32([1; 32]),
        lane_id: Bytes32([2; 32]),
        client_message_id: Bytes32([mark; 32]),
        client_created_at_ms: 3,
        visible_after_ms: 0,
        expires_at_ms: 0,
        encryption_generation: 0,
        nonce: Bytes24::ZERO,
        payload: Bytes::new(vec![mark; 10]).expect("short"),
    }
}

/// Two tabs enqueue at once, beside an owner that settles: every entry has a number of its own, and none is lost.
pub async fn two_connections_enqueue_at_once() {
    let fresh = Fresh::new("enqueue-race");
    let (a, b) = (Database::open(&fresh).await, Database::open(&fresh).await);
    let fence = a.take_fence().await.expect("ownership can be taken");
    let key = OutboxKey(KEY.0);
    let mut numbers = Vec::new();
    for mark in 0..20 {
        let (one, other) = (append(mark), append(mark + 100));
        let (first, second) = both(a.enqueue(key, &one), b.enqueue(key, &other)).await;
        let (first, second) = (first.expect("room"), second.expect("room"));
        let end = OutboxChange::Become { number: first, state: OutboxState::Sent };
        let settlement = OutboxWrite { fence, changes: OutboxChanges { key, changes: vec![end] } };
        a.settle(&settlement).await.expect("the owner settles");
        numbers.extend([first, second]);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
    let entries = Database::open(&fresh).await.outbox_after(key, 0, usize::MAX).await.expect("an outbox is readable");
    assert_eq!(entries.iter().filter(|entry| entry.state == OutboxState::Sent).count(), 20);
    assert_eq!(entries.len(), 40);
}

/// A database of a later version is refused by name, and is not blocked by having been asked for.
pub async fn a_newer_version_is_refused() {
    let fresh = Fresh::new("newer");
    raw_open(&fresh.0, 7).await;
    let name = fresh.0.clone();
    let opened = in_time(async move { IdbStore::open(&name).await.map(drop) }).await;
    assert_eq!(opened, Some(Err(StoreError::NewerVersion)));
}

/// An upgrade by a later version of this library closes ours instead of waiting for it.
pub async fn an_upgrade_by_another_evicts() {
    let (fresh, store, _) = owned("upgrade").await;
    let name = fresh.0.clone();
    assert!(in_time(async move { raw_open(&name, 7).await }).await.is_some(), "the upgrade is not blocked");
    assert_eq!(store.load(KEY).await, Err(StoreError::Evicted));
    assert_eq!(IdbStore::open(&fresh.0).await.map(drop), Err(StoreError::NewerVersion));
}

/// A connection that ignores `versionchange` blocks a deletion: said at once, done when it closes.
pub async fn a_stubborn_connection_blocks() {
    let fresh = Fresh::new("blocked");
    let stubborn = raw_connection(&fresh.0, 1).await;
    let name = fresh.0.clone();
    assert_eq!(in_time(async move { IdbStore::delete(&name).await }).await, Some(Err(StoreError::Blocked)));
    let close: Function = Reflect::get(&stubborn, &"close".into()).expect("a method").dyn_into().expect("a function");
    close.call0(&stubborn).expect("a connection closes");
    // Version 1 without our object stores is gone: a new one is made, whole.
    let (store, name) = (Database::open(&fresh).await, fresh.0.clone());
    assert_eq!(store.take_fence().await, Ok(Fence(1)));
    drop(store);
    assert_eq!(in_time(async move { IdbStore::delete(&name).await }).await, Some(Ok(())));
}

/// Closed by the browser itself, as when the user clears the site's data, it is evicted and says so.
pub async fn closing_by_the_browser_evicts() {
    let connection = Rc::new(RefCell::new(JsValue::UNDEFINED));
    let seen = Rc::clone(&connection);
    let spy = Spy::on_class("IDBDatabase", "transaction", move |original, this, arguments| {
        *seen.borrow_mut() = this.clone();
        original.apply(this, arguments)
    });
    let (fresh, store, fence) = owned("closed").await;
    drop(spy);
    // No script can make a browser do it: the connection closes, and the event is sent by hand.
    let close = Function::new_with_args("database", "database.close(); database.dispatchEvent(new Event('close'))");
    close.call1(&JsValue::UNDEFINED, &connection.borrow()).expect("an event is sent");
    assert!(store.is_evicted());
    assert_eq!(store.apply(&write(fence, Some(1), 3)).await, Err(StoreError::Evicted));
    assert_eq!(revision(&Database::open(&fresh).await).await, Some(1), "opened anew it is what it was");
}

/// Where there is no IndexedDB, or it may not be used, the answer is a typed error.
pub async fn without_a_database_it_is_unavailable() {
    let fresh = Fresh::new("unavailable");
    let hide =
        Function::new_with_args("value", "Object.defineProperty(self, 'indexedDB', { value, configurable: true })");
    let show = Function::new_no_args("delete self.indexedDB");
    let mut outcomes = Vec::new();
    let original = Reflect::get(&js_sys::global(), &"indexedDB".into()).expect("there is one");
    for absent in [JsValue::UNDEFINED, JsValue::NULL] {
        hide.call1(&JsValue::UNDEFINED, &absent).expect("a global can be replaced");
        outcomes.push(IdbStore::open(&fresh.0).await.map(drop));
    }
    show.call0(&JsValue::UNDEFINED).expect("a global can be restored");
    if Reflect::get(&js_sys::global(), &"indexedDB".into()).is_ok_and(|now| now.is_undefined()) {
        hide.call1(&JsValue::UNDEFINED, &original).expect("a global can be restored");
    }
    let spy = Spy::on_class("IDBFactory", "open", |_, _, _| Err(dom_exception("SecurityError")));
    outcomes.push(IdbStore::open(&fresh.0).await.map(drop));
    drop(spy);
    assert_eq!(outcomes, [Err(StoreError::Unavailable), Err(StoreError::Unavailable), Err(StoreError::Unavailable)]);
    assert_eq!(Database::open(&fresh).await.load(KEY).await, Ok(None), "and it is back");
}

/// Values that are not ours are corrupt, never a panic and never an empty position.
pub async fn foreign_values_are_corrupt() {
    let (fresh, store, fence) = owned("corrupt").await;
    let spy = Spy::on_class("IDBObjectStore", "put", |original, this, arguments| {
        let (value, key) = (JsValue::from_str("not bytes"), arguments.get(1));
        original.apply(this, &Array::of2(&value, &key))
    });
    store.apply(&write(fence, Some(1), 3)).await.expect("the database takes anything");
    drop(spy);
    assert_eq!(store.load(KEY).await, Err(StoreError::Corrupt));
    assert_eq!(store.rows_after(KEY, 2, 1 << 20).await, Err(StoreError::Corrupt));
    assert_eq!(
        store.apply(&write(fence, Some(2), 5)).await,
        Err(StoreError::Corrupt),
        "and nothing is written over it"
    );
    // A database of our name and version, but not our object stores.
    drop(store);
    let foreign = Fresh(format!("{}-foreign", fresh.0));
    raw_open(&foreign.0, 2).await;
    let store = Database::open(&foreign).await;
    assert_eq!(store.load(KEY).await, Err(StoreError::Corrupt));
    assert_eq!(store.take_fence().await, Err(StoreError::Corrupt));
}

/// Rows are paged by bytes over many steps of reading, in order, from anywhere.
pub async fn paging_reads_each_row_once() {
    let fresh = Fresh::new("paging");
    let store = Database::open(&fresh).await;
    let fence = store.take_fence().await.expect("ownership can be taken");
    let sizes = |item: u64| if item.is_multiple_of(37) { 40_000 } else { 12 };
    let mut set = write(fence, None, 2_000);
    set.rows = (1..=2_000).map(|item| RowBytes { first_item: item, bytes: marked(item, sizes(item)) }).collect();
    store.apply(&set).await.expect("a large write commits");
    let everything = store.rows_after(KEY, 0, usize::MAX).await.expect("rows are readable");
    assert_eq!(everything.len(), 2_000, "all rows in one answer");
    let (mut after, mut pages) = (0, 0);
    while after < 2_000 {
        let page = store.rows_after(KEY, after, 50_000).await.expect("rows are readable");
        assert!(page.iter().map(Vec::len).sum::<usize>() <= 50_000);
        for row in page {
            after += 1;
            assert_eq!(row, marked(after, sizes(after)), "row {after} is next");
        }
        pages += 1;
    }
    assert!(pages > 40, "many pages: {pages}");
    assert_eq!(
        store.rows_after(KEY, u64::MAX, 1).await.map(|rows| rows.len()),
        Ok(1),
        "the last row may hold any item"
    );
}

fn marked(item: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[..8].copy_from_slice(&item.to_be_bytes());
    bytes
}

async fn both_sets(
    a: &IdbStore,
    x: WriteSet,
    b: &IdbStore,
    y: WriteSet,
) -> (Result<(), StoreError>, Result<(), StoreError>) {
    both(a.apply(&x), b.apply(&y)).await
}

/// Opens a database by hand at a version, without our object stores, and closes it.
async fn raw_open(name: &str, version: u32) {
    let connection = raw_connection(name, version).await;
    let close: Function = Reflect::get(&connection, &"close".into()).expect("a method").dyn_into().expect("a function");
    close.call0(&connection).expect("a connection closes");
}

/// A connection opened by hand, which listens to nothing.
async fn raw_connection(name: &str, version: u32) -> JsValue {
    let open = Function::new_with_args(
        "name, version",
        "return new Promise((resolve, reject) => { const request = indexedDB.open(name, version); \
         request.onsuccess = () => resolve(request.result); request.onerror = () => reject(request.error); })",
    );
    let promise: Promise = open
        .call2(&JsValue::UNDEFINED, &name.into(), &version.into())
        .expect("a promise")
        .dyn_into()
        .expect("a promise");
    JsFuture::from(promise).await.expect("a database opens by hand")
}

/// The cases, as tests of the file that calls it: the mode is per file.
#[macro_export]
macro_rules! store_cases {
    () => {
        $crate::cases!(store:
            passes_the_suite,
            passes_the_suite_of_topics,
            passes_the_suite_of_feeds,
            ordered_rows_are_beside_the_streams,
            an_older_version_is_upgraded,
            a_put_that_throws_leaves_nothing,
            an_abort_after_the_last_put_is_an_error,
            a_failed_request_names_the_cause,
            a_dropped_write_is_whole_or_absent,
            deletion_by_another_evicts,
            deletion_during_a_write_never_hangs,
            two_owners_race_for_the_fence,
            two_connections_race_for_each_revision,
            durability_is_strict,
            a_newer_version_is_refused,
            an_older_version_is_upgraded_without_loss,
            two_connections_enqueue_at_once,
            an_upgrade_by_another_evicts,
            a_stubborn_connection_blocks,
            closing_by_the_browser_evicts,
            without_a_database_it_is_unavailable,
            foreign_values_are_corrupt,
            paging_reads_each_row_once,
        );
    };
}
