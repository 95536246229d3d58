//! Frames with plausible contents. Signatures are zero: nothing here looks at them.

use remuda_session::handshake::HandshakeConfig;
use remuda_wire::checkpoint::{CheckpointFrame, CheckpointReceipt};
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::error_frame::CbqsError;
use remuda_wire::frame::ServerMessage;
use remuda_wire::grant::{StreamGrant, Verb, Verbs};
use remuda_wire::group::{DeliveryStateAction, DeliveryStateReceipt, GroupStateUpdate};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::preimage;
use remuda_wire::record::{FastRecordId, RecordHeader, RecordId, RecordKind, RecordOrigin};
use remuda_wire::request::{
    AppendRequest, AuthenticatedRequest, CloseSubscriptionRequest, Credit, CreditRequest, FastSource,
    OpenSubscriptionRequest, RequestBody, StandardGroupSource, SubscriptionSource, VerificationMode,
};
use remuda_wire::response::{AppendResult, DurableWatermark, Response, ResponseBody, SubscriptionState};
use remuda_wire::scope::{GroupScope, LaneScope};
use remuda_wire::session::{SessionChallenge, SessionOpened};
use remuda_wire::transition::{BrokerEpochTransition, TransitionKind};
use remuda_wire::{Bytes, Bytes24, Bytes32, List, ProviderEpoch, Signature, Signed, Text, VersionOne};

pub const STREAM: Bytes32 = Bytes32([1; 32]);
pub const LANE: Bytes32 = Bytes32([2; 32]);
pub const SESSION: Bytes32 = Bytes32([5; 32]);

pub fn id(byte: u8) -> Bytes32 {
    Bytes32([byte; 32])
}

pub fn context() -> SigningContext {
    SigningContext { version: VersionOne, chain_id: 7, chain_instance_id: Bytes32([9; 32]) }
}

pub fn view() -> FinalizedView {
    FinalizedView { chain_instance_id: Bytes32([9; 32]), height: 11, block_hash: Bytes32([8; 32]) }
}

pub fn grant() -> StreamGrant {
    StreamGrant {
        context: context(),
        stream_id: STREAM,
        authorization_generation: 1,
        grant_nonce: Bytes32([4; 32]),
        holder_signing_key: SigningPublicKey(Bytes32([6; 32])),
        holder_hpke_key: None,
        verbs: Verbs::of(&[Verb::Append, Verb::Consume]),
        lane_scope: LaneScope::Any,
        group_scope: GroupScope::Any,
        not_before_ms: 0,
        expires_at_ms: u64::MAX,
        max_message_bytes: 1024,
        max_append_bytes_per_sec: 1,
        max_in_flight: 1,
        max_lane_creates_per_min: 0,
        signature: Signature::ZERO,
    }
}

pub fn handshake_config() -> HandshakeConfig {
    HandshakeConfig::new(context(), STREAM, grant()).unwrap()
}

pub fn challenge(request_id: Bytes32, expires_at_ms: u64) -> ServerMessage {
    challenge_of(SESSION, request_id, expires_at_ms)
}

/// The challenge of a session: random bytes of its own.
pub fn challenge_of(session_id: Bytes32, request_id: Bytes32, expires_at_ms: u64) -> ServerMessage {
    ServerMessage::SessionChallenge(SessionChallenge {
        request_id,
        context: context(),
        served_at: view(),
        stream_id: STREAM,
        grant_id: grant().digest(),
        provider_epoch: ProviderEpoch,
        session_id,
        challenge: Bytes32([session_id.0[0] ^ 0x80; 32]),
        expires_at_ms,
    })
}

pub fn opened(request_id: Bytes32, expires_at_ms: u64) -> ServerMessage {
    opened_of(SESSION, request_id, expires_at_ms)
}

pub fn opened_of(session_id: Bytes32, request_id: Bytes32, expires_at_ms: u64) -> ServerMessage {
    ServerMessage::SessionOpened(SessionOpened {
        request_id,
        context: context(),
        served_at: view(),
        stream_id: STREAM,
        grant_id: grant().digest(),
        provider_epoch: ProviderEpoch,
        session_id,
        expires_at_ms,
    })
}

pub fn watermark() -> DurableWatermark {
    DurableWatermark {
        stream_id: STREAM,
        provider_epoch: ProviderEpoch,
        broker_epoch: 0,
        last_durable_sequence: None,
        checkpoint_anchor: Bytes32([13; 32]),
    }
}

pub fn delivery(subscription: u8, sequence: u64, payload_bytes: usize) -> ServerMessage {
    ServerMessage::Delivery(RecordDelivery {
        subscription_id: id(subscription),
        record_id: RecordId::Fast(FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: 0, sequence }),
        header: RecordHeader {
            stream_id: STREAM,
            lane_id: LANE,
            origin: RecordOrigin::Client,
            kind: RecordKind::Application,
            client_message_id: Bytes32([14; 32]),
            created_at_ms: 1,
            visible_after_ms: 0,
            expires_at_ms: 0,
            encryption_generation: 0,
            nonce: Bytes24::ZERO,
        },
        payload: Bytes::new(vec![0; payload_bytes]).unwrap(),
        append_receipt: None,
        lease: None,
        delivery_state_receipt: None,
        durable_watermark: Some(watermark()),
    })
}

pub fn checkpoint(subscription: u8) -> ServerMessage {
    ServerMessage::Checkpoint(CheckpointFrame {
        subscription_id: id(subscription),
        receipt: CheckpointReceipt {
            context: context(),
            served_at: view(),
            stream_id: STREAM,
            provider_epoch: ProviderEpoch,
            broker_epoch: 0,
            first_sequence: 0,
            last_sequence: 0,
            ordered_range_root: Bytes32([15; 32]),
            previous_checkpoint: Bytes32([16; 32]),
            durable_high_water: 0,
            committed_at_ms: 1,
            signature: Signature::ZERO,
        },
        lanes: List::EMPTY,
    })
}

pub fn transition() -> ServerMessage {
    ServerMessage::BrokerEpochTransition(BrokerEpochTransition {
        context: context(),
        served_at: view(),
        stream_id: STREAM,
        provider_epoch: ProviderEpoch,
        previous_lineage: None,
        replacement_broker_epoch: 0,
        kind: TransitionKind::Clean,
        last_durable_checkpoint: Bytes32([13; 32]),
        last_durable_sequence: None,
        last_provisional_sequence: None,
        created_at_ms: 1,
        signature: Signature::ZERO,
    })
}

pub fn error(code: u16, request_id: Option<Bytes32>, subscription: Option<u8>) -> ServerMessage {
    ServerMessage::Error(CbqsError {
        request_id,
        subscription_id: subscription.map(id),
        code,
        message: Text::new("why".into()).unwrap(),
        details: Bytes::new(vec![1, 2]).unwrap(),
    })
}

pub fn append() -> RequestBody {
    RequestBody::Append(AppendRequest {
        stream_id: STREAM,
        lane_id: LANE,
        client_message_id: Bytes32([17; 32]),
        client_created_at_ms: 1,
        visible_after_ms: 0,
        expires_at_ms: 0,
        encryption_generation: 0,
        nonce: Bytes24::ZERO,
        payload: Bytes::new(vec![1]).unwrap(),
    })
}

pub fn subscription_with(subscription: u8, verification: VerificationMode) -> RequestBody {
    RequestBody::OpenSubscription(OpenSubscriptionRequest {
        stream_id: STREAM,
        subscription_id: id(subscription),
        source: SubscriptionSource::Fast(FastSource { scope: LaneScope::Exact(LANE), after: None }),
        after_group_receipt: None,
        verification,
    })
}

pub fn open_subscription(subscription: u8) -> RequestBody {
    subscription_with(subscription, VerificationMode::ScopedProofs)
}

pub fn close_subscription(subscription: u8) -> RequestBody {
    let subscription_id = id(subscription);
    RequestBody::CloseSubscription(CloseSubscriptionRequest { stream_id: STREAM, subscription_id })
}

pub fn credit(subscription: u8, records: u32, bytes: u64) -> RequestBody {
    let credit = Credit { subscription_id: id(subscription), records, bytes };
    RequestBody::Credit(CreditRequest { stream_id: STREAM, credit })
}

pub fn group_subscription(subscription: u8, group: u8) -> RequestBody {
    RequestBody::OpenSubscription(OpenSubscriptionRequest {
        stream_id: STREAM,
        subscription_id: id(subscription),
        source: SubscriptionSource::StandardGroup(StandardGroupSource { lane_id: LANE, group_id: id(group) }),
        after_group_receipt: None,
        verification: VerificationMode::None,
    })
}

pub fn group_deleted(group: u8) -> ServerMessage {
    let group_id = id(group);
    ServerMessage::GroupState(GroupStateUpdate {
        config: None,
        receipt: DeliveryStateReceipt {
            context: context(),
            served_at: view(),
            stream_id: STREAM,
            lane_id: LANE,
            group_id,
            provider_epoch: ProviderEpoch,
            action: DeliveryStateAction::GroupDelete,
            record_id: None,
            lease_id: None,
            resulting_state_digest: preimage::group_deleted_state(&context(), &STREAM, &LANE, &group_id),
            previous_group_receipt: Bytes32([18; 32]),
            committed_at_ms: 1,
            signature: Signature::ZERO,
        },
    })
}

/// The response that a provider gives when everything is right.
pub fn answer(request: &AuthenticatedRequest) -> ServerMessage {
    let state = |subscription_id| SubscriptionState { stream_id: STREAM, subscription_id };
    let body = match &request.body {
        RequestBody::Append(_) => ResponseBody::Append(AppendResult {
            record_id: RecordId::Fast(FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: 0, sequence: 1 }),
            append_receipt: None,
            durable_watermark: Some(watermark()),
        }),
        RequestBody::OpenSubscription(open) => ResponseBody::OpenSubscription(state(open.subscription_id)),
        RequestBody::CloseSubscription(close) => ResponseBody::CloseSubscription(state(close.subscription_id)),
        RequestBody::Credit(credit) => ResponseBody::Credit(credit.credit.clone()),
        other => panic!("no answer for {other:?}"),
    };
    response(request.request_id, body)
}

pub fn response(request_id: Bytes32, body: ResponseBody) -> ServerMessage {
    ServerMessage::Response(Response { request_id, body })
}
