//! A whole file in outline: its head, and what a picture of it needs, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};

use remuda_wire::audit::{AuditHead, AuditItem, AuditSnapshot, HeldObject};
use remuda_wire::chain::BrokerState;
use remuda_wire::checkpoint::CheckpointFrame;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::group::DeliveryStateReceipt;
use remuda_wire::preimage::{keccak256, signing_key_id};
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::request::{OpenSubscriptionRequest, SubscriptionSource, VerificationMode};
use remuda_wire::scope::LaneScope;
use remuda_wire::signed::digest;
use remuda_wire::snapshot::{SnapshotCoverage, SnapshotScope};
use remuda_wire::transition::{BrokerEpochTransition, TransitionKind};
use remuda_wire::Bytes32;
use serde_json::{json, Map, Value};

use crate::cut::{Cutter, Part};
use crate::json::{big, hex, optional_big, optional_hex, Listed};
use crate::objects::of_message;
use crate::page::kind;

/// Every so many items the place of one is remembered: from there the others are found.
const INDEX_STEP: u32 = 256;
/// Lanes and groups that are told apart; the records of further ones are counted together.
const MOST_PLACES: usize = 4_096;
/// Digests by which an object that comes twice is drawn once.
const MOST_DIGESTS: usize = 65_536;
/// Chain reads that are shown.
const MOST_CHAIN_READS: usize = 256;

/// An outline in the making.
#[derive(Debug)]
pub(crate) struct Outline {
    cutter: Cutter,
    facts: Facts,
}

impl Default for Outline {
    fn default() -> Self {
        Self { cutter: Cutter::whole(), facts: Facts::new() }
    }
}

impl Outline {
    pub fn push(&mut self, chunk: &[u8]) {
        let Self { cutter, facts } = self;
        cutter.push(chunk, &mut |part| facts.take(part));
    }

    pub const fn items(&self) -> u32 {
        self.facts.items
    }

    pub fn finish(mut self) -> String {
        let Self { cutter, facts } = &mut self;
        let fault = cutter.finish(&mut |part| facts.take(part));
        let fault = fault.map(|fault| json!({ "item": fault.item, "code": fault.error.code() }));
        self.facts.into_value(fault).to_string()
    }
}

/// What is known of a lane.
#[derive(Debug, Default)]
struct Lane {
    records: u32,
    sequences: Option<(u64, u64)>,
    present: u32,
    absent: u32,
}

#[derive(Debug)]
struct Facts {
    head: Value,
    items: u32,
    index: Vec<u64>,
    kinds: BTreeMap<&'static str, u32>,
    seen: BTreeSet<Bytes32>,
    timeline: Listed,
    receipts: Listed,
    subscriptions: Listed,
    snapshots: Listed,
    lanes: BTreeMap<Bytes32, Lane>,
    groups: BTreeMap<(Bytes32, Bytes32), Listed>,
    /// The checkpoint that shows the most: lanes of both kinds, then present ones. The last of those, and how many.
    checkpoint_with_proofs: Option<(u32, (usize, usize))>,
    /// The first error frame that names a subscription: it ends it, and what comes later for it is judged no further.
    first_end: Option<u32>,
}

impl Facts {
    const fn new() -> Self {
        Self {
            head: Value::Null,
            items: 0,
            index: Vec::new(),
            kinds: BTreeMap::new(),
            seen: BTreeSet::new(),
            timeline: Listed::new(),
            receipts: Listed::new(),
            subscriptions: Listed::new(),
            snapshots: Listed::new(),
            lanes: BTreeMap::new(),
            groups: BTreeMap::new(),
            checkpoint_with_proofs: None,
            first_end: None,
        }
    }

    fn take(&mut self, part: Part<'_>) {
        match part {
            Part::Head { head, bytes, declared } => self.head = head_value(&head, bytes, declared),
            Part::Item { item, offset, content, .. } => {
                if item % INDEX_STEP == 0 {
                    self.index.push(offset);
                }
                self.items = item.saturating_add(1);
                *self.kinds.entry(kind(&content)).or_default() += 1;
                self.item(item, &content);
            }
        }
    }

    fn item(&mut self, item: u32, content: &AuditItem) {
        match content {
            AuditItem::Subscription(request) => self.subscriptions.push(|| subscription(item, request)),
            AuditItem::Held(object) => self.object(item, object, None),
            AuditItem::Snapshot(bundle) => {
                self.snapshots.push(|| snapshot(item, bundle));
                self.object(item, &bundle.receipt, None);
            }
            AuditItem::ServerFrame(bytes) => {
                if let Ok(frame) = ServerFrame::from_bytes(bytes) {
                    self.frame(item, &frame.0);
                }
            }
        }
    }

    fn frame(&mut self, item: u32, message: &ServerMessage) {
        let mut named = None;
        match message {
            ServerMessage::Delivery(delivery) => self.delivery(delivery),
            ServerMessage::Checkpoint(frame) => {
                named = Some(frame.subscription_id);
                self.proofs(item, frame);
            }
            ServerMessage::Error(error) if error.subscription_id.is_some() => {
                self.first_end.get_or_insert(item);
            }
            _ => {}
        }
        for object in of_message(message) {
            self.object(item, &object, named);
        }
    }

    fn delivery(&mut self, delivery: &RecordDelivery) {
        let sequence = delivery.record_id.sequence();
        if let Some(lane) = self.lane(delivery.header.lane_id) {
            lane.records += 1;
            let (first, last) = lane.sequences.unwrap_or((sequence, sequence));
            lane.sequences = Some((first.min(sequence), last.max(sequence)));
        }
    }

    fn proofs(&mut self, item: u32, frame: &CheckpointFrame) {
        let present = frame.lanes.iter().filter(|proof| proof.payload.is_some()).count();
        let proven = (present.min(frame.lanes.len() - present), present);
        if !frame.lanes.is_empty() && self.checkpoint_with_proofs.is_none_or(|(_, most)| proven >= most) {
            self.checkpoint_with_proofs = Some((item, proven));
        }
        for proof in frame.lanes.iter() {
            let Some(lane) = self.lane(proof.lane_id) else { continue };
            match &proof.payload {
                Some(_) => lane.present += 1,
                None => lane.absent += 1,
            }
        }
    }

    fn lane(&mut self, id: Bytes32) -> Option<&mut Lane> {
        if self.lanes.len() >= MOST_PLACES && !self.lanes.contains_key(&id) {
            return None;
        }
        Some(self.lanes.entry(id).or_default())
    }

    /// A signed object: once, however often it came.
    fn object(&mut self, item: u32, object: &HeldObject, subscription: Option<Bytes32>) {
        let digest = digest(object.signed());
        if self.seen.contains(&digest) {
            return;
        }
        if self.seen.len() < MOST_DIGESTS {
            self.seen.insert(digest);
        }
        match object {
            HeldObject::AppendReceipt(receipt) => self.receipts.push(|| append_receipt(item, receipt, &digest)),
            HeldObject::DeliveryStateReceipt(receipt) => self.group_receipt(item, receipt, &digest),
            HeldObject::KeyBatchReceipt(_) => {}
            HeldObject::CheckpointReceipt(receipt) => self.timeline.push(|| {
                json!({
                    "kind": "checkpoint", "item": item, "digest": hex(&digest), "previous": hex(&receipt.previous_checkpoint),
                    "epoch": big(receipt.broker_epoch), "first": big(receipt.first_sequence), "last": big(receipt.last_sequence),
                    "records": receipt.record_count(), "atMs": big(receipt.committed_at_ms), "height": big(receipt.served_at.height),
                    "subscription": optional_hex(subscription.as_ref()),
                })
            }),
            HeldObject::BrokerEpochTransition(receipt) => self.timeline.push(|| transition(item, receipt, &digest)),
            HeldObject::FastRetentionAnchor(anchor) => self.timeline.push(|| {
                json!({
                    "kind": "floor", "of": "epoch", "item": item, "digest": hex(&digest), "previous": hex(&anchor.previous_checkpoint),
                    "epoch": big(anchor.broker_epoch), "first": big(anchor.first_retained_sequence),
                    "atMs": big(anchor.committed_at_ms), "height": big(anchor.served_at.height), "lane": null, "group": null,
                })
            }),
            HeldObject::StandardRetentionAnchor(anchor) => self.timeline.push(|| {
                let of = if anchor.lane_id.is_some() { "lane" } else { "stream" };
                json!({
                    "kind": "floor", "of": of, "item": item, "digest": hex(&digest), "previous": hex(&anchor.previous_global_receipt),
                    "epoch": null, "first": big(anchor.first_retained_sequence), "atMs": big(anchor.committed_at_ms),
                    "height": big(anchor.served_at.height), "lane": optional_hex(anchor.lane_id.as_ref()), "group": null,
                })
            }),
            HeldObject::GroupRetentionAnchor(anchor) => self.timeline.push(|| {
                json!({
                    "kind": "floor", "of": "group", "item": item, "digest": hex(&digest), "previous": hex(&anchor.latest_retained_receipt),
                    "epoch": null, "first": big(anchor.group_queue_sequence), "atMs": big(anchor.committed_at_ms),
                    "height": big(anchor.served_at.height), "lane": hex(&anchor.lane_id), "group": hex(&anchor.group_id),
                })
            }),
        }
    }

    fn group_receipt(&mut self, item: u32, receipt: &DeliveryStateReceipt, digest: &Bytes32) {
        let place = (receipt.lane_id, receipt.group_id);
        if self.groups.len() >= MOST_PLACES && !self.groups.contains_key(&place) {
            return;
        }
        self.groups.entry(place).or_insert_with(Listed::new).push(|| {
            json!({
                "item": item, "digest": hex(digest), "previous": hex(&receipt.previous_group_receipt),
                "action": format!("{:?}", receipt.action), "sequence": optional_big(receipt.record_id.map(|id| id.sequence)),
                "atMs": big(receipt.committed_at_ms),
            })
        });
    }

    fn into_value(self, fault: Option<Value>) -> Value {
        let lanes = self.lanes.iter().map(|(id, lane)| {
            json!({
                "lane": hex(id), "records": lane.records, "first": optional_big(lane.sequences.map(|(first, _)| first)),
                "last": optional_big(lane.sequences.map(|(_, last)| last)), "present": lane.present, "absent": lane.absent,
            })
        });
        let lanes: Vec<_> = lanes.collect();
        let groups = self.groups.into_iter().map(|((lane, group), receipts)| {
            json!({ "lane": hex(&lane), "group": hex(&group), "receipts": receipts.into_value() })
        });
        let groups: Vec<_> = groups.collect();
        let kinds: Map<_, _> = self.kinds.into_iter().map(|(kind, count)| (kind.to_owned(), count.into())).collect();
        json!({
            "head": self.head,
            "items": self.items,
            "fault": fault,
            "indexStep": INDEX_STEP,
            "index": self.index,
            "kinds": kinds,
            "timeline": self.timeline.into_value(),
            "receipts": self.receipts.into_value(),
            "subscriptions": self.subscriptions.into_value(),
            "snapshots": self.snapshots.into_value(),
            "lanes": lanes,
            "groups": groups,
            "checkpointWithProofs": self.checkpoint_with_proofs.map(|(item, _)| item),
            "firstEnd": self.first_end,
        })
    }
}

fn head_value(head: &AuditHead, bytes: usize, declared: u32) -> Value {
    json!({
        "chainId": big(head.context.chain_id),
        "chainInstance": hex(&head.context.chain_instance_id),
        "stream": hex(&head.stream_id),
        "chainReads": head.chain.len(),
        "chain": head.chain.iter().take(MOST_CHAIN_READS).map(chain_read).collect::<Vec<_>>(),
        "bytes": bytes,
        "declaredItems": declared,
    })
}

fn chain_read(read: &BrokerState) -> Value {
    let stream = read.stream.as_ref().map(|stream| {
        json!({
            "class": format!("{:?}", stream.delivery_class), "status": format!("{:?}", stream.status),
            "purpose": format!("{:?}", stream.purpose), "encrypted": stream.encrypted,
            "provider": stream.provider.to_string(), "providerKey": hex(&stream.provider_signing_key.0),
        })
    });
    json!({ "height": big(read.view.height), "block": hex(&read.view.block_hash), "stream": stream })
}

fn subscription(item: u32, request: &OpenSubscriptionRequest) -> Value {
    let lanes = |scope: &LaneScope| scope.lanes().map(<[Bytes32]>::len);
    let (source, lanes, after) = match &request.source {
        SubscriptionSource::Fast(fast) => ("fast", lanes(&fast.scope), fast.after.map(|id| id.sequence)),
        SubscriptionSource::StandardReplay(replay) => {
            ("replay", lanes(&replay.scope), replay.after.map(|id| id.sequence))
        }
        SubscriptionSource::StandardGroup(_) => ("group", Some(1), None),
        SubscriptionSource::DeadLetters(source) => ("dead-letters", Some(1), source.after.map(|id| id.sequence)),
    };
    let mode = match request.verification {
        VerificationMode::None => "none",
        VerificationMode::ScopedProofs => "scoped",
        VerificationMode::FullStream => "full",
    };
    json!({
        "item": item, "subscription": hex(&request.subscription_id), "source": source, "mode": mode, "lanes": lanes,
        "after": optional_big(after),
    })
}

fn transition(item: u32, transition: &BrokerEpochTransition, digest: &Bytes32) -> Value {
    let kind = match transition.kind {
        TransitionKind::Clean => "clean",
        TransitionKind::Void => "void",
    };
    json!({
        "kind": "transition", "transition": kind, "item": item, "digest": hex(digest),
        "previous": hex(&transition.last_durable_checkpoint),
        "fromEpoch": optional_big(transition.previous_lineage.map(|lineage| lineage.broker_epoch)),
        "epoch": big(transition.replacement_broker_epoch), "lastDurable": optional_big(transition.last_durable_sequence),
        "lastProvisional": optional_big(transition.last_provisional_sequence), "atMs": big(transition.created_at_ms),
        "height": big(transition.served_at.height),
    })
}

fn append_receipt(item: u32, receipt: &AppendReceipt, digest: &Bytes32) -> Value {
    json!({
        "item": item, "digest": hex(digest), "lane": hex(&receipt.lane_id), "sequence": big(receipt.record_id.sequence()),
        "recordKind": format!("{:?}", receipt.kind), "previousInStream": hex(&receipt.previous_global_receipt),
        "previousInLane": hex(&receipt.previous_lane_receipt), "atMs": big(receipt.committed_at_ms),
    })
}

fn snapshot(item: u32, bundle: &AuditSnapshot) -> Value {
    let manifest = &bundle.manifest;
    let lane = match &manifest.scope {
        SnapshotScope::Stream => None,
        SnapshotScope::Lane(lane) => Some(lane),
    };
    let (sequence, checkpoint) = match &manifest.covered_through {
        SnapshotCoverage::StandardRecordId(id) => (Some(id.sequence), None),
        SnapshotCoverage::CheckpointReceiptDigest(digest) => (None, Some(digest)),
    };
    json!({
        "item": item, "lane": optional_hex(lane), "bytes": bundle.bytes.len(), "hash": hex(&manifest.snapshot_hash),
        "computedHash": hex(&keccak256(&bundle.bytes)), "throughSequence": optional_big(sequence),
        "throughCheckpoint": optional_hex(checkpoint), "generation": big(manifest.encryption_generation),
        "anchor": hex(&manifest.provider_anchor), "receiptDigest": hex(&digest(bundle.receipt.signed())),
        "receiptKind": if matches!(bundle.receipt, HeldObject::CheckpointReceipt(_)) { "checkpoint" } else { "receipt" },
        "signer": hex(&signing_key_id(&bundle.application_key)),
    })
}
