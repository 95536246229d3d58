//! Rows: canonical bytes of our own versioned format.

use alloc::vec::Vec;

use remuda_streaming::{SequenceId, Topic};
use remuda_wire::codec::{Bytes, VersionOne};
use remuda_wire::{object, tags, union, Bytes32, Canonical};

use super::limits::MAX_PENDING_PER_TOPIC;
use crate::store::StoreError;

/// Bytes of anything that an application stores in one row.
pub(crate) const MAX_VALUE_BYTES: usize = 64 * 1024 * 1024;

tags! {
    /// Whether a topic goes on.
    pub enum Phase: u8 {
        /// Nothing is installed: a group that we have not joined. Its rows wait.
        Absent = 0,
        /// Its rows are processed.
        Active = 1,
        /// This installation was removed: its rows wait for a welcome (STR-086).
        Inactive = 2,
    }
}

object! {
    /// What is durable of a topic. Every commit that concerns it compares this row.
    #[derive(Copy)]
    pub struct TopicRow {
        version: VersionOne,
        /// F.
        received: u64,
        /// P; of a welcome topic, nothing.
        processed: u64,
        phase: Phase,
        /// The epoch of the installed state.
        epoch: u64,
        pending_rows: u64,
        pending_bytes: u64,
        /// Rises with every change, so that no two rows are alike.
        revision: u64,
    }
}

impl TopicRow {
    /// A topic of which nothing is durable.
    pub(crate) fn empty(topic: &Topic) -> Self {
        let phase = match topic.kind() {
            remuda_streaming::TopicKind::Group => Phase::Absent,
            _ => Phase::Active,
        };
        let (received, processed, epoch, pending_rows, pending_bytes, revision) = (0, 0, 0, 0, 0, 0);
        Self { version: VersionOne, received, processed, phase, epoch, pending_rows, pending_bytes, revision }
    }

    pub(crate) fn received(&self) -> SequenceId {
        place(self.received)
    }

    pub(crate) fn processed(&self) -> SequenceId {
        place(self.processed)
    }
}

/// A place that was one when it was stored.
fn place(number: u64) -> SequenceId {
    SequenceId::new(number).unwrap_or(SequenceId::MAX)
}

object! {
    /// What is pending of all topics of one kind.
    #[derive(Copy)]
    pub struct KindRow {
        version: VersionOne,
        rows: u64,
        bytes: u64,
    }
}

impl KindRow {
    pub(crate) const EMPTY: Self = Self { version: VersionOne, rows: 0, bytes: 0 };
}

object! {
    /// An envelope that is received and not yet handled.
    pub struct PendingRow {
        version: VersionOne,
        message_hash: Bytes32,
        /// When a welcome that cannot be processed is given up; set once (STR-115).
        deadline_ms: Option<u64>,
        envelope: Bytes<{ MAX_PENDING_PER_TOPIC.bytes }>,
    }
}

union! {
    /// Why an envelope was terminally rejected.
    #[derive(Copy, Hash, PartialOrd, Ord)]
    pub enum RejectionReason: u8 {
        /// The processor's own validation, by its number.
        Validation(number: u16) = 1,
        /// It references an identity update that cannot be, or that never came (STR-076).
        InvalidReference = 2,
        /// A welcome of an epoch that the group's state has reached, or whose anchor it has passed.
        StaleWelcome = 3,
        /// A welcome of a later epoch, while the group is active through the anchor (STR-082).
        ConflictingWelcome = 4,
        /// A welcome whose anchor is not below its own place (STR-083).
        InvalidAnchor = 5,
        /// A welcome that could not be processed before its retention ended (STR-115).
        Expired = 6,
    }
}

object! {
    /// A terminal rejection; its key says topic and place.
    #[derive(Copy)]
    pub struct RejectedRow {
        version: VersionOne,
        reason: RejectionReason,
    }
}

object! {
    /// The database itself.
    #[derive(Copy)]
    pub struct DatabaseRow {
        version: VersionOne,
        /// Its identity: what a delivery cursor names.
        database_id: Bytes32,
        /// The last delivery number that was given out.
        last_number: u64,
    }
}

object! {
    /// The default consumer that owns D.
    #[derive(Copy)]
    pub struct LeaseRow {
        version: VersionOne,
        /// Rises with every owner.
        generation: u64,
        owner: Bytes32,
        expires_at_ms: u64,
    }
}

object! {
    /// A number alone: D of a group, the delivery number of a stable id.
    #[derive(Copy)]
    pub struct NumberRow {
        version: VersionOne,
        number: u64,
    }
}

/// Decodes a row.
pub(crate) fn decode<T: Canonical>(bytes: &[u8]) -> Result<T, StoreError> {
    T::from_bytes(bytes).map_err(|_| StoreError::Corrupt)
}

/// Rejected rows outlive their envelopes: they say what happened to a place.
impl RejectedRow {
    pub(crate) fn bytes(reason: RejectionReason) -> Vec<u8> {
        Self { version: VersionOne, reason }.to_bytes()
    }
}
