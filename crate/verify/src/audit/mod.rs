//! Audits (`RESOLUTIONS.md` §8, §10): a whole audit file judged item by item, in any chunks, in bounded memory.
//!
//! ```text
//! chunks -> Feed (one item at a time) -> Judge -> AuditReport
//!                                          | every provider object, once authentic
//!                                          v
//!                                       EvidencePool
//! ```
//! An item that fails ends its own subscription's judgement, never the audit's. What is kept is one item, the state of
//! each subscription, and the comparable part of each provider object: the records themselves pass through.

mod feed;
mod frames;
mod groups;
mod json;
mod judge;
mod provenance;
mod receipts;
mod report;
mod subscription;

pub use report::{AuditReport, AuditVerdict, Evidence, Finding, SubscriptionAssurance};

use feed::Feed;
use judge::Judge;
use report::undecodable;

/// An audit in progress.
#[derive(Debug, Default)]
pub struct Auditor {
    feed: Feed,
    judge: Option<Judge>,
    bytes: u64,
}

/// How far an audit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditProgress {
    /// Bytes taken.
    pub bytes: u64,
    /// Items judged.
    pub items: usize,
    /// Items that the file says it has; `None` before its head is read.
    pub declared_items: Option<usize>,
}

impl Auditor {
    /// Before the first byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the file, however they are cut, and judges every item that is complete.
    ///
    /// Nothing is answered before [`Self::finish`]; after an undecodable item the rest is ignored.
    pub fn push(&mut self, chunk: &[u8]) {
        self.bytes = self.bytes.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        self.feed.push(chunk, &mut self.judge);
    }

    /// How far it is.
    pub fn progress(&self) -> AuditProgress {
        AuditProgress {
            bytes: self.bytes,
            items: self.judge.as_ref().map_or(0, Judge::items),
            declared_items: self.feed.declared_items(),
        }
    }

    /// The end of the file.
    pub fn finish(mut self) -> AuditReport {
        match self.feed.finish(&mut self.judge) {
            Err(fault) => undecodable(fault.item, fault.error),
            Ok(()) => self.judge.map_or_else(AuditReport::default, Judge::report),
        }
    }
}

/// Audits a file that is whole in memory.
pub fn audit(file: &[u8]) -> AuditReport {
    let mut auditor = Auditor::new();
    auditor.push(file);
    auditor.finish()
}
