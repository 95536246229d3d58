//! Consumer groups: configuration, leases, delivery state and its receipts (§11.2, §13.1, §14.2).

use crate::bytes::{Bytes32, Signature};
use crate::codec::ProviderEpoch;
use crate::context::{FinalizedView, SigningContext};
use crate::error::DecodeError;
use crate::preimage;
use crate::record::StandardRecordId;

tags! {
    /// How a group hands out records.
    pub enum GroupMode: u8 { StrictFifo = 1, Concurrent = 2, }
}

union! {
    /// Where a group begins.
    #[derive(Copy)]
    pub enum GroupStart: u8 {
        Head = 1,
        At(id: StandardRecordId) = 2,
    }
}

object! {
    /// `GroupConfigV1`. Whether its inequalities hold is `verify`'s to judge.
    #[derive(Copy)]
    pub struct GroupConfig {
        group_id: Bytes32,
        lane_id: Bytes32,
        mode: GroupMode,
        start: GroupStart,
        visibility_timeout_ms: u64,
        max_visibility_ms: u64,
        max_in_flight: u32,
        max_attempts: u16,
        record_deadline_ms: u64,
        dead_letter_ttl_ms: u64,
        retention_pin_until_ms: u64,
    }
}

object! {
    /// `GroupMutableConfigV1`: what `UpdateGroup` replaces.
    pub struct GroupMutableConfig {
        mode: GroupMode,
        visibility_timeout_ms: u64,
        max_visibility_ms: u64,
        max_in_flight: u32,
        max_attempts: u16,
        record_deadline_ms: u64,
        dead_letter_ttl_ms: u64,
        retention_pin_until_ms: u64,
    }
}

object! {
    /// `DeliveryLeaseRefV1`: names one lease of one cycle of one record.
    #[derive(Copy)]
    pub struct DeliveryLeaseRef {
        stream_id: Bytes32,
        lane_id: Bytes32,
        group_id: Bytes32,
        record_id: StandardRecordId,
        delivery_cycle_id: Bytes32,
        lease_id: Bytes32,
    }
}

object! {
    /// `DeliveryLeaseV1`. `attempt` counts from one.
    #[derive(Copy)]
    pub struct DeliveryLease {
        reference: DeliveryLeaseRef,
        attempt: u16,
        holder_signing_key_id: Bytes32,
        group_queue_sequence: u64,
        issued_at_ms: u64,
        expires_at_ms: u64,
    }
}

impl DeliveryLease {
    /// The `LeaseIssue` state that this lease is the whole content of (§13.2). Its shape is not yet checked.
    pub fn implied_state(&self) -> DeliveryResultState {
        DeliveryResultState {
            action: DeliveryStateAction::LeaseIssue,
            stream_id: self.reference.stream_id,
            lane_id: self.reference.lane_id,
            group_id: self.reference.group_id,
            record_id: self.reference.record_id,
            delivery_cycle_id: self.reference.delivery_cycle_id,
            lease_id: Some(self.reference.lease_id),
            attempt: self.attempt,
            holder_signing_key_id: Some(self.holder_signing_key_id),
            available_at_ms: None,
            issued_at_ms: Some(self.issued_at_ms),
            lease_expires_at_ms: Some(self.expires_at_ms),
            terminal_at_ms: None,
            terminal_expires_at_ms: None,
            reason_hash: None,
            successor_cycle_id: None,
            group_queue_sequence: self.group_queue_sequence,
        }
    }
}

tags! {
    /// `DeliveryStateActionV1`.
    pub enum DeliveryStateAction: u8 {
        Ack = 1,
        Nack = 2,
        Extend = 3,
        Reject = 4,
        Redrive = 5,
        GroupCreate = 6,
        GroupUpdate = 7,
        GroupDelete = 8,
        LeaseIssue = 9,
        LeaseExpire = 10,
        AttemptsExhaust = 11,
        RecordExpire = 12,
    }
}

impl DeliveryStateAction {
    /// True for the three actions on the group itself.
    pub const fn is_group_mutation(self) -> bool {
        matches!(self, Self::GroupCreate | Self::GroupUpdate | Self::GroupDelete)
    }
}

object! {
    /// `DeliveryStateReceiptV1`: one link of a group's receipt chain.
    #[derive(Copy)]
    pub struct DeliveryStateReceipt {
        context: SigningContext,
        served_at: FinalizedView,
        stream_id: Bytes32,
        lane_id: Bytes32,
        group_id: Bytes32,
        provider_epoch: ProviderEpoch,
        action: DeliveryStateAction,
        record_id: Option<StandardRecordId>,
        lease_id: Option<Bytes32>,
        resulting_state_digest: Bytes32,
        previous_group_receipt: Bytes32,
        committed_at_ms: u64,
        signature: Signature,
    }
    check |receipt: &DeliveryStateReceipt| {
        use DeliveryStateAction as Action;
        let (record, lease) = (receipt.record_id.is_some(), receipt.lease_id.is_some());
        let fits = match receipt.action {
            Action::GroupCreate | Action::GroupUpdate | Action::GroupDelete => !record && !lease,
            Action::Redrive => record && !lease,
            Action::RecordExpire => record,
            Action::Ack | Action::Nack | Action::Extend | Action::Reject | Action::LeaseIssue | Action::LeaseExpire
            | Action::AttemptsExhaust => record && lease,
        };
        if fits { Ok(()) } else { Err(DecodeError::StateShape) }
    };
}

object! {
    /// `DeliveryResultStateV1`: the complete state after one record mutation.
    #[derive(Copy)]
    pub struct DeliveryResultState {
        action: DeliveryStateAction,
        stream_id: Bytes32,
        lane_id: Bytes32,
        group_id: Bytes32,
        record_id: StandardRecordId,
        delivery_cycle_id: Bytes32,
        lease_id: Option<Bytes32>,
        attempt: u16,
        holder_signing_key_id: Option<Bytes32>,
        available_at_ms: Option<u64>,
        issued_at_ms: Option<u64>,
        lease_expires_at_ms: Option<u64>,
        terminal_at_ms: Option<u64>,
        terminal_expires_at_ms: Option<u64>,
        reason_hash: Option<Bytes32>,
        successor_cycle_id: Option<Bytes32>,
        group_queue_sequence: u64,
    }
    check DeliveryResultState::check_shape;
}

/// The options of a result state, one bit each, so that the table of §14.2 reads as a table.
mod option {
    pub const LEASE: u16 = 1;
    pub const HOLDER: u16 = 1 << 1;
    pub const AVAILABLE: u16 = 1 << 2;
    pub const ISSUED: u16 = 1 << 3;
    pub const LEASE_EXPIRES: u16 = 1 << 4;
    pub const TERMINAL: u16 = 1 << 5;
    pub const TERMINAL_EXPIRES: u16 = 1 << 6;
    pub const REASON: u16 = 1 << 7;
    pub const SUCCESSOR: u16 = 1 << 8;
}

impl DeliveryResultState {
    /// The per-action table of §14.2 and its inequalities.
    ///
    /// # Errors
    /// [`DecodeError::StateShape`].
    pub fn check_shape(&self) -> Result<(), DecodeError> {
        if self.options_fit_action() && self.ids_are_nonzero() && self.times_are_ordered() {
            Ok(())
        } else {
            Err(DecodeError::StateShape)
        }
    }

    fn present_options(&self) -> u16 {
        [
            (self.lease_id.is_some(), option::LEASE),
            (self.holder_signing_key_id.is_some(), option::HOLDER),
            (self.available_at_ms.is_some(), option::AVAILABLE),
            (self.issued_at_ms.is_some(), option::ISSUED),
            (self.lease_expires_at_ms.is_some(), option::LEASE_EXPIRES),
            (self.terminal_at_ms.is_some(), option::TERMINAL),
            (self.terminal_expires_at_ms.is_some(), option::TERMINAL_EXPIRES),
            (self.reason_hash.is_some(), option::REASON),
            (self.successor_cycle_id.is_some(), option::SUCCESSOR),
        ]
        .into_iter()
        .filter(|(present, _)| *present)
        .fold(0, |bits, (_, bit)| bits | bit)
    }

    fn options_fit_action(&self) -> bool {
        use option::{AVAILABLE, HOLDER, ISSUED, LEASE, LEASE_EXPIRES, REASON, SUCCESSOR, TERMINAL, TERMINAL_EXPIRES};
        use DeliveryStateAction as Action;
        let present = self.present_options();
        let attempted = self.attempt != 0;
        match self.action {
            Action::Ack => attempted && present == LEASE | TERMINAL,
            Action::Nack => {
                attempted && (present == LEASE | AVAILABLE || present == LEASE | TERMINAL | TERMINAL_EXPIRES)
            }
            Action::Extend | Action::LeaseIssue => attempted && present == LEASE | HOLDER | ISSUED | LEASE_EXPIRES,
            Action::Reject => attempted && present == LEASE | TERMINAL | TERMINAL_EXPIRES | REASON,
            Action::Redrive => !attempted && present == AVAILABLE | SUCCESSOR,
            Action::LeaseExpire => attempted && present == LEASE | LEASE_EXPIRES | AVAILABLE,
            Action::AttemptsExhaust => attempted && present == LEASE | LEASE_EXPIRES | TERMINAL | TERMINAL_EXPIRES,
            Action::RecordExpire => present == if attempted { TERMINAL | LEASE } else { TERMINAL },
            Action::GroupCreate | Action::GroupUpdate | Action::GroupDelete => false,
        }
    }

    fn ids_are_nonzero(&self) -> bool {
        let named = [self.lease_id, self.holder_signing_key_id, self.successor_cycle_id];
        self.group_queue_sequence != 0
            && ![self.stream_id, self.group_id, self.delivery_cycle_id].iter().any(Bytes32::is_zero)
            && !named.iter().flatten().any(Bytes32::is_zero)
    }

    fn times_are_ordered(&self) -> bool {
        let ordered = |earlier: Option<u64>, later: Option<u64>| match (earlier, later) {
            (Some(earlier), Some(later)) => earlier <= later,
            _ => true,
        };
        // Which of these are both present is fixed by the action, so each inequality binds only where §14.2 states it.
        ordered(self.issued_at_ms, self.lease_expires_at_ms)
            && ordered(self.lease_expires_at_ms, self.available_at_ms)
            && ordered(self.lease_expires_at_ms, self.terminal_at_ms)
            && ordered(self.terminal_at_ms, self.terminal_expires_at_ms)
    }
}

object! {
    /// `DeliveryStateUpdateV1`: a state and the receipt that commits it.
    pub struct DeliveryStateUpdate {
        state: DeliveryResultState,
        receipt: DeliveryStateReceipt,
    }
    check |update: &DeliveryStateUpdate| {
        let (state, receipt) = (&update.state, &update.receipt);
        let same = state.action == receipt.action
            && state.stream_id == receipt.stream_id
            && state.lane_id == receipt.lane_id
            && state.group_id == receipt.group_id
            && Some(state.record_id) == receipt.record_id
            && state.lease_id == receipt.lease_id;
        if !same {
            return Err(DecodeError::IdentityMismatch);
        }
        check_state_digest(receipt, preimage::delivery_result_state_digest(&receipt.context, state))
    };
}

object! {
    /// `GroupStateUpdateV1`: a group mutation and the configuration that it commits.
    pub struct GroupStateUpdate {
        config: Option<GroupConfig>,
        receipt: DeliveryStateReceipt,
    }
    check |update: &GroupStateUpdate| {
        let receipt = &update.receipt;
        let configured = match receipt.action {
            DeliveryStateAction::GroupCreate | DeliveryStateAction::GroupUpdate => true,
            DeliveryStateAction::GroupDelete => false,
            _ => return Err(DecodeError::StateShape),
        };
        if update.config.is_some() != configured {
            return Err(DecodeError::StateShape);
        }
        let (context, stream_id) = (&receipt.context, &receipt.stream_id);
        let digest = match &update.config {
            Some(config) => {
                if config.lane_id != receipt.lane_id || config.group_id != receipt.group_id {
                    return Err(DecodeError::IdentityMismatch);
                }
                preimage::group_config_state(context, stream_id, config)
            }
            None => preimage::group_deleted_state(context, stream_id, &receipt.lane_id, &receipt.group_id),
        };
        check_state_digest(receipt, digest)
    };
}

/// Compares a recomputed state with what the receipt commits.
///
/// # Errors
/// [`DecodeError::StateDigest`].
pub(crate) fn check_state_digest(receipt: &DeliveryStateReceipt, digest: Bytes32) -> Result<(), DecodeError> {
    if receipt.resulting_state_digest == digest {
        Ok(())
    } else {
        Err(DecodeError::StateDigest)
    }
}
