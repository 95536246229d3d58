//! What a feed is opened with.

use js_sys::{Array, Uint8Array};
use remuda_verify::secret::SecretBytes;
use remuda_wasm_js::options::{digest, fixed, member, optional, optional_text, text, unsigned};
use remuda_wasm_js::thrown::{bad_argument, thrown};
use remuda_watchtower::content_key::ContentKeys;
use remuda_watchtower::feed::{Cadence, Choice, FeedConfig, Mode, Start};
use remuda_watchtower::filter::Filter;
use remuda_watchtower::schedule::KeyEntry;
use remuda_watchtower::verifier::Cursor;
use remuda_watchtower::StreamId;
use remuda_web::feeds::failure::of_watchtower;
use remuda_wire::Bytes32;
use wasm_bindgen::{JsCast, JsValue};

/// A text, or 32 bytes.
pub fn stream_id(options: &JsValue) -> Result<StreamId, JsValue> {
    let value = member(options, "stream");
    match (value.as_string(), value.dyn_ref::<Uint8Array>()) {
        (Some(text), _) => Ok(StreamId::Text(text)),
        (None, Some(bytes)) => Ok(StreamId::Bytes(Bytes32(fixed(&bytes.to_vec(), "stream")?))),
        (None, None) => Err(bad_argument("`stream` is a string or a Uint8Array of 32 bytes")),
    }
}

/// `{ signingKeyId: bigint, pubkey: string, effectiveSequence: bigint }[]`; absent is none.
pub fn schedule(options: &JsValue) -> Result<Vec<KeyEntry>, JsValue> {
    let entry = |entry: JsValue| {
        Ok(KeyEntry {
            signing_key_id: unsigned(&entry, "signingKeyId")?,
            pubkey: digest(&text(&entry, "pubkey")?, "pubkey")?,
            effective_sequence: unsigned(&entry, "effectiveSequence")?,
        })
    };
    list(options, "schedule")?.iter().map(entry).collect()
}

/// A content key, 32 bytes.
pub fn content_key(key: &[u8]) -> Result<SecretBytes, JsValue> {
    fixed(key, "key").map(SecretBytes::new)
}

/// `"resume"` or `"reattach"`.
pub fn choice(name: &str) -> Result<Choice, JsValue> {
    match name {
        "resume" => Ok(Choice::Resume),
        "reattach" => Ok(Choice::Reattach),
        _ => Err(bad_argument("a choice is \"resume\" or \"reattach\"")),
    }
}

/// The whole configuration, and the filter as it was given.
pub fn config(options: &JsValue) -> Result<(FeedConfig, Option<String>), JsValue> {
    let stream_id = stream_id(options)?;
    let start = match member(options, "start") {
        start if start.as_string().as_deref() == Some("floor") => Start::Floor,
        start if start.as_string().as_deref() == Some("head") => Start::Head,
        _ => Start::After(Cursor { last_sequence: unsigned(options, "start")?, last_digest: None }),
    };
    let mut config = FeedConfig::new(stream_id, start);
    config.schedule = schedule(options)?;
    config.keys = keys(options, &config.stream_id)?;
    let filter = optional_text(options, "filter")?;
    if let Some(filter) = &filter {
        config.filter = Filter::from_text(filter).map_err(|refusal| thrown(&of_watchtower(refusal)))?;
    }
    config.mode = match text(options, "mode")?.as_str() {
        "pull" => Mode::Pull,
        "push-with-pull-fallback" => Mode::PushWithPullFallback,
        _ => return Err(bad_argument("`mode` is \"pull\" or \"push-with-pull-fallback\"")),
    };
    if let Some(cadence) = optional(options, "cadence") {
        let (least_ms, most_ms) = (unsigned(&cadence, "leastMs")?, unsigned(&cadence, "mostMs")?);
        if least_ms == 0 || least_ms > most_ms {
            return Err(bad_argument("`cadence` rises from more than nothing"));
        }
        config.cadence = Cadence { least_ms, most_ms };
    }
    Ok((config, filter))
}

fn keys(options: &JsValue, stream_id: &StreamId) -> Result<ContentKeys, JsValue> {
    let mut keys = ContentKeys::default();
    for entry in list(options, "keys")?.iter() {
        let key = content_key(&remuda_wasm_js::options::bytes(&entry, "key")?)?;
        keys.insert(stream_id.clone(), unsigned(&entry, "keyEpoch")?, key);
    }
    Ok(keys)
}

fn list(options: &JsValue, name: &str) -> Result<Array, JsValue> {
    let Some(list) = optional(options, name) else { return Ok(Array::new()) };
    list.dyn_into().map_err(|_| bad_argument(&format!("`{name}` is a list")))
}
