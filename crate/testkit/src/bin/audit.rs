//! `audit FILE [--json]`: judges an audit file, or a file of evidence of another family, natively. Exit code 0 consistent, 1 violations, 2 undecodable, 3 not judged.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use remuda_testkit::audit_text::audit_text;
use remuda_testkit::evidence_audit::{audit_evidence, EvidenceReport, MAX_FILE_BYTES};
use remuda_verify::audit::{AuditProgress, AuditReport, AuditVerdict, Auditor};

const NOT_JUDGED: u8 = 3;
const CHUNK_BYTES: usize = 1 << 20;
const PROGRESS: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let (flags, files): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let ([file], true) = (files.as_slice(), flags.iter().all(|flag| flag == "--json")) else {
        eprintln!("usage: audit FILE [--json]");
        return ExitCode::from(NOT_JUDGED);
    };
    match judge(file, !flags.is_empty()) {
        Ok((text, verdict)) => {
            println!("{text}");
            match verdict {
                AuditVerdict::Consistent => ExitCode::SUCCESS,
                AuditVerdict::Violations => ExitCode::FAILURE,
                AuditVerdict::Undecodable => ExitCode::from(2),
            }
        }
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::from(NOT_JUDGED)
        }
    }
}

/// The report in the form that was asked for, and its verdict.
fn judge(file: &str, as_json: bool) -> io::Result<(String, AuditVerdict)> {
    if let Some(report) = evidence(file)? {
        let text = if as_json { report.to_json().to_string() } else { report.to_text() };
        return Ok((text, report.verdict));
    }
    let report = audit(file)?;
    Ok((if as_json { report.to_json() } else { audit_text(&report) }, report.verdict))
}

/// A file of evidence is small; what is larger is none.
fn evidence(file: &str) -> io::Result<Option<EvidenceReport>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(audit_evidence(&bytes))
}

fn audit(file: &str) -> io::Result<AuditReport> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut auditor = Auditor::new();
    let mut shown = Instant::now();
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        auditor.push(&chunk[..read]);
        if shown.elapsed() >= PROGRESS {
            shown = Instant::now();
            show(auditor.progress(), length);
        }
    }
    clear();
    Ok(auditor.finish())
}

/// A line that is written over, where somebody watches.
fn show(progress: AuditProgress, length: u64) {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        let percent = progress.bytes.saturating_mul(100) / length.max(1);
        let declared = progress.declared_items.map_or_else(|| "?".to_owned(), |declared| declared.to_string());
        // Progress that cannot be shown is no reason to stop.
        drop(write!(stderr, "\r{percent} %, item {} of {declared}\x1b[K", progress.items));
    }
}

fn clear() {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        drop(write!(stderr, "\r\x1b[K"));
    }
}
