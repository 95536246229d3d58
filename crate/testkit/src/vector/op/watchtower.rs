//! The `watchtower_…` operations.

use remuda_verify::secret::SecretBytes;
use remuda_watchtower::cbor::{self, map, Map, Value as Cbor};
use remuda_watchtower::content_key::{self, ContentKeys, Opened};
use remuda_watchtower::filter::{Filter, Headers};
use remuda_watchtower::message::Tags;
use remuda_watchtower::mirror::ContentKeyIdentity;
use remuda_watchtower::recovery::{self, WrappedDek};
use remuda_watchtower::schedule::{KeyEntry, KeySchedule};
use remuda_watchtower::signing::{associated_data, sha256, Profile};
use remuda_watchtower::verifier::{Cursor, Step, Verifier};
use remuda_watchtower::{StreamId, StreamMessage, Tag};
use serde_json::{json, Value};

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// Decoded, shown and encoded again.
pub fn cbor(input: &Input<'_>) -> Answer {
    let value = cbor::decode(&input.at("bytes").bytes()?)?;
    Ok(json!({ "bytes": hex::encode(value.to_bytes()), "value": show(&value) }))
}

fn show(value: &Cbor) -> Value {
    match value {
        Cbor::Unsigned(number) => json!({ "int": number.to_string() }),
        Cbor::Negative(number) => json!({ "int": (-1 - i128::from(*number)).to_string() }),
        Cbor::Bytes(bytes) => json!({ "bytes": hex::encode(bytes) }),
        Cbor::Text(text) => json!(text),
        Cbor::Array(elements) => elements.iter().map(show).collect(),
        Cbor::Map(map) => {
            let entries: Vec<_> = map.entries().iter().map(|(key, value)| json!([key, show(value)])).collect();
            json!({ "map": entries })
        }
        Cbor::Bool(bool) => json!(bool),
        Cbor::Null => Value::Null,
        Cbor::Float(number) => json!({ "f64": hex::encode(number.get().to_be_bytes()) }),
    }
}

/// What a publisher signs.
pub fn signing_bytes(input: &Input<'_>) -> Answer {
    let bytes = Profile::default().signing_bytes(&message(input.at("message"))?);
    Ok(json!({ "bytes": hex::encode(&bytes), "sha256": sha256(&bytes).to_string() }))
}

/// What binds a ciphertext to its envelope.
pub fn aad(input: &Input<'_>) -> Answer {
    let message = input.at("message");
    let bytes = associated_data(
        &StreamId::from_value(stream_id_value(message.at("stream_id"))?)?,
        message.at("sequence").u64()?,
        message.at("key_epoch").u64()?,
        message.at("kind").text()?,
        message.at("content_type").text()?,
    );
    Ok(json!({ "bytes": hex::encode(bytes) }))
}

/// Messages against a schedule and a position.
pub fn verify(input: &Input<'_>) -> Answer {
    let stream_id = StreamId::from_value(stream_id_value(input.at("stream_id"))?)?;
    let entries: Result<Vec<_>, Refused> = input.at("schedule").list()?.map(entry).collect();
    let cursor = Cursor {
        last_sequence: input.at("last_sequence").u64()?,
        last_digest: input.at("last_digest").optional(Input::digest)?,
    };
    let schedule = KeySchedule::new(entries?)?;
    let mut verifier = Verifier { stream_id, profile: Profile::default(), schedule, cursor };
    let (mut verified, mut repeats) = (0, 0);
    for input in input.at("messages").list()? {
        match verifier.verify(message(input)?).map_err(|refused| refused.verdict)? {
            Step::Verified(_) => verified += 1,
            Step::Repeat => repeats += 1,
        }
    }
    Ok(json!({
        "last_sequence": verifier.cursor.last_sequence.to_string(),
        "last_digest": verifier.cursor.last_digest.map(|digest| digest.to_string()),
        "verified": verified,
        "repeats": repeats,
    }))
}

fn entry(input: Input<'_>) -> Result<KeyEntry, Refused> {
    let (id, from) = (input.at("signing_key_id").u64()?, input.at("effective_sequence").u64()?);
    Ok(KeyEntry::new(id, &input.at("pubkey").bytes()?, from)?)
}

/// A payload, sealed or not.
pub fn open(input: &Input<'_>) -> Answer {
    let mut keys = ContentKeys::default();
    for key in input.at("keys").list()? {
        let stream_id = StreamId::from_value(stream_id_value(key.at("stream_id"))?)?;
        keys.insert(stream_id, key.at("key_epoch").u64()?, SecretBytes::new(key.at("key").array()?));
    }
    let message = message(input.at("message"))?;
    let Opened { plaintext, associated_data } =
        content_key::open(&keys, &message).map_err(content_key::OpenRefused::verdict)?;
    Ok(json!({ "plaintext": hex::encode(plaintext), "aad": associated_data.map(hex::encode) }))
}

/// Which of several messages a filter wants.
pub fn filter(input: &Input<'_>) -> Answer {
    let filter = Filter::from_json(input.at("filter").json())?;
    let mut matches = Vec::new();
    for message in input.at("messages").list()? {
        let (sequence, tags) = (message.at("sequence").u64()?, tags(message.at("tags"))?);
        let timestamp_unix_ms = message.at("timestamp_unix_ms").u64()?;
        if filter.matches(Headers { kind: message.at("kind").text()?, sequence, timestamp_unix_ms, tags: &tags }) {
            matches.push(sequence.to_string());
        }
    }
    Ok(json!({ "matches": matches }))
}

fn identity(input: &Input<'_>) -> Result<ContentKeyIdentity, Refused> {
    Ok(ContentKeyIdentity {
        chain_id: input.at("chain_id").u64()?,
        stream_id: StreamId::from_value(stream_id_value(input.at("stream_id"))?)?,
        key_epoch: input.at("key_epoch").u64()?,
        generation: input.at("generation").u64()?,
    })
}

/// What is hashed to the curve.
pub fn identity_bytes(input: &Input<'_>) -> Answer {
    Ok(json!({ "bytes": hex::encode(identity(input)?.to_bytes()) }))
}

/// What a wrapped key binds.
pub fn wrapped_dek_aad(input: &Input<'_>) -> Answer {
    let override_hash = input.at("committee_override_hash").optional(Input::digest)?;
    let material = input.at("release_key_material_hash").digest()?;
    let epoch = input.at("committee_epoch").u64()?;
    let bytes = identity(input)?.wrapped_dek_aad(epoch, override_hash.as_ref(), &material);
    Ok(json!({ "bytes": hex::encode(bytes) }))
}

/// The key of an epoch.
pub fn content_key(input: &Input<'_>) -> Answer {
    let secret = SecretBytes::new(input.at("stream_secret").array()?);
    let stream_id = StreamId::from_value(stream_id_value(input.at("stream_id"))?)?;
    let (chain_id, key_epoch) = (input.at("chain_id").u64()?, input.at("key_epoch").u64()?);
    let key = content_key::derive_content_key(&secret, chain_id, &stream_id, key_epoch);
    Ok(json!({ "key": hex::encode(key.expose()) }))
}

/// The key of an epoch from the committee's signature.
pub fn unwrap(input: &Input<'_>) -> Answer {
    let wrapped = input.at("wrapped");
    let dek = WrappedDek {
        version: wrapped.at("version").number()?,
        ciphertext: wrapped.at("ciphertext").bytes()?,
        nonce: wrapped.at("nonce").bytes()?,
        ephemeral_u: wrapped.at("ephemeral_u").bytes()?,
        aad: wrapped.at("aad").bytes()?,
    };
    let (sigma, base) = (input.at("sigma").bytes()?, input.at("base_aad").bytes()?);
    let key = recovery::unwrap_content_key(input.at("dst").text()?, &sigma, &base, &dek)?;
    Ok(json!({ "content_key": hex::encode(key.expose()) }))
}

/// A message by way of its CBOR, so that its shape is judged where it always is.
fn message(input: Input<'_>) -> Result<StreamMessage, Refused> {
    let (number, bytes) = (
        |name| -> Result<Cbor, Refused> { Ok(Cbor::Unsigned(input.at(name).u64()?)) },
        |name| -> Result<Cbor, Refused> { Ok(Cbor::Bytes(input.at(name).bytes()?)) },
    );
    let text = |name| -> Result<Cbor, Refused> { Ok(input.at(name).text()?.into()) };
    let tags = tags(input.at("tags"))?.into_iter().map(|(name, tag)| (name, tag.to_value()));
    let value = map([
        ("version", Cbor::Unsigned(input.at("version").number()?)),
        ("stream_id", stream_id_value(input.at("stream_id"))?),
        ("sequence", number("sequence")?),
        ("timestamp_unix_ms", number("timestamp_unix_ms")?),
        ("kind", text("kind")?),
        ("content_type", text("content_type")?),
        ("tags", Map::new(tags).into()),
        ("payload_format", text("payload_format")?),
        ("payload_inline", bytes("payload_inline")?),
        ("payload_hash", bytes("payload_hash")?),
        ("key_epoch", input.at("key_epoch").optional(|_| number("key_epoch"))?.unwrap_or(Cbor::Null)),
        ("signing_key_id", number("signing_key_id")?),
        ("publisher_sig", bytes("publisher_sig")?),
    ]);
    Ok(StreamMessage::from_value(value.into())?)
}

fn stream_id_value(input: Input<'_>) -> Result<Cbor, Refused> {
    match input.json() {
        Value::String(text) => Ok(Cbor::Text(text.clone())),
        _ => Ok(Cbor::Bytes(input.at("bytes").bytes()?)),
    }
}

fn tags(input: Input<'_>) -> Result<Tags, Refused> {
    let members = input.json().as_object().ok_or_else(|| Refused::Malformed("tags are an object".into()))?;
    let read = |(name, value): (&String, &Value)| {
        let tag = match value {
            Value::String(text) => Tag::Text(text.clone()),
            Value::Bool(bool) => Tag::Bool(*bool),
            other => Tag::number(f64::from_be_bytes(Input::new(other).at("f64").array()?))?,
        };
        Ok((name.clone(), tag))
    };
    members.iter().map(read).collect()
}
