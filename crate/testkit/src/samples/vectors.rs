//! Standard streams, groups and snapshots: files of the conformance vectors.

use serde_json::Value;

use super::{Family, Sample};
use crate::vector::op::audit::decode_base64;

/// Vector, name, family, title, words, code.
type Row = (&'static str, &'static str, Family, &'static str, &'static str, Option<&'static str>);

const ROWS: [Row; 10] = [
    (
        "standard-honest",
        "honest-standard",
        Family::Honest,
        "A standard stream",
        "A replay from the beginning: every record with its receipt, every receipt in its chains.",
        None,
    ),
    (
        "group-honest",
        "honest-group",
        Family::Honest,
        "A consumer group",
        "A group from its creation, with every change of its state in one chain.",
        None,
    ),
    (
        "snapshot-honest",
        "honest-snapshot",
        Family::Honest,
        "A snapshot",
        "An application’s snapshot, bound to a checkpoint that the provider signed.",
        None,
    ),
    (
        "standard-dropped",
        "dropped-record",
        Family::Lie,
        "A receipt is missing",
        "One record of a standard stream is dropped, so that the chain of receipts has a hole.",
        Some("verify/global-chain"),
    ),
    (
        "standard-refusal-unjustified",
        "false-refusal",
        Family::Lie,
        "A reader is sent away",
        "The provider says that a position is no longer retained, though its own floor says that it is.",
        Some("verify/unjustified-refusal"),
    ),
    (
        "group-gap",
        "group-gap",
        Family::Lie,
        "A group’s history has a hole",
        "A receipt of a consumer group’s chain is missing.",
        Some("verify/group-chain"),
    ),
    (
        "snapshot-bytes",
        "altered-snapshot",
        Family::Lie,
        "A snapshot is altered",
        "The snapshot’s bytes are not those whose hash was signed.",
        Some("verify/snapshot-hash"),
    ),
    (
        "standard-fork",
        "two-receipts",
        Family::Contradiction,
        "Two receipts for one record",
        "Someone else holds another receipt for a record that was served.",
        Some("evidence/append-fork"),
    ),
    (
        "group-fork",
        "two-leases",
        Family::Contradiction,
        "Two leases at one place",
        "Two holders of a group have rival receipts that follow the same one.",
        Some("evidence/group-fork"),
    ),
    (
        "magic",
        "not-an-audit",
        Family::Damaged,
        "Some other file",
        "It does not begin as an audit file does.",
        Some("decode/unknown-version"),
    ),
];

pub(super) fn samples() -> Vec<Sample> {
    let vectors: Value = serde_json::from_str(include_str!("../../../../vectors/audit.json")).expect("JSON");
    let vectors = vectors["vectors"].as_array().expect("vectors");
    let sample = |(vector, name, family, title, says, code): Row| {
        let vector = vectors.iter().find(|it| it["name"] == format!("audit/{vector}")).expect("a vector of that name");
        let file = decode_base64(vector["in"]["file"].as_str().expect("a file")).expect("base64");
        Sample { name, family, title, says, code, file }
    };
    ROWS.into_iter().map(sample).collect()
}
