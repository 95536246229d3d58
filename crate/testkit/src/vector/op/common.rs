//! What several operations read and print alike.

use remuda_verify::authentic::OneKey;
use remuda_verify::record_shape::StreamShape;
use remuda_verify::signature::PublicKey;
use remuda_wire::chain::Purpose;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::Bytes32;
use serde_json::{json, Value};

use crate::vector::input::{Input, Refused};

/// The provider's key at every view.
pub fn provider_key(input: &Input<'_>) -> Result<OneKey, Refused> {
    let key: SigningPublicKey = input.at("provider_key").object()?;
    Ok(OneKey(PublicKey::from_signing_key(&key)))
}

/// `purpose` and `encrypted`.
pub fn stream_shape(input: &Input<'_>) -> Result<StreamShape, Refused> {
    let purpose = match input.at("purpose").text()? {
        "Main" => Purpose::Main,
        "Key" => Purpose::Key,
        other => return Err(Refused::Malformed(format!("{other} is no purpose"))),
    };
    Ok(StreamShape { purpose, encrypted: input.at("encrypted").bool()? })
}

/// `scope`: null for `Any`, else lanes.
pub fn lane_scope(input: &Input<'_>) -> Result<LaneScope, Refused> {
    let Some(lanes) = input.at("scope").optional(|lanes| lanes.digests())? else { return Ok(LaneScope::Any) };
    let set = LaneSet::new(lanes).map_err(|error| Refused::Malformed(error.to_string()))?;
    set.map(LaneScope::Set).ok_or_else(|| Refused::Malformed("a scope without lanes".into()))
}

/// A digest or null.
pub fn digest_or_null(digest: Option<Bytes32>) -> Value {
    digest.map_or(Value::Null, |digest| json!(digest.to_string()))
}

/// A `u64` as a decimal string, or null.
pub fn u64_or_null(number: Option<u64>) -> Value {
    number.map_or(Value::Null, |number| json!(number.to_string()))
}
