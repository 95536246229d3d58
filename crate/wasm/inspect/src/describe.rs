//! One item in full.

use remuda_wire::audit::{AuditItem, HeldObject};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::signed::digest;
use remuda_wire::Canonical;
use serde_json::{json, Value};

use crate::json::hex;
use crate::objects::provider_objects;
use crate::page::kind;
use crate::path::lane_proof;

/// How much of a text is for people.
const MOST_CHARACTERS: usize = 16_384;

/// What the item says, field by field in the names of the specification, and of a checkpoint every lane proof.
pub(crate) fn describe(bytes: &[u8]) -> Option<Value> {
    let item = AuditItem::from_bytes(bytes).ok()?;
    let mut why = None;
    let frame = match &item {
        AuditItem::ServerFrame(bytes) => {
            ServerFrame::from_bytes(bytes).map_err(|error| why = Some(error.code())).ok().map(|frame| frame.0)
        }
        _ => None,
    };
    let proofs: Vec<_> = match &frame {
        Some(ServerMessage::Checkpoint(frame)) => {
            frame.lanes.iter().map(|proof| lane_proof(&frame.receipt, proof)).collect()
        }
        _ => Vec::new(),
    };
    let objects = provider_objects(&item);
    let text = bounded(frame.map_or_else(|| format!("{item:#?}"), |message| format!("{message:#?}")));
    let object =
        |object| json!({ "digest": hex(&digest(HeldObject::signed(object))), "text": bounded(format!("{object:#?}")) });
    Some(json!({
        "kind": kind(&item),
        "text": text,
        "undecodable": why,
        "objects": objects.iter().map(object).collect::<Vec<_>>(),
        "proofs": proofs,
    }))
}

fn bounded(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MOST_CHARACTERS) {
        text.truncate(end);
        text.push('…');
    }
    text
}
