//! Handing out records (§11.2): a lease starts when its delivery is sent, so there is room for the frame before there is
//! a lease.

use redb::{ReadableTable, WriteTransaction};
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::frame::ServerMessage;
use remuda_wire::group::{DeliveryLease, DeliveryLeaseRef, GroupMode};
use remuda_wire::preimage::lease_id;
use remuda_wire::record::RecordId;
use remuda_wire::{Bytes32, Canonical};

use super::cycle::record_id;
use super::rows::{CycleRow, GroupId, GroupRow, Leased, Phase};
use super::{Groups, CYCLES};
use crate::log::{LogRecord, LOG};
use crate::outbox::Outbox;
use crate::subscription::Window;

/// More than a lease and its receipt add to a delivery.
const LEASE_BYTES: usize = 1_024;

/// Who asks for a lease, and what covers it.
#[derive(Clone, Copy, Debug)]
pub struct Consumer<'a> {
    /// The subscription.
    pub subscription_id: &'a Bytes32,
    /// `holder_signing_key_id`.
    pub holder: &'a Bytes32,
    /// The grant's `max_in_flight`.
    pub max_in_flight: u32,
    /// Its credit.
    pub window: Window,
}

/// What an attempt to lease came to.
#[derive(Debug)]
pub enum Attempt {
    /// Updates come first: there are newer ones than the consumer was sent.
    Moved,
    /// A lease, durable now, and the delivery that starts it.
    Leased(Box<RecordDelivery>),
    /// Nothing is available, or not to this consumer now.
    Nothing,
}

impl Groups {
    /// Leases the next available record to `consumer`, who was sent every update below `seen`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn lease(
        &self,
        group: &GroupId,
        seen: u64,
        consumer: &Consumer<'_>,
        outbox: &Outbox,
    ) -> anyhow::Result<Attempt> {
        // Without credit there is only what falls due.
        let now = self.log.chain.now_ms();
        let is_due = self.due_of(group).is_none_or(|due| due <= now);
        if consumer.window.records == 0 && !is_due {
            return Ok(Attempt::Nothing);
        }
        self.log.chain.clock().write_here(|| {
            let transaction = self.log.store.database().begin_write()?;
            let (attempt, has_changed) = self.attempt_in(&transaction, group, seen, consumer, outbox)?;
            if has_changed {
                transaction.commit()?;
            } else {
                transaction.abort()?;
            }
            Ok(attempt)
        })
    }

    /// The attempt, and whether anything of it is to be kept.
    fn attempt_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        seen: u64,
        consumer: &Consumer<'_>,
        outbox: &Outbox,
    ) -> anyhow::Result<(Attempt, bool)> {
        let Some(mut row) = Self::row_in(transaction, group)?.filter(|row| !row.deleted) else {
            return Ok((Attempt::Nothing, false));
        };
        let has_changed = self.sweep_in(transaction, group, &mut row)?;
        if row.updates != seen {
            return Ok((Attempt::Moved, has_changed));
        }
        // After the sweep: leases that ran out were released first.
        let is_full = row.in_flight >= row.config.max_in_flight
            || Self::held_in(transaction, consumer.holder)? >= consumer.max_in_flight;
        if is_full {
            return Ok((Attempt::Nothing, has_changed));
        }
        let Some((queue, cycle)) = self.available_in(transaction, group, &row)? else {
            return Ok((Attempt::Nothing, has_changed));
        };
        let leased = self.issue_in(transaction, group, &mut row, (queue, cycle), consumer, outbox)?;
        Ok(leased.map_or((Attempt::Nothing, has_changed), |delivery| (Attempt::Leased(Box::new(delivery)), true)))
    }

    /// The next cycle to hand out: in strict order only the first that is not over.
    fn available_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &GroupRow,
    ) -> anyhow::Result<Option<(u64, CycleRow)>> {
        let now = self.log.chain.now_ms();
        let (name, cycles) = (group.bytes(), transaction.open_table(CYCLES)?);
        for cycle in cycles.range((&name, row.first_live)..=(&name, u64::MAX))? {
            let (key, cycle) = cycle?;
            let cycle = CycleRow::from_bytes(cycle.value())?;
            match &cycle.phase {
                Phase::Waiting(waiting) if waiting.available_at_ms <= now => return Ok(Some((key.value().1, cycle))),
                Phase::Waiting(_) | Phase::Leased(_) if row.config.mode == GroupMode::StrictFifo => return Ok(None),
                Phase::Waiting(_) | Phase::Leased(_) | Phase::Ended(_) => {}
            }
        }
        Ok(None)
    }

    fn issue_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &mut GroupRow,
        (queue, mut cycle): (u64, CycleRow),
        consumer: &Consumer<'_>,
        outbox: &Outbox,
    ) -> anyhow::Result<Option<RecordDelivery>> {
        let record = {
            let log = transaction.open_table(LOG)?;
            let stored = log.get((self.log.of.number(), cycle.record_sequence))?;
            let stored = stored.ok_or_else(|| anyhow::anyhow!("a live record is never pruned"))?;
            LogRecord::from_bytes(stored.value())?
        };
        let now = self.log.chain.now_ms();
        let attempt = cycle.attempts.saturating_add(1);
        let id = record_id(cycle.record_sequence);
        let lease_id = lease_id(&self.key(group), &id, &cycle.cycle_id, attempt, consumer.holder);
        let expires_at_ms = now.saturating_add(cycle.terms.visibility_timeout_ms);
        let lease = DeliveryLease {
            reference: DeliveryLeaseRef {
                stream_id: self.log.stream_id,
                lane_id: group.lane_id,
                group_id: group.group_id,
                record_id: id,
                delivery_cycle_id: cycle.cycle_id,
                lease_id,
            },
            attempt,
            holder_signing_key_id: *consumer.holder,
            group_queue_sequence: queue,
            issued_at_ms: now,
            expires_at_ms,
        };
        let mut delivery = record.delivery(*consumer.subscription_id);
        delivery.record_id = RecordId::Standard(id);
        let covered = consumer.window.covers(u64::try_from(delivery.payload.len())?);
        if !covered || !outbox.has_room(delivery.to_bytes().len() + LEASE_BYTES) {
            return Ok(None);
        }
        cycle.attempts = attempt;
        cycle.phase = Phase::Leased(Leased { lease_id, holder: *consumer.holder, issued_at_ms: now, expires_at_ms });
        let state = lease.implied_state();
        let (_, update) = self.change_in(transaction, group, row, (queue, &cycle), state)?;
        delivery.lease = Some(lease);
        delivery.delivery_state_receipt = Some(update.receipt);
        Self::count_lease_in(transaction, row, consumer.holder)?;
        self.refresh_in(transaction, group, row)?;
        Ok(Some(delivery))
    }

    /// The record of a dead letter, as its subscription is sent it.
    ///
    /// # Errors
    /// When the store fails.
    pub fn dead_delivery(&self, sequence: u64, subscription_id: &Bytes32) -> anyhow::Result<Option<ServerMessage>> {
        let record = self.log.record(sequence)?;
        Ok(record.map(|record| ServerMessage::Delivery(record.delivery(*subscription_id))))
    }
}
