//! What every source shares: its store, where it is dialled, what it tells.

use std::rc::Rc;

use js_sys::{Array, Function};
use remuda_client::Failure;
use remuda_position::feed::{items_after, standing, SourceKey, Standing};
use remuda_position::topic::memory::MemoryTopicStore;
use remuda_position::StoreError;
use remuda_wasm_js::object::Builder;
use remuda_wasm_js::options::{flag, text};
use remuda_wasm_js::thrown::{bad_argument, failure_object, store_error};
use remuda_web::clock::now_ms;
use remuda_web::dial::PlainLoopback;
use remuda_web::feeds::FeedStore;
use remuda_web::IdbStore;
use wasm_bindgen::JsValue;

/// Opens the store that the options name.
pub async fn store(options: &JsValue) -> Result<Rc<FeedStore>, JsValue> {
    let store = match text(options, "storage")?.as_str() {
        "durable" => {
            let database = text(options, "database")?;
            FeedStore::Idb(IdbStore::open(&database).await.map_err(|error| store_error(&error))?)
        }
        "memory" => FeedStore::Memory(MemoryTopicStore::default()),
        _ => return Err(bad_argument("`storage` is \"durable\" or \"memory\"")),
    };
    Ok(Rc::new(store))
}

/// Whether this machine may be dialled without TLS.
pub fn plain(options: &JsValue) -> PlainLoopback {
    if flag(options, "allowLoopback") {
        PlainLoopback::Allow
    } else {
        PlainLoopback::Refuse
    }
}

/// Stored items above `after` as JavaScript gets them.
pub async fn read(
    store: &FeedStore,
    source: SourceKey,
    after: u64,
    max_bytes: u32,
    convert: impl Fn(u64, &[u8]) -> Option<JsValue>,
) -> Result<Array, JsValue> {
    let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let rows = items_after(store, source, after, max_bytes).await.map_err(|error| store_error(&error))?;
    let corrupt = || store_error(&StoreError::Corrupt);
    rows.into_iter().map(|(item, row)| convert(item, &row).ok_or_else(corrupt)).collect()
}

/// Where a source durably stands.
pub async fn durable(store: &FeedStore, source: SourceKey) -> Result<Standing, JsValue> {
    standing(store, source).await.map_err(|error| store_error(&error))
}

/// Tells an observer. One that throws is its own fault: the source goes on.
pub fn tell(on_event: &Function, event: &JsValue) {
    drop(on_event.call1(&JsValue::UNDEFINED, event));
}

/// A failure as an event.
pub fn failure_event(failure: &Failure) -> JsValue {
    Builder::new().with("type", "failure").with_value("failure", &failure_object(failure, now_ms())).build()
}

/// New items are durable.
pub fn stored_event(last_item: u64) -> JsValue {
    Builder::new().with("type", "stored").with("lastItem", &last_item).build()
}
