//! What a record's origin and kind fix of its other fields (§8, §9.3, §10), checked on every delivered record.

use remuda_wire::chain::Purpose;
use remuda_wire::lane::{LaneEvent, LaneStatus};
use remuda_wire::preimage::keccak256;
use remuda_wire::record::{RecordHeader, RecordKind, RecordOrigin};
use remuda_wire::verdict::VerifyError;
use remuda_wire::Canonical;

/// The immutable facts of a stream that shape its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamShape {
    /// Main or key stream.
    pub purpose: Purpose,
    /// Whether payloads are encrypted at the stream layer.
    pub encrypted: bool,
}

/// Checks a record of a stream of this shape.
///
/// # Errors
/// [`VerifyError::RecordShape`], then [`VerifyError::LaneEvent`].
pub fn check_record(shape: StreamShape, header: &RecordHeader, payload: &[u8]) -> Result<(), VerifyError> {
    match (shape.purpose, header.origin, header.kind) {
        (Purpose::Main, RecordOrigin::Client, RecordKind::Application) => check_application(shape, header),
        (Purpose::Main, RecordOrigin::ProviderEvent, RecordKind::LaneCreated) => {
            check_provider_event(header)?;
            check_generation_zero(header)?;
            check_lane_event(header, payload, LaneStatus::Active)
        }
        (Purpose::Main, RecordOrigin::ProviderEvent, RecordKind::LaneClosed) => {
            check_provider_event(header)?;
            check_generation_zero(header)?;
            check_lane_event(header, payload, LaneStatus::Closed)
        }
        (Purpose::Key, RecordOrigin::ProviderEvent, RecordKind::KeyBatchHeader | RecordKind::KeyEnvelope) => {
            check_provider_event(header)
        }
        _ => Err(VerifyError::RecordShape),
    }
}

const fn require(holds: bool) -> Result<(), VerifyError> {
    if holds {
        Ok(())
    } else {
        Err(VerifyError::RecordShape)
    }
}

fn check_application(shape: StreamShape, header: &RecordHeader) -> Result<(), VerifyError> {
    require(header.visible_after_ms == 0 && (shape.encrypted || header.nonce.is_zero()))
}

fn check_provider_event(header: &RecordHeader) -> Result<(), VerifyError> {
    let fixed = header.lane_id.is_zero() && header.visible_after_ms == 0 && header.expires_at_ms == 0;
    require(fixed && header.nonce.is_zero())
}

const fn check_generation_zero(header: &RecordHeader) -> Result<(), VerifyError> {
    require(header.encryption_generation == 0)
}

fn check_lane_event(header: &RecordHeader, payload: &[u8], status: LaneStatus) -> Result<(), VerifyError> {
    let event = LaneEvent::from_bytes(payload).map_err(|_| VerifyError::LaneEvent)?;
    // The payload is canonical now, so its own hash is the synthetic message id.
    let fits = event.status == status
        && event.stream_id == header.stream_id
        && !event.lane_id.is_zero()
        && keccak256(payload) == header.client_message_id;
    if fits {
        Ok(())
    } else {
        Err(VerifyError::LaneEvent)
    }
}
