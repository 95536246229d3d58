//! One durable batch with its lane map (§12.2): what a checkpoint signs, and every proof that can be asked of it.

use std::collections::BTreeMap;

use anyhow::Context;
use remuda_verify::merkle::merkle_root;
use remuda_verify::sparse::SparseMap;
use remuda_wire::checkpoint::{CheckpointReceipt, LanePayload, LaneProof};
use remuda_wire::context::SigningContext;
use remuda_wire::preimage::{fast_ordered_range_root, fast_record_digest, lane_leaf_digest, lane_payload_digest};
use remuda_wire::record::FastRecordId;
use remuda_wire::{Bytes32, List, ProviderEpoch, Signed};

use crate::store::StoredRecord;

/// The lanes of one batch, and the map that they make.
#[derive(Clone, Debug)]
pub struct LaneMap {
    payloads: BTreeMap<Bytes32, LanePayload>,
    map: SparseMap,
}

impl LaneMap {
    /// Partitions `records`, which begin at `first_sequence`.
    ///
    /// # Errors
    /// Above `u32::MAX` records of a lane.
    pub fn build(
        context: &SigningContext,
        broker_epoch: u64,
        first_sequence: u64,
        records: &[StoredRecord],
    ) -> anyhow::Result<Self> {
        let mut lanes: BTreeMap<Bytes32, Vec<(u64, Bytes32)>> = BTreeMap::new();
        for (sequence, record) in (first_sequence..).zip(records) {
            let id = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch, sequence };
            let digest = fast_record_digest(context, &id, &record.header, &record.payload);
            lanes.entry(record.header.lane_id).or_default().push((sequence, lane_leaf_digest(&digest)));
        }
        let payloads: BTreeMap<_, _> = lanes
            .into_iter()
            .map(|(lane_id, leaves)| Ok((lane_id, lane_payload(&leaves)?)))
            .collect::<anyhow::Result<_>>()?;
        let map = SparseMap::new(payloads.iter().map(|(lane, payload)| (*lane, lane_payload_digest(lane, payload))));
        Ok(Self { payloads, map })
    }

    /// `lane_map_root`.
    pub fn root(&self) -> Bytes32 {
        self.map.root()
    }

    /// The proof at `lane_id`'s own key, present or absent.
    ///
    /// # Errors
    /// Never: a path has at most 256 siblings.
    pub fn prove(&self, lane_id: &Bytes32) -> anyhow::Result<LaneProof> {
        let proof = self.map.prove(lane_id);
        Ok(LaneProof {
            lane_id: *lane_id,
            payload: self.payloads.get(lane_id).cloned(),
            bitmap: proof.bitmap,
            siblings: List::new(proof.siblings)?,
        })
    }
}

fn lane_payload(leaves: &[(u64, Bytes32)]) -> anyhow::Result<LanePayload> {
    let ((first, _), (last, _)) = leaves.first().zip(leaves.last()).context("a lane without records")?;
    Ok(LanePayload {
        lane_sub_root: merkle_root(leaves.iter().map(|(_, leaf)| *leaf).collect()).context("no leaves")?,
        lane_record_count: u32::try_from(leaves.len())?,
        lane_first_sequence: *first,
        lane_last_sequence: *last,
    })
}

/// A durable batch, ready to serve.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its checkpoint.
    pub receipt: CheckpointReceipt,
    /// The signing digest of its checkpoint.
    pub digest: Bytes32,
    /// Its records; the first has `receipt.first_sequence`.
    pub records: Vec<StoredRecord>,
    /// Its lanes.
    pub lanes: LaneMap,
}

impl Batch {
    /// A batch that was read back.
    ///
    /// # Errors
    /// When the records are not those of the checkpoint: the store is damaged.
    pub fn restore(receipt: CheckpointReceipt, records: Vec<StoredRecord>) -> anyhow::Result<Self> {
        let lanes = LaneMap::build(&receipt.context, receipt.broker_epoch, receipt.first_sequence, &records)?;
        let root = range_root(&receipt, &lanes);
        anyhow::ensure!(root == receipt.ordered_range_root, "stored records do not fold to their checkpoint");
        Ok(Self { digest: receipt.digest(), receipt, records, lanes })
    }

    /// True when `sequence` of `epoch` is one of its records.
    pub fn covers(&self, epoch: u64, sequence: u64) -> bool {
        let receipt = &self.receipt;
        receipt.broker_epoch == epoch && (receipt.first_sequence..=receipt.last_sequence).contains(&sequence)
    }
}

/// `fast_ordered_range_root_v1` of a checkpoint over these lanes.
pub fn range_root(receipt: &CheckpointReceipt, lanes: &LaneMap) -> Bytes32 {
    fast_ordered_range_root(
        &receipt.context,
        &receipt.stream_id,
        receipt.broker_epoch,
        receipt.first_sequence,
        receipt.last_sequence,
        receipt.record_count(),
        &lanes.root(),
    )
}
