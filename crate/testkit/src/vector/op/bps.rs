//! The `bps_…` operations.

use remuda_bps::bridge::{read_subscribed, Offer};
use remuda_bps::message::{Ack, Join, BINDING_FEED_TOPIC};
use remuda_bps::soc::{soc_address, SingleOwnerChunk};
use remuda_bps::topic::{session_topic, update_id};
use remuda_bps::{chunk, judge, Address, Broadcast, Cohort, Gap, Judged};
use serde_json::{json, Value};

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// The address of a content-addressed chunk.
pub fn chunk_address(input: &Input<'_>) -> Answer {
    Ok(json!({ "address": chunk::chunk_address(&input.at("chunk").bytes()?)?.to_string() }))
}

/// A single-owner chunk of an owner.
pub fn soc(input: &Input<'_>) -> Answer {
    let (bytes, owner) = (input.at("soc").bytes()?, address(input.at("owner"))?);
    let chunk = SingleOwnerChunk::new(&bytes)?;
    chunk.verify(&owner)?;
    Ok(json!({
        "id": chunk.id().to_string(),
        "cac": chunk.wrapped_address()?.to_string(),
        "address": soc_address(&chunk.id(), &owner).to_string(),
        "span": chunk.span().to_string(),
        "payload": hex::encode(chunk.payload()),
    }))
}

/// The identifiers of one update.
pub fn topic(input: &Input<'_>) -> Answer {
    let (topic, challenge) = (input.at("topic").digest()?, input.at("challenge").digest()?);
    let salted = session_topic(&topic, input.at("kind").number()?, &challenge);
    let id = update_id(&salted, input.at("index").u64()?);
    Ok(json!({
        "topic_s": salted.to_string(),
        "id": id.to_string(),
        "address": soc_address(&id, &address(input.at("admin"))?).to_string(),
    }))
}

/// One broadcast against a cursor.
pub fn broadcast(input: &Input<'_>) -> Answer {
    let cursor = input.at("cursor").optional(Input::u64)?;
    let broadcast = Broadcast {
        soc: input.at("soc").bytes()?,
        kind: input.at("kind").number()?,
        challenge: input.at("challenge").bytes()?,
        index: input.at("index").u64()?,
    };
    let answer =
        |outcome: &str, reason: Option<&str>, cursor: Option<u64>, gap: Option<Gap>, payload: Option<Vec<u8>>| {
            json!({
                "outcome": outcome,
                "reason": reason,
                "cursor": cursor.map(|cursor| cursor.to_string()),
                "gap": gap.map(|gap| json!({ "first": gap.first.to_string(), "last": gap.last.to_string() })),
                "payload": payload.map(hex::encode),
            })
        };
    Ok(match judge(&cohort(input)?, &broadcast, cursor)? {
        Judged::Delivered { payload, gap } => answer("delivered", None, Some(broadcast.index), gap, Some(payload)),
        Judged::Claim => answer("claim", None, cursor, None, None),
        Judged::Dropped(reason) => answer("dropped", Some(reason.code()), cursor, None, None),
    })
}

/// One message of the subscribe bridge.
pub fn bridge_frame(input: &Input<'_>) -> Answer {
    let frame = read_subscribed(&input.at("message").bytes()?)?;
    let judged = judge(&cohort(input)?, &frame, None)?;
    let Judged::Delivered { payload, .. } = judged else {
        return Err(Refused::Malformed(format!("a bridge delivers: {judged:?}")));
    };
    Ok(json!({
        "challenge": hex::encode(&frame.challenge),
        "index": frame.index.to_string(),
        "id": SingleOwnerChunk::new(&frame.soc)?.id().to_string(),
        "payload": hex::encode(payload),
    }))
}

/// The first text of the publish bridge.
pub fn offer(input: &Input<'_>) -> Answer {
    let (topic, broker) = (input.at("topic").digest()?, input.at("broker").digest()?);
    let offer = Offer::from_text(input.at("text").text()?, &topic, &broker)?;
    Ok(json!({
        "challenge": offer.challenge.to_string(),
        "data_topic": offer.data_topic.to_string(),
        "auth_topic": offer.auth_topic.to_string(),
    }))
}

/// A message decoded, shown and encoded again.
pub fn protobuf(input: &Input<'_>) -> Answer {
    let bytes = input.at("bytes").bytes()?;
    match input.at("type").text()? {
        "Join" => Join::from_bytes(&bytes).map(show_join),
        "Ack" => Ack::from_bytes(&bytes).map(|ack| {
            json!({
                "status": ack.status.name(),
                "challenge": hex::encode(&ack.challenge),
                "bytes": hex::encode(ack.to_bytes()),
            })
        }),
        "Broadcast" => Broadcast::from_bytes(&bytes).map(|broadcast| {
            json!({
                "soc": hex::encode(&broadcast.soc),
                "kind": broadcast.kind,
                "challenge": hex::encode(&broadcast.challenge),
                "index": broadcast.index.to_string(),
                "bytes": hex::encode(broadcast.to_bytes()),
            })
        }),
        other => return Err(Refused::Malformed(format!("no message {other}"))),
    }
    .map_err(Refused::from)
}

fn show_join(join: Join) -> Value {
    json!({
        "topic": join.cohort.topic.to_string(),
        "binding": BINDING_FEED_TOPIC,
        "admin": join.cohort.admin.to_string(),
        "addr": join.addr.to_string(),
        "bytes": hex::encode(join.to_bytes()),
    })
}

fn cohort(input: &Input<'_>) -> Result<Cohort, Refused> {
    Ok(Cohort { topic: input.at("topic").digest()?, admin: address(input.at("admin"))? })
}

fn address(input: Input<'_>) -> Result<Address, Refused> {
    input.array().map(Address)
}
