//! Refusals of the two protocols as failures.

use remuda_bps::connection::CloseReason;
use remuda_bps::publisher::PublishRefused;
use remuda_bps::BpsRefusal;
use remuda_client::Failure;
use remuda_position::StoreError;
use remuda_watchtower::WatchtowerRefusal;
use remuda_wire::Remedy;

/// Our own disk failed us.
pub fn of_store(error: StoreError) -> Failure {
    Failure::from(&error)
}

/// A refusal of a feed, by its table.
pub fn of_watchtower(refusal: WatchtowerRefusal) -> Failure {
    Failure {
        code: refusal.code().into(),
        remedy: refusal.remedy(),
        rule: format!("CIP-7: {}", refusal.section()),
        meaning: refusal.meaning().into(),
    }
}

/// A refusal of a broadcast, by its table.
pub fn of_bps(refusal: BpsRefusal) -> Failure {
    Failure {
        code: refusal.code().into(),
        remedy: refusal.remedy(),
        rule: format!("SWIP-74: {}", refusal.section()),
        meaning: refusal.meaning().into(),
    }
}

/// Why a connection to a broker ended.
pub fn of_close(reason: CloseReason) -> Failure {
    if let CloseReason::Violation(refusal) = reason {
        return of_bps(refusal);
    }
    let meaning = match reason {
        CloseReason::InvalidChunk => "the node found a chunk invalid",
        CloseReason::InvalidMessage => "the node found a message invalid",
        CloseReason::BrokerGone => "the broker is gone",
        CloseReason::Exhausted => "there is no room, at the node or in the cohort",
        CloseReason::Abnormal => "the connection broke, or could not be made",
        CloseReason::Rejected => "the broker refuses the stream for good",
        CloseReason::Deadline => "an answer, or our own signature, came too late",
        CloseReason::Signer => "what was signed is not by the admin of the cohort",
        CloseReason::Requested => "the connection was closed",
        CloseReason::Closed(_) | CloseReason::Violation(_) => "the connection was closed with another code",
    };
    let rule = "SWIP-74: bridge".into();
    Failure { code: reason.code().into(), remedy: reason.remedy(), rule, meaning: meaning.into() }
}

/// Why an update is not taken.
pub fn of_publishing(refused: PublishRefused) -> Failure {
    let (code, remedy, meaning) = match refused {
        PublishRefused::PayloadTooLong => {
            ("publish/payload-too-long", Remedy::FixRequest, "an update has at most 4,096 bytes")
        }
        PublishRefused::QueueFull => ("publish/queue-full", Remedy::Retry, "too many updates wait to be sent"),
        PublishRefused::IndicesExhausted => ("publish/indices-exhausted", Remedy::Halt, "every index was used"),
    };
    Failure { code: code.into(), remedy, rule: String::new(), meaning: meaning.into() }
}
