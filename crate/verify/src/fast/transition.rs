//! Epoch transitions (§12.1).

use remuda_wire::preimage::checkpoint_genesis;
use remuda_wire::transition::{BrokerEpochTransition, FastLineage};
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

use super::FastState;
use crate::authentic::Verified;

/// A transition that follows what was known, and the state after it.
#[derive(Clone, Debug)]
pub struct AdoptedTransition {
    transition: Verified<BrokerEpochTransition>,
    state: FastState,
}

impl AdoptedTransition {
    /// Links an authenticated transition to `state`; `None` is a stream before its first transition, where only the
    /// genesis transition is legal.
    ///
    /// # Errors
    /// [`VerifyError::TransitionLineage`], then [`VerifyError::TransitionCheckpoint`].
    pub fn link(transition: Verified<BrokerEpochTransition>, state: Option<&FastState>) -> Result<Self, VerifyError> {
        check_lineage(&transition, state)?;
        check_checkpoint(&transition, state)?;
        let state = FastState {
            broker_epoch: Some(transition.replacement_broker_epoch),
            next_sequence: Some(0),
            tail: Some(transition.digest()),
            last_checkpoint: Some(transition.last_durable_checkpoint),
            last_durable_sequence: transition.last_durable_sequence,
        };
        Ok(Self { transition, state })
    }

    /// The transition.
    pub const fn transition(&self) -> &Verified<BrokerEpochTransition> {
        &self.transition
    }

    /// The state after it.
    pub const fn state(&self) -> &FastState {
        &self.state
    }
}

fn check_lineage(transition: &BrokerEpochTransition, state: Option<&FastState>) -> Result<(), VerifyError> {
    let replacement = transition.replacement_broker_epoch;
    let follows = match transition.previous_lineage {
        // Decoding already fixed the genesis transition's replacement at zero.
        None => state.is_none_or(|state| state.broker_epoch.is_none()),
        Some(FastLineage { broker_epoch: previous, .. }) => {
            previous.checked_add(1) == Some(replacement)
                && state.is_some_and(|state| state.broker_epoch.is_none_or(|adopted| adopted == previous))
        }
    };
    if follows {
        Ok(())
    } else {
        Err(VerifyError::TransitionLineage)
    }
}

fn check_checkpoint(transition: &BrokerEpochTransition, state: Option<&FastState>) -> Result<(), VerifyError> {
    let genesis = checkpoint_genesis(&transition.context, &transition.stream_id);
    let claimed: (Bytes32, Option<u64>) = (transition.last_durable_checkpoint, transition.last_durable_sequence);
    let is_genesis = claimed.0 == genesis;
    let known = match (transition.previous_lineage, state.and_then(|state| state.last_checkpoint)) {
        (None, _) => Some((genesis, None)),
        (Some(_), Some(checkpoint)) => Some((checkpoint, state.and_then(|state| state.last_durable_sequence))),
        (Some(_), None) => None,
    };
    let holds = is_genesis == claimed.1.is_none() && known.is_none_or(|known| known == claimed);
    if holds {
        Ok(())
    } else {
        Err(VerifyError::TransitionCheckpoint)
    }
}
