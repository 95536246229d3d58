//! Consumer groups on their way to and from JavaScript.

use remuda_client::{Decision, Keyring};
use remuda_position::PositionKey;
use remuda_wire::codec::ProviderEpoch;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::group::{
    DeliveryLease, DeliveryResultState, DeliveryStateAction, GroupConfig, GroupMode, GroupMutableConfig, GroupStart,
};
use remuda_wire::record::StandardRecordId;
use wasm_bindgen::JsValue;

use crate::object::Builder;
use crate::options::{group, member, optional, text, unsigned};
use crate::thrown::bad_argument;
use crate::to_js::{header_members, payload_members};

/// A number member, whole and not negative.
fn count<T: TryFrom<u64>>(options: &JsValue, name: &str) -> Result<T, JsValue> {
    let wrong = || bad_argument(&format!("`{name}` is a whole number, zero or more"));
    let digits = member(options, name).as_f64().map(|number| number.to_string()).ok_or_else(wrong)?;
    digits.parse::<u64>().ok().and_then(|number| T::try_from(number).ok()).ok_or_else(wrong)
}

/// What of a configuration can change.
pub fn mutable_config(config: &JsValue) -> Result<GroupMutableConfig, JsValue> {
    Ok(GroupMutableConfig {
        mode: match text(config, "mode")?.as_str() {
            "strict-fifo" => GroupMode::StrictFifo,
            "concurrent" => GroupMode::Concurrent,
            _ => return Err(bad_argument("`mode` is \"strict-fifo\" or \"concurrent\"")),
        },
        visibility_timeout_ms: unsigned(config, "visibilityTimeoutMs")?,
        max_visibility_ms: unsigned(config, "maxVisibilityMs")?,
        max_in_flight: count(config, "maxInFlight")?,
        max_attempts: count(config, "maxAttempts")?,
        record_deadline_ms: unsigned(config, "recordDeadlineMs")?,
        dead_letter_ttl_ms: unsigned(config, "deadLetterTtlMs")?,
        retention_pin_until_ms: unsigned(config, "retentionPinUntilMs")?,
    })
}

/// A whole configuration; without `start` it begins at the head.
pub fn config(config: &JsValue) -> Result<GroupConfig, JsValue> {
    let (group, mutable) = (group(config)?, mutable_config(config)?);
    let start = match optional(config, "start") {
        None => GroupStart::Head,
        Some(_) => GroupStart::At(record_id(unsigned(config, "start")?)),
    };
    Ok(GroupConfig {
        group_id: group.group_id,
        lane_id: group.lane_id,
        mode: mutable.mode,
        start,
        visibility_timeout_ms: mutable.visibility_timeout_ms,
        max_visibility_ms: mutable.max_visibility_ms,
        max_in_flight: mutable.max_in_flight,
        max_attempts: mutable.max_attempts,
        record_deadline_ms: mutable.record_deadline_ms,
        dead_letter_ttl_ms: mutable.dead_letter_ttl_ms,
        retention_pin_until_ms: mutable.retention_pin_until_ms,
    })
}

/// A record of a standard stream by its sequence.
pub const fn record_id(sequence: u64) -> StandardRecordId {
    StandardRecordId { provider_epoch: ProviderEpoch, sequence }
}

/// A configuration, as [`config`] takes it.
pub fn config_members(object: Builder, config: &GroupConfig) -> Builder {
    let mode = match config.mode {
        GroupMode::StrictFifo => "strict-fifo",
        GroupMode::Concurrent => "concurrent",
    };
    let start = match &config.start {
        GroupStart::Head => None,
        GroupStart::At(id) => Some(id.sequence),
    };
    object
        .with("group", &config.group_id)
        .with("lane", &config.lane_id)
        .with("mode", mode)
        .with("start", &start)
        .with("visibilityTimeoutMs", &config.visibility_timeout_ms)
        .with("maxVisibilityMs", &config.max_visibility_ms)
        .with_value("maxInFlight", &crate::object::number(config.max_in_flight))
        .with_value("maxAttempts", &crate::object::number(config.max_attempts))
        .with("recordDeadlineMs", &config.record_deadline_ms)
        .with("deadLetterTtlMs", &config.dead_letter_ttl_ms)
        .with("retentionPinUntilMs", &config.retention_pin_until_ms)
}

/// A record under a lease; `undecryptable` where it cannot be read, with what was decided of it.
pub fn delivery(
    key: PositionKey,
    record: &RecordDelivery,
    lease: &DeliveryLease,
    decided: Option<Decision>,
    keyring: Option<&Keyring>,
) -> JsValue {
    let object = match decided {
        None => Builder::new().with("type", "delivery"),
        Some(Decision::Reject { .. }) => Builder::new().with("type", "undecryptable").with("decided", "reject"),
        Some(_) => Builder::new().with("type", "undecryptable").with("decided", "nack"),
    };
    let reference = &lease.reference;
    let object = object
        .with("key", &key.0)
        .with("lease", &reference.lease_id)
        .with("cycle", &reference.delivery_cycle_id)
        .with("sequence", &reference.record_id.sequence)
        .with_value("attempt", &crate::object::number(lease.attempt))
        .with("leaseExpiresAtMs", &lease.expires_at_ms);
    payload_members(header_members(object, &record.header), &record.header, &record.payload, keyring).build()
}

/// What became of a record, as the group's chain says it.
pub fn state_members(object: Builder, state: &DeliveryResultState) -> Builder {
    object
        .with("action", action_name(state.action))
        .with("lease", &state.lease_id)
        .with("cycle", &state.delivery_cycle_id)
        .with("sequence", &state.record_id.sequence)
        .with_value("attempt", &crate::object::number(state.attempt))
        .with("availableAtMs", &state.available_at_ms)
        .with("leaseExpiresAtMs", &state.lease_expires_at_ms)
        .with("terminalAtMs", &state.terminal_at_ms)
        .with("deadUntilMs", &state.terminal_expires_at_ms)
        .with("reason", &state.reason_hash)
        .with("successor", &state.successor_cycle_id)
}

const fn action_name(action: DeliveryStateAction) -> &'static str {
    match action {
        DeliveryStateAction::Ack => "ack",
        DeliveryStateAction::Nack => "nack",
        DeliveryStateAction::Extend => "extend",
        DeliveryStateAction::Reject => "reject",
        DeliveryStateAction::Redrive => "redrive",
        DeliveryStateAction::GroupCreate => "group-create",
        DeliveryStateAction::GroupUpdate => "group-update",
        DeliveryStateAction::GroupDelete => "group-delete",
        DeliveryStateAction::LeaseIssue => "lease-issue",
        DeliveryStateAction::LeaseExpire => "lease-expire",
        DeliveryStateAction::AttemptsExhaust => "attempts-exhaust",
        DeliveryStateAction::RecordExpire => "record-expire",
    }
}
