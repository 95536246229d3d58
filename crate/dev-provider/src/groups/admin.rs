//! Creating, updating and deleting a group.

use redb::WriteTransaction;
use remuda_verify::group_config::mutable_part;
use remuda_wire::bound;
use remuda_wire::chain::StreamConfig;
use remuda_wire::frame::ServerMessage;
use remuda_wire::group::{DeliveryStateAction, GroupConfig, GroupMutableConfig, GroupStart, GroupStateUpdate};
use remuda_wire::preimage::{group_config_state, group_deleted_state};
use remuda_wire::scope::LaneScope;

use super::rows::{GroupId, GroupRow, Phase};
use super::{Groups, Said};
use crate::log::cursor_too_old;
use crate::refusal::{Code, Refusal};

/// `cbqs.max_groups_per_stream`, default.
const MAX_GROUPS: usize = 4_096;

type Decided = anyhow::Result<Result<GroupStateUpdate, Refusal>>;

impl Groups {
    /// Creates a group. The same request again is answered as before; a name is never used twice.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3939, 3915, 3914, 3917.
    pub fn create(&self, config: GroupConfig) -> Decided {
        let group = GroupId { lane_id: config.lane_id, group_id: config.group_id };
        let decided = self.log.store.decide(|transaction| {
            if let Some(row) = Self::row_in(transaction, &group)? {
                return if row.config == config && !row.deleted && row.updates > 0 {
                    first_update(transaction, &group)
                } else {
                    Ok(Err(Refusal::new(Code::IdempotencyConflict, "a group of this name exists or existed")))
                };
            }
            if let Err(refusal) = self.check_config(&mutable_part(&config)) {
                return Ok(Err(refusal));
            }
            if Self::live_in(transaction)?.len() >= MAX_GROUPS {
                return Ok(Err(Refusal::new(Code::Backpressure, "the stream has as many groups as it may")));
            }
            let log = self.log.state_in(transaction)?;
            let next_record = match &config.start {
                GroupStart::Head => log.next_sequence,
                GroupStart::At(id) if id.sequence < log.first_retained => {
                    // The lane may have lost nothing of it, but it was to begin at what is gone.
                    let scope = LaneScope::Exact(group.lane_id);
                    if let Some(anchor) = self.log.floor_above(&scope, id.sequence)? {
                        return Ok(Err(cursor_too_old(&anchor)));
                    }
                    id.sequence
                }
                GroupStart::At(id) => id.sequence,
            };
            let tail = self.genesis(&group);
            let mut row = GroupRow {
                config,
                deleted: false,
                tail,
                updates: 0,
                next_queue: 1,
                next_record,
                first_live: 1,
                in_flight: 0,
            };
            self.mutate_in(transaction, &group, &mut row, DeliveryStateAction::GroupCreate).map(Ok)
        })?;
        self.wake(decided)
    }

    /// Replaces what can change. Cycles that entered before keep their terms.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3918, 3939.
    pub fn update_config(&self, group: &GroupId, config: &GroupMutableConfig) -> Decided {
        let decided = self.log.store.decide(|transaction| {
            let mut row = match self.live_row_in(transaction, group)? {
                Ok(row) => row,
                Err(refusal) => return Ok(Err(refusal)),
            };
            if let Err(refusal) = self.check_config(config) {
                return Ok(Err(refusal));
            }
            self.sweep_in(transaction, group, &mut row)?;
            if config.mode != row.config.mode && row.in_flight > 0 {
                return Ok(Err(invalid("mode")));
            }
            row.config = GroupConfig {
                group_id: row.config.group_id,
                lane_id: row.config.lane_id,
                mode: config.mode,
                start: row.config.start.clone(),
                visibility_timeout_ms: config.visibility_timeout_ms,
                max_visibility_ms: config.max_visibility_ms,
                max_in_flight: config.max_in_flight,
                max_attempts: config.max_attempts,
                record_deadline_ms: config.record_deadline_ms,
                dead_letter_ttl_ms: config.dead_letter_ttl_ms,
                retention_pin_until_ms: config.retention_pin_until_ms,
            };
            self.mutate_in(transaction, group, &mut row, DeliveryStateAction::GroupUpdate).map(Ok)
        })?;
        self.wake(decided)
    }

    /// Deletes a group: its leases are over, its name stays taken.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3918.
    pub fn delete(&self, group: &GroupId) -> Decided {
        let decided = self.log.store.decide(|transaction| {
            let Some(mut row) = Self::row_in(transaction, group)? else { return Ok(Err(not_found())) };
            if row.deleted {
                let last = row.updates.saturating_sub(1);
                let ServerMessage::GroupState(update) = Self::update_in(transaction, group, last)? else {
                    anyhow::bail!("a deleted group ends with its deletion");
                };
                return Ok(Ok(update));
            }
            for (_, cycle) in Self::live_cycles_in(transaction, group, &row)? {
                if let Phase::Leased(lease) = &cycle.phase {
                    Self::release_lease_in(transaction, &mut row, &lease.holder)?;
                }
            }
            row.deleted = true;
            self.set_due(group, u64::MAX);
            self.mutate_in(transaction, group, &mut row, DeliveryStateAction::GroupDelete).map(Ok)
        })?;
        self.wake(decided)
    }

    fn wake(&self, decided: Result<GroupStateUpdate, Refusal>) -> Decided {
        if decided.is_ok() {
            self.log.signal.raise();
        }
        Ok(decided)
    }

    /// The row of a group that is not deleted.
    pub(super) fn live_row_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
    ) -> anyhow::Result<Result<GroupRow, Refusal>> {
        Ok(Self::row_in(transaction, group)?.filter(|row| !row.deleted).ok_or_else(not_found))
    }

    fn mutate_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &mut GroupRow,
        action: DeliveryStateAction,
    ) -> anyhow::Result<GroupStateUpdate> {
        let (context, stream_id) = (self.log.chain.context(), &self.log.stream_id);
        let config = (action != DeliveryStateAction::GroupDelete).then(|| row.config.clone());
        let digest = match &config {
            Some(config) => group_config_state(context, stream_id, config),
            None => group_deleted_state(context, stream_id, &group.lane_id, &group.group_id),
        };
        let receipt = self.receipt(group, row.tail, Said { action, record_id: None, lease_id: None, digest });
        let update = GroupStateUpdate { config, receipt };
        let frame = ServerMessage::GroupState(update.clone());
        self.publish_in(transaction, group, row, &update.receipt, &frame)?;
        Self::put_row_in(transaction, group, row)?;
        Ok(update)
    }

    fn check_config(&self, config: &GroupMutableConfig) -> Result<(), Refusal> {
        let stream = self.log.chain.records().stream.config.clone();
        match first_violation(config, &stream, self.log.chain.now_ms()) {
            None => Ok(()),
            Some(field) => Err(invalid(field)),
        }
    }
}

fn first_update(transaction: &WriteTransaction, group: &GroupId) -> Decided {
    match Groups::update_in(transaction, group, 0)? {
        ServerMessage::GroupState(update) => Ok(Ok(update)),
        _ => anyhow::bail!("a group begins with its creation"),
    }
}

pub(super) fn not_found() -> Refusal {
    Refusal::new(Code::GroupNotFound, "no such group")
}

fn invalid(field: &str) -> Refusal {
    Refusal::new(Code::GroupConfigInvalid, format!("{field} cannot be so")).with_details(field.as_bytes().to_vec())
}

/// The first field that breaks an inequality of §13.1.
fn first_violation(config: &GroupMutableConfig, stream: &StreamConfig, now_ms: u64) -> Option<&'static str> {
    let within = [
        ("visibility_timeout_ms", (1..=config.max_visibility_ms).contains(&config.visibility_timeout_ms)),
        ("max_visibility_ms", config.max_visibility_ms <= stream.max_visibility_ms),
        ("max_attempts", (1..=bound::MAX_ATTEMPTS).contains(&config.max_attempts)),
        ("max_in_flight", config.max_in_flight > 0),
        ("record_deadline_ms", config.record_deadline_ms > 0),
        ("dead_letter_ttl_ms", config.dead_letter_ttl_ms <= stream.retention_ms),
        ("retention_pin_until_ms", config.retention_pin_until_ms <= now_ms.saturating_add(stream.retention_ms)),
    ];
    within.into_iter().find(|(_, holds)| !holds).map(|(field, _)| field)
}
