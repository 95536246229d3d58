//! One durable batch: its checkpoint, and the frames that a subscription is sent of it.

use std::collections::BTreeMap;

use remuda_verify::merkle::merkle_root;
use remuda_verify::sparse::SparseMap;
use remuda_wire::checkpoint::{CheckpointFrame, CheckpointReceipt, LanePayload, LaneProof};
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::preimage::{
    fast_ordered_range_root, fast_record_digest, keccak256, lane_leaf_digest, lane_payload_digest,
};
use remuda_wire::record::{FastRecordId, RecordHeader, RecordId, RecordKind, RecordOrigin};
use remuda_wire::response::DurableWatermark;
use remuda_wire::{Bytes, Bytes24, Bytes32, List, ProviderEpoch};

use super::provider::{Provider, BIRTH_MS};

/// What a writer appends.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its lane.
    pub lane_id: Bytes32,
    /// At most 1,048,576 bytes.
    pub payload: Vec<u8>,
}

/// A committed batch.
#[derive(Clone, Debug)]
pub struct Batch {
    receipt: CheckpointReceipt,
    deliveries: Vec<RecordDelivery>,
    payloads: BTreeMap<Bytes32, LanePayload>,
    map: SparseMap,
}

impl Batch {
    pub(super) fn new(
        provider: &Provider,
        first_sequence: u64,
        records: Vec<Record>,
        watermark: DurableWatermark,
        sign: impl FnOnce(Bytes32) -> CheckpointReceipt,
    ) -> Self {
        let Provider { context, stream_id, broker_epoch, .. } = provider;
        let record_count = u32::try_from(records.len()).expect("a batch");
        let mut lanes: BTreeMap<Bytes32, Vec<(u64, Bytes32)>> = BTreeMap::new();
        let mut deliveries = Vec::with_capacity(records.len());
        for (sequence, record) in (first_sequence..).zip(records) {
            let id = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: *broker_epoch, sequence };
            let header = header(provider, record.lane_id, sequence);
            let digest = fast_record_digest(context, &id, &header, &record.payload);
            lanes.entry(record.lane_id).or_default().push((sequence, lane_leaf_digest(&digest)));
            deliveries.push(RecordDelivery {
                subscription_id: Bytes32::ZERO,
                record_id: RecordId::Fast(id),
                header,
                payload: Bytes::new(record.payload).expect("a payload within its bound"),
                append_receipt: None,
                lease: None,
                delivery_state_receipt: None,
                durable_watermark: Some(watermark.clone()),
            });
        }
        let payloads: BTreeMap<_, _> = lanes.into_iter().map(|(lane, leaves)| (lane, payload(&leaves))).collect();
        let map = SparseMap::new(payloads.iter().map(|(lane, payload)| (*lane, lane_payload_digest(lane, payload))));
        let last_sequence = first_sequence + u64::from(record_count) - 1;
        let root = map.root();
        let range = fast_ordered_range_root(
            context,
            stream_id,
            *broker_epoch,
            first_sequence,
            last_sequence,
            record_count,
            &root,
        );
        Self { receipt: sign(range), deliveries, payloads, map }
    }

    /// Its checkpoint.
    pub const fn receipt(&self) -> &CheckpointReceipt {
        &self.receipt
    }

    /// The proof at a lane's own key, present or absent.
    pub fn prove(&self, lane_id: &Bytes32) -> LaneProof {
        let proof = self.map.prove(lane_id);
        LaneProof {
            lane_id: *lane_id,
            payload: self.payloads.get(lane_id).cloned(),
            bitmap: proof.bitmap,
            siblings: List::new(proof.siblings).expect("a path has at most 256 siblings"),
        }
    }

    /// The checkpoint with a proof for each of these lanes, which are ascending.
    pub fn checkpoint(&self, subscription_id: Bytes32, lanes: &[Bytes32]) -> CheckpointFrame {
        let proofs = lanes.iter().map(|lane| self.prove(lane)).collect();
        CheckpointFrame {
            subscription_id,
            receipt: self.receipt.clone(),
            lanes: List::new(proofs).expect("at most 512 lanes"),
        }
    }

    /// All that a `ScopedProofs` subscription to these lanes is sent of it, each frame in its bytes.
    pub fn frames(&self, subscription_id: Bytes32, lanes: &[Bytes32]) -> impl Iterator<Item = Vec<u8>> + '_ {
        let checkpoint = self.checkpoint(subscription_id, lanes);
        let lanes = lanes.to_vec();
        let in_scope = self.deliveries.iter().filter(move |it| lanes.binary_search(&it.header.lane_id).is_ok());
        let delivery =
            move |it: &RecordDelivery| ServerMessage::Delivery(RecordDelivery { subscription_id, ..it.clone() });
        let closing = std::iter::once(ServerMessage::Checkpoint(checkpoint));
        in_scope.map(delivery).chain(closing).map(|message| ServerFrame(message).to_bytes())
    }
}

fn header(provider: &Provider, lane_id: Bytes32, sequence: u64) -> RecordHeader {
    RecordHeader {
        stream_id: provider.stream_id,
        lane_id,
        origin: RecordOrigin::Client,
        kind: RecordKind::Application,
        client_message_id: keccak256(&sequence.to_be_bytes()),
        created_at_ms: BIRTH_MS + provider.waited_ms + sequence,
        visible_after_ms: 0,
        expires_at_ms: 0,
        encryption_generation: 0,
        nonce: Bytes24::ZERO,
    }
}

fn payload(leaves: &[(u64, Bytes32)]) -> LanePayload {
    let sequences = leaves.first().zip(leaves.last());
    let ((first, _), (last, _)) = sequences.expect("a lane of a batch has a record");
    LanePayload {
        lane_sub_root: merkle_root(leaves.iter().map(|(_, leaf)| *leaf).collect()).expect("a leaf"),
        lane_record_count: u32::try_from(leaves.len()).expect("at most 65,536"),
        lane_first_sequence: *first,
        lane_last_sequence: *last,
    }
}
