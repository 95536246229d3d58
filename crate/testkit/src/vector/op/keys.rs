//! `key_batch`, `envelope_open`, `aead_open`.

use remuda_verify::authentic::OneKey;
use remuda_verify::key_batch::{batch_context_digest, KeyBatchPosition};
use remuda_verify::key_derivation::SecretBytes;
use remuda_verify::signature::PublicKey;
use remuda_verify::{open, payload};
use remuda_wire::frame::ServerFrame;
use remuda_wire::key::{HpkePublicKey, SigningPublicKey};
use remuda_wire::key_batch::{KeyBatchReceipt, KeyEnvelope, KeyRotationBatch};
use remuda_wire::record::RecordHeader;
use serde_json::json;

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// A batch, its envelopes, and where given its receipt and records.
pub fn key_batch(input: &Input<'_>) -> Answer {
    let (context, main_stream_id) = (input.at("context").object()?, input.at("main_stream_id").digest()?);
    let members: Result<Vec<HpkePublicKey>, _> = input.at("members").list()?.map(Input::object).collect();
    let members = members?;
    let rotation_key: SigningPublicKey = input.at("rotation_key").object()?;
    let provider_key: SigningPublicKey = input.at("provider_key").object()?;
    let batch: KeyRotationBatch = input.at("batch").object()?;
    let envelopes: Result<Vec<KeyEnvelope>, _> = input.at("envelopes").list()?.map(Input::object).collect();
    let envelopes = envelopes?;
    let receipt: Option<KeyBatchReceipt> = input.at("receipt").optional(Input::object)?;
    let frames = input.at("frames").optional(frames)?;
    let global_tail = input.at("global_tail").optional(Input::digest)?;
    let position = KeyBatchPosition {
        context: &context,
        main_stream_id: &main_stream_id,
        rotation_key: &rotation_key,
        active_generation: input.at("active_generation").u64()?,
        batch_tail: input.at("batch_tail").optional(Input::digest)?,
        members: &members,
    };
    let keys = OneKey(PublicKey::from_signing_key(&provider_key));

    let batch = position.verify(batch, envelopes)?;
    let receipt = receipt.map(|receipt| batch.verify_receipt(receipt, &keys)).transpose()?;
    let records = frames.map(|frames| batch.verify_records(&frames, receipt.as_ref(), global_tail, &keys));
    let mut ok = json!({
        "batch_digest": batch.digest().to_string(),
        "membership_set_digest": batch.batch().membership_set_digest.to_string(),
        "envelope_root": batch.envelope_root().to_string(),
        "batch_context_digest": batch_context_digest(batch.batch()).to_string(),
    });
    if let Some(tail) = records.transpose()? {
        ok["global_tail"] = tail.to_string().into();
    }
    if let Some(receipt) = receipt {
        ok["receipt_digest"] = receipt.digest().to_string().into();
    }
    Ok(ok)
}

/// A member opens its envelope.
pub fn envelope_open(input: &Input<'_>) -> Answer {
    let (envelope, batch) = (input.at("envelope").object()?, input.at("batch").object()?);
    let secret = SecretBytes::new(input.at("recipient_secret_key").array()?);
    let data_key = open::open_envelope(&envelope, &batch, &secret)?;
    Ok(json!({
        "data_key": hex::encode(data_key.expose()),
        "associated_data": hex::encode(open::envelope_associated_data(&envelope, &batch)),
    }))
}

/// A member opens a payload.
pub fn aead_open(input: &Input<'_>) -> Answer {
    let key = SecretBytes::new(input.at("key").array()?);
    let header: RecordHeader = input.at("header").object()?;
    let plaintext = payload::open_payload(&key, &header, &input.at("payload").bytes()?)?;
    Ok(json!({ "plaintext": hex::encode(plaintext) }))
}

fn frames(input: Input<'_>) -> Result<Vec<ServerFrame>, Refused> {
    input.list()?.map(|frame| Ok(ServerFrame::from_bytes(&frame.bytes()?)?)).collect()
}
