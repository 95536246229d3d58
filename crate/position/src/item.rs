//! What is stored: rows of items, each as canonical bytes of our own versioned format.
//!
//! A row holds consecutive items of one evidence, at most [`ROW_BYTES`] where it can: measured, a value above 64 KiB costs
//! an external file, and a row per record costs ten times a row per batch.

use alloc::vec::Vec;

use remuda_verify::fast::Assurance;
use remuda_wire::audit::HeldObject;
use remuda_wire::codec::{Canonical, List, VersionOne};
use remuda_wire::record::{FastRecordId, RecordHeader, RecordId, StandardRecordId};
use remuda_wire::snapshot::SnapshotManifest;
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::{bound, object, tags, union, Bytes, Bytes32};

/// Where a row is closed: below the size at which the database would put it into a file of its own.
const ROW_BYTES: usize = 62 * 1024;

tags! {
    /// What was verified of an item, as data: nothing can turn one into another.
    pub enum ItemAssurance: u8 {
        /// Its lane set was complete under a signed root.
        LaneSet = 1,
        /// Its whole batch was complete under a signed root.
        FullBatch = 2,
        /// A signed transition, linked to our history.
        Transition = 3,
        /// A signed receipt, linked in its chains: its own lane's, and the stream's where every lane is followed.
        Receipt = 4,
        /// A signed floor: what lay behind it is gone, and was not seen.
        RetentionAnchor = 5,
        /// An authorized application key signed it, bound to an authentic receipt: what it holds is that signer's word.
        Snapshot = 6,
        /// Nothing but where the provider chose to go on.
        None = 7,
    }
}

impl From<Assurance> for ItemAssurance {
    fn from(assurance: Assurance) -> Self {
        match assurance {
            Assurance::LaneSet => Self::LaneSet,
            Assurance::FullBatch => Self::FullBatch,
        }
    }
}

object! {
    /// A record as it was verified.
    pub struct StoredRecord {
        record_id: FastRecordId,
        checkpoint: Bytes32,
        header: RecordHeader,
        payload: Bytes<{ bound::MAX_INLINE_MESSAGE_BYTES }>,
    }
}

object! {
    /// A record of a standard stream, with the digest of its append receipt.
    pub struct StoredStandardRecord {
        record_id: StandardRecordId,
        receipt: Bytes32,
        header: RecordHeader,
        payload: Bytes<{ bound::MAX_INLINE_MESSAGE_BYTES }>,
    }
}

object! {
    /// An epoch transition as it was adopted.
    pub struct StoredTransition {
        digest: Bytes32,
        transition: BrokerEpochTransition,
    }
}

object! {
    /// A hole: records that were not seen, and that a snapshot does not stand for either.
    pub struct StoredGap {
        /// The last record before it; `None` where there was none.
        after: Option<RecordId>,
        /// The first record that may come behind it.
        before: RecordId,
        /// The signed floor that gives the reason, where there is one.
        anchor: Option<HeldObject>,
    }
}

object! {
    /// Snapshots that stand for everything up to their receipt: what came before is superseded by what they hold.
    pub struct StoredSnapshot {
        /// Their bundled receipt.
        receipt: HeldObject,
        /// One of the stream, or one for each lane of the scope.
        manifests: List<SnapshotManifest, { bound::MAX_PROOF_LANES_PER_SUBSCRIPTION }>,
    }
}

union! {
    /// The body of an item.
    pub enum StoredItemBody: u8 {
        Record(record: StoredRecord) = 1,
        Transition(transition: StoredTransition) = 2,
        StandardRecord(record: StoredStandardRecord) = 3,
        Gap(gap: StoredGap) = 4,
        Snapshot(snapshot: StoredSnapshot) = 5,
    }
}

object! {
    /// One item of a subscription, in local order.
    pub struct StoredItem {
        assurance: ItemAssurance,
        body: StoredItemBody,
    }
}

object! {
    /// Consecutive items. `first_item` counts from 1 and is the key of the row.
    pub struct StoredRow {
        version: VersionOne,
        first_item: u64,
        items: List<StoredItem, 65_536>,
    }
}

impl StoredItem {
    /// A hole, with what gives its reason.
    pub(crate) const fn gap(gap: StoredGap) -> Self {
        let assurance = if gap.anchor.is_some() { ItemAssurance::RetentionAnchor } else { ItemAssurance::None };
        Self { assurance, body: StoredItemBody::Gap(gap) }
    }
}

impl StoredRow {
    /// The items with their local numbers.
    pub fn numbered(self) -> impl Iterator<Item = (u64, StoredItem)> {
        (self.first_item..).zip(self.items.into_vec())
    }
}

/// A row ready to be written: its key and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowBytes {
    /// Number of its first item.
    pub first_item: u64,
    /// [`StoredRow`], canonical.
    pub bytes: Vec<u8>,
}

/// Packs items into rows, in order, the first numbered `first_item`.
pub(crate) fn pack(first_item: u64, items: impl IntoIterator<Item = StoredItem>) -> Vec<RowBytes> {
    let mut rows = Vec::new();
    let mut open = OpenRow::new(first_item);
    for item in items {
        let bytes = item.to_bytes();
        if open.count > 0 && open.items.len() + bytes.len() > ROW_BYTES {
            let next = open.first_item + u64::from(open.count);
            rows.push(core::mem::replace(&mut open, OpenRow::new(next)).close());
        }
        open.items.extend_from_slice(&bytes);
        open.count += 1;
    }
    if open.count > 0 {
        rows.push(open.close());
    }
    rows
}

struct OpenRow {
    first_item: u64,
    count: u32,
    items: Vec<u8>,
}

impl OpenRow {
    const fn new(first_item: u64) -> Self {
        Self { first_item, count: 0, items: Vec::new() }
    }

    /// The canonical bytes of the [`StoredRow`] that these items make, without decoding them again.
    fn close(self) -> RowBytes {
        let mut bytes = Vec::with_capacity(13 + self.items.len());
        bytes.extend_from_slice(&VersionOne.to_bytes());
        bytes.extend_from_slice(&self.first_item.to_be_bytes());
        bytes.extend_from_slice(&self.count.to_be_bytes());
        bytes.extend_from_slice(&self.items);
        RowBytes { first_item: self.first_item, bytes }
    }
}
