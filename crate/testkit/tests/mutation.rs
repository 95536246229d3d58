//! No byte of a frame in an accepted receipt chain is unsigned, nor any of a provider object in an accepted audit.
//!
//! One bit of each byte is flipped, another one in the next, and all eight in the first bytes of each object; all eight of all
//! bytes take minutes: that run is ignored here and part of `cargo xtask fuzz`. What no signature covers is the written list
//! `spec/UNSIGNED.md`.

use remuda_testkit::vector::op::audit::decode_base64;
use remuda_testkit::vector::{run_file, Verdict};
use remuda_verify::audit::{audit, AuditVerdict};
use remuda_wire::audit::{AuditHead, AuditItem, HeldObject};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::{Canonical, Reader};
use serde_json::{json, Value};

fn vectors(family: &str) -> Vec<Value> {
    let path = format!("{}/../../vectors/{family}.json", env!("CARGO_MANIFEST_DIR"));
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a vector file")).expect("JSON");
    file["vectors"].as_array().expect("vectors").clone()
}

fn accepts(vector: &Value) -> bool {
    let mut vector = vector.clone();
    vector["expect"] = json!({ "ok": {} });
    let file = json!({ "format": 1, "vectors": [vector] }).to_string();
    let mut accepted = false;
    run_file(&file, &mut |report| accepted = report.verdict == Verdict::Pass).expect("a runnable file");
    accepted
}

/// Each byte of the last of the first `frames` frames, bent in turn.
fn every_byte_matters(family: &str, name: &str, frames: usize) {
    let mut vector = vectors(family).into_iter().find(|vector| vector["name"] == name).expect("a vector of that name");
    let kept = vector["in"]["frames"].as_array().expect("frames")[..frames].to_vec();
    let honest = hex::decode(kept[frames - 1].as_str().expect("hex")).expect("hex");
    vector["in"]["frames"] = json!(kept);
    assert!(accepts(&vector), "{name} is accepted as it is");
    for at in 0..honest.len() {
        let mut bent = honest.clone();
        bent[at] ^= 1 << (at % 8);
        vector["in"]["frames"][frames - 1] = json!(hex::encode(&bent));
        assert!(!accepts(&vector), "{name}: byte {at} of frame {frames} goes unnoticed");
    }
}

#[test]
fn of_a_replayed_record() {
    every_byte_matters("append", "append_chain/accept-any-1", 1);
    every_byte_matters("append", "append_chain/accept-any-1", 2);
}

#[test]
fn of_group_frames_and_leased_records() {
    for frames in 1..=3 {
        every_byte_matters("group", "group_chain/accept-life", frames);
    }
}

/// The provider objects of an item, as bytes.
fn provider_objects(item: &AuditItem) -> Vec<Vec<u8>> {
    let held = |object: &HeldObject| object.to_bytes()[1..].to_vec();
    match item {
        AuditItem::Subscription(_) => vec![],
        AuditItem::Held(object) => vec![held(object)],
        AuditItem::Snapshot(snapshot) => vec![held(&snapshot.receipt), snapshot.manifest.to_bytes()],
        AuditItem::ServerFrame(bytes) => match ServerFrame::from_bytes(bytes).expect("an accepted file").0 {
            ServerMessage::Delivery(delivery) => [
                delivery.append_receipt.map(|receipt| receipt.to_bytes()),
                delivery.delivery_state_receipt.map(|receipt| receipt.to_bytes()),
            ]
            .into_iter()
            .flatten()
            .collect(),
            ServerMessage::Checkpoint(frame) => vec![frame.receipt.to_bytes()],
            ServerMessage::BrokerEpochTransition(transition) => vec![transition.to_bytes()],
            ServerMessage::DeliveryState(update) => vec![update.to_bytes()],
            ServerMessage::GroupState(update) => vec![update.to_bytes()],
            _ => vec![],
        },
    }
}

/// How many bytes of an object are bent in all eight bits in every run.
const WHOLE_BYTES: usize = 48;

#[test]
fn of_provider_objects_in_accepted_audits() {
    every_object_matters(|at| if at < WHOLE_BYTES { 0..8 } else { at % 8..at % 8 + 1 });
}

#[test]
#[ignore = "takes minutes: part of `cargo xtask fuzz`"]
fn every_bit_of_provider_objects_in_accepted_audits() {
    every_object_matters(|_| 0..8);
}

/// Bends every byte of every provider object in those bits that `bits` gives for its place in the object.
fn every_object_matters(bits: fn(usize) -> std::ops::Range<usize>) {
    let names = [
        "scoped-honest",
        "full-honest",
        "restart-honest",
        "standard-lane-honest",
        "group-honest",
        "dead-letters",
        "snapshot-honest",
        "key-receipt",
        "floor-of-other-epoch",
    ];
    let mut objects = 0;
    for vector in
        vectors("audit").iter().filter(|vector| names.iter().any(|name| vector["name"] == format!("audit/{name}")))
    {
        let file = decode_base64(vector["in"]["file"].as_str().expect("a file")).expect("base64");
        assert_eq!(audit(&file).verdict, AuditVerdict::Consistent);
        let mut reader = Reader::new(&file);
        AuditHead::decode(&mut reader).expect("a head");
        let count = u32::decode(&mut reader).expect("a count");
        for _ in 0..count {
            let start = file.len() - reader.remaining();
            let item = AuditItem::decode(&mut reader).expect("an item");
            let whole = &file[start..file.len() - reader.remaining()];
            for object in provider_objects(&item) {
                objects += 1;
                let within = whole.windows(object.len()).position(|window| window == object).expect("its own bytes");
                let mut bent = file.clone();
                for (at, bit) in (0..object.len()).flat_map(|at| bits(at).map(move |bit| (at, bit))) {
                    bent[start + within + at] ^= 1 << bit;
                    let verdict = audit(&bent).verdict;
                    let name = &vector["name"];
                    assert_ne!(verdict, AuditVerdict::Consistent, "{name}: bit {bit} of byte {at} goes unnoticed");
                    bent[start + within + at] ^= 1 << bit;
                }
            }
        }
    }
    assert!(objects >= 20, "only {objects} objects were bent");
}
