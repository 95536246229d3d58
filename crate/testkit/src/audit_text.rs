//! An audit report for people. `pkg/bin/audit-text.mjs` prints the same; a fixture holds both to it.

use std::fmt::Write;

use remuda_verify::audit::AuditReport;
use remuda_wire::request::VerificationMode;

/// The report, line by line.
pub fn audit_text(report: &AuditReport) -> String {
    let mut lines = vec![
        format!("verdict: {}", report.verdict.name()),
        format!("{} items, {} records, {} signatures verified", report.items, report.records, report.signatures),
    ];
    for assurance in &report.assurance {
        let mode = match assurance.mode {
            VerificationMode::None => "none",
            VerificationMode::ScopedProofs => "scoped",
            VerificationMode::FullStream => "full",
        };
        let (verified, unverified) = (assurance.verified, assurance.unverified);
        lines.push(format!(
            "subscription {} ({mode}): {verified} records verified, {unverified} not",
            assurance.subscription
        ));
    }
    for finding in &report.findings {
        let mut line = String::from("finding: ");
        // Writing to a string cannot fail.
        let _ = match finding.item {
            Some(item) => write!(line, "item {item}"),
            None => write!(line, "no item"),
        };
        let refusal = &finding.refusal;
        let _ = write!(line, ": {} (CIP-39 §{}): {}", refusal.code(), refusal.section(), refusal.meaning());
        lines.push(line);
    }
    for evidence in &report.evidence {
        let [earlier, later] = evidence.items;
        lines.push(format!("evidence: items {earlier} and {later}: {}", evidence.code.code()));
    }
    lines.extend(report.not_checked.iter().map(|text| format!("not checked: {text}")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use remuda_verify::audit::audit;
    use serde_json::Value;

    use super::audit_text;
    use crate::vector::op::audit::decode_base64;

    /// Of each kind of line at least one, in the words that the package's command uses too.
    #[test]
    fn the_text_is_that_of_the_fixture() {
        let vectors: Value = serde_json::from_str(include_str!("../../../vectors/audit.json")).expect("JSON");
        let fixture: Value = serde_json::from_str(include_str!("../../../pkg/test/audit-text.json")).expect("JSON");
        for (name, text) in fixture.as_object().expect("texts by vector") {
            let vectors = vectors["vectors"].as_array().expect("vectors");
            let vector = vectors.iter().find(|vector| vector["name"] == *name).expect("a vector of that name");
            let file = decode_base64(vector["in"]["file"].as_str().expect("a file")).expect("base64");
            assert_eq!(audit_text(&audit(&file)), text.as_str().expect("a text"), "{name}");
        }
    }
}
