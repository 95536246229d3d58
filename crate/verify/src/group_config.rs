//! The inequalities of a group configuration (§13.1), at create and at every update.

use remuda_wire::bound::MAX_ATTEMPTS;
use remuda_wire::chain::StreamConfig;
use remuda_wire::group::{GroupConfig, GroupMutableConfig};
use remuda_wire::verdict::AdmissionRefused;

/// The fields of a configuration that an update replaces: what the inequalities are about.
pub const fn mutable_part(config: &GroupConfig) -> GroupMutableConfig {
    GroupMutableConfig {
        mode: config.mode,
        visibility_timeout_ms: config.visibility_timeout_ms,
        max_visibility_ms: config.max_visibility_ms,
        max_in_flight: config.max_in_flight,
        max_attempts: config.max_attempts,
        record_deadline_ms: config.record_deadline_ms,
        dead_letter_ttl_ms: config.dead_letter_ttl_ms,
        retention_pin_until_ms: config.retention_pin_until_ms,
    }
}

/// Judges a configuration against the stream's own, at the provider's time.
///
/// The ceilings are the stream's snapshot and the immutable maxima, never live parameters: a parameter write does not
/// redefine a running group.
///
/// # Errors
/// [`AdmissionRefused::GroupConfig`].
pub fn check_group_config(
    config: &GroupMutableConfig,
    stream: &StreamConfig,
    now_ms: u64,
) -> Result<(), AdmissionRefused> {
    let visibility = 0 < config.visibility_timeout_ms
        && config.visibility_timeout_ms <= config.max_visibility_ms
        && config.max_visibility_ms <= stream.max_visibility_ms;
    let attempts = (1..=MAX_ATTEMPTS).contains(&config.max_attempts);
    // The addition saturates: with it, zero ("no pin") holds at any time and needs no case of its own.
    let retained = config.dead_letter_ttl_ms <= stream.retention_ms
        && config.retention_pin_until_ms <= now_ms.saturating_add(stream.retention_ms);
    if visibility && attempts && config.max_in_flight > 0 && config.record_deadline_ms > 0 && retained {
        Ok(())
    } else {
        Err(AdmissionRefused::GroupConfig)
    }
}
