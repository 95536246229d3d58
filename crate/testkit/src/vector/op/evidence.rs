//! `evidence_pair` and `retention_pair`: one judgement under two names.

use remuda_verify::authentic::Authority;
use remuda_verify::evidence::contradiction;
use remuda_wire::audit::HeldObject;
use remuda_wire::context::SigningContext;
use remuda_wire::Refusal;
use serde_json::json;

use super::common::provider_key;
use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// Two provider objects: decoded, then authenticated, then compared.
pub fn pair(input: &Input<'_>) -> Answer {
    let context: SigningContext = input.at("context").object()?;
    let stream_id = input.at("stream_id").digest()?;
    let keys = provider_key(input)?;
    let (a, b) = (held(&input.at("a"))?, held(&input.at("b"))?);
    let authority = Authority { context: &context, stream_id: &stream_id, keys: &keys };
    let (a, b) = (authority.authenticate_held(a)?, authority.authenticate_held(b)?);
    match contradiction(&a, &b) {
        Some(contradiction) => Err(Refusal::from(contradiction).into()),
        None => Ok(json!({ "contradiction": false })),
    }
}

/// `{type, bytes}`.
fn held(input: &Input<'_>) -> Result<HeldObject, Refused> {
    let bytes = input.at("bytes");
    Ok(match input.at("type").text()? {
        "AppendReceiptV1" => HeldObject::AppendReceipt(bytes.object()?),
        "CheckpointReceiptV1" => HeldObject::CheckpointReceipt(bytes.object()?),
        "BrokerEpochTransitionV1" => HeldObject::BrokerEpochTransition(bytes.object()?),
        "DeliveryStateReceiptV1" => HeldObject::DeliveryStateReceipt(bytes.object()?),
        "StandardRetentionAnchorV1" => HeldObject::StandardRetentionAnchor(bytes.object()?),
        "GroupRetentionAnchorV1" => HeldObject::GroupRetentionAnchor(bytes.object()?),
        "FastRetentionAnchorV1" => HeldObject::FastRetentionAnchor(bytes.object()?),
        "KeyBatchReceiptV1" => HeldObject::KeyBatchReceipt(bytes.object()?),
        other => return Err(Refused::Malformed(format!("{other} is no provider object"))),
    })
}
