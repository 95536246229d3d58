//! A failure of any plane as an application sees it: code, remedy, rule, sentence.

use alloc::string::{String, ToString};

use remuda_position::StoreError;
use remuda_session::{ApiMisuse, CloseCause, ProviderError, TransportError};
use remuda_wire::{Refusal, Remedy};

/// What went wrong, in a form that crosses to an application unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The stable code, `plane/reason`.
    pub code: String,
    /// What to do.
    pub remedy: Remedy,
    /// The rule that was broken, `CIP-39 §…`; empty where no document has one.
    pub rule: String,
    /// One sentence for people.
    pub meaning: String,
}

impl Failure {
    /// The provider's record announces nothing that may be dialled.
    pub fn no_endpoint() -> Self {
        Self {
            code: "client/no-endpoint".into(),
            remedy: Remedy::Surface,
            rule: "CIP-39 §4.3".into(),
            meaning: "the stream's provider announces no endpoint that may be dialled".into(),
        }
    }

    /// A record was to be appended by a command.
    pub fn append_past_outbox() -> Self {
        Self {
            code: "misuse/append-past-outbox".into(),
            remedy: Remedy::FixRequest,
            rule: "CIP-39 §11.1".into(),
            meaning: "records are appended through the outbox, so that a retry is byte-identical".into(),
        }
    }

    /// A lease that is over, or was never ours, cannot be settled.
    pub fn lease_over() -> Self {
        Self {
            code: "group/lease-over".into(),
            remedy: Remedy::Surface,
            rule: "CIP-39 §11.2".into(),
            meaning: "this lease is over: the record is settled already, or is given again under another lease".into(),
        }
    }

    /// One decision of a lease at a time.
    pub fn decision_outstanding() -> Self {
        Self {
            code: "group/decision-outstanding".into(),
            remedy: Remedy::FixRequest,
            rule: "CIP-39 §11.2".into(),
            meaning: "another decision of this lease is on its way: wait for what comes of it".into(),
        }
    }

    /// A request was sent, and its answer never came.
    pub fn outcome_unknown() -> Self {
        Self {
            code: "command/outcome-unknown".into(),
            remedy: Remedy::Surface,
            rule: String::new(),
            meaning: "the request was sent and not answered: it may or may not have been done".into(),
        }
    }

    /// No subscription has this position.
    pub fn not_subscribed() -> Self {
        Self {
            code: "client/not-subscribed".into(),
            remedy: Remedy::FixRequest,
            rule: String::new(),
            meaning: "there is no subscription of this position: subscribe first".into(),
        }
    }

    /// The same refusal, now that its floor is an authentic one.
    pub fn behind_floor(refused: Self, floor: u64) -> Self {
        Self {
            rule: "CIP-39 §15".into(),
            meaning: alloc::format!(
                "the provider signed that it keeps nothing before sequence {floor}, and the position is behind that: \
                 hydrate a snapshot, or accept the gap"
            ),
            ..refused
        }
    }

    /// One hydration of a position at a time.
    pub fn hydrating() -> Self {
        Self {
            code: "client/hydrating".into(),
            remedy: Remedy::FixRequest,
            rule: String::new(),
            meaning: "this position is being hydrated already: wait for what comes of it".into(),
        }
    }

    /// No receipt ends where the replica stands.
    pub fn snapshot_place() -> Self {
        Self {
            code: "client/snapshot-place".into(),
            remedy: Remedy::FixRequest,
            rule: "CIP-39 §15".into(),
            meaning:
                "no receipt of late ends with this item: take the replica to the last durable item, and compose again"
                    .into(),
        }
    }

    /// The replica cannot hold what the snapshot says that it holds.
    pub fn snapshot_scope() -> Self {
        Self {
            code: "client/snapshot-scope".into(),
            remedy: Remedy::FixRequest,
            rule: "CIP-39 §15".into(),
            meaning: "the position does not follow all of this scope, or its last record is of another lane".into(),
        }
    }

    /// A snapshot would move a position backwards, or nowhere.
    pub fn snapshot_rollback() -> Self {
        Self {
            code: "client/snapshot-rollback".into(),
            remedy: Remedy::Surface,
            rule: "CIP-39 §15".into(),
            meaning: "the snapshot covers no more than what is durable here already: nothing is taken from it".into(),
        }
    }

    /// Too few chain nodes gave the same bytes.
    pub fn chain_disagreement() -> Self {
        Self {
            code: "client/chain-disagreement".into(),
            remedy: Remedy::Surface,
            rule: "RESOLUTIONS §4".into(),
            meaning: "too few of the chain nodes gave the same answer: nothing is taken from any of them, and they are asked again".into(),
        }
    }

    /// The grant is for another key than the one that signs.
    pub fn holder_mismatch() -> Self {
        Self {
            code: "client/holder-mismatch".into(),
            remedy: Remedy::FixRequest,
            rule: "CIP-39 §7".into(),
            meaning: "the grant is for another holder key than the one that signs: it is not presented to anybody"
                .into(),
        }
    }

    /// The provider takes the grant no longer, and the application gave no other that it takes.
    pub fn grant_not_renewed() -> Self {
        Self {
            code: "client/grant-not-renewed".into(),
            remedy: Remedy::Surface,
            rule: "CIP-39 §7".into(),
            meaning: "the provider takes the grant no longer, and the application gave none that it takes".into(),
        }
    }

    /// The stream is encrypted, or not, against what the application expects: nothing is sent or read under a wrong belief.
    pub fn encryption_mismatch(is_encrypted: bool) -> Self {
        Self {
            code: "encryption/mismatch".into(),
            remedy: Remedy::FixRequest,
            rule: "CIP-39 §9.1".into(),
            meaning: if is_encrypted {
                "the stream is encrypted: say so, and give its data keys"
            } else {
                "the stream is not encrypted: what is appended would be readable by its provider"
            }
            .into(),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let section = refusal.section();
        let rule = if section.starts_with("RES") { section.to_string() } else { alloc::format!("CIP-39 §{section}") };
        Self { code: refusal.code().into(), remedy: refusal.remedy(), rule, meaning: refusal.meaning().into() }
    }
}

impl From<&StoreError> for Failure {
    fn from(error: &StoreError) -> Self {
        Self { code: error.code().into(), remedy: error.remedy(), rule: String::new(), meaning: error.meaning().into() }
    }
}

impl From<&ProviderError> for Failure {
    fn from(error: &ProviderError) -> Self {
        Self {
            code: error.code().to_string(),
            remedy: error.remedy(),
            rule: "CIP-39 §17".into(),
            meaning: error.to_string(),
        }
    }
}

impl From<&TransportError> for Failure {
    fn from(error: &TransportError) -> Self {
        Self { code: error.code().into(), remedy: error.remedy(), rule: String::new(), meaning: error.to_string() }
    }
}

impl From<ApiMisuse> for Failure {
    fn from(error: ApiMisuse) -> Self {
        Self { code: error.code().into(), remedy: error.remedy(), rule: String::new(), meaning: error.to_string() }
    }
}

impl From<&CloseCause> for Failure {
    fn from(cause: &CloseCause) -> Self {
        match cause {
            CloseCause::Violation(refusal) => Self::from(*refusal),
            CloseCause::Provider(error) => Self::from(error),
            CloseCause::Transport(error) => Self::from(error),
            CloseCause::Expired
            | CloseCause::OutcomeUnknown
            | CloseCause::PollGivenUp
            | CloseCause::TransportChanged
            | CloseCause::SigningFailed
            | CloseCause::Requested => Self {
                code: cause.code().into(),
                remedy: cause.remedy(),
                rule: String::new(),
                meaning: match cause {
                    CloseCause::SigningFailed => "the holder key did not sign",
                    CloseCause::Expired => "the session expired",
                    CloseCause::PollGivenUp => "a held poll was given up for a new subscription",
                    CloseCause::TransportChanged => "the conversation goes on over the other transport",
                    CloseCause::OutcomeUnknown => "the provider answered a request with nothing",
                    _ => "the session was closed",
                }
                .into(),
            },
        }
    }
}
