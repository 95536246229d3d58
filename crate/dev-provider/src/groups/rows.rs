//! What is kept of a group and of each of its cycles.

use remuda_wire::group::{GroupConfig, GroupMutableConfig};
use remuda_wire::{object, tags, union, Bytes32};

/// A group of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupId {
    /// Its lane.
    pub lane_id: Bytes32,
    /// Its name in the lane.
    pub group_id: Bytes32,
}

impl GroupId {
    pub(super) fn bytes(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.lane_id.0);
        bytes[32..].copy_from_slice(&self.group_id.0);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; 64]) -> Self {
        let (mut lane_id, mut group_id) = (Bytes32::ZERO, Bytes32::ZERO);
        lane_id.0.copy_from_slice(&bytes[..32]);
        group_id.0.copy_from_slice(&bytes[32..]);
        Self { lane_id, group_id }
    }
}

object! {
    /// A group.
    pub struct GroupRow {
        config: GroupConfig,
        deleted: bool,
        /// The last receipt.
        tail: Bytes32,
        /// How many updates there are.
        updates: u64,
        /// The queue sequence of the next cycle.
        next_queue: u64,
        /// The sequence of the next record that may enter.
        next_record: u64,
        /// No cycle below this queue sequence is live.
        first_live: u64,
        /// Live leases.
        in_flight: u32,
    }
}

tags! {
    /// How a cycle ended.
    pub enum End: u8 { Acked = 1, DeadLettered = 2, Expired = 3, }
}

object! {
    /// In the queue, not before this time.
    pub struct Waiting { available_at_ms: u64, }
}

object! {
    /// A live lease.
    pub struct Leased { lease_id: Bytes32, holder: Bytes32, issued_at_ms: u64, expires_at_ms: u64, }
}

object! {
    /// Over. `redriven` is the index of the update that made the successor.
    pub struct Ended { end: End, expires_at_ms: u64, redriven: Option<u64>, }
}

union! {
    /// Where a cycle stands.
    pub enum Phase: u8 {
        Waiting(row: Waiting) = 1,
        Leased(row: Leased) = 2,
        Ended(row: Ended) = 3,
    }
}

object! {
    /// What the last lease of a cycle was answered with, for a retry.
    pub struct Settled { lease_id: Bytes32, action: u8, index: u64, }
}

object! {
    /// One delivery cycle. `terms` are those of its group when it entered.
    pub struct CycleRow {
        record_sequence: u64,
        cycle_id: Bytes32,
        attempts: u16,
        terms: GroupMutableConfig,
        /// When it expires whatever its state.
        deadline_ms: u64,
        phase: Phase,
        settled: Option<Settled>,
    }
}

impl CycleRow {
    /// When something of it falls due next.
    pub fn due_ms(&self, now_ms: u64) -> u64 {
        match &self.phase {
            Phase::Leased(lease) => lease.expires_at_ms.min(self.deadline_ms),
            Phase::Waiting(waiting) if waiting.available_at_ms > now_ms => {
                waiting.available_at_ms.min(self.deadline_ms)
            }
            Phase::Waiting(_) => self.deadline_ms,
            Phase::Ended(_) => u64::MAX,
        }
    }

    /// True while its record can be read and redriven as a dead letter.
    pub fn is_dead_letter(&self, now_ms: u64) -> bool {
        match &self.phase {
            Phase::Ended(ended) => {
                ended.end == End::DeadLettered && ended.redriven.is_none() && now_ms <= ended.expires_at_ms
            }
            Phase::Waiting(_) | Phase::Leased(_) => false,
        }
    }
}
