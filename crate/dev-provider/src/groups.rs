//! Consumer groups of a standard stream (§11.2, §14.2): durable cycles and leases, and one receipt chain for each group.
//!
//! ```text
//! groups           group                       -> GroupRow: configuration, chain tail, counters
//! group-updates    (group, index)              -> the frame that carries the update: GroupState or DeliveryState
//! group-receipts   (group, receipt digest)     -> index: where a cursor continues
//! group-cycles     (group, queue sequence)     -> CycleRow
//! group-cycle-ids  (group, cycle id)           -> queue sequence
//! dead-letters     (group, index)              -> queue sequence: in the order in which they died
//! holders          holder key id               -> live leases of this holder, in all groups
//! ```
//! Every mutation is one transaction: rows, update, receipt, index and tail.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use redb::{ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use remuda_wire::frame::ServerMessage;
use remuda_wire::group::{DeliveryStateAction, DeliveryStateReceipt, GroupConfig};
use remuda_wire::preimage::{group_genesis, GroupKey};
use remuda_wire::record::StandardRecordId;
use remuda_wire::retention::GroupRetentionAnchor;
use remuda_wire::{Bytes32, Canonical, ProviderEpoch, Signature, Signed};

use crate::keys::sign;
use crate::log::Log;

mod admin;
mod cycle;
mod lease;
mod retention;
mod rows;
mod settle;

pub use lease::{Attempt, Consumer};
pub use rows::GroupId;
pub use settle::Settlement;

use rows::{CycleRow, GroupRow};

const GROUPS: TableDefinition<'_, &[u8; 64], &[u8]> = TableDefinition::new("groups");
const UPDATES: TableDefinition<'_, (&[u8; 64], u64), &[u8]> = TableDefinition::new("group-updates");
const RECEIPTS: TableDefinition<'_, (&[u8; 64], &[u8; 32]), u64> = TableDefinition::new("group-receipts");
const CYCLES: TableDefinition<'_, (&[u8; 64], u64), &[u8]> = TableDefinition::new("group-cycles");
const CYCLE_IDS: TableDefinition<'_, (&[u8; 64], &[u8; 32]), u64> = TableDefinition::new("group-cycle-ids");
const DEAD_LETTERS: TableDefinition<'_, (&[u8; 64], u64), u64> = TableDefinition::new("dead-letters");
const HOLDERS: TableDefinition<'_, &[u8; 32], u32> = TableDefinition::new("holders");

/// The groups of one stream.
#[derive(Debug)]
pub struct Groups {
    log: Arc<Log>,
    /// When something of a group falls due, in milliseconds since 1970.
    due: Mutex<HashMap<GroupId, u64>>,
}

/// A receipt in the making: what it says beside its place in the chain.
struct Said {
    action: DeliveryStateAction,
    record_id: Option<StandardRecordId>,
    lease_id: Option<Bytes32>,
    digest: Bytes32,
}

impl Groups {
    /// The groups of the stream of this log.
    ///
    /// # Errors
    /// When the store fails.
    pub fn open(log: Arc<Log>) -> anyhow::Result<Self> {
        log.store.write(|transaction| {
            transaction.open_table(GROUPS)?;
            transaction.open_table(UPDATES)?;
            transaction.open_table(RECEIPTS)?;
            transaction.open_table(CYCLES)?;
            transaction.open_table(CYCLE_IDS)?;
            transaction.open_table(DEAD_LETTERS)?;
            transaction.open_table(HOLDERS)?;
            Ok(())
        })?;
        Ok(Self { log, due: Mutex::default() })
    }

    fn key<'a>(&'a self, group: &'a GroupId) -> GroupKey<'a> {
        GroupKey {
            context: self.log.chain.context(),
            stream_id: &self.log.stream_id,
            lane_id: &group.lane_id,
            group_id: &group.group_id,
        }
    }

    fn genesis(&self, group: &GroupId) -> Bytes32 {
        group_genesis(&self.key(group))
    }

    fn row_in(transaction: &WriteTransaction, group: &GroupId) -> anyhow::Result<Option<GroupRow>> {
        let table = transaction.open_table(GROUPS)?;
        let row = table.get(&group.bytes())?;
        Ok(row.map(|row| GroupRow::from_bytes(row.value())).transpose()?)
    }

    fn put_row_in(transaction: &WriteTransaction, group: &GroupId, row: &GroupRow) -> anyhow::Result<()> {
        transaction.open_table(GROUPS)?.insert(&group.bytes(), row.to_bytes().as_slice())?;
        Ok(())
    }

    /// A group's row.
    ///
    /// # Errors
    /// When the store fails.
    pub fn row(&self, group: &GroupId) -> anyhow::Result<Option<GroupRow>> {
        let table = self.log.store.database().begin_read()?.open_table(GROUPS)?;
        let row = table.get(&group.bytes())?;
        Ok(row.map(|row| GroupRow::from_bytes(row.value())).transpose()?)
    }

    /// The next link of a group's chain.
    fn receipt(&self, group: &GroupId, tail: Bytes32, said: Said) -> DeliveryStateReceipt {
        let mut receipt = DeliveryStateReceipt {
            context: self.log.chain.context().clone(),
            served_at: self.log.chain.view(),
            stream_id: self.log.stream_id,
            lane_id: group.lane_id,
            group_id: group.group_id,
            provider_epoch: ProviderEpoch,
            action: said.action,
            record_id: said.record_id,
            lease_id: said.lease_id,
            resulting_state_digest: said.digest,
            previous_group_receipt: tail,
            committed_at_ms: self.log.chain.now_ms(),
            signature: Signature::ZERO,
        };
        receipt.signature = sign(&self.log.keys.provider, &receipt);
        receipt
    }

    /// Keeps an update as the group's next one and moves the tail to its receipt. Answers its index.
    fn publish_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &mut GroupRow,
        receipt: &DeliveryStateReceipt,
        frame: &ServerMessage,
    ) -> anyhow::Result<u64> {
        let (name, index, digest) = (group.bytes(), row.updates, receipt.digest());
        transaction.open_table(UPDATES)?.insert((&name, index), frame.to_bytes().as_slice())?;
        transaction.open_table(RECEIPTS)?.insert((&name, &digest.0), index)?;
        row.updates = index.saturating_add(1);
        row.tail = digest;
        Ok(index)
    }

    /// The update at `index`, as the frame that carries it.
    ///
    /// # Errors
    /// When the store fails.
    pub fn update(&self, group: &GroupId, index: u64) -> anyhow::Result<Option<ServerMessage>> {
        let table = self.log.store.database().begin_read()?.open_table(UPDATES)?;
        let row = table.get((&group.bytes(), index))?;
        Ok(row.map(|row| ServerMessage::from_bytes(row.value())).transpose()?)
    }

    fn update_in(transaction: &WriteTransaction, group: &GroupId, index: u64) -> anyhow::Result<ServerMessage> {
        let table = transaction.open_table(UPDATES)?;
        let row = table.get((&group.bytes(), index))?.ok_or_else(|| anyhow::anyhow!("no update {index}"))?;
        Ok(ServerMessage::from_bytes(row.value())?)
    }

    /// Where the updates after this receipt begin; `None` for a receipt that is not of the group's chain.
    ///
    /// # Errors
    /// When the store fails.
    pub fn after(&self, group: &GroupId, receipt: Option<&Bytes32>) -> anyhow::Result<Option<u64>> {
        let Some(receipt) = receipt else { return Ok(Some(0)) };
        let table = self.log.store.database().begin_read()?.open_table(RECEIPTS)?;
        let index = table.get((&group.bytes(), &receipt.0))?;
        Ok(index.map(|index| index.value().saturating_add(1)))
    }

    /// The signed floor of a group: its latest receipt.
    pub fn anchor(&self, group: &GroupId, row: &GroupRow) -> GroupRetentionAnchor {
        let mut anchor = GroupRetentionAnchor {
            context: self.log.chain.context().clone(),
            served_at: self.log.chain.view(),
            stream_id: self.log.stream_id,
            provider_epoch: ProviderEpoch,
            lane_id: group.lane_id,
            group_id: group.group_id,
            latest_retained_receipt: row.tail,
            group_queue_sequence: row.next_queue.saturating_sub(1),
            committed_at_ms: self.log.chain.now_ms(),
            signature: Signature::ZERO,
        };
        anchor.signature = sign(&self.log.keys.provider, &anchor);
        anchor
    }

    /// The first dead letter at or after this update: where it died, and its record.
    ///
    /// # Errors
    /// When the store fails.
    pub fn dead_letter(&self, group: &GroupId, index: u64) -> anyhow::Result<Option<(u64, u64)>> {
        let (transaction, name) = (self.log.store.database().begin_read()?, group.bytes());
        let (letters, cycles) = (transaction.open_table(DEAD_LETTERS)?, transaction.open_table(CYCLES)?);
        for row in letters.range((&name, index)..=(&name, u64::MAX))? {
            let (key, queue) = row?;
            let Some(cycle) = cycles.get((&name, queue.value()))? else { continue };
            let cycle = CycleRow::from_bytes(cycle.value())?;
            if cycle.is_dead_letter(self.log.chain.now_ms()) {
                return Ok(Some((key.value().1, cycle.record_sequence)));
            }
        }
        Ok(None)
    }

    /// When the next lease, deadline or delay of any group runs out.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).values().min().copied().filter(|due| *due != u64::MAX)
    }

    fn due_of(&self, group: &GroupId) -> Option<u64> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).get(group).copied()
    }

    /// Nothing of the group falls due before this.
    fn set_due(&self, group: &GroupId, due: u64) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).insert(*group, due);
    }

    /// Something may fall due then; a group that was never looked through stays so.
    fn note_due(&self, group: &GroupId, due: u64) {
        if let Some(known) = self.due.lock().unwrap_or_else(PoisonError::into_inner).get_mut(group) {
            *known = due.min(*known);
        }
    }

    /// Live leases of a holder.
    fn held_in(transaction: &WriteTransaction, holder: &Bytes32) -> anyhow::Result<u32> {
        let table = transaction.open_table(HOLDERS)?;
        let held = table.get(&holder.0)?.map_or(0, |held| held.value());
        Ok(held)
    }

    fn count_lease_in(transaction: &WriteTransaction, row: &mut GroupRow, holder: &Bytes32) -> anyhow::Result<()> {
        let held = Self::held_in(transaction, holder)?;
        transaction.open_table(HOLDERS)?.insert(&holder.0, held.saturating_add(1))?;
        row.in_flight = row.in_flight.saturating_add(1);
        Ok(())
    }

    fn release_lease_in(transaction: &WriteTransaction, row: &mut GroupRow, holder: &Bytes32) -> anyhow::Result<()> {
        let held = Self::held_in(transaction, holder)?;
        transaction.open_table(HOLDERS)?.insert(&holder.0, held.saturating_sub(1))?;
        row.in_flight = row.in_flight.saturating_sub(1);
        Ok(())
    }

    /// Live leases of a holder, in all groups.
    ///
    /// # Errors
    /// When the store fails.
    pub fn held(&self, holder: &Bytes32) -> anyhow::Result<u32> {
        let table = self.log.store.database().begin_read()?.open_table(HOLDERS)?;
        let held = table.get(&holder.0)?.map_or(0, |held| held.value());
        Ok(held)
    }

    /// Every group that is not deleted.
    pub(crate) fn live_in(transaction: &WriteTransaction) -> anyhow::Result<Vec<(GroupId, GroupConfig)>> {
        let table = transaction.open_table(GROUPS)?;
        let mut live = Vec::new();
        for row in table.iter()? {
            let (key, row) = row?;
            let row = GroupRow::from_bytes(row.value())?;
            if !row.deleted {
                live.push((GroupId::from_bytes(key.value()), row.config));
            }
        }
        Ok(live)
    }
}
