//! Files of evidence are judged by their own rules, and are no audit files.

use remuda_bps::evidence::Equivocation as BpsEquivocation;
use remuda_bps::signature::LocalSigner;
use remuda_bps::soc::UnsignedChunk;
use remuda_bps::topic::{session_topic, update_id, KIND_DATA};
use remuda_bps::{Broadcast, Cohort};
use remuda_testkit::evidence_audit::audit_evidence;
use remuda_verify::audit::{audit, AuditVerdict};
use remuda_wire::Bytes32;

const TOPIC: Bytes32 = Bytes32([7; 32]);

fn update(signer: &LocalSigner, payload: &[u8]) -> Broadcast {
    let id = update_id(&session_topic(&TOPIC, KIND_DATA, &TOPIC), 5);
    let chunk = UnsignedChunk::new(id, payload).expect("short enough");
    let soc = chunk.sign(&signer.address(), &signer.sign(&chunk.message()).expect("signed")).expect("by its owner");
    Broadcast { soc, kind: KIND_DATA.into(), challenge: TOPIC.0.into(), index: 5 }
}

fn file() -> Vec<u8> {
    let signer = LocalSigner::new(&[0x63; 32]).expect("a key");
    let cohort = Cohort { topic: TOPIC, admin: signer.address() };
    let found = BpsEquivocation::judge(&cohort, update(&signer, b"one"), update(&signer, b"other"));
    found.expect("both are signed").expect("a contradiction").to_file(&cohort).expect("bounded")
}

#[test]
fn a_contradiction_is_a_violation_that_two_items_show() {
    let report = audit_evidence(&file()).expect("a file of evidence");
    assert_eq!((report.verdict, report.contradicts), (AuditVerdict::Violations, true));
    let json = report.to_json();
    assert_eq!((&json["verdict"], &json["signatures"]), (&"violations".into(), &2.into()));
    assert_eq!(json["evidence"][0]["items"], serde_json::json!([0, 1]));
    assert!(report.to_text().contains("evidence: items 0 and 1"));
}

#[test]
fn no_changed_byte_leaves_the_same_accusation() {
    let file = file();
    for at in 0..file.len() {
        let mut bent = file.clone();
        bent[at] ^= 1;
        let accuses = audit_evidence(&bent).is_some_and(|report| report.contradicts);
        assert!(!accuses, "byte {at}");
    }
    assert_eq!(audit_evidence(&file[..20]).expect("its magic is there").verdict, AuditVerdict::Undecodable);
}

/// The kinds of items of an audit file are fixed: whoever knows only those refuses this by name.
#[test]
fn it_is_no_audit_file() {
    let report = audit(&file());
    assert_eq!(report.verdict, AuditVerdict::Undecodable);
    assert_eq!(report.findings[0].refusal.code(), "decode/unknown-version");
    assert!(audit_evidence(b"CBQSAUD1").is_none());
}
