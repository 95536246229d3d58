//! IndexedDB's transactions and requests, with what its own defaults leave out: strict durability, the `complete` event
//! as the only success, and the cause of an abort.
//!
//! ```text
//! open ──▶ active ──request──▶ waiting ──its event──▶ active ──▶ … ──complete──▶ Ok
//!            └─── dropped, or a request failed ──────────────────── abort ─────▶ Err(cause)
//! ```
//! The database commits a transaction as soon as it is idle, so nothing but its own requests may be awaited in one.

use js_sys::{Array, ArrayBuffer, Function, Object, Reflect, Uint8Array};
use remuda_position::StoreError;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{IdbDatabase, IdbObjectStore, IdbRequest, IdbTransaction};

use crate::event::{Listener, Slot};
use crate::script::{fault_name, member};

/// What a transaction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads.
    Read,
    /// Reads and writes, and completes only when the operating system was told to write it to the disk.
    WriteStrict,
}

/// One open transaction. Dropped before [`Transaction::complete`] it aborts, and nothing of it is kept.
pub struct Transaction {
    inner: IdbTransaction,
    end: Slot<Result<(), StoreError>>,
    ended: bool,
    _listeners: [Listener; 2],
}

impl Transaction {
    /// Opens a transaction over `stores`.
    ///
    /// # Errors
    /// [`StoreError::Evicted`] when the connection is closed, [`StoreError::Corrupt`] when an object store is missing.
    pub fn open(database: &IdbDatabase, stores: &[&str], mode: Mode) -> Result<Self, StoreError> {
        let names: Array = stores.iter().map(|name| JsValue::from_str(name)).collect();
        let arguments = match mode {
            Mode::Read => Array::of2(&names, &JsValue::from_str("readonly")),
            Mode::WriteStrict => Array::of3(&names, &JsValue::from_str("readwrite"), &strict()),
        };
        let open: Function = member(database, "transaction").dyn_into().map_err(|_| StoreError::Unavailable)?;
        let inner = Reflect::apply(&open, database, &arguments).map_err(|thrown| fault(&thrown))?;
        Ok(Self::watch(inner.unchecked_into()))
    }

    fn watch(inner: IdbTransaction) -> Self {
        let end = Slot::new();
        let (completed, aborted, failed) = (end.clone(), end.clone(), inner.clone());
        let listeners = [
            Listener::new(&inner, "complete", move |_| {
                let _ = completed.fill(Ok(()));
            }),
            Listener::new(&inner, "abort", move |_| {
                // `null` after a call of `abort()`, which only dropping does, or a connection that the browser closed.
                let cause = failed.error().map_or(StoreError::Aborted, |error| fault(&error));
                let _ = aborted.fill(Err(cause));
            }),
        ];
        Self { inner, end, ended: false, _listeners: listeners }
    }

    /// One of its object stores.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is missing, [`StoreError::Evicted`] when the transaction ended with its connection.
    pub fn store(&self, name: &str) -> Result<ObjectStore, StoreError> {
        Ok(ObjectStore(self.inner.object_store(name).map_err(|thrown| fault(&thrown))?))
    }

    /// Waits until all that was written is durable.
    ///
    /// # Errors
    /// The cause of the abort: nothing was written.
    pub async fn complete(mut self) -> Result<(), StoreError> {
        let end = self.end.clone().await;
        self.ended = true;
        end
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.ended {
            // Throws where it has ended already: then there is nothing to abort.
            let _ = self.inner.abort();
        }
    }
}

/// `{ durability: "strict" }`: the default of some browsers is to complete before the data has left their own memory.
fn strict() -> JsValue {
    let options = Object::new();
    // A fresh ordinary object takes any property.
    let _ = Reflect::set(&options, &JsValue::from_str("durability"), &JsValue::from_str("strict"));
    options.into()
}

/// An object store inside a transaction. Keys and values are bytes, or keys are names.
pub struct ObjectStore(IdbObjectStore);

impl ObjectStore {
    /// The value at `key`.
    ///
    /// # Errors
    /// As [`request`]; [`StoreError::Corrupt`] when it is no bytes.
    pub async fn get(&self, key: &JsValue) -> Result<Option<Vec<u8>>, StoreError> {
        let value = request(self.0.get(key)).await?;
        if value.is_undefined() {
            Ok(None)
        } else {
            bytes(&value).map(Some)
        }
    }

    /// Asks for a write. Whether it succeeded is what [`Transaction::complete`] says.
    ///
    /// # Errors
    /// What asking throws, [`StoreError::Quota`] among it.
    pub fn put(&self, key: &JsValue, value: &[u8]) -> Result<(), StoreError> {
        // A copy: the view of a whole memory would be stored as the whole memory.
        let value = Uint8Array::from(value);
        self.0.put_with_key(&value, key).map(drop).map_err(|thrown| fault(&thrown))
    }

    /// Asks for a removal. Whether it succeeded is what [`Transaction::complete`] says.
    ///
    /// # Errors
    /// What asking throws.
    pub fn delete(&self, key: &JsValue) -> Result<(), StoreError> {
        self.0.delete(key).map(drop).map_err(|thrown| fault(&thrown))
    }

    /// The last key in `range`.
    ///
    /// # Errors
    /// As [`request`].
    pub async fn last_key(&self, range: &JsValue) -> Result<Option<JsValue>, StoreError> {
        let direction = web_sys::IdbCursorDirection::Prev;
        let cursor = request(self.0.open_key_cursor_with_range_and_direction(range, direction)).await?;
        Ok((!cursor.is_null()).then(|| member(&cursor, "key")))
    }

    /// The first `limit` entries in `range`, as keys and values.
    ///
    /// # Errors
    /// As [`request`]; [`StoreError::Corrupt`] when a value is no bytes.
    pub async fn entries(&self, range: &JsValue, limit: u32) -> Result<Entries, StoreError> {
        let keys = Request::new(self.0.get_all_keys_with_key_and_limit(range, limit))?;
        let values = Request::new(self.0.get_all_with_key_and_limit(range, limit))?;
        Ok(Entries { keys: Array::from(&keys.answer().await?), values: Array::from(&values.answer().await?) })
    }
}

/// Entries still outside of our memory: each is copied when it is asked for.
pub struct Entries {
    keys: Array,
    values: Array,
}

impl Entries {
    /// How many.
    pub fn len(&self) -> u32 {
        self.keys.length().min(self.values.length())
    }

    /// The last key.
    pub fn last_key(&self) -> Option<JsValue> {
        self.len().checked_sub(1).map(|last| self.keys.get(last))
    }

    /// The keys, where they are bytes.
    pub fn keys(&self) -> impl Iterator<Item = Result<Vec<u8>, StoreError>> + '_ {
        let bytes = |key: JsValue| key.dyn_into::<ArrayBuffer>().map(|key| Uint8Array::new(&key).to_vec());
        (0..self.len()).map(move |index| bytes(self.keys.get(index)).map_err(|_| StoreError::Corrupt))
    }

    /// The values in order of their keys, each with its length known before it is copied.
    pub fn values(&self) -> impl Iterator<Item = Result<Uint8Array, StoreError>> + '_ {
        (0..self.len()).map(|index| view(&self.values.get(index)))
    }
}

/// Waits for a request's event.
///
/// # Errors
/// What asking threw, or the request's own error.
pub async fn request(asked: Result<IdbRequest, JsValue>) -> Result<JsValue, StoreError> {
    Request::new(asked)?.answer().await
}

/// A request that listens already: its event cannot pass unheard while another is awaited.
struct Request {
    outcome: Slot<Result<JsValue, StoreError>>,
    _listeners: [Listener; 2],
}

impl Request {
    fn new(asked: Result<IdbRequest, JsValue>) -> Result<Self, StoreError> {
        let request = asked.map_err(|thrown| fault(&thrown))?;
        let outcome = Slot::new();
        let (succeeded, failed) = (outcome.clone(), outcome.clone());
        let (result, error) = (request.clone(), request.clone());
        let listeners = [
            Listener::new(&request, "success", move |_| {
                let _ = succeeded.fill(result.result().map_err(|thrown| fault(&thrown)));
            }),
            Listener::new(&request, "error", move |_| {
                let _ = failed.fill(Err(request_fault(&error)));
            }),
        ];
        Ok(Self { outcome, _listeners: listeners })
    }

    async fn answer(self) -> Result<JsValue, StoreError> {
        self.outcome.clone().await
    }
}

/// The error of a request that failed.
pub fn request_fault(request: &IdbRequest) -> StoreError {
    request.error().ok().flatten().map_or(StoreError::Aborted, |error| fault(&error))
}

/// What a thrown value or the cause of an abort means for the store.
pub fn fault(thrown: &JsValue) -> StoreError {
    match fault_name(thrown).as_str() {
        "QuotaExceededError" => StoreError::Quota,
        // A connection that is closed or closing opens no transaction.
        "InvalidStateError" => StoreError::Evicted,
        "VersionError" => StoreError::NewerVersion,
        "SecurityError" | "NotSupportedError" => StoreError::Unavailable,
        // A missing object store; a value whose file is gone or unreadable.
        "NotFoundError" | "DataError" | "NotReadableError" => StoreError::Corrupt,
        _ => StoreError::Aborted,
    }
}

fn view(value: &JsValue) -> Result<Uint8Array, StoreError> {
    value.dyn_ref::<Uint8Array>().cloned().ok_or(StoreError::Corrupt)
}

fn bytes(value: &JsValue) -> Result<Vec<u8>, StoreError> {
    view(value).map(|view| view.to_vec())
}
