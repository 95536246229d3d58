//! `merkle_root`, `sparse_root`, `sparse_prove`, `sparse_proof_root`, `lane_payload`, `ordered_range`.

use remuda_verify::merkle::merkle_root as root_of_list;
use remuda_verify::sparse::{root_from_proof, Proof, SparseMap};
use remuda_wire::preimage::{fast_ordered_range_root, lane_payload_digest};
use remuda_wire::Bytes32;
use serde_json::json;

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// The root of an ordered list.
pub fn merkle_root(input: &Input<'_>) -> Answer {
    let root = root_of_list(input.at("leaves").digests()?)
        .ok_or_else(|| Refused::Malformed("an empty list has no root".into()))?;
    Ok(json!({ "root": root.to_string() }))
}

fn map(input: &Input<'_>) -> Result<SparseMap, Refused> {
    let entries: Result<Vec<(Bytes32, Bytes32)>, Refused> = input
        .at("entries")
        .list()?
        .map(|pair| match pair.digests()?.as_slice() {
            [key, leaf] => Ok((*key, *leaf)),
            _ => Err(Refused::Malformed("an entry is a pair".into())),
        })
        .collect();
    Ok(SparseMap::new(entries?))
}

/// The root of a sparse map.
pub fn sparse_root(input: &Input<'_>) -> Answer {
    Ok(json!({ "root": map(input)?.root().to_string() }))
}

/// The canonical proof at one key.
pub fn sparse_prove(input: &Input<'_>) -> Answer {
    let map = map(input)?;
    let proof = map.prove(&input.at("key").digest()?);
    let siblings: Vec<_> = proof.siblings.iter().map(Bytes32::to_string).collect();
    Ok(json!({
        "root": map.root().to_string(),
        "leaf": proof.leaf.map(|leaf| leaf.to_string()),
        "bitmap": proof.bitmap.to_string(),
        "siblings": siblings,
    }))
}

/// The root that a proof folds to.
pub fn sparse_proof_root(input: &Input<'_>) -> Answer {
    let (key, bitmap, siblings) =
        (input.at("key").digest()?, input.at("bitmap").digest()?, input.at("siblings").digests()?);
    let leaf = input.at("leaf").optional(Input::digest)?;
    let root = root_from_proof(&Proof { key: &key, leaf, bitmap: &bitmap, siblings: &siblings })?;
    Ok(json!({ "root": root.to_string() }))
}

/// The leaf of one lane in the map.
pub fn lane_payload(input: &Input<'_>) -> Answer {
    let digest = lane_payload_digest(&input.at("lane_id").digest()?, &input.at("payload").object()?);
    Ok(json!({ "digest": digest.to_string() }))
}

/// What a checkpoint signs.
pub fn ordered_range(input: &Input<'_>) -> Answer {
    let root = fast_ordered_range_root(
        &input.at("context").object()?,
        &input.at("stream_id").digest()?,
        input.at("broker_epoch").u64()?,
        input.at("first_sequence").u64()?,
        input.at("last_sequence").u64()?,
        input.at("record_count").number()?,
        &input.at("lane_map_root").digest()?,
    );
    Ok(json!({ "root": root.to_string() }))
}
