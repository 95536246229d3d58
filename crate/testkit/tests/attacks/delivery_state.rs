//! §14.2: the table of result states, tried whole.

use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::group::{DeliveryResultState, DeliveryStateAction as Action, DeliveryStateReceipt};
use remuda_wire::preimage::delivery_result_state_digest;
use remuda_wire::record::StandardRecordId;
use remuda_wire::{Bytes32, Canonical, DecodeError, ProviderEpoch, Signature, VersionOne};

const ACTIONS: [Action; 12] = [
    Action::Ack,
    Action::Nack,
    Action::Extend,
    Action::Reject,
    Action::Redrive,
    Action::GroupCreate,
    Action::GroupUpdate,
    Action::GroupDelete,
    Action::LeaseIssue,
    Action::LeaseExpire,
    Action::AttemptsExhaust,
    Action::RecordExpire,
];
/// The options of a state, in the order of its fields.
const OPTIONS: [&str; 9] = [
    "lease_id",
    "holder_signing_key_id",
    "available_at_ms",
    "issued_at_ms",
    "lease_expires_at_ms",
    "terminal_at_ms",
    "terminal_expires_at_ms",
    "reason_hash",
    "successor_cycle_id",
];
const CONTEXT: SigningContext = SigningContext { version: VersionOne, chain_id: 1, chain_instance_id: id(1) };
const RECORD: StandardRecordId = StandardRecordId { provider_epoch: ProviderEpoch, sequence: 7 };

const fn id(byte: u8) -> Bytes32 {
    Bytes32([byte; 32])
}

/// The table, row by row as it is printed: what is present beside an attempt or without one.
fn rows(action: Action) -> Vec<(bool, &'static str)> {
    match action {
        Action::Ack => vec![(true, "lease_id terminal_at_ms")],
        Action::Nack => {
            vec![(true, "lease_id available_at_ms"), (true, "lease_id terminal_at_ms terminal_expires_at_ms")]
        }
        Action::Extend | Action::LeaseIssue => {
            vec![(true, "lease_id holder_signing_key_id issued_at_ms lease_expires_at_ms")]
        }
        Action::Reject => vec![(true, "lease_id terminal_at_ms terminal_expires_at_ms reason_hash")],
        Action::Redrive => vec![(false, "available_at_ms successor_cycle_id")],
        Action::LeaseExpire => vec![(true, "lease_id available_at_ms lease_expires_at_ms")],
        Action::AttemptsExhaust => {
            vec![(true, "lease_id lease_expires_at_ms terminal_at_ms terminal_expires_at_ms")]
        }
        Action::RecordExpire => vec![(false, "terminal_at_ms"), (true, "lease_id terminal_at_ms")],
        Action::GroupCreate | Action::GroupUpdate | Action::GroupDelete => vec![],
    }
}

/// A state with exactly the options of `present`, one bit each; every inequality holds.
fn state(action: Action, attempted: bool, present: u16) -> DeliveryResultState {
    let time = |bit: u16, at_ms: u64| (present & (1 << bit) != 0).then_some(at_ms);
    let name = |bit: u16, byte: u8| (present & (1 << bit) != 0).then_some(id(byte));
    DeliveryResultState {
        action,
        stream_id: id(2),
        lane_id: id(3),
        group_id: id(4),
        record_id: RECORD,
        delivery_cycle_id: id(5),
        lease_id: name(0, 6),
        attempt: u16::from(attempted),
        holder_signing_key_id: name(1, 7),
        available_at_ms: time(2, 50),
        issued_at_ms: time(3, 10),
        lease_expires_at_ms: time(4, 20),
        terminal_at_ms: time(5, 30),
        terminal_expires_at_ms: time(6, 40),
        reason_hash: name(7, 8),
        successor_cycle_id: name(8, 9),
        group_queue_sequence: 1,
    }
}

#[test]
fn options_are_present_exactly_where_the_table_lists_them() {
    let mut accepted = 0;
    for action in ACTIONS {
        for attempted in [false, true] {
            for present in 0..1 << OPTIONS.len() {
                let listed = |names: &str| {
                    let bits =
                        OPTIONS.iter().enumerate().filter(|(_, option)| names.split(' ').any(|it| it == **option));
                    bits.fold(0u16, |all, (bit, _)| all | 1 << bit)
                };
                let expected = rows(action).iter().any(|(with, names)| *with == attempted && listed(names) == present);
                let decoded = DeliveryResultState::from_bytes(&state(action, attempted, present).to_bytes());
                let refused = decoded.err();
                assert_eq!(
                    refused,
                    (!expected).then_some(DecodeError::StateShape),
                    "{action:?} {attempted} {present:b}"
                );
                accepted += u32::from(expected);
            }
        }
    }
    assert_eq!(accepted, 11, "every row of the table");
}

#[test]
fn a_receipt_names_record_and_lease_exactly_by_its_action() {
    for action in ACTIONS {
        for (record, lease) in [(false, false), (true, false), (false, true), (true, true)] {
            let receipt = DeliveryStateReceipt {
                context: CONTEXT,
                served_at: FinalizedView { chain_instance_id: id(1), height: 1, block_hash: id(2) },
                stream_id: id(2),
                lane_id: id(3),
                group_id: id(4),
                provider_epoch: ProviderEpoch,
                action,
                record_id: record.then_some(RECORD),
                lease_id: lease.then_some(id(6)),
                resulting_state_digest: id(7),
                previous_group_receipt: id(8),
                committed_at_ms: 1,
                signature: Signature::ZERO,
            };
            let expected = match action {
                Action::GroupCreate | Action::GroupUpdate | Action::GroupDelete => !record && !lease,
                Action::Redrive => record && !lease,
                Action::RecordExpire => record,
                _ => record && lease,
            };
            let refused = DeliveryStateReceipt::from_bytes(&receipt.to_bytes()).err();
            assert_eq!(refused, (!expected).then_some(DecodeError::StateShape), "{action:?} {record} {lease}");
        }
    }
}

#[test]
fn no_field_of_a_state_is_outside_its_digest() {
    let all = (1 << OPTIONS.len()) - 1;
    let honest = state(Action::Ack, true, all);
    let bends: [&dyn Fn(&mut DeliveryResultState); 17] = [
        &|state| state.action = Action::Reject,
        &|state| state.stream_id = id(99),
        &|state| state.lane_id = id(99),
        &|state| state.group_id = id(99),
        &|state| state.record_id.sequence = 99,
        &|state| state.delivery_cycle_id = id(99),
        &|state| state.lease_id = None,
        &|state| state.attempt = 99,
        &|state| state.holder_signing_key_id = None,
        &|state| state.available_at_ms = Some(99),
        &|state| state.issued_at_ms = Some(99),
        &|state| state.lease_expires_at_ms = Some(99),
        &|state| state.terminal_at_ms = Some(99),
        &|state| state.terminal_expires_at_ms = Some(99),
        &|state| state.reason_hash = None,
        &|state| state.successor_cycle_id = None,
        &|state| state.group_queue_sequence = 99,
    ];
    let digest = delivery_result_state_digest(&CONTEXT, &honest);
    for (field, bend) in bends.iter().enumerate() {
        let mut bent = honest;
        bend(&mut bent);
        assert_ne!(delivery_result_state_digest(&CONTEXT, &bent), digest, "the field of number {field}");
    }
}
