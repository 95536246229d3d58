//! The floor of a log (§15): what lies before it is gone, and signed to be.

use redb::WriteTransaction;
use remuda_wire::retention::StandardRetentionAnchor;
use remuda_wire::{Bytes32, Canonical, ProviderEpoch, Signature};

use super::Log;
use crate::keys::sign;
use crate::refusal::{Code, Refusal};

impl Log {
    /// The refusal of a position behind the floor, with the anchor that governs the scope: of one lane, or of the stream.
    pub(crate) fn cursor_too_old_in(
        &self,
        transaction: &WriteTransaction,
        lane: Option<&Bytes32>,
    ) -> anyhow::Result<Refusal> {
        let state = self.state_in(transaction)?;
        let mut anchor = StandardRetentionAnchor {
            context: self.chain.context().clone(),
            served_at: self.chain.view(),
            stream_id: self.stream_id,
            provider_epoch: ProviderEpoch,
            lane_id: lane.copied(),
            first_retained_sequence: state.first_retained,
            previous_global_receipt: state.tail,
            previous_lane_receipt: lane.map(|lane| self.lane_tail_in(transaction, lane)).transpose()?,
            committed_at_ms: self.chain.now_ms(),
            signature: Signature::ZERO,
        };
        anchor.signature = sign(&self.keys.provider, &anchor);
        let refusal = Refusal::new(Code::CursorTooOld, "the position is behind the retention floor");
        Ok(refusal.with_details(anchor.to_bytes()))
    }
}
