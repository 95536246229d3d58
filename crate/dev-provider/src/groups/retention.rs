//! Retention of a standard stream (§15): what every group is done with, or whose pin has run out, may go.

use std::collections::BTreeSet;

use redb::{ReadableTable, WriteTransaction};
use remuda_wire::group::DeliveryStateAction;
use remuda_wire::Canonical;

use super::rows::{CycleRow, End, Ended, GroupId, Phase};
use super::{Groups, CYCLES, DEAD_LETTERS};

impl Groups {
    /// Prunes what is older than the stream's retention and pinned by no group: expiries, floors, anchors and deletions
    /// are one transaction. Answers whether anything went.
    ///
    /// # Errors
    /// When the store fails.
    pub fn collect(&self) -> anyhow::Result<bool> {
        let (now, retention_ms) = (self.log.chain.now_ms(), self.log.chain.records().stream.config.retention_ms);
        let before_ms = now.saturating_sub(retention_ms);
        let pruned = self.log.store.write(|transaction| {
            self.log.forget_accepted_in(transaction)?;
            let mut pins = BTreeSet::new();
            for (group, config) in Self::live_in(transaction)? {
                let is_pinning = now <= config.retention_pin_until_ms;
                pins.extend(self.pins_in(transaction, &group, (!is_pinning).then_some(before_ms))?);
            }
            self.log.prune_in(transaction, before_ms, |sequence| pins.contains(&sequence))
        })?;
        if pruned {
            self.log.signal.raise();
        }
        Ok(pruned)
    }

    /// The records that a group still needs. Those committed before `expiring_before` are over for it.
    fn pins_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        expiring_before: Option<u64>,
    ) -> anyhow::Result<Vec<u64>> {
        let Some(mut row) = Self::row_in(transaction, group)? else { return Ok(Vec::new()) };
        self.sweep_in(transaction, group, &mut row)?;
        let now = self.log.chain.now_ms();
        let mut pins = Vec::new();
        for (queue, mut cycle) in Self::live_cycles_in(transaction, group, &row)? {
            let is_over = match expiring_before {
                Some(before) => {
                    self.log.committed_at_in(transaction, cycle.record_sequence)?.is_some_and(|at| at < before)
                }
                None => false,
            };
            if !is_over {
                pins.push(cycle.record_sequence);
                continue;
            }
            let mut state = self.state_of(group, queue, &cycle, DeliveryStateAction::RecordExpire);
            state.terminal_at_ms = Some(now);
            if let Phase::Leased(lease) = &cycle.phase {
                (state.lease_id, state.attempt) = (Some(lease.lease_id), cycle.attempts);
                Self::release_lease_in(transaction, &mut row, &lease.holder)?;
            }
            cycle.phase = Phase::Ended(Ended { end: End::Expired, expires_at_ms: now, redriven: None });
            self.change_in(transaction, group, &mut row, (queue, &cycle), state)?;
        }
        self.refresh_in(transaction, group, &mut row)?;
        let (name, letters, cycles) =
            (group.bytes(), transaction.open_table(DEAD_LETTERS)?, transaction.open_table(CYCLES)?);
        for letter in letters.range((&name, 0)..=(&name, u64::MAX))? {
            let Some(cycle) = cycles.get((&name, letter?.1.value()))? else { continue };
            let cycle = CycleRow::from_bytes(cycle.value())?;
            if cycle.is_dead_letter(now) {
                pins.push(cycle.record_sequence);
            }
        }
        Ok(pins)
    }
}
