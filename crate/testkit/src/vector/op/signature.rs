//! `verify_signature`.

use remuda_verify::signature::{self, PublicKey};
use remuda_wire::Signature;
use serde_json::json;

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// Strict Ed25519 over the message itself, by a key that is new and by one that has its table: both must say the same.
pub fn verify_signature(input: &Input<'_>) -> Answer {
    let (key, message) = (input.at("public_key").digest()?, input.at("message").bytes()?);
    let signature = Signature(input.at("signature").array()?);
    let judged = signature::verify_signature(&key, &message, &signature);
    if let Some(prepared) = PublicKey::parse(&key) {
        prepared.prepare();
        if prepared.verify(&message, &signature) != judged {
            return Err(Refused::Malformed("a key with a table judges otherwise".into()));
        }
    }
    judged?;
    Ok(json!({}))
}
