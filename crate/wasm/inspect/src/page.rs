//! Some items, each with what it is and where it lies.

use remuda_wire::audit::{AuditItem, HeldObject};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use serde_json::{json, Value};

use crate::cut::{Cutter, Part};

/// Items `first..first + count`, of the bytes from another item on.
#[derive(Debug)]
pub(crate) struct Page {
    cutter: Cutter,
    first: u32,
    count: u32,
    rows: Vec<Value>,
}

impl Page {
    pub const fn new(at: u32, first: u32, count: u32) -> Self {
        Self { cutter: Cutter::from_item(at), first, count, rows: Vec::new() }
    }

    pub fn push(&mut self, chunk: &[u8]) -> bool {
        let Self { cutter, first, count, rows } = self;
        cutter.push(chunk, &mut |part| take(part, *first, *count, rows));
        usize::try_from(self.count).is_ok_and(|count| self.rows.len() >= count)
    }

    pub fn finish(mut self) -> String {
        let Self { cutter, first, count, rows } = &mut self;
        // That items beyond are cut is no fault of these.
        let _ = cutter.finish(&mut |part| take(part, *first, *count, rows));
        Value::from(self.rows).to_string()
    }
}

fn take(part: Part<'_>, first: u32, count: u32, rows: &mut Vec<Value>) {
    let Part::Item { item, offset, bytes, content } = part else { return };
    if item >= first && item - first < count {
        rows.push(json!({ "item": item, "offset": offset, "length": bytes.len(), "kind": kind(&content) }));
    }
}

/// The stable name of what an item is.
pub(crate) fn kind(item: &AuditItem) -> &'static str {
    match item {
        AuditItem::Subscription(_) => "subscription",
        AuditItem::Snapshot(_) => "snapshot",
        AuditItem::Held(object) => held_kind(object),
        AuditItem::ServerFrame(bytes) => ServerFrame::from_bytes(bytes).map_or("undecodable", |frame| match frame.0 {
            ServerMessage::SessionChallenge(_) | ServerMessage::SessionOpened(_) => "session",
            ServerMessage::Response(_) => "response",
            ServerMessage::Delivery(_) => "record",
            ServerMessage::Checkpoint(_) => "checkpoint",
            ServerMessage::BrokerEpochTransition(_) => "transition",
            ServerMessage::Error(_) => "error",
            ServerMessage::DeliveryState(_) | ServerMessage::GroupState(_) => "group",
        }),
    }
}

const fn held_kind(object: &HeldObject) -> &'static str {
    match object {
        HeldObject::AppendReceipt(_) => "held-receipt",
        HeldObject::CheckpointReceipt(_) => "held-checkpoint",
        HeldObject::BrokerEpochTransition(_) => "held-transition",
        HeldObject::DeliveryStateReceipt(_) => "held-group-receipt",
        HeldObject::StandardRetentionAnchor(_)
        | HeldObject::GroupRetentionAnchor(_)
        | HeldObject::FastRetentionAnchor(_) => "held-floor",
        HeldObject::KeyBatchReceipt(_) => "held-key-batch",
    }
}
