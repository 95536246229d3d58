//! One delivery cycle: what may happen to it next.

use remuda_wire::group::{DeliveryResultState, DeliveryStateAction};
use remuda_wire::record::StandardRecordId;
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

/// A delivery cycle that was seen.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    pub record_id: StandardRecordId,
    /// Unknown of a predecessor that was first seen in its redrive.
    pub queue_sequence: Option<u64>,
    pub phase: Phase,
}

/// Where a cycle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// In the queue, after so many attempts.
    Waiting { attempts: u16 },
    /// Held under a live lease.
    Leased { lease_id: Bytes32, attempt: u16 },
    /// In the queue again; this lease ran out.
    Expired { lease_id: Bytes32, attempt: u16 },
    /// Acknowledged, dead-lettered or expired, for ever.
    Terminal { redriven: bool },
}

impl Phase {
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Terminal { .. })
    }

    /// The phase after a state, of a cycle in this phase.
    ///
    /// # Errors
    /// [`VerifyError::DeliveryLifecycle`].
    pub fn after(self, state: &DeliveryResultState) -> Result<Self, VerifyError> {
        if self.allows(state) {
            outcome(state)
        } else {
            Err(VerifyError::DeliveryLifecycle)
        }
    }

    fn allows(self, state: &DeliveryResultState) -> bool {
        use DeliveryStateAction as Action;
        let names = |lease_id: Bytes32, attempt: u16| state.lease_id == Some(lease_id) && state.attempt == attempt;
        match (self, state.action) {
            (Self::Waiting { attempts: last } | Self::Expired { attempt: last, .. }, Action::LeaseIssue) => {
                last.checked_add(1) == Some(state.attempt)
            }
            (
                Self::Leased { lease_id, attempt },
                Action::Ack
                | Action::Nack
                | Action::Extend
                | Action::Reject
                | Action::LeaseExpire
                | Action::AttemptsExhaust
                | Action::RecordExpire,
            )
            | (Self::Expired { lease_id, attempt }, Action::AttemptsExhaust) => names(lease_id, attempt),
            (Self::Waiting { .. } | Self::Expired { .. }, Action::RecordExpire) => state.lease_id.is_none(),
            (Self::Terminal { redriven }, Action::Redrive) => !redriven,
            _ => false,
        }
    }
}

/// The phase that a state leaves behind, wherever the cycle stood before: all that is known of a cycle first seen now.
///
/// # Errors
/// [`VerifyError::DeliveryLifecycle`] for an action that is none of a cycle: never after decoding.
pub(super) fn outcome(state: &DeliveryResultState) -> Result<Phase, VerifyError> {
    use DeliveryStateAction as Action;
    let attempt = state.attempt;
    match (state.action, state.lease_id) {
        (Action::LeaseIssue | Action::Extend, Some(lease_id)) => Ok(Phase::Leased { lease_id, attempt }),
        (Action::LeaseExpire, Some(lease_id)) => Ok(Phase::Expired { lease_id, attempt }),
        (Action::Nack, _) if state.terminal_at_ms.is_none() => Ok(Phase::Waiting { attempts: attempt }),
        (Action::Ack | Action::Nack | Action::Reject | Action::AttemptsExhaust | Action::RecordExpire, _) => {
            Ok(Phase::Terminal { redriven: false })
        }
        (Action::Redrive, _) => Ok(Phase::Terminal { redriven: true }),
        _ => Err(VerifyError::DeliveryLifecycle),
    }
}
