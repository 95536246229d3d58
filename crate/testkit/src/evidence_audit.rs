//! Files of evidence of the two other families, judged natively beside audit files: the same report, by their own rules.
//!
//! They are no audit files: `RESOLUTIONS.md` §8 fixes what those hold, and a reader that knows no other magic refuses them.

use remuda_bps::evidence::{self as bps, Claim as BpsClaim};
use remuda_verify::audit::AuditVerdict;
use remuda_watchtower::evidence::{self as watchtower, Claim};
use remuda_watchtower::WatchtowerRefusal;
use serde_json::{json, Value};

/// How long a file of evidence may be: two messages and a whole schedule, or two chunks.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// What a judgement came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceReport {
    /// In one word.
    pub verdict: AuditVerdict,
    /// The code and the rule that it is of; `None`: the two get along.
    pub found: Option<(&'static str, String)>,
    /// Whether both are signed, and exclude each other.
    pub contradicts: bool,
    /// What no reader of the file alone can check.
    pub not_checked: &'static str,
}

const SCHEDULE: &str = "whether the key schedule in the file is the publisher's: compare it with one that you trust";
const OWNER: &str = "who the owner is: an address says only that one key signed both";
/// `VERDICTS.md` has no refusal for this: each of the two is valid.
const BPS_CONTRADICTION: &str = "bps contradiction";

/// Judges a file of evidence; `None` for a file of another kind.
pub fn audit_evidence(file: &[u8]) -> Option<EvidenceReport> {
    if file.starts_with(watchtower::MAGIC) {
        let claim = Claim::from_file(file);
        let judged = claim.as_ref().map_err(|refusal| *refusal).and_then(|claim| claim.judge(&claim.schedule));
        let is_read = claim.is_ok();
        return Some(match judged {
            Ok(Some(_)) => report(is_read, Some(WatchtowerRefusal::Equivocation.code()), "sequences", true, SCHEDULE),
            Ok(None) => report(is_read, None, "", false, SCHEDULE),
            Err(refusal) => report(is_read, Some(refusal.code()), refusal.section(), false, SCHEDULE),
        });
    }
    if file.starts_with(bps::MAGIC) {
        let claim = BpsClaim::from_file(file);
        let is_read = claim.is_ok();
        return Some(match claim.and_then(|claim| claim.judge()) {
            Ok(Some(_)) => report(is_read, Some(BPS_CONTRADICTION), "client rules", true, OWNER),
            Ok(None) => report(is_read, None, "", false, OWNER),
            Err(refusal) => report(is_read, Some(refusal.code()), refusal.section(), false, OWNER),
        });
    }
    None
}

fn report(
    is_read: bool,
    code: Option<&'static str>,
    section: &str,
    contradicts: bool,
    not_checked: &'static str,
) -> EvidenceReport {
    let verdict = match (is_read, code) {
        (false, _) => AuditVerdict::Undecodable,
        (true, Some(_)) => AuditVerdict::Violations,
        (true, None) => AuditVerdict::Consistent,
    };
    let document = if not_checked == OWNER { "SWIP-74" } else { "CIP-7" };
    let found = code.map(|code| (code, format!("{document}: {section}")));
    EvidenceReport { verdict, found, contradicts, not_checked }
}

impl EvidenceReport {
    /// In the form of an audit's report.
    pub fn to_json(&self) -> Value {
        let (mut findings, mut evidence) = (Vec::new(), Vec::new());
        match &self.found {
            Some((code, rule)) if self.contradicts => {
                evidence.push(json!({ "code": code, "rule": rule, "items": [0, 1] }))
            }
            Some((code, rule)) => findings.push(json!({ "item": null, "code": code, "rule": rule, "detail": "" })),
            None => {}
        }
        json!({
            "verdict": self.verdict.name(),
            "items": 2,
            "records": 0,
            "signatures": if self.contradicts || self.found.is_none() { 2 } else { 0 },
            "findings": findings,
            "evidence": evidence,
            "assurance": [],
            "not_checked": [self.not_checked],
        })
    }

    /// For people.
    pub fn to_text(&self) -> String {
        let mut lines = vec![format!("verdict: {}", self.verdict.name())];
        lines.extend(self.found.as_ref().map(|(code, rule)| match self.contradicts {
            true => format!("evidence: items 0 and 1: {code} ({rule})"),
            false => format!("finding: {code} ({rule})"),
        }));
        lines.push(format!("not checked: {}", self.not_checked));
        lines.join("\n")
    }
}
