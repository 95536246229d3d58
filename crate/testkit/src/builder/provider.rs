//! The provider: one unencrypted fast stream, signed by one key, all of it derived from small numbers.

use ed25519_dalek::{Signer, SigningKey};
use remuda_wire::chain::{
    BrokerState, DeliveryClass, PricingBasis, ProviderQuoteBasis, Purpose, StreamConfig, StreamRecord, StreamStatus,
};
use remuda_wire::checkpoint::CheckpointReceipt;
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::preimage::{checkpoint_genesis, fast_ordered_range_root, keccak256, lane_id, stream_id};
use remuda_wire::request::{FastSource, OpenSubscriptionRequest, SubscriptionSource, VerificationMode};
use remuda_wire::response::DurableWatermark;
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::transition::{BrokerEpochTransition, TransitionKind};
use remuda_wire::{Address, Bytes32, ProviderEpoch, Signature, Signed, VersionOne};

use super::batch::{Batch, Record};

const OWNER: Address = Address([0x11; 20]);
const OWNER_NONCE: u64 = 1;
/// The first millisecond of this provider's life.
pub(super) const BIRTH_MS: u64 = 1_700_000_000_000;

/// An honest provider at the end of its chain.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The chain.
    pub context: SigningContext,
    /// The stream.
    pub stream_id: Bytes32,
    /// The view that everything is served at.
    pub view: FinalizedView,
    key: SigningKey,
    next_sequence: u64,
    /// The digest that the next link names.
    tail: Bytes32,
    watermark: DurableWatermark,
}

impl Default for Provider {
    fn default() -> Self {
        Self::new()
    }
}

impl Provider {
    /// After its genesis transition, before its first record. Always the same one.
    pub fn new() -> Self {
        let instance = keccak256(b"remuda/testkit/instance");
        let context = SigningContext { version: VersionOne, chain_id: 39, chain_instance_id: instance };
        let stream_id = stream_id(context.chain_id, &instance, &OWNER, OWNER_NONCE);
        let genesis = checkpoint_genesis(&context, &stream_id);
        let view = FinalizedView { chain_instance_id: instance, height: 100, block_hash: keccak256(b"block 100") };
        let mut provider = Self {
            watermark: DurableWatermark {
                stream_id,
                provider_epoch: ProviderEpoch,
                broker_epoch: 0,
                last_durable_sequence: None,
                checkpoint_anchor: genesis,
            },
            context,
            stream_id,
            view,
            key: SigningKey::from_bytes(&[7; 32]),
            next_sequence: 0,
            tail: genesis,
        };
        provider.tail = provider.genesis_transition().digest();
        provider
    }

    /// The key of every receipt.
    pub fn public_key(&self) -> SigningPublicKey {
        SigningPublicKey(Bytes32(self.key.verifying_key().to_bytes()))
    }

    /// The lane of that number.
    pub fn lane(&self, number: u32) -> Bytes32 {
        lane_id(&self.stream_id, &keccak256(&number.to_be_bytes()))
    }

    /// The first `count` lanes, ascending by id.
    pub fn lanes(&self, count: u32) -> Vec<Bytes32> {
        let mut lanes: Vec<_> = (0..count).map(|number| self.lane(number)).collect();
        lanes.sort_unstable();
        lanes
    }

    /// The chain read at the view.
    pub fn broker_state(&self) -> BrokerState {
        let stream = StreamRecord {
            version: VersionOne,
            chain_instance_id: self.context.chain_instance_id,
            stream_id: self.stream_id,
            purpose: Purpose::Main,
            owner: OWNER,
            owner_nonce: OWNER_NONCE,
            admin_key: self.public_key(),
            rotation_key: None,
            delivery_class: DeliveryClass::Fast,
            encrypted: false,
            linked_stream_id: None,
            provider: Address([0x22; 20]),
            provider_epoch: ProviderEpoch,
            provider_signing_key: self.public_key(),
            authorization_generation: 0,
            encryption_generation: 0,
            pricing_generation: 0,
            status: StreamStatus::Active,
            config: StreamConfig {
                retention_ms: 86_400_000,
                retained_bytes_limit: 1 << 40,
                max_message_bytes: 1 << 20,
                max_append_bytes_per_sec: 1 << 30,
                max_delivered_bytes_per_sec: 1 << 30,
                max_lanes: 16_384,
                idempotency_horizon_ms: 60_000,
                default_visibility_ms: 30_000,
                max_visibility_ms: 300_000,
                default_max_attempts: 10,
                fast_batch_max_ms: 100,
                fast_batch_max_records: 65_536,
            },
            pricing_basis: PricingBasis::ProviderQuote(ProviderQuoteBasis { quote_digest: keccak256(b"quote") }),
            rate_per_block: 8_000,
            escrow_balance: 1 << 60,
            last_settled_block: 90,
            suspended_at_block: None,
            suspension_grace_deadline_block: None,
            created_at_block: 10,
        };
        let effective_rent_height = self.view.height;
        BrokerState {
            version: VersionOne,
            view: self.view.clone(),
            effective_rent_height,
            stream: Some(stream),
            provider: None,
        }
    }

    /// The transition that began the stream.
    pub fn genesis_transition(&self) -> BrokerEpochTransition {
        let mut transition = BrokerEpochTransition {
            context: self.context.clone(),
            served_at: self.view.clone(),
            stream_id: self.stream_id,
            provider_epoch: ProviderEpoch,
            previous_lineage: None,
            replacement_broker_epoch: 0,
            kind: TransitionKind::Clean,
            last_durable_checkpoint: checkpoint_genesis(&self.context, &self.stream_id),
            last_durable_sequence: None,
            last_provisional_sequence: None,
            created_at_ms: BIRTH_MS,
            signature: Signature([0; 64]),
        };
        transition.signature = self.sign(&transition);
        transition
    }

    /// What a `ScopedProofs` subscription to these lanes from the beginning asks.
    pub fn open_scoped(&self, subscription_id: Bytes32, lanes: Vec<Bytes32>) -> OpenSubscriptionRequest {
        let lanes = LaneSet::new(lanes).expect("not too many lanes").expect("at least one lane");
        OpenSubscriptionRequest {
            stream_id: self.stream_id,
            subscription_id,
            source: SubscriptionSource::Fast(FastSource { scope: LaneScope::Set(lanes), after: None }),
            after_group_receipt: None,
            verification: VerificationMode::ScopedProofs,
        }
    }

    /// Commits records as the next batch, and moves on.
    ///
    /// # Panics
    /// Without a record, or above 65,536 of them.
    pub fn commit(&mut self, records: Vec<Record>) -> Batch {
        let first_sequence = self.next_sequence;
        let count = u64::try_from(records.len()).expect("a batch");
        let batch = Batch::new(self, first_sequence, records, self.watermark.clone(), |ordered_range_root| {
            self.checkpoint(first_sequence + count - 1, ordered_range_root)
        });
        let digest = batch.receipt().digest();
        self.next_sequence += count;
        self.tail = digest;
        self.watermark.last_durable_sequence = Some(self.next_sequence - 1);
        self.watermark.checkpoint_anchor = digest;
        batch
    }

    /// The checkpoint of a batch of one record, over a map of lanes that the caller made.
    pub fn checkpoint_of_one(&self, lane_map_root: &Bytes32) -> CheckpointReceipt {
        let sequence = self.next_sequence;
        let root = fast_ordered_range_root(&self.context, &self.stream_id, 0, sequence, sequence, 1, lane_map_root);
        self.checkpoint(sequence, root)
    }

    fn checkpoint(&self, last_sequence: u64, ordered_range_root: Bytes32) -> CheckpointReceipt {
        let mut receipt = CheckpointReceipt {
            context: self.context,
            served_at: self.view,
            stream_id: self.stream_id,
            provider_epoch: ProviderEpoch,
            broker_epoch: 0,
            first_sequence: self.next_sequence,
            last_sequence,
            ordered_range_root,
            previous_checkpoint: self.tail,
            durable_high_water: last_sequence,
            committed_at_ms: BIRTH_MS + last_sequence,
            signature: Signature([0; 64]),
        };
        receipt.signature = self.sign(&receipt);
        receipt
    }

    /// `count` records of `bytes` bytes each, turn by turn on the first `lanes` lanes.
    pub fn records(&self, count: u32, bytes: usize, lanes: u32) -> Vec<Record> {
        let lane_ids: Vec<_> = (0..lanes).map(|number| self.lane(number)).collect();
        let first = self.next_sequence;
        let record = |(sequence, lane_id): (u64, &Bytes32)| {
            let mut payload = sequence.to_be_bytes().repeat(bytes.div_ceil(8));
            payload.truncate(bytes);
            Record { lane_id: *lane_id, payload }
        };
        (first..first + u64::from(count)).zip(lane_ids.iter().cycle()).map(record).collect()
    }

    pub(super) fn sign(&self, object: &impl Signed) -> Signature {
        Signature(self.key.sign(&object.digest().0).to_bytes())
    }
}
