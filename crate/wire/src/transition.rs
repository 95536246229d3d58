//! Broker epochs (§12.1).

use crate::bytes::{Bytes32, Signature};
use crate::codec::ProviderEpoch;
use crate::context::{FinalizedView, SigningContext};
use crate::error::DecodeError;

object! {
    /// `FastLineageV1`.
    #[derive(Copy, PartialOrd, Ord, Hash)]
    pub struct FastLineage {
        provider_epoch: ProviderEpoch,
        broker_epoch: u64,
    }
}

impl FastLineage {
    /// The lineage of `broker_epoch` in the one provider epoch of v1.
    pub const fn new(broker_epoch: u64) -> Self {
        Self { provider_epoch: ProviderEpoch, broker_epoch }
    }
}

tags! {
    /// How a lineage ended.
    pub enum TransitionKind: u8 {
        /// Everything emitted was durable.
        Clean = 1,
        /// Records above the durable watermark are withdrawn.
        Void = 2,
    }
}

object! {
    /// `BrokerEpochTransitionV1`: a link of the checkpoint chain.
    #[derive(Copy)]
    pub struct BrokerEpochTransition {
        context: SigningContext,
        served_at: FinalizedView,
        stream_id: Bytes32,
        provider_epoch: ProviderEpoch,
        previous_lineage: Option<FastLineage>,
        replacement_broker_epoch: u64,
        kind: TransitionKind,
        last_durable_checkpoint: Bytes32,
        last_durable_sequence: Option<u64>,
        last_provisional_sequence: Option<u64>,
        created_at_ms: u64,
        signature: Signature,
    }
    check |transition: &BrokerEpochTransition| {
        if !transition.shape_is_possible() {
            return Err(DecodeError::TransitionShape);
        }
        if transition.last_durable_checkpoint.is_zero() { Err(DecodeError::ZeroDigest) } else { Ok(()) }
    };
}

impl BrokerEpochTransition {
    fn shape_is_possible(&self) -> bool {
        let (durable, provisional) = (self.last_durable_sequence, self.last_provisional_sequence);
        let fits_kind = match self.kind {
            TransitionKind::Clean => durable == provisional,
            TransitionKind::Void => match (durable, provisional) {
                (Some(durable), Some(provisional)) => provisional >= durable,
                _ => true,
            },
        };
        let genesis_is_empty = self.previous_lineage.is_some()
            || (self.kind == TransitionKind::Clean
                && self.replacement_broker_epoch == 0
                && durable.is_none()
                && provisional.is_none());
        fits_kind && genesis_is_empty
    }
}
