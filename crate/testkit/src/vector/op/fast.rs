//! `checkpoint_scoped`, `checkpoint_full`, `transition`: one verifying subscription on a fast stream.

use remuda_verify::authentic::{Authority, OneKey};
use remuda_verify::fast::{
    AdoptedTransition, FastState, FastSubscription, FastSubscriptionConfig, Verification, VerifiedBatch,
};
use remuda_verify::signature::PublicKey;
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::verdict::{ProtocolViolation, Refusal};
use remuda_wire::{Bytes32, Canonical};
use serde_json::{json, Value};

use super::recipe::Recipe;
use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// A `ScopedProofs` subscription.
pub fn checkpoint_scoped(input: &Input<'_>) -> Answer {
    let lanes = LaneSet::new(input.at("scope").digests()?)
        .map_err(|error| Refused::Malformed(error.to_string()))?
        .ok_or_else(|| Refused::Malformed("an empty scope".into()))?;
    checkpoints(input, Verification::ScopedProofs(LaneScope::Set(lanes)))
}

/// A `FullStream` subscription.
pub fn checkpoint_full(input: &Input<'_>) -> Answer {
    checkpoints(input, Verification::FullStream)
}

/// The key that signs everything in a vector.
pub fn provider_key(input: &Input<'_>) -> Result<OneKey, Refused> {
    Ok(OneKey(PublicKey::from_signing_key(&input.at("provider_key").object()?)))
}

fn checkpoints(input: &Input<'_>, verification: Verification) -> Answer {
    let keys = provider_key(input)?;
    let config = FastSubscriptionConfig {
        context: input.at("context").object()?,
        stream_id: input.at("stream_id").digest()?,
        encrypted: input.at("encrypted").bool()?,
        subscription_id: input.at("subscription_id").digest()?,
        verification,
    };
    let mut subscription = FastSubscription::new(config, fast_state(input.at("state"))?);
    let mut batches = Vec::new();
    let mut verified = 0;
    for frame in input.at("frames").list()? {
        if let Some(recipe) = Recipe::read(frame.at("deliveries"))? {
            for delivery in recipe.deliveries()? {
                subscription.handle_delivery(&delivery, ())?;
            }
            continue;
        }
        match ServerFrame::from_bytes(&frame.bytes()?)?.0 {
            ServerMessage::Delivery(delivery) => subscription.handle_delivery(&delivery, ())?,
            ServerMessage::Checkpoint(frame) => {
                let batch = subscription.handle_checkpoint(frame, &keys)?;
                verified += batch.records().len();
                batches.push(batch_json(&batch));
            }
            ServerMessage::BrokerEpochTransition(transition) => {
                subscription.handle_transition(transition, &keys)?;
            }
            _ => return Err(Refusal::from(ProtocolViolation::UnexpectedFrame).into()),
        }
    }
    Ok(json!({
        "state": state_json(subscription.state()),
        "batches": batches,
        "verified": verified,
        "unverified": subscription.waiting(),
    }))
}

fn batch_json(batch: &VerifiedBatch<()>) -> Value {
    let receipt = batch.receipt();
    json!({
        "checkpoint": receipt.digest().to_string(),
        "broker_epoch": receipt.broker_epoch.to_string(),
        "first_sequence": receipt.first_sequence.to_string(),
        "last_sequence": receipt.last_sequence.to_string(),
        "lane_map_root": batch.lane_map_root().to_string(),
        "records": batch.records().len(),
    })
}

/// One transition against a state, or against a stream before its first.
pub fn transition(input: &Input<'_>) -> Answer {
    let (context, stream_id, keys) =
        (input.at("context").object()?, input.at("stream_id").digest()?, provider_key(input)?);
    let state = input.at("state").optional(fast_state)?;
    let transition = BrokerEpochTransition::from_bytes(&input.at("transition").bytes()?)?;
    let authority = Authority { context: &context, stream_id: &stream_id, keys: &keys };
    let transition = authority.authenticate(transition).map_err(Refusal::from)?;
    let adopted = AdoptedTransition::link(transition, state.as_ref()).map_err(Refusal::from)?;
    Ok(json!({ "state": state_json(adopted.state()) }))
}

fn fast_state(input: Input<'_>) -> Result<FastState, Refused> {
    Ok(FastState {
        broker_epoch: input.at("broker_epoch").optional(Input::u64)?,
        next_sequence: input.at("next_sequence").optional(Input::u64)?,
        tail: input.at("tail").optional(Input::digest)?,
        last_checkpoint: input.at("last_checkpoint").optional(Input::digest)?,
        last_durable_sequence: input.at("last_durable_sequence").optional(Input::u64)?,
    })
}

/// The state as the vectors print it.
pub fn state_json(state: &FastState) -> Value {
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let digest = |value: Option<Bytes32>| value.map(|value| value.to_string());
    json!({
        "broker_epoch": number(state.broker_epoch),
        "next_sequence": number(state.next_sequence),
        "tail": digest(state.tail),
        "last_checkpoint": digest(state.last_checkpoint),
        "last_durable_sequence": number(state.last_durable_sequence),
    })
}
