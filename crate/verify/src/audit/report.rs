//! What an audit answers.

use alloc::vec::Vec;

use remuda_wire::request::VerificationMode;
use remuda_wire::verdict::{Contradiction, Refusal};
use remuda_wire::{Bytes32, DecodeError};

/// The audit in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AuditVerdict {
    /// No finding and no contradiction.
    #[default]
    Consistent,
    /// At least one.
    Violations,
    /// The file is no audit file.
    Undecodable,
}

impl AuditVerdict {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Violations => "violations",
            Self::Undecodable => "undecodable",
        }
    }
}

/// An item that failed, or a chain read (`item` is `None`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The item.
    pub item: Option<usize>,
    /// Why.
    pub refusal: Refusal,
}

/// Two items whose objects contradict each other, the earlier first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// How.
    pub code: Contradiction,
    /// The pair.
    pub items: [usize; 2],
}

/// What became of one subscription's deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionAssurance {
    /// The subscription.
    pub subscription: Bytes32,
    /// What it asked the provider to prove.
    pub mode: VerificationMode,
    /// Records under a verified checkpoint, or with a receipt judged good.
    pub verified: usize,
    /// Every other delivery that named it.
    pub unverified: usize,
}

/// The whole answer.
#[derive(Clone, Debug, Default)]
pub struct AuditReport {
    /// In one word.
    pub verdict: AuditVerdict,
    /// Items in the file.
    pub items: usize,
    /// Deliveries that decoded.
    pub records: usize,
    /// Provider signatures that verified.
    pub signatures: usize,
    /// In file order.
    pub findings: Vec<Finding>,
    /// In file order.
    pub evidence: Vec<Evidence>,
    /// One per subscription item.
    pub assurance: Vec<SubscriptionAssurance>,
    /// What no audit of a file can check, and what this one could not.
    pub not_checked: &'static [&'static str],
}

/// The answer for what is no audit file: the fault alone.
pub(super) fn undecodable(item: Option<usize>, error: DecodeError) -> AuditReport {
    AuditReport {
        verdict: AuditVerdict::Undecodable,
        findings: alloc::vec![Finding { item, refusal: error.into() }],
        ..AuditReport::default()
    }
}

/// The name of a mode in a report.
pub(super) const fn mode_name(mode: VerificationMode) -> &'static str {
    match mode {
        VerificationMode::None => "none",
        VerificationMode::ScopedProofs => "scoped",
        VerificationMode::FullStream => "full",
    }
}
