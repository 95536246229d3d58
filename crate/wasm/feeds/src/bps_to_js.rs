//! Updates, status and events of a cohort as JavaScript gets them.

use remuda_bps::stored::StoredUpdate;
use remuda_client::Failure;
use remuda_wasm_js::object::{number, time_ms, Builder, ToJs};
use remuda_wasm_js::thrown::failure_object;
use remuda_web::clock::now_ms;
use remuda_web::feeds::publisher::PublisherStatus;
use remuda_web::feeds::subscriber::{LineState, SubscriberStatus};
use wasm_bindgen::JsValue;

/// A stored row; `None` when it is none of ours.
pub fn item(number: u64, row: &[u8]) -> Option<JsValue> {
    let update = StoredUpdate::from_bytes(row).ok()?;
    let gap = update.gap.map(|gap| Builder::new().with("first", &gap.first).with("last", &gap.last).build());
    Some(
        Builder::new()
            .with("item", &number)
            .with("index", &update.broadcast.index)
            .with("payload", update.payload().ok()?)
            .with_value("gap", &gap.unwrap_or(JsValue::NULL))
            .with("signed", update.broadcast.to_bytes().as_slice())
            .build(),
    )
}

fn failure(failure: Option<&Failure>) -> JsValue {
    failure.map_or(JsValue::NULL, |failure| failure_object(failure, now_ms()))
}

fn line(state: &LineState, last_end: Option<&Failure>, storage: &str) -> Builder {
    let (name, retry_at_ms, failed) = match state {
        LineState::Idle => ("idle", None, None),
        LineState::Connecting => ("connecting", None, None),
        LineState::Open => ("open", None, None),
        LineState::Waiting { retry_at_ms } => ("waiting", Some(*retry_at_ms), None),
        LineState::Failed(failure) => ("failed", None, Some(failure)),
        LineState::Closed => ("closed", None, None),
    };
    Builder::new()
        .with("state", name)
        .with("storage", storage)
        .with_value("retryAtMs", &retry_at_ms.map_or(JsValue::NULL, time_ms))
        .with_value("lastEnd", &failure(last_end))
        .with_value("failure", &failure(failed))
}

/// The status of a subscriber.
pub fn subscriber_status(status: &SubscriberStatus, storage: &str) -> JsValue {
    line(&status.state, status.last_end.as_ref(), storage)
        .with("cursor", &status.cursor)
        .with("verified", &status.verified)
        .with("unknownKind", &status.dropped.unknown_kind)
        .with("replayedIndex", &status.dropped.replayed_index)
        .with("claims", &status.dropped.claims)
        .build()
}

/// The status of a publisher.
pub fn publisher_status(status: &PublisherStatus, storage: &str) -> JsValue {
    line(&status.state, status.last_end.as_ref(), storage)
        .with_value("queued", &number(status.queued))
        .with("nextIndex", &status.next_index)
        .build()
}

/// A change of status as an event.
pub fn status_event(status: &JsValue) -> JsValue {
    Builder::new().with("type", "status").with_value("status", &status.to_js()).build()
}
