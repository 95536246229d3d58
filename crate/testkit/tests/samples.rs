//! Each sample of the auditor's page is what its label says, and the page has these very files.

use std::path::Path;

use remuda_testkit::evidence_audit::audit_evidence;
use remuda_testkit::samples::{index, samples, Family};
use remuda_verify::audit::{audit, AuditVerdict};

#[test]
fn every_sample_is_judged_as_its_label_says() {
    for sample in samples() {
        let name = sample.name;
        if let Some(report) = audit_evidence(&sample.file) {
            assert_eq!((report.contradicts, report.found.map(|(code, _)| code)), (true, sample.code), "{name}");
            continue;
        }
        let report = audit(&sample.file);
        let expected = match sample.family {
            Family::Honest => AuditVerdict::Consistent,
            Family::Lie | Family::Contradiction => AuditVerdict::Violations,
            Family::Damaged => AuditVerdict::Undecodable,
        };
        assert_eq!(report.verdict, expected, "{name}: {report:?}");
        let codes = report.findings.iter().map(|finding| finding.refusal.code());
        let codes: Vec<_> = codes.chain(report.evidence.iter().map(|evidence| evidence.code.code())).collect();
        assert!(sample.code.is_none_or(|code| codes.contains(&code)), "{name}: {codes:?}");
        assert_eq!(report.evidence.is_empty(), sample.family != Family::Contradiction, "{name}: {codes:?}");
        if sample.family == Family::Lie {
            assert_eq!(report.findings.len(), 1, "{name}: one lie, one finding: {codes:?}");
        }
    }
}

#[test]
fn the_page_has_these_samples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../www/public/samples");
    let is_there = |name: &str, bytes: &[u8]| std::fs::read(folder.join(name)).is_ok_and(|found| found == bytes);
    assert!(is_there("index.json", index().as_bytes()), "run `cargo xtask samples`");
    for sample in samples() {
        assert!(
            is_there(&format!("{}.audit", sample.name), &sample.file),
            "{}: run `cargo xtask samples`",
            sample.name
        );
    }
}
