//! Cycles: how records enter the queue, and what falls due (§11.2).

use redb::{ReadableTable, WriteTransaction};
use remuda_verify::group_config::mutable_part;
use remuda_wire::frame::ServerMessage;
use remuda_wire::group::{DeliveryResultState, DeliveryStateAction, DeliveryStateUpdate};
use remuda_wire::preimage::{delivery_result_state_digest, initial_delivery_cycle_id};
use remuda_wire::record::StandardRecordId;
use remuda_wire::{Bytes32, Canonical, ProviderEpoch};

use super::rows::{CycleRow, End, Ended, GroupId, GroupRow, Phase, Waiting};
use super::{Groups, Said, CYCLES, CYCLE_IDS, DEAD_LETTERS};
use crate::log::{LogRecord, LANES, LOG};

pub(super) const fn record_id(sequence: u64) -> StandardRecordId {
    StandardRecordId { provider_epoch: ProviderEpoch, sequence }
}

impl Groups {
    pub(super) fn put_cycle_in(
        transaction: &WriteTransaction,
        group: &GroupId,
        queue: u64,
        cycle: &CycleRow,
    ) -> anyhow::Result<()> {
        transaction.open_table(CYCLES)?.insert((&group.bytes(), queue), cycle.to_bytes().as_slice())?;
        transaction.open_table(CYCLE_IDS)?.insert((&group.bytes(), &cycle.cycle_id.0), queue)?;
        Ok(())
    }

    /// A cycle by its id, with its queue sequence.
    pub(super) fn cycle_in(
        transaction: &WriteTransaction,
        group: &GroupId,
        cycle_id: &Bytes32,
    ) -> anyhow::Result<Option<(u64, CycleRow)>> {
        let name = group.bytes();
        let Some(queue) = transaction.open_table(CYCLE_IDS)?.get((&name, &cycle_id.0))?.map(|row| row.value()) else {
            return Ok(None);
        };
        let cycles = transaction.open_table(CYCLES)?;
        let row = cycles.get((&name, queue))?;
        Ok(row.map(|row| CycleRow::from_bytes(row.value())).transpose()?.map(|cycle| (queue, cycle)))
    }

    /// The cycles that are not over, ascending.
    pub(super) fn live_cycles_in(
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &GroupRow,
    ) -> anyhow::Result<Vec<(u64, CycleRow)>> {
        let (name, cycles) = (group.bytes(), transaction.open_table(CYCLES)?);
        let mut live = Vec::new();
        for cycle in cycles.range((&name, row.first_live)..=(&name, u64::MAX))? {
            let (key, cycle) = cycle?;
            let cycle = CycleRow::from_bytes(cycle.value())?;
            if !matches!(cycle.phase, Phase::Ended(_)) {
                live.push((key.value().1, cycle));
            }
        }
        Ok(live)
    }

    /// Every record of the lane that is there enters the queue, in record order.
    pub(super) fn enter_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &mut GroupRow,
    ) -> anyhow::Result<()> {
        let number = self.log.of.number();
        let mut entering = Vec::new();
        {
            let (index, log) = (transaction.open_table(LANES)?, transaction.open_table(LOG)?);
            let lane = &group.lane_id.0;
            for entry in index.range((number, lane, row.next_record)..=(number, lane, u64::MAX))? {
                let sequence = entry?.0.value().2;
                let Some(record) = log.get((number, sequence))? else { continue };
                entering.push((sequence, LogRecord::from_bytes(record.value())?));
            }
        }
        for (sequence, record) in entering {
            let terms = mutable_part(&row.config);
            let entered_at_ms = record.receipt.committed_at_ms;
            let application_deadline = Some(record.header.expires_at_ms).filter(|at| *at > 0).unwrap_or(u64::MAX);
            let cycle = CycleRow {
                record_sequence: sequence,
                cycle_id: initial_delivery_cycle_id(&self.key(group), &record_id(sequence)),
                attempts: 0,
                deadline_ms: entered_at_ms.saturating_add(terms.record_deadline_ms).min(application_deadline),
                terms,
                phase: Phase::Waiting(Waiting { available_at_ms: 0 }),
                settled: None,
            };
            Self::put_cycle_in(transaction, group, row.next_queue, &cycle)?;
            self.note_due(group, cycle.deadline_ms);
            row.next_queue = row.next_queue.saturating_add(1);
            row.next_record = sequence.saturating_add(1);
        }
        Ok(())
    }

    /// Records enter; leases, attempts and deadlines that ran out are over, each with its receipt. Everything else of a
    /// transaction comes after this. Cycles are looked through only when one of them may be due.
    pub(super) fn sweep_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &mut GroupRow,
    ) -> anyhow::Result<bool> {
        let (before, entered) = (row.updates, row.next_record);
        self.enter_in(transaction, group, row)?;
        let now = self.log.chain.now_ms();
        // Nothing is known of a group that was not looked through since the start.
        if self.due_of(group).is_none_or(|due| due <= now) {
            let mut due = u64::MAX;
            for (queue, mut cycle) in Self::live_cycles_in(transaction, group, row)? {
                self.expire_in(transaction, group, row, (queue, &mut cycle), now)?;
                due = due.min(cycle.due_ms(now));
            }
            self.set_due(group, due);
        }
        self.refresh_in(transaction, group, row)?;
        Ok(row.updates != before || row.next_record != entered)
    }

    fn expire_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &mut GroupRow,
        (queue, cycle): (u64, &mut CycleRow),
        now: u64,
    ) -> anyhow::Result<()> {
        let lease = match &cycle.phase {
            Phase::Leased(lease) => Some(lease.clone()),
            Phase::Waiting(_) | Phase::Ended(_) => None,
        };
        let mut state = self.state_of(group, queue, cycle, DeliveryStateAction::RecordExpire);
        if now >= cycle.deadline_ms {
            state.lease_id = lease.as_ref().map(|lease| lease.lease_id);
            state.attempt = if lease.is_some() { cycle.attempts } else { 0 };
            state.terminal_at_ms = Some(now);
            cycle.phase = Phase::Ended(Ended { end: End::Expired, expires_at_ms: now, redriven: None });
        } else if let Some(lease) = lease.as_ref().filter(|lease| now >= lease.expires_at_ms) {
            state.lease_id = Some(lease.lease_id);
            state.attempt = cycle.attempts;
            state.lease_expires_at_ms = Some(lease.expires_at_ms);
            if cycle.attempts >= cycle.terms.max_attempts {
                let expires_at_ms = now.saturating_add(cycle.terms.dead_letter_ttl_ms);
                state.action = DeliveryStateAction::AttemptsExhaust;
                (state.terminal_at_ms, state.terminal_expires_at_ms) = (Some(now), Some(expires_at_ms));
                cycle.phase = Phase::Ended(Ended { end: End::DeadLettered, expires_at_ms, redriven: None });
            } else {
                state.action = DeliveryStateAction::LeaseExpire;
                state.available_at_ms = Some(now);
                cycle.phase = Phase::Waiting(Waiting { available_at_ms: now });
            }
        } else {
            return Ok(());
        }
        if let Some(lease) = lease {
            Self::release_lease_in(transaction, row, &lease.holder)?;
        }
        self.change_in(transaction, group, row, (queue, cycle), state).map(drop)
    }

    /// A result state of this cycle with nothing in it that an action may lack.
    pub(super) fn state_of(
        &self,
        group: &GroupId,
        queue: u64,
        cycle: &CycleRow,
        action: DeliveryStateAction,
    ) -> DeliveryResultState {
        DeliveryResultState {
            action,
            stream_id: self.log.stream_id,
            lane_id: group.lane_id,
            group_id: group.group_id,
            record_id: record_id(cycle.record_sequence),
            delivery_cycle_id: cycle.cycle_id,
            lease_id: None,
            attempt: 0,
            holder_signing_key_id: None,
            available_at_ms: None,
            issued_at_ms: None,
            lease_expires_at_ms: None,
            terminal_at_ms: None,
            terminal_expires_at_ms: None,
            reason_hash: None,
            successor_cycle_id: None,
            group_queue_sequence: queue,
        }
    }

    /// Publishes a state with its receipt, and keeps the cycle as it is now. Answers the update and its index.
    pub(super) fn change_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &mut GroupRow,
        (queue, cycle): (u64, &CycleRow),
        state: DeliveryResultState,
    ) -> anyhow::Result<(u64, DeliveryStateUpdate)> {
        let digest = delivery_result_state_digest(self.log.chain.context(), &state);
        let (record_id, lease_id) = (Some(state.record_id), state.lease_id);
        let receipt = self.receipt(group, row.tail, Said { action: state.action, record_id, lease_id, digest });
        let update = DeliveryStateUpdate { state, receipt };
        let frame = ServerMessage::DeliveryState(update.clone());
        let index = self.publish_in(transaction, group, row, &update.receipt, &frame)?;
        if cycle.is_dead_letter(0) {
            transaction.open_table(DEAD_LETTERS)?.insert((&group.bytes(), index), queue)?;
        }
        Self::put_cycle_in(transaction, group, queue, cycle)?;
        self.note_due(group, cycle.due_ms(self.log.chain.now_ms()));
        Ok((index, update))
    }

    /// Keeps the row, with its first live cycle.
    pub(super) fn refresh_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &mut GroupRow,
    ) -> anyhow::Result<()> {
        {
            let (name, cycles) = (group.bytes(), transaction.open_table(CYCLES)?);
            for cycle in cycles.range((&name, row.first_live)..=(&name, u64::MAX))? {
                let (key, cycle) = cycle?;
                row.first_live = key.value().1;
                if !matches!(CycleRow::from_bytes(cycle.value())?.phase, Phase::Ended(_)) {
                    break;
                }
                row.first_live = row.first_live.saturating_add(1);
            }
        }
        Self::put_row_in(transaction, group, row)
    }
}
