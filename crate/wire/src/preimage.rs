//! Every Keccak-256 preimage of CIP-39, each drawn once. Keccak is named nowhere else.
//!
//! A domain separator is its ASCII bytes, with no length prefix and no terminator. `provider_epoch` is eight zero bytes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use once_cell::race::OnceBox;
use tiny_keccak::{Hasher, Keccak};

use crate::bytes::{Address, Bytes32};
use crate::checkpoint::LanePayload;
use crate::codec::{Canonical, ProviderEpoch};
use crate::context::SigningContext;
use crate::group::{DeliveryResultState, GroupConfig};
use crate::key::{HpkePublicKey, SigningPublicKey};
use crate::key_batch::KeyEnvelope;
use crate::lane::LaneEvent;
use crate::price::BaseRateSchedule;
use crate::record::{FastRecordId, RecordHeader, StandardRecordId};
use crate::request::RequestBody;
use crate::writer::Writer;

/// How many hashes this process has computed: for tests that nothing is computed twice.
#[cfg(feature = "count-hashes")]
pub static HASHES_COMPUTED: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

/// Keccak-256 of `bytes`.
pub fn keccak256(bytes: &[u8]) -> Bytes32 {
    #[cfg(feature = "count-hashes")]
    HASHES_COMPUTED.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    let mut hasher = Keccak::v256();
    hasher.update(bytes);
    let mut digest = Bytes32::ZERO;
    hasher.finalize(&mut digest.0);
    digest
}

/// A preimage in the making: a domain, then canonical values one after the other.
struct Preimage(Writer);

impl Preimage {
    fn new(domain: &str) -> Self {
        let mut writer = Writer::with_capacity(320);
        writer.raw(domain.as_bytes());
        Self(writer)
    }

    fn put(mut self, value: &impl Canonical) -> Self {
        value.encode(&mut self.0);
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.raw(bytes);
        self
    }

    fn digest(self) -> Bytes32 {
        keccak256(self.0.as_slice())
    }
}

/// §4: `keccak("cowboy-chain-identity-v1:" || genesis_source)`.
pub fn chain_instance_id(genesis_source: &[u8]) -> Bytes32 {
    Preimage::new("cowboy-chain-identity-v1:").raw(genesis_source).digest()
}

/// §4.1: the id of a main stream.
pub fn stream_id(chain_id: u64, chain_instance_id: &Bytes32, owner: &Address, owner_nonce: u64) -> Bytes32 {
    Preimage::new("cbqs/stream-id/v1").put(&chain_id).put(chain_instance_id).put(owner).put(&owner_nonce).digest()
}

/// §4.1: the id of the key stream linked to a main stream.
pub fn key_stream_id(main_stream_id: &Bytes32) -> Bytes32 {
    Preimage::new("cbqs/key-stream-id/v1").put(main_stream_id).digest()
}

/// §4.5: over the 161-byte schedule alone, a preimage of 187 bytes.
pub fn schedule_digest(schedule: &BaseRateSchedule) -> Bytes32 {
    Preimage::new("cbqs/base-rate-schedule/v1").put(schedule).digest()
}

/// §7.1: `keccak(domain || method || body)`; the tagged body encodes exactly `method || body`.
pub fn request_body_hash(body: &RequestBody) -> Bytes32 {
    Preimage::new("cbqs/request-body/v1").put(body).digest()
}

/// §8.
pub fn lane_id(stream_id: &Bytes32, lane_nonce: &Bytes32) -> Bytes32 {
    Preimage::new("cbqs/lane-id/v1").put(stream_id).put(lane_nonce).digest()
}

/// §10: the synthetic `client_message_id` of a lane event; no domain.
pub fn lane_event_message_id(event: &LaneEvent) -> Bytes32 {
    keccak256(&event.to_bytes())
}

/// §9.1.
pub fn signing_key_id(key: &SigningPublicKey) -> Bytes32 {
    Preimage::new("cbqs/signing-key-id/v1").put(key).digest()
}

/// §9.1: the associated data of a payload: the header without its nonce, 130 bytes.
pub fn aead_associated_data(header: &RecordHeader) -> Vec<u8> {
    let mut bytes = header.to_bytes();
    bytes.truncate(bytes.len() - header.nonce.0.len());
    bytes
}

/// §9.3: what envelopes are ordered by; no domain.
pub fn recipient_order_key(key: &HpkePublicKey) -> Bytes32 {
    keccak256(&key.to_bytes())
}

/// §9.3.
pub fn envelope_digest(envelope: &KeyEnvelope) -> Bytes32 {
    Preimage::new("cbqs/key-envelope/v1").put(envelope).digest()
}

/// §9.3: domain, `u32` count, then the keys in ascending order of their order keys. Duplicates count once.
pub fn membership_set_digest(members: &[HpkePublicKey]) -> Bytes32 {
    let mut ordered: Vec<_> = members.iter().map(|key| (recipient_order_key(key), key)).collect();
    ordered.sort_unstable();
    ordered.dedup();
    let mut writer = Writer::new();
    writer.length(ordered.len());
    ordered.iter().for_each(|(_, key)| key.encode(&mut writer));
    Preimage::new("cbqs/membership-set/v1").raw(writer.as_slice()).digest()
}

/// §9.3: the tail of a key-batch chain with no batch.
pub fn key_batch_genesis(context: &SigningContext, key_stream_id: &Bytes32) -> Bytes32 {
    Preimage::new("cbqs/key-batch-genesis/v1").put(context).put(key_stream_id).digest()
}

/// §9.3: the identity of a batch before its envelopes are sealed.
pub fn batch_context_digest(
    context: &SigningContext,
    stream_id: &Bytes32,
    encryption_generation: u64,
    previous_batch_digest: &Bytes32,
    membership_set_digest: &Bytes32,
    created_at_ms: u64,
) -> Bytes32 {
    Preimage::new("cbqs/key-batch-context/v1")
        .put(context)
        .put(stream_id)
        .put(&encryption_generation)
        .put(previous_batch_digest)
        .put(membership_set_digest)
        .put(&created_at_ms)
        .digest()
}

/// §9.3: binds the ordered envelope digests to their batch.
pub fn envelope_root(
    context: &SigningContext,
    key_stream_id: &Bytes32,
    encryption_generation: u64,
    batch_digest: &Bytes32,
    envelope_digests: &[Bytes32],
) -> Bytes32 {
    let mut writer = Writer::with_capacity(4 + 32 * envelope_digests.len());
    writer.length(envelope_digests.len());
    envelope_digests.iter().for_each(|digest| digest.encode(&mut writer));
    Preimage::new("cbqs/envelope-root/v1")
        .put(context)
        .put(key_stream_id)
        .put(&encryption_generation)
        .put(batch_digest)
        .raw(writer.as_slice())
        .digest()
}

/// §12.2: one record of a fast stream.
pub fn fast_record_digest(
    context: &SigningContext,
    record_id: &FastRecordId,
    header: &RecordHeader,
    payload: &[u8],
) -> Bytes32 {
    Preimage::new("cbqs/fast-record/v1").put(context).put(record_id).put(header).put(&keccak256(payload)).digest()
}

/// §12.2: a leaf of a lane's ordered list.
pub fn lane_leaf_digest(record_digest: &Bytes32) -> Bytes32 {
    Preimage::new("cbqs/fast-lane-leaf/v1").put(record_digest).digest()
}

/// §12.2: a leaf of the lane map. `lane_id` is always the key being proven, never one carried beside the payload:
/// otherwise an entry would verify at any key, and a lane could be hidden behind a valid absence proof.
pub fn lane_payload_digest(lane_id: &Bytes32, payload: &LanePayload) -> Bytes32 {
    Preimage::new("cbqs/fast-lane-payload/v1").put(lane_id).put(payload).digest()
}

/// §12.2: an inner node, of ordered lists and of the sparse map alike.
pub fn merkle_node(left: &Bytes32, right: &Bytes32) -> Bytes32 {
    const DOMAIN: &[u8; 19] = b"cbqs/merkle-node/v1";
    let mut bytes = [0; DOMAIN.len() + 64];
    bytes[..19].copy_from_slice(DOMAIN);
    bytes[19..51].copy_from_slice(&left.0);
    bytes[51..].copy_from_slice(&right.0);
    keccak256(&bytes)
}

/// §12.2: `EMPTY[depth]`, 0 to 256: the root of a subtree without leaves. Computed once.
///
/// `depth` above 256 names no subtree and yields the leaf constant.
pub fn empty_subtree(depth: u16) -> Bytes32 {
    static EMPTY: OnceBox<[Bytes32; 257]> = OnceBox::new();
    let table = EMPTY.get_or_init(|| {
        let mut table = Box::new([Bytes32::ZERO; 257]);
        table[256] = Preimage::new("cbqs/sparse-empty/v1").digest();
        for depth in (0..256).rev() {
            table[depth] = merkle_node(&table[depth + 1], &table[depth + 1]);
        }
        table
    });
    table[usize::from(depth).min(256)]
}

/// §12.2: what a checkpoint signs of its batch.
pub fn fast_ordered_range_root(
    context: &SigningContext,
    stream_id: &Bytes32,
    broker_epoch: u64,
    first_sequence: u64,
    last_sequence: u64,
    record_count: u32,
    lane_map_root: &Bytes32,
) -> Bytes32 {
    Preimage::new("cbqs/fast-ordered-range/v1")
        .put(context)
        .put(stream_id)
        .put(&ProviderEpoch)
        .put(&broker_epoch)
        .put(&first_sequence)
        .put(&last_sequence)
        .put(&record_count)
        .put(lane_map_root)
        .digest()
}

/// §13.1: the first delivery cycle of a record in a group.
pub fn initial_delivery_cycle_id(group: &GroupKey<'_>, record_id: &StandardRecordId) -> Bytes32 {
    group.preimage("cbqs/delivery-cycle-initial/v1").put(record_id).digest()
}

/// §13.1: the one successor of a redriven terminal cycle.
pub fn redrive_delivery_cycle_id(
    group: &GroupKey<'_>,
    record_id: &StandardRecordId,
    terminal_cycle_id: &Bytes32,
    previous_group_receipt: &Bytes32,
) -> Bytes32 {
    group
        .preimage("cbqs/delivery-cycle-redrive/v1")
        .put(record_id)
        .put(terminal_cycle_id)
        .put(previous_group_receipt)
        .digest()
}

/// §13.1: one attempt of one holder in one cycle.
pub fn lease_id(
    group: &GroupKey<'_>,
    record_id: &StandardRecordId,
    delivery_cycle_id: &Bytes32,
    attempt: u16,
    holder_signing_key_id: &Bytes32,
) -> Bytes32 {
    group
        .preimage("cbqs/delivery-lease/v1")
        .put(record_id)
        .put(delivery_cycle_id)
        .put(&attempt)
        .put(holder_signing_key_id)
        .digest()
}

/// A consumer group by its full name.
#[derive(Clone, Copy, Debug)]
pub struct GroupKey<'a> {
    /// The chain.
    pub context: &'a SigningContext,
    /// The stream.
    pub stream_id: &'a Bytes32,
    /// The lane.
    pub lane_id: &'a Bytes32,
    /// The group.
    pub group_id: &'a Bytes32,
}

impl GroupKey<'_> {
    fn preimage(&self, domain: &str) -> Preimage {
        Preimage::new(domain).put(self.context).put(self.stream_id).put(self.lane_id).put(self.group_id)
    }
}

/// §14.1: the predecessor of a stream's first append receipt.
pub fn stream_receipt_genesis(context: &SigningContext, stream_id: &Bytes32) -> Bytes32 {
    Preimage::new("cbqs/stream-genesis/v1").put(context).put(stream_id).put(&ProviderEpoch).digest()
}

/// §14.1: the predecessor of a lane's first append receipt.
pub fn lane_receipt_genesis(context: &SigningContext, stream_id: &Bytes32, lane_id: &Bytes32) -> Bytes32 {
    Preimage::new("cbqs/lane-genesis/v1").put(context).put(stream_id).put(lane_id).put(&ProviderEpoch).digest()
}

/// §14.1: what the genesis transition names, and a watermark before the first checkpoint.
pub fn checkpoint_genesis(context: &SigningContext, stream_id: &Bytes32) -> Bytes32 {
    Preimage::new("cbqs/checkpoint-genesis/v1").put(context).put(stream_id).put(&ProviderEpoch).digest()
}

/// §14.1: binds the whole header, nonce and time included.
pub fn record_header_hash(header: &RecordHeader) -> Bytes32 {
    Preimage::new("cbqs/record-header/v1").put(header).digest()
}

/// §14.2: the predecessor of a group's first receipt.
pub fn group_genesis(group: &GroupKey<'_>) -> Bytes32 {
    group.preimage("cbqs/group-genesis/v1").put(&ProviderEpoch).digest()
}

/// §14.2: the state after `GroupCreate` and `GroupUpdate`.
pub fn group_config_state(context: &SigningContext, stream_id: &Bytes32, config: &GroupConfig) -> Bytes32 {
    Preimage::new("cbqs/group-config-state/v1").put(context).put(stream_id).put(&ProviderEpoch).put(config).digest()
}

/// §14.2: the state after `GroupDelete`.
pub fn group_deleted_state(
    context: &SigningContext,
    stream_id: &Bytes32,
    lane_id: &Bytes32,
    group_id: &Bytes32,
) -> Bytes32 {
    let group = GroupKey { context, stream_id, lane_id, group_id };
    group.preimage("cbqs/group-deleted-state/v1").put(&ProviderEpoch).digest()
}

/// §14.2: the state after a record mutation.
pub fn delivery_result_state_digest(context: &SigningContext, state: &DeliveryResultState) -> Bytes32 {
    Preimage::new("cbqs/delivery-result-state/v1").put(context).put(state).digest()
}
