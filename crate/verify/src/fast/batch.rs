//! One batch: open while its records come, verified when its checkpoint closes it.

use alloc::vec::Vec;

use remuda_wire::bound;
use remuda_wire::checkpoint::{CheckpointReceipt, LanePayload, LaneProof};
use remuda_wire::preimage::{fast_ordered_range_root, lane_leaf_digest, lane_payload_digest};
use remuda_wire::verdict::{AdmissionRefused, VerifyError};
use remuda_wire::Bytes32;

use super::FastState;
use crate::authentic::Verified;
use crate::merkle::merkle_root;
use crate::sorted::SortedMap;
use crate::sparse::{Folder, Proof, SparseMap};

/// What a verified batch may be called to an application. Nothing stronger can be made from a weaker mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assurance {
    /// Every record of our lanes, and no other: counts, ends and sub-roots match the signed root.
    LaneSet,
    /// Every record of the batch: also the sum of counts and the union of sequences.
    FullBatch,
}

/// The records of one lane that wait, as far as the root needs them.
#[derive(Clone, Debug)]
struct OpenLane {
    first_sequence: u64,
    last_sequence: u64,
    leaves: Vec<Bytes32>,
}

/// Records of one lineage, ascending, that wait for their checkpoint. `R` is what the caller keeps of each.
#[derive(Clone, Debug)]
pub struct OpenBatch<R> {
    broker_epoch: Option<u64>,
    first_sequence: u64,
    last_sequence: u64,
    payload_bytes: u64,
    lanes: SortedMap<Bytes32, OpenLane>,
    records: Vec<R>,
}

impl<R> Default for OpenBatch<R> {
    fn default() -> Self {
        Self {
            broker_epoch: None,
            first_sequence: 0,
            last_sequence: 0,
            payload_bytes: 0,
            lanes: SortedMap::new(),
            records: Vec::new(),
        }
    }
}

impl<R> OpenBatch<R> {
    /// True when nothing waits.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many records wait.
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// The lineage of what waits.
    pub const fn broker_epoch(&self) -> Option<u64> {
        self.broker_epoch
    }

    /// The last sequence that waits.
    pub fn last_sequence(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.last_sequence)
    }

    /// Refuses what no legal batch can hold, before it is hashed or kept.
    ///
    /// # Errors
    /// [`AdmissionRefused::BatchTooLarge`] above 65,536 records or 268,435,456 payload bytes.
    pub fn check_budget(&self, payload_bytes: u64) -> Result<(), AdmissionRefused> {
        let records = u64::try_from(self.records.len()).unwrap_or(u64::MAX);
        let bytes = self.payload_bytes.saturating_add(payload_bytes);
        if records >= bound::MAX_BATCH_RECORDS || bytes > bound::MAX_BATCH_PAYLOAD_BYTES {
            Err(AdmissionRefused::BatchTooLarge)
        } else {
            Ok(())
        }
    }

    /// Adds a record whose order and budget are already checked.
    pub fn push(&mut self, record: OpenRecord, keep: R) {
        let leaf = lane_leaf_digest(&record.record_digest);
        let lane = self.lanes.get_or_insert_with(record.lane_id, || OpenLane {
            first_sequence: record.sequence,
            last_sequence: record.sequence,
            leaves: Vec::new(),
        });
        lane.last_sequence = record.sequence;
        lane.leaves.push(leaf);
        if self.records.is_empty() {
            self.first_sequence = record.sequence;
        }
        self.broker_epoch = Some(record.broker_epoch);
        self.last_sequence = record.sequence;
        self.payload_bytes = self.payload_bytes.saturating_add(record.payload_bytes);
        self.records.push(keep);
    }

    /// Every waiting record lies inside the range that the checkpoint closes.
    ///
    /// # Errors
    /// [`VerifyError::RecordOutsideBatch`].
    pub fn check_inside(&self, receipt: &CheckpointReceipt) -> Result<(), VerifyError> {
        let inside = self.is_empty()
            || (receipt.first_sequence <= self.first_sequence && self.last_sequence <= receipt.last_sequence);
        if inside {
            Ok(())
        } else {
            Err(VerifyError::RecordOutsideBatch)
        }
    }

    /// `ScopedProofs`: every proof folds to one root inside the signed one, and every lane in scope is exactly what was
    /// received. Coverage of the scope is already checked.
    ///
    /// # Errors
    /// [`VerifyError::PresenceEmptyLeaf`], [`VerifyError::ProofDisagreement`], [`VerifyError::RangeRoot`],
    /// [`VerifyError::LaneCount`], [`VerifyError::LaneRange`], [`VerifyError::LaneRoot`].
    pub fn reconcile_lanes(
        &self,
        receipt: &Verified<CheckpointReceipt>,
        proofs: &[LaneProof],
    ) -> Result<Bytes32, VerifyError> {
        let root = candidate_root(proofs)?;
        check_range_root(receipt, &root)?;
        for proof in proofs {
            check_lane(proof.payload.as_ref(), self.lanes.get(&proof.lane_id))?;
        }
        Ok(root)
    }

    /// `FullStream`: the batch is complete, and the map recomputed from all of it is inside the signed root.
    ///
    /// # Errors
    /// [`VerifyError::BatchIncomplete`], [`VerifyError::RangeRoot`].
    pub fn reconcile_full(&self, receipt: &Verified<CheckpointReceipt>) -> Result<Bytes32, VerifyError> {
        // Ascending and inside the range: as many as the range means every one of it.
        if u32::try_from(self.records.len()) != Ok(receipt.record_count()) {
            return Err(VerifyError::BatchIncomplete);
        }
        let map = SparseMap::new(
            self.lanes
                .iter()
                .filter_map(|(lane_id, lane)| Some((*lane_id, lane_payload_digest(lane_id, &lane.payload()?)))),
        );
        let root = map.root();
        check_range_root(receipt, &root)?;
        Ok(root)
    }

    /// The records, in order; nothing waits after.
    pub fn take_records(&mut self) -> Vec<R> {
        core::mem::take(self).records
    }
}

/// What the root needs of a record.
#[derive(Clone, Copy, Debug)]
pub struct OpenRecord {
    /// Its lineage.
    pub broker_epoch: u64,
    /// Its sequence.
    pub sequence: u64,
    /// Its lane.
    pub lane_id: Bytes32,
    /// `fast_record_digest`.
    pub record_digest: Bytes32,
    /// Length of its payload.
    pub payload_bytes: u64,
}

impl OpenLane {
    fn payload(&self) -> Option<LanePayload> {
        Some(LanePayload {
            lane_sub_root: merkle_root(self.leaves.clone())?,
            lane_record_count: u32::try_from(self.leaves.len()).ok()?,
            lane_first_sequence: self.first_sequence,
            lane_last_sequence: self.last_sequence,
        })
    }
}

/// The one root that all proofs fold to. Never one taken from the frame: that would authenticate proofs by themselves.
fn candidate_root(proofs: &[LaneProof]) -> Result<Bytes32, VerifyError> {
    let mut folder = Folder::new();
    let mut candidate = None;
    for proof in proofs {
        let leaf = proof.payload.as_ref().map(|payload| lane_payload_digest(&proof.lane_id, payload));
        let root =
            folder.fold(&Proof { key: &proof.lane_id, leaf, bitmap: &proof.bitmap, siblings: &proof.siblings })?;
        if *candidate.get_or_insert(root) != root {
            return Err(VerifyError::ProofDisagreement);
        }
    }
    // A scope has at least one lane and coverage was checked, so there is a candidate.
    candidate.ok_or(VerifyError::RangeRoot)
}

fn check_range_root(receipt: &CheckpointReceipt, lane_map_root: &Bytes32) -> Result<(), VerifyError> {
    let recomputed = fast_ordered_range_root(
        &receipt.context,
        &receipt.stream_id,
        receipt.broker_epoch,
        receipt.first_sequence,
        receipt.last_sequence,
        receipt.record_count(),
        lane_map_root,
    );
    if recomputed == receipt.ordered_range_root {
        Ok(())
    } else {
        Err(VerifyError::RangeRoot)
    }
}

fn check_lane(committed: Option<&LanePayload>, received: Option<&OpenLane>) -> Result<(), VerifyError> {
    let (Some(committed), Some(received)) = (committed, received) else {
        // A present lane commits at least one record, an absent one commits none.
        return if committed.is_none() && received.is_none() { Ok(()) } else { Err(VerifyError::LaneCount) };
    };
    let payload = |lane: &OpenLane| u32::try_from(lane.leaves.len());
    if payload(received) != Ok(committed.lane_record_count) {
        return Err(VerifyError::LaneCount);
    }
    if (received.first_sequence, received.last_sequence)
        != (committed.lane_first_sequence, committed.lane_last_sequence)
    {
        return Err(VerifyError::LaneRange);
    }
    if merkle_root(received.leaves.clone()) == Some(committed.lane_sub_root) {
        Ok(())
    } else {
        Err(VerifyError::LaneRoot)
    }
}

/// A closed batch: a signed checkpoint that follows our history, and exactly the records that it commits for us.
///
/// Does not prove that the provider sequenced everything it was given.
#[derive(Clone, Debug)]
pub struct VerifiedBatch<R> {
    pub(super) receipt: Verified<CheckpointReceipt>,
    pub(super) lane_map_root: Bytes32,
    pub(super) assurance: Assurance,
    pub(super) records: Vec<R>,
    pub(super) state: FastState,
}

impl<R> VerifiedBatch<R> {
    /// The checkpoint that closed it.
    pub const fn receipt(&self) -> &Verified<CheckpointReceipt> {
        &self.receipt
    }

    /// The root that the proofs or the records fold to.
    pub const fn lane_map_root(&self) -> Bytes32 {
        self.lane_map_root
    }

    /// What was verified.
    pub const fn assurance(&self) -> Assurance {
        self.assurance
    }

    /// Its records, ascending.
    pub fn records(&self) -> &[R] {
        &self.records
    }

    /// The state after it: the boundary that a position stores.
    pub const fn state(&self) -> &FastState {
        &self.state
    }

    /// Its records, ascending, by value.
    pub fn into_records(self) -> Vec<R> {
        self.records
    }
}
