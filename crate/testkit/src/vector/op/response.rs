//! `response`, `group_config`.

use remuda_verify::group_config::{check_group_config, mutable_part};
use remuda_verify::response::ResponseVerifier;
use remuda_wire::frame::{ClientFrame, ClientMessage, ServerFrame};
use serde_json::json;

use super::fast::provider_key;
use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// Whether a result answers its request.
pub fn response(input: &Input<'_>) -> Answer {
    let context = input.at("context").object()?;
    let keys = provider_key(input)?;
    let request = ClientFrame::from_bytes(&input.at("request").bytes()?)?;
    let response = ServerFrame::from_bytes(&input.at("response").bytes()?)?;
    let ClientMessage::Request(request) = request.0 else {
        return Err(Refused::Malformed("the client frame is no request".into()));
    };
    let answered = ResponseVerifier { context: &context, keys: &keys }.verify(&request, response.0)?;
    let mut ok = json!({});
    if let Some(digest) = answered.receipt_digest() {
        ok["receipt"] = digest.to_string().into();
    }
    if let Some(lane_id) = answered.lane_id() {
        ok["lane_id"] = lane_id.to_string().into();
    }
    Ok(ok)
}

/// Whether a group configuration is within its stream's.
pub fn group_config(input: &Input<'_>) -> Answer {
    let config = match input.at("type").text()? {
        "GroupConfigV1" => mutable_part(&input.at("config").object()?),
        "GroupMutableConfigV1" => input.at("config").object()?,
        other => return Err(Refused::Malformed(format!("no group configuration: {other}"))),
    };
    check_group_config(&config, &input.at("stream_config").object()?, input.at("now_ms").u64()?)?;
    Ok(json!({}))
}
