//! What the database holds, and how it is opened.
//!
//! | object store | key | value |
//! |---|---|---|
//! | `meta` | `"fence"` | the generation of the owner, 8 bytes, big-endian |
//! | `positions` | position key, 32 bytes | `StoredPosition`, canonical |
//! | `rows` | position key, 32 bytes, then the first item, 8 bytes, big-endian | `StoredRow`, canonical |
//! | `outbox` | outbox key, 32 bytes, then the number, 8 bytes, big-endian | `OutboxEntry`, canonical; at 0 `OutboxHead` |
//! | `ordered` | a key of `position::topic::key`, a table byte first | bytes of whoever owns the table: topics, feeds |
//!
//! Version 1 had neither `outbox` nor `ordered`. The schema's version is the database's own: no second copy of it could disagree.

use js_sys::Uint8Array;
use remuda_position::outbox::OutboxKey;
use remuda_position::{PositionKey, StoreError};
use remuda_wire::Bytes32;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::spawn_local;
use web_sys::{IdbDatabase, IdbFactory, IdbKeyRange, IdbOpenDbRequest};

use crate::event::{Listener, Slot};
use crate::idb_transaction::{fault, request_fault};
use crate::script;

/// The version that this library writes.
const VERSION: u32 = 2;

/// The object store of single values.
pub const META: &str = "meta";
/// The object store of positions.
pub const POSITIONS: &str = "positions";
/// The object store of rows.
pub const ROWS: &str = "rows";

/// The object store of what is to be appended.
pub const OUTBOX: &str = "outbox";

/// The object store of ordered rows.
pub const ORDERED: &str = "ordered";

/// Every object store of [`VERSION`]. An older database lacks some of them, and none is ever changed.
const OBJECT_STORES: [&str; 5] = [META, POSITIONS, ROWS, OUTBOX, ORDERED];

/// The key of the fence in [`META`].
pub fn fence_key() -> JsValue {
    JsValue::from_str("fence")
}

/// The key of a position in [`POSITIONS`].
pub fn position_key(key: PositionKey) -> JsValue {
    Uint8Array::from(key.0 .0.as_slice()).into()
}

/// The key of a row in [`ROWS`].
pub fn row_key(key: PositionKey, first_item: u64) -> JsValue {
    numbered_key(&key.0, first_item)
}

/// The key of an entry in [`OUTBOX`], or of its head.
pub fn entry_key(key: OutboxKey, number: u64) -> JsValue {
    numbered_key(&key.0, number)
}

/// Keys of bytes are ordered byte by byte, so what has one name lies in order of its numbers.
fn numbered_key(name: &Bytes32, number: u64) -> JsValue {
    let mut bytes = [0; 40];
    bytes[..32].copy_from_slice(&name.0);
    bytes[32..].copy_from_slice(&number.to_be_bytes());
    Uint8Array::from(bytes.as_slice()).into()
}

/// Where a range of keys begins.
pub enum From {
    /// At this key.
    At(JsValue),
    /// Just above this key.
    Above(JsValue),
}

/// The keys from `from` up to and including `through`.
///
/// # Errors
/// [`StoreError::Corrupt`] when the database gave us a key that is none.
pub fn range(from: &From, through: &JsValue) -> Result<JsValue, StoreError> {
    let range = match from {
        From::At(key) => IdbKeyRange::bound(key, through),
        From::Above(key) => IdbKeyRange::bound_with_lower_open_and_upper_open(key, through, true, false),
    };
    range.map(JsValue::from).map_err(|thrown| fault(&thrown))
}

/// Opens the database, making it where there is none.
///
/// # Errors
/// [`StoreError::Unavailable`] without IndexedDB, [`StoreError::Blocked`], [`StoreError::NewerVersion`],
/// [`StoreError::Quota`], [`StoreError::Aborted`].
pub async fn open(name: &str) -> Result<IdbDatabase, StoreError> {
    let request = factory()?.open_with_u32(name, VERSION).map_err(|thrown| fault(&thrown))?;
    attempt(request).await.and_then(|opened| opened.dyn_into().map_err(|_| StoreError::Unavailable))
}

/// Deletes the database and all that it holds, after its connections have closed.
///
/// # Errors
/// [`StoreError::Unavailable`] without IndexedDB; [`StoreError::Blocked`] when a connection stays open: the deletion
/// still happens when that closes.
pub async fn delete(name: &str) -> Result<(), StoreError> {
    let request = factory()?.delete_database(name).map_err(|thrown| fault(&thrown))?;
    attempt(request).await.map(drop)
}

/// `indexedDB` of the page or worker. Absent, `null` and throwing are all ways of browsers to say that there is none.
fn factory() -> Result<IdbFactory, StoreError> {
    let factory = script::global("indexedDB");
    if factory.is_undefined() || factory.is_null() {
        return Err(StoreError::Unavailable);
    }
    Ok(factory.unchecked_into())
}

/// Follows an open or delete request to its end, which can lie far beyond the caller's interest: a blocked request stays
/// queued in the browser, and a connection that it opens after we gave up must be closed again, or it blocks others.
async fn attempt(request: IdbOpenDbRequest) -> Result<JsValue, StoreError> {
    let told = Slot::new();
    let blocked = told.clone();
    let listener = Listener::new(&request, "blocked", move |_| {
        let _ = blocked.fill(Err(StoreError::Blocked));
    });
    let tell = told.clone();
    spawn_local(async move {
        let outcome = end_of(&request).await;
        drop(listener);
        if let Err(Ok(unwanted)) = tell.fill(outcome) {
            if let Some(database) = unwanted.dyn_ref::<IdbDatabase>() {
                database.close();
            }
        }
    });
    told.await
}

async fn end_of(request: &IdbOpenDbRequest) -> Result<JsValue, StoreError> {
    let end = Slot::new();
    let (succeeded, failed) = (end.clone(), end.clone());
    let (upgraded, result, error) = (request.clone(), request.clone(), request.clone());
    let _listeners = [
        Listener::new(request, "upgradeneeded", move |_| {
            let made = upgraded.result().and_then(|database| create(database.unchecked_ref()));
            if let (Err(_), Some(transaction)) = (made, upgraded.transaction()) {
                // The request then fails, and no half-made database remains.
                let _ = transaction.abort();
            }
        }),
        Listener::new(request, "success", move |_| {
            let _ = succeeded.fill(result.result().map_err(|thrown| fault(&thrown)));
        }),
        Listener::new(request, "error", move |_| {
            let _ = failed.fill(Err(match request_fault(&error) {
                // Some browsers refuse storage in private windows in these words.
                StoreError::Evicted => StoreError::Unavailable,
                other => other,
            }));
        }),
    ];
    end.await
}

/// Makes the object stores that are not there yet.
fn create(database: &IdbDatabase) -> Result<(), JsValue> {
    let there = database.object_store_names();
    let mut absent = OBJECT_STORES.into_iter().filter(|name| !there.contains(name));
    absent.try_for_each(|name| database.create_object_store(name).map(drop))
}
