//! §15: where a chain goes on behind a signed floor.

use ed25519_dalek::{Signer, SigningKey};
use remuda_testkit::builder::Provider;
use remuda_verify::authentic::{Authority, OneKey, Verified};
use remuda_verify::record_shape::StreamShape;
use remuda_verify::signature::PublicKey;
use remuda_verify::standard::{StandardReplay, StandardReplayConfig, StandardState};
use remuda_wire::chain::Purpose;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::preimage::{keccak256, record_header_hash};
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::record::{RecordHeader, RecordId, RecordKind, RecordOrigin, StandardRecordId};
use remuda_wire::retention::StandardRetentionAnchor;
use remuda_wire::scope::LaneScope;
use remuda_wire::verdict::{Refusal, VerifyError};
use remuda_wire::{Bytes, Bytes24, Bytes32, ProviderEpoch, Signature, Signed};

const LANE: Bytes32 = Bytes32([2; 32]);
const SUBSCRIPTION: Bytes32 = Bytes32([1; 32]);
const FLOOR: u64 = 40;
/// What stands just before the floor, in the stream and in the lane.
const BEFORE: [Bytes32; 2] = [Bytes32([5; 32]), Bytes32([6; 32])];

struct Scene {
    provider: Provider,
    key: SigningKey,
    keys: OneKey,
}

impl Scene {
    fn new() -> Self {
        let key = SigningKey::from_bytes(&[8; 32]);
        let keys = OneKey(PublicKey::parse(&Bytes32(key.verifying_key().to_bytes())));
        Self { provider: Provider::new(), key, keys }
    }

    fn sign(&self, object: &impl Signed) -> Signature {
        Signature(self.key.sign(&object.digest().0).to_bytes())
    }

    fn anchor(&self, lane_id: Option<Bytes32>) -> Verified<StandardRetentionAnchor> {
        let mut anchor = StandardRetentionAnchor {
            context: self.provider.context,
            served_at: self.provider.view,
            stream_id: self.provider.stream_id,
            provider_epoch: ProviderEpoch,
            lane_id,
            first_retained_sequence: FLOOR,
            previous_global_receipt: BEFORE[0],
            previous_lane_receipt: lane_id.map(|_| BEFORE[1]),
            committed_at_ms: 1,
            signature: Signature::ZERO,
        };
        anchor.signature = self.sign(&anchor);
        let Provider { context, stream_id, .. } = &self.provider;
        Authority { context, stream_id, keys: &self.keys }.authenticate(anchor).expect("an honest anchor")
    }

    /// The record at the floor, with these predecessors.
    fn first(&self, [previous_global_receipt, previous_lane_receipt]: [Bytes32; 2]) -> RecordDelivery {
        let header = RecordHeader {
            stream_id: self.provider.stream_id,
            lane_id: LANE,
            origin: RecordOrigin::Client,
            kind: RecordKind::Application,
            client_message_id: Bytes32([3; 32]),
            created_at_ms: 1,
            visible_after_ms: 0,
            expires_at_ms: 0,
            encryption_generation: 0,
            nonce: Bytes24::ZERO,
        };
        let record_id = RecordId::Standard(StandardRecordId { provider_epoch: ProviderEpoch, sequence: FLOOR });
        let mut receipt = AppendReceipt {
            context: self.provider.context,
            served_at: self.provider.view,
            stream_id: header.stream_id,
            lane_id: header.lane_id,
            origin: header.origin,
            kind: header.kind,
            record_id,
            client_message_id: header.client_message_id,
            header_hash: record_header_hash(&header),
            payload_hash: keccak256(b"payload"),
            visible_after_ms: 0,
            expires_at_ms: 0,
            encryption_generation: 0,
            previous_global_receipt,
            previous_lane_receipt,
            committed_at_ms: 2,
            signature: Signature::ZERO,
        };
        receipt.signature = self.sign(&receipt);
        RecordDelivery {
            subscription_id: SUBSCRIPTION,
            record_id,
            header,
            payload: Bytes::new(b"payload".to_vec()).expect("short"),
            append_receipt: Some(receipt),
            lease: None,
            delivery_state_receipt: None,
            durable_watermark: None,
        }
    }

    fn judge(&self, lane_id: Option<Bytes32>, predecessors: [Bytes32; 2]) -> Result<(), Refusal> {
        let scope = lane_id.map_or(LaneScope::Any, LaneScope::Exact);
        let state = StandardState::from_anchor(&self.anchor(lane_id), &scope);
        let shape = StreamShape { purpose: Purpose::Main, encrypted: false };
        let Provider { context, stream_id, .. } = &self.provider;
        let (context, stream_id) = (*context, *stream_id);
        let config = StandardReplayConfig { context, stream_id, shape, subscription_id: SUBSCRIPTION, scope };
        StandardReplay::new(config, state).handle_delivery(&self.first(predecessors), &self.keys).map(drop)
    }
}

#[test]
fn the_chain_starts_again_at_the_predecessors_of_an_anchor() {
    let scene = Scene::new();
    let [global, lane] = BEFORE;
    let elsewhere = Bytes32([7; 32]);
    assert_eq!(scene.judge(None, [global, elsewhere]), Ok(()), "a lane predecessor that the floor does not name");
    assert_eq!(scene.judge(None, [elsewhere, lane]), Err(VerifyError::GlobalChain.into()));
    assert_eq!(scene.judge(Some(LANE), [elsewhere, lane]), Ok(()), "the record before it is of another lane");
    assert_eq!(scene.judge(Some(LANE), [global, elsewhere]), Err(VerifyError::LaneChain.into()));
}
