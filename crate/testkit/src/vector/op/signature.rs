//! `verify_signature`.

use remuda_verify::signature;
use remuda_wire::Signature;
use serde_json::json;

use crate::vector::input::Input;
use crate::vector::Answer;

/// Strict Ed25519 over the message itself.
pub fn verify_signature(input: &Input<'_>) -> Answer {
    let (key, message) = (input.at("public_key").digest()?, input.at("message").bytes()?);
    signature::verify_signature(&key, &message, &Signature(input.at("signature").array()?))?;
    Ok(json!({}))
}
