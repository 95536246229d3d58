//! Lies about append receipts and floors of a standard stream.

use remuda_wire::delivery::RecordDelivery;
use remuda_wire::preimage::keccak256;
use remuda_wire::retention::StandardRetentionAnchor;
use remuda_wire::Bytes32;

use super::{Liar, Lie};
use crate::broker::Broker;
use crate::keys::{sign, DevKeys};

impl Liar {
    /// Bends the receipt of a replayed record, and signs it again.
    pub fn bend_replay(&self, delivery: &mut RecordDelivery, keys: &DevKeys) {
        let Some(receipt) = &mut delivery.append_receipt else { return };
        if self.tells(Lie::BreakGlobalChain) {
            receipt.previous_global_receipt = keccak256(&receipt.previous_global_receipt.0);
        }
        if self.tells(Lie::BreakLaneChain) {
            receipt.previous_lane_receipt = keccak256(&receipt.previous_lane_receipt.0);
        }
        let key = if self.tells(Lie::ForgeReceiptKey) { &keys.stranger } else { &keys.provider };
        receipt.signature = sign(key, receipt);
    }

    /// Bends the anchor of a refusal, and signs it again.
    pub fn bend_anchor(&self, anchor: &mut StandardRetentionAnchor, broker: &Broker) {
        if self.tells(Lie::WrongAnchor) {
            anchor.lane_id = Some(keccak256(b"another lane"));
            anchor.previous_lane_receipt = Some(keccak256(b"its last receipt"));
        }
        if self.tells(Lie::RegressFloor) {
            let told = self.state().floor;
            self.state().floor = told.or(Some(anchor.first_retained_sequence));
            if let Some(told) = told {
                anchor.first_retained_sequence = told.saturating_sub(1);
                (anchor.served_at, anchor.committed_at_ms) = (broker.chain.view(), broker.chain.now_ms());
            }
        }
        anchor.signature = sign(&broker.keys.provider, anchor);
    }

    /// True when `holder` is refused whatever it asks for.
    pub fn refuses_all(&self, holder: &Bytes32) -> bool {
        self.tells(Lie::UnjustifiedFloor) && self.is_armed(holder)
    }
}
