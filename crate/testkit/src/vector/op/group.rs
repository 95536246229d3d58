//! `group_chain`.

use remuda_verify::group::{GroupChain, GroupName, GroupSubscription, GroupSubscriptionConfig};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::verdict::ProtocolViolation;
use remuda_wire::Refusal;
use serde_json::json;

use super::common::{digest_or_null, provider_key, stream_shape};
use crate::vector::input::Input;
use crate::vector::Answer;

/// One `StandardGroup` subscription, frame by frame.
pub fn group_chain(input: &Input<'_>) -> Answer {
    let name = GroupName {
        context: input.at("context").object()?,
        stream_id: input.at("stream_id").digest()?,
        lane_id: input.at("lane_id").digest()?,
        group_id: input.at("group_id").digest()?,
    };
    let config = GroupSubscriptionConfig {
        shape: stream_shape(input)?,
        subscription_id: input.at("subscription_id").digest()?,
        holder_signing_key_id: input.at("holder_signing_key_id").optional(|holder| holder.digest())?,
    };
    let keys = provider_key(input)?;
    let chain = GroupChain::new(name, input.at("after_group_receipt").optional(|receipt| receipt.digest())?);
    let mut subscription = GroupSubscription::new(config, chain);
    for frame in input.at("frames").list()? {
        match ServerFrame::from_bytes(&frame.bytes()?)?.0 {
            ServerMessage::GroupState(update) => subscription.handle_group_state(&update, &keys)?,
            ServerMessage::DeliveryState(update) => subscription.handle_delivery_state(&update, &keys)?,
            ServerMessage::Delivery(delivery) => subscription.handle_delivery(&delivery, &keys)?,
            _ => return Err(Refusal::from(ProtocolViolation::UnexpectedFrame).into()),
        };
    }
    let chain = subscription.chain();
    Ok(json!({
        "tail": chain.tail().to_string(),
        "updates": chain.updates(),
        "config_digest": digest_or_null(chain.config_digest()),
        "cycles": chain.cycles(),
        "terminal": chain.terminal(),
    }))
}
