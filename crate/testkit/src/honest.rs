//! An honest fast stream, object by object: what a verifier accepts, for tests that bend it or replay it.

use std::collections::BTreeMap;

use ed25519_dalek::{Signer, SigningKey};
use remuda_verify::authentic::OneKey;
use remuda_verify::fast::{FastState, FastSubscriptionConfig, Verification};
use remuda_verify::merkle::merkle_root;
use remuda_verify::signature::PublicKey;
use remuda_verify::sparse::SparseMap;
use remuda_wire::checkpoint::{CheckpointFrame, CheckpointReceipt, LanePayload};
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::preimage::{
    checkpoint_genesis, fast_ordered_range_root, fast_record_digest, lane_leaf_digest, lane_payload_digest,
};
use remuda_wire::record::{FastRecordId, RecordHeader, RecordId, RecordKind, RecordOrigin};
use remuda_wire::response::DurableWatermark;
use remuda_wire::transition::{BrokerEpochTransition, FastLineage, TransitionKind};
use remuda_wire::{Bytes, Bytes24, Bytes32, List, ProviderEpoch, Signature, Signed, VersionOne};

/// A provider's key, chain and stream.
#[derive(Debug)]
pub struct HonestStream {
    key: SigningKey,
    /// The chain.
    pub context: SigningContext,
    /// The stream.
    pub stream_id: Bytes32,
    /// The one subscription.
    pub subscription_id: Bytes32,
}

impl Default for HonestStream {
    fn default() -> Self {
        Self {
            key: SigningKey::from_bytes(&[7; 32]),
            context: SigningContext { version: VersionOne, chain_id: 39, chain_instance_id: Bytes32([1; 32]) },
            stream_id: Bytes32([2; 32]),
            subscription_id: Bytes32([3; 32]),
        }
    }
}

impl HonestStream {
    /// The provider's key at every view.
    pub fn keys(&self) -> OneKey {
        OneKey(PublicKey::parse(&Bytes32(self.key.verifying_key().to_bytes())))
    }

    /// A subscription to every record of the stream, which is not encrypted.
    pub fn full_stream(&self) -> FastSubscriptionConfig {
        FastSubscriptionConfig {
            context: self.context.clone(),
            stream_id: self.stream_id,
            encrypted: false,
            subscription_id: self.subscription_id,
            verification: Verification::FullStream,
        }
    }

    /// A record; equal arguments make equal records.
    pub fn record(&self, broker_epoch: u64, sequence: u64, lane_id: Bytes32, payload: &[u8]) -> RecordDelivery {
        let header = RecordHeader {
            stream_id: self.stream_id,
            lane_id,
            origin: RecordOrigin::Client,
            kind: RecordKind::Application,
            client_message_id: Bytes32([9; 32]),
            created_at_ms: sequence,
            visible_after_ms: 0,
            expires_at_ms: 0,
            encryption_generation: 0,
            nonce: Bytes24::ZERO,
        };
        let id = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch, sequence };
        RecordDelivery {
            subscription_id: self.subscription_id,
            record_id: RecordId::Fast(id),
            header,
            payload: Bytes::new(payload.to_vec()).expect("a short payload"),
            append_receipt: None,
            lease: None,
            delivery_state_receipt: None,
            durable_watermark: Some(DurableWatermark {
                stream_id: self.stream_id,
                provider_epoch: ProviderEpoch,
                broker_epoch,
                last_durable_sequence: None,
                checkpoint_anchor: checkpoint_genesis(&self.context, &self.stream_id),
            }),
        }
    }

    /// The checkpoint after `state` that commits `records`, at least one, as a frame of a `FullStream` subscription.
    pub fn checkpoint(&self, state: &FastState, records: &[RecordDelivery]) -> CheckpointFrame {
        let mut lanes: BTreeMap<Bytes32, Vec<(u64, Bytes32)>> = BTreeMap::new();
        let mut ids = Vec::new();
        for record in records {
            let RecordId::Fast(id) = record.record_id else { panic!("a record of another class") };
            let digest = fast_record_digest(&self.context, &id, &record.header, &record.payload);
            lanes.entry(record.header.lane_id).or_default().push((id.sequence, lane_leaf_digest(&digest)));
            ids.push(id);
        }
        let (first, last) = (ids.first().expect("a record"), ids.last().expect("a record"));
        let leaves = lanes.into_iter().map(|(lane_id, leaves)| {
            let payload = LanePayload {
                lane_record_count: u32::try_from(leaves.len()).expect("few records"),
                lane_first_sequence: leaves[0].0,
                lane_last_sequence: leaves[leaves.len() - 1].0,
                lane_sub_root: merkle_root(leaves.into_iter().map(|(_, leaf)| leaf).collect()).expect("a record"),
            };
            (lane_id, lane_payload_digest(&lane_id, &payload))
        });
        let receipt = CheckpointReceipt {
            context: self.context.clone(),
            served_at: self.view(),
            stream_id: self.stream_id,
            provider_epoch: ProviderEpoch,
            broker_epoch: first.broker_epoch,
            first_sequence: first.sequence,
            last_sequence: last.sequence,
            ordered_range_root: fast_ordered_range_root(
                &self.context,
                &self.stream_id,
                first.broker_epoch,
                first.sequence,
                last.sequence,
                u32::try_from(ids.len()).expect("few records"),
                &SparseMap::new(leaves).root(),
            ),
            previous_checkpoint: state.tail.unwrap_or(Bytes32([0xee; 32])),
            durable_high_water: last.sequence,
            committed_at_ms: 1_000,
            signature: Signature::ZERO,
        };
        let signature = self.sign(&receipt);
        let receipt = CheckpointReceipt { signature, ..receipt };
        CheckpointFrame { subscription_id: self.subscription_id, receipt, lanes: List::EMPTY }
    }

    /// The transition after `state`: genesis when no lineage is known. `created_at_ms` tells two of them apart.
    pub fn transition(&self, state: &FastState, kind: TransitionKind, created_at_ms: u64) -> BrokerEpochTransition {
        let genesis = checkpoint_genesis(&self.context, &self.stream_id);
        let transition = BrokerEpochTransition {
            context: self.context.clone(),
            served_at: self.view(),
            stream_id: self.stream_id,
            provider_epoch: ProviderEpoch,
            previous_lineage: state.broker_epoch.map(FastLineage::new),
            replacement_broker_epoch: state.broker_epoch.map_or(0, |epoch| epoch + 1),
            kind,
            last_durable_checkpoint: state.last_checkpoint.unwrap_or(genesis),
            last_durable_sequence: state.last_durable_sequence,
            last_provisional_sequence: match kind {
                TransitionKind::Clean => state.last_durable_sequence,
                TransitionKind::Void => Some(state.last_durable_sequence.unwrap_or(0) + 5),
            },
            created_at_ms,
            signature: Signature::ZERO,
        };
        let signature = self.sign(&transition);
        BrokerEpochTransition { signature, ..transition }
    }

    fn view(&self) -> FinalizedView {
        FinalizedView { chain_instance_id: self.context.chain_instance_id, height: 11, block_hash: Bytes32([8; 32]) }
    }

    fn sign(&self, object: &impl Signed) -> Signature {
        Signature(self.key.sign(&object.digest().0).to_bytes())
    }
}
