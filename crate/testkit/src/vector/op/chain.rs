//! `chain_read`.

use remuda_verify::chain_view::ChainView;
use remuda_wire::verdict::Refusal;
use remuda_wire::Canonical;
use serde_json::json;

use crate::vector::input::Input;
use crate::vector::Answer;

/// One chain read against the chain and stream that it should be of.
pub fn chain_read(input: &Input<'_>) -> Answer {
    let (context, stream_id) = (input.at("context").object()?, input.at("stream_id").digest()?);
    let view = ChainView::admit(input.at("state").object()?, &context, &stream_id).map_err(Refusal::from)?;
    let key = view.state().stream.as_ref().map(|stream| hex::encode(stream.provider_signing_key.to_bytes()));
    Ok(json!({ "provider_signing_key": key }))
}
