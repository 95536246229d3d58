//! `append_chain`.

use remuda_verify::sorted::SortedMap;
use remuda_verify::standard::{NewLanes, StandardReplay, StandardReplayConfig, StandardState};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::verdict::ProtocolViolation;
use remuda_wire::{Bytes32, Refusal};
use serde_json::{json, Value};

use super::common::{digest_or_null, lane_scope, provider_key, stream_shape, u64_or_null};
use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// One `StandardReplay` subscription, frame by frame.
pub fn append_chain(input: &Input<'_>) -> Answer {
    let config = StandardReplayConfig {
        context: input.at("context").object()?,
        stream_id: input.at("stream_id").digest()?,
        shape: stream_shape(input)?,
        subscription_id: input.at("subscription_id").digest()?,
        scope: lane_scope(input)?,
    };
    let keys = provider_key(input)?;
    let mut replay = StandardReplay::new(config, state(&input.at("state"))?);
    let mut verified = 0;
    for frame in input.at("frames").list()? {
        let ServerMessage::Delivery(delivery) = ServerFrame::from_bytes(&frame.bytes()?)?.0 else {
            return Err(Refusal::from(ProtocolViolation::UnexpectedFrame).into());
        };
        replay.handle_delivery(&delivery, &keys)?;
        verified += 1;
    }
    Ok(json!({ "state": print_state(replay.state()), "verified": verified }))
}

fn state(input: &Input<'_>) -> Result<StandardState, Refused> {
    let tails = input.at("lane_tails");
    let tails = tails.json().as_object().ok_or_else(|| Refused::Malformed("lane_tails is no object".into()))?;
    let lane_tails: Result<SortedMap<Bytes32, Bytes32>, Refused> =
        tails.iter().map(|(lane, tail)| Ok((Input::new(&json!(lane)).digest()?, Input::new(tail).digest()?))).collect();
    Ok(StandardState {
        global_tail: input.at("global_tail").optional(|tail| tail.digest())?,
        last_sequence: input.at("last_sequence").optional(|last| last.u64())?,
        lane_tails: lane_tails?,
        new_lanes: match input.at("new_lanes").text()? {
            "genesis" => NewLanes::Genesis,
            "unknown" => NewLanes::Unknown,
            other => return Err(Refused::Malformed(format!("new lanes {other}"))),
        },
    })
}

fn print_state(state: &StandardState) -> Value {
    let lane_tails: serde_json::Map<_, _> =
        state.lane_tails.iter().map(|(lane, tail)| (lane.to_string(), json!(tail.to_string()))).collect();
    json!({
        "global_tail": digest_or_null(state.global_tail),
        "last_sequence": u64_or_null(state.last_sequence),
        "lane_tails": lane_tails,
        "new_lanes": match state.new_lanes { NewLanes::Genesis => "genesis", NewLanes::Unknown => "unknown" },
    })
}
