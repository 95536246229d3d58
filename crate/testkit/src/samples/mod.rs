//! Samples of audit files and files of evidence, honest and dishonest: what the auditor's page opens with one click.

mod evidence;
mod lies;
mod story;
mod vectors;

use remuda_wire::audit::{AuditHead, AuditItem};
use remuda_wire::Canonical;

/// One file, and what is to be said of it before it is opened.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The name of its file, without an ending.
    pub name: &'static str,
    /// Which of the lists of the page it is in.
    pub family: Family,
    /// A few words.
    pub title: &'static str,
    /// What was done, in one sentence.
    pub says: &'static str,
    /// The code that a judgement must name; `None` for an honest file.
    pub code: Option<&'static str>,
    /// Its bytes.
    pub file: Vec<u8>,
}

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Nobody lied.
    Honest,
    /// A provider lied in what it served.
    Lie,
    /// A provider signed two things that exclude each other.
    Contradiction,
    /// No audit file at all.
    Damaged,
}

impl Family {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Lie => "lie",
            Self::Contradiction => "contradiction",
            Self::Damaged => "damaged",
        }
    }
}

/// All samples, in the order in which they are shown. The same bytes each time.
pub fn samples() -> Vec<Sample> {
    let mut samples = lies::samples();
    samples.extend(vectors::samples());
    samples.extend(evidence::samples());
    samples.sort_by_key(|sample| {
        [Family::Honest, Family::Lie, Family::Contradiction, Family::Damaged]
            .iter()
            .position(|family| *family == sample.family)
    });
    samples
}

/// The page's list of them: JSON.
pub fn index() -> String {
    let rows = samples().into_iter().map(|sample| {
        serde_json::json!({
            "file": format!("{}.audit", sample.name), "family": sample.family.name(), "title": sample.title, "says": sample.says,
            "code": sample.code, "bytes": sample.file.len(),
        })
    });
    let rows: Vec<_> = rows.map(|row| format!("  {row}")).collect();
    format!("[\n{}\n]\n", rows.join(",\n"))
}

/// An audit file of these items.
fn audit_file(head: &AuditHead, items: &[AuditItem]) -> Vec<u8> {
    let mut bytes = head.to_bytes();
    bytes.extend(u32::try_from(items.len()).expect("a few items").to_be_bytes());
    bytes.extend(items.iter().flat_map(Canonical::to_bytes));
    bytes
}
