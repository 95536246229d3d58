//! `signing_digest`, `derive`, `body_hash`.

use remuda_verify::key_derivation::{self, SecretBytes};
use remuda_verify::merkle::merkle_root;
use remuda_wire::key::HpkePublicKey;
use remuda_wire::preimage::{self, GroupKey};
use remuda_wire::request::{RequestBody, RequestMethod};
use remuda_wire::signed::SIGNING_REGISTRY;
use remuda_wire::{Address, Bytes32, Canonical};
use serde_json::json;

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// Signing bytes and digest of a signed object.
pub fn signing_digest(input: &Input<'_>) -> Answer {
    let name = input.at("type").text()?;
    let entry = SIGNING_REGISTRY
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| Refused::Malformed(format!("{name} is not a signed type")))?;
    let bytes = (entry.signing_bytes)(&input.at("bytes").bytes()?)?;
    Ok(json!({ "digest": preimage::keccak256(&bytes).to_string(), "signing_bytes": hex::encode(bytes) }))
}

/// The hash that a request proof binds. `body` is the method's struct, without its tag.
pub fn body_hash(input: &Input<'_>) -> Answer {
    let method: u16 = input.at("method").number()?;
    let method = RequestMethod::from_bytes(&method.to_be_bytes())?;
    let tagged = [method.to_bytes(), input.at("body").bytes()?].concat();
    let body = RequestBody::from_bytes(&tagged)?;
    Ok(json!({ "body_hash": preimage::request_body_hash(&body).to_string() }))
}

/// A derived value by its kind.
pub fn derive(input: &Input<'_>) -> Answer {
    let value = match input.at("kind").text()? {
        "aead_associated_data" => preimage::aead_associated_data(&input.at("header").object()?),
        kind @ ("rotation_seed" | "rotation_public_key" | "data_key") => derived_key(kind, input)?,
        other => digest(other, input)?.0.to_vec(),
    };
    Ok(json!({ "value": hex::encode(value) }))
}

/// The kinds that start at a stream root.
fn derived_key(kind: &str, input: &Input<'_>) -> Result<Vec<u8>, Refused> {
    let root = SecretBytes::new(input.at("stream_root").array()?);
    let stream_id = input.at("stream_id").digest()?;
    Ok(match kind {
        "rotation_seed" => key_derivation::rotation_seed(&root, &stream_id).expose().to_vec(),
        "rotation_public_key" => key_derivation::rotation_public_key(&root, &stream_id).to_bytes(),
        _ => {
            let generation = input.at("encryption_generation").u64()?;
            key_derivation::data_key(&root, &stream_id, generation).expose().to_vec()
        }
    })
}

fn digest(kind: &str, input: &Input<'_>) -> Result<Bytes32, Refused> {
    let id = |key: &str| input.at(key).digest();
    let context = || input.at("context").object();
    let with_group = |derive: &dyn Fn(&GroupKey<'_>) -> Result<Bytes32, Refused>| {
        let (context, stream_id, lane_id, group_id) = (context()?, id("stream_id")?, id("lane_id")?, id("group_id")?);
        derive(&GroupKey { context: &context, stream_id: &stream_id, lane_id: &lane_id, group_id: &group_id })
    };
    let record_id = || input.at("record_id").object();
    Ok(match kind {
        "chain_instance_id" => preimage::chain_instance_id(&input.at("genesis_source").bytes()?),
        "stream_id" => preimage::stream_id(
            input.at("chain_id").u64()?,
            &id("chain_instance_id")?,
            &Address(input.at("owner").array()?),
            input.at("owner_nonce").u64()?,
        ),
        "key_stream_id" => preimage::key_stream_id(&id("main_stream_id")?),
        "lane_id" => preimage::lane_id(&id("stream_id")?, &id("lane_nonce")?),
        "signing_key_id" => preimage::signing_key_id(&input.at("key").object()?),
        "stream_receipt_genesis" => preimage::stream_receipt_genesis(&context()?, &id("stream_id")?),
        "checkpoint_genesis" => preimage::checkpoint_genesis(&context()?, &id("stream_id")?),
        "lane_receipt_genesis" => preimage::lane_receipt_genesis(&context()?, &id("stream_id")?, &id("lane_id")?),
        "group_genesis" => with_group(&|group| Ok(preimage::group_genesis(group)))?,
        "group_deleted_state" => {
            preimage::group_deleted_state(&context()?, &id("stream_id")?, &id("lane_id")?, &id("group_id")?)
        }
        "key_batch_genesis" => preimage::key_batch_genesis(&context()?, &id("key_stream_id")?),
        "header_hash" => preimage::record_header_hash(&input.at("header").object()?),
        "lane_event_message_id" => preimage::lane_event_message_id(&input.at("event").object()?),
        "schedule_digest" => preimage::schedule_digest(&input.at("schedule").object()?),
        "envelope_digest" => preimage::envelope_digest(&input.at("envelope").object()?),
        "recipient_order_key" => preimage::recipient_order_key(&input.at("hpke_key").object()?),
        "membership_set_digest" => {
            let keys: Result<Vec<HpkePublicKey>, _> = input.at("hpke_keys").list()?.map(Input::object).collect();
            preimage::membership_set_digest(&keys?)
        }
        "batch_context_digest" => preimage::batch_context_digest(
            &context()?,
            &id("stream_id")?,
            input.at("encryption_generation").u64()?,
            &id("previous_batch_digest")?,
            &id("membership_set_digest")?,
            input.at("created_at_ms").u64()?,
        ),
        "envelope_root" => preimage::envelope_root(
            &context()?,
            &id("key_stream_id")?,
            input.at("encryption_generation").u64()?,
            &id("batch_digest")?,
            &input.at("envelope_digests").digests()?,
        ),
        "initial_delivery_cycle_id" => {
            with_group(&|group| Ok(preimage::initial_delivery_cycle_id(group, &record_id()?)))?
        }
        "redrive_delivery_cycle_id" => with_group(&|group| {
            let (terminal, previous) = (id("terminal_cycle_id")?, id("previous_group_receipt")?);
            Ok(preimage::redrive_delivery_cycle_id(group, &record_id()?, &terminal, &previous))
        })?,
        "lease_id" => with_group(&|group| {
            let (cycle, holder) = (id("delivery_cycle_id")?, id("holder_signing_key_id")?);
            Ok(preimage::lease_id(group, &record_id()?, &cycle, input.at("attempt").number()?, &holder))
        })?,
        "group_config_state" => {
            preimage::group_config_state(&context()?, &id("stream_id")?, &input.at("config").object()?)
        }
        "delivery_result_state" => preimage::delivery_result_state_digest(&context()?, &input.at("state").object()?),
        "fast_record_digest" => preimage::fast_record_digest(
            &context()?,
            &input.at("record_id").object()?,
            &input.at("header").object()?,
            &input.at("payload").bytes()?,
        ),
        "lane_leaf_digest" => preimage::lane_leaf_digest(&id("record_digest")?),
        "lane_sub_root" => {
            let records = input.at("record_digests").digests()?;
            let leaves = records.iter().map(preimage::lane_leaf_digest).collect();
            merkle_root(leaves).ok_or_else(|| Refused::Malformed("a lane without records has no root".into()))?
        }
        "empty_subtree" => preimage::empty_subtree(input.at("depth").number()?),
        _ => return Err(Refused::Malformed(format!("unknown kind {kind}"))),
    })
}
