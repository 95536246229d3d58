//! A feed's items, status and events as JavaScript gets them.

use js_sys::{Array, Object, Reflect};
use remuda_wasm_js::object::{number, time_ms, Builder, ToJs};
use remuda_wasm_js::thrown::failure_object;
use remuda_watchtower::feed::{Content, Gap};
use remuda_watchtower::message::Tags;
use remuda_watchtower::stored::StoredItem;
use remuda_watchtower::transport::CursorTooOld;
use remuda_watchtower::{StreamMessage, Tag, WatchtowerRefusal};
use remuda_web::clock::now_ms;
use remuda_web::feeds::watchtower::{FeedEvent, FeedState, FeedStatus};
use wasm_bindgen::{JsCast, JsValue};

use crate::source::{failure_event, stored_event};

/// A stored row; `None` when it is none of ours.
pub fn item(number: u64, row: &[u8]) -> Option<JsValue> {
    let item = Builder::new().with("item", &number);
    Some(match StoredItem::from_bytes(row).ok()? {
        StoredItem::Gap(Gap { first, last }) => {
            item.with("kind", "gap").with("first", &first).with("last", &last).build()
        }
        StoredItem::Message { message, content } => message_members(item, &message, &content).build(),
    })
}

/// `payload` is null where it does not open; `unopened` then says why.
fn message_members(item: Builder, message: &StreamMessage, content: &Content) -> Builder {
    let (payload, unopened) = match content {
        Content::Plain(payload) => (payload.as_slice().to_js(), JsValue::NULL),
        Content::Unopened => (JsValue::NULL, WatchtowerRefusal::Aead.code().to_js()),
    };
    item.with("kind", "message")
        .with("sequence", &message.sequence)
        .with_value("timestampMs", &time_ms(message.timestamp_unix_ms))
        .with("messageKind", message.kind.as_str())
        .with("contentType", message.content_type.as_str())
        .with_value("tags", &tags(&message.tags))
        .with_value("payload", &payload)
        .with_value("unopened", &unopened)
        .with("keyEpoch", &message.key_epoch)
        .with("signingKeyId", &message.signing_key_id)
        .with("signed", message.to_value().to_bytes().as_slice())
}

fn tags(tags: &Tags) -> JsValue {
    // No prototype: a tag may have any name.
    let object: Object = Object::create(JsValue::NULL.unchecked_ref());
    for (name, tag) in tags {
        let value = match tag {
            Tag::Text(text) => text.to_js(),
            Tag::Bool(bool) => bool.to_js(),
            Tag::Number(number) => JsValue::from_f64(number.get()),
        };
        // Setting a member of a plain object of our own cannot fail.
        drop(Reflect::set(&object, &name.to_js(), &value));
    }
    object.into()
}

/// The whole status.
pub fn status(status: &FeedStatus, storage: &str) -> JsValue {
    let (state, failure, too_old) = match &status.state {
        FeedState::Idle => ("idle", None, None),
        FeedState::Following => ("following", None, None),
        FeedState::AwaitingKey => ("awaiting-key", None, None),
        FeedState::CursorTooOld(refused) => ("cursor-too-old", None, Some(refused)),
        FeedState::Failed(failure) => ("failed", Some(failure), None),
        FeedState::Closed => ("closed", None, None),
    };
    let counters = status.counters;
    Builder::new()
        .with("state", state)
        .with("storage", storage)
        .with("verifiedSequence", &status.verified_sequence)
        .with_value("pending", &number(status.pending))
        .with_value("missingEpochs", &status.missing_epochs.iter().map(ToJs::to_js).collect::<Array>())
        .with("verified", &counters.verified)
        .with("filtered", &counters.filtered)
        .with("repeats", &counters.repeats)
        .with("pushesDropped", &counters.pushes_dropped)
        .with("requests", &counters.requests)
        .with_value("nextPullAtMs", &status.next_pull_at_ms.map_or(JsValue::NULL, time_ms))
        .with("unreachable", &status.unreachable)
        .with_value("cursorTooOld", &too_old.map_or(JsValue::NULL, cursor_too_old))
        .with_value("failure", &failure.map_or(JsValue::NULL, |failure| failure_object(failure, now_ms())))
        .build()
}

fn cursor_too_old(refused: &CursorTooOld) -> JsValue {
    Builder::new().with("floorSequence", &refused.floor_sequence).with("headSequence", &refused.head_sequence).build()
}

/// An event; `None` for a change of status, which is told with the status.
pub fn event(event: &FeedEvent) -> Option<JsValue> {
    Some(match event {
        FeedEvent::Status => return None,
        FeedEvent::Stored { last_item } => stored_event(*last_item),
        FeedEvent::AccessRequired { key_epoch } => {
            Builder::new().with("type", "access-required").with("keyEpoch", key_epoch).build()
        }
        FeedEvent::CursorTooOld(refused) => Builder::new()
            .with("type", "cursor-too-old")
            .with("floorSequence", &refused.floor_sequence)
            .with("headSequence", &refused.head_sequence)
            .build(),
        FeedEvent::Equivocation(evidence) => Builder::new()
            .with("type", "equivocation")
            .with_value("evidence", &evidence.as_ref().map_or(JsValue::NULL, |file| file.as_slice().to_js()))
            .build(),
        FeedEvent::Failure(failure) => failure_event(failure),
    })
}
