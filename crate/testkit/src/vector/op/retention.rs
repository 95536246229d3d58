//! `cursor_too_old`.

use remuda_verify::authentic::Authority;
use remuda_verify::retention::judge_cursor_too_old;
use remuda_wire::context::SigningContext;
use remuda_wire::request::OpenSubscriptionRequest;
use serde_json::json;

use super::common::provider_key;
use crate::vector::input::Input;
use crate::vector::Answer;

/// Whether an anchor justifies a refusal.
pub fn cursor_too_old(input: &Input<'_>) -> Answer {
    let context: SigningContext = input.at("context").object()?;
    let stream_id = input.at("stream_id").digest()?;
    let keys = provider_key(input)?;
    let subscription: OpenSubscriptionRequest = input.at("subscription").object()?;
    let details = input.at("details").bytes()?;
    let authority = Authority { context: &context, stream_id: &stream_id, keys: &keys };
    let refusal = judge_cursor_too_old(&subscription, &details, &authority)?;
    Ok(json!({ "anchor": refusal.anchor().digest().to_string(), "floor": refusal.floor().to_string() }))
}
