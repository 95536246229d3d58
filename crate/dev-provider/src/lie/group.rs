//! Lies about leases.

use remuda_wire::delivery::RecordDelivery;
use remuda_wire::preimage::{delivery_result_state_digest, keccak256, lease_id, GroupKey};

use super::{Liar, Lie};
use crate::keys::{sign, DevKeys};

impl Liar {
    /// Bends a leased delivery, commits what it says now, and signs it again.
    pub fn bend_lease(&self, delivery: &mut RecordDelivery, keys: &DevKeys) {
        let (Some(lease), Some(receipt)) = (&mut delivery.lease, &mut delivery.delivery_state_receipt) else { return };
        if self.tells(Lie::ForeignHolder) {
            lease.holder_signing_key_id = keccak256(&lease.holder_signing_key_id.0);
        }
        if self.tells(Lie::SkipAttempt) {
            lease.attempt = lease.attempt.saturating_add(1);
        }
        if self.tells(Lie::ReuseQueuePosition) {
            lease.group_queue_sequence = lease.group_queue_sequence.saturating_sub(1).max(1);
        }
        if self.tells(Lie::ForkGroup) {
            receipt.previous_group_receipt = keccak256(&receipt.previous_group_receipt.0);
        }
        let reference = &mut lease.reference;
        let group = GroupKey {
            context: &receipt.context,
            stream_id: &reference.stream_id,
            lane_id: &reference.lane_id,
            group_id: &reference.group_id,
        };
        let (cycle, holder) = (&reference.delivery_cycle_id, &lease.holder_signing_key_id);
        let derived = lease_id(&group, &reference.record_id, cycle, lease.attempt, holder);
        reference.lease_id = if self.tells(Lie::ForgeLease) { keccak256(&derived.0) } else { derived };
        receipt.lease_id = Some(reference.lease_id);
        receipt.resulting_state_digest = delivery_result_state_digest(&receipt.context, &lease.implied_state());
        receipt.signature = sign(&keys.provider, receipt);
    }
}
