//! The 18 proof-bound request bodies (§7.1, §10, §13.1).

use crate::bound;
use crate::bytes::{Bytes24, Bytes32};
use crate::codec::{Bytes, List};
use crate::error::DecodeError;
use crate::group::{DeliveryLeaseRef, GroupConfig, GroupMutableConfig};
use crate::key_batch::{KeyEnvelope, KeyRotationBatch};
use crate::preimage;
use crate::record::{FastRecordId, RecordHeader, RecordKind, RecordOrigin, StandardRecordId};
use crate::scope::LaneScope;
use crate::session::RequestProof;

tags! {
    /// `CbqsRequestMethodV1`: the one registry whose tags are `u16`.
    pub enum RequestMethod: u16 {
        Append = 1,
        BeginKeyBatch = 2,
        PutKeyBatchChunk = 3,
        CommitKeyBatch = 4,
        CreateLane = 5,
        CloseLane = 6,
        ListLanes = 7,
        CreateGroup = 8,
        UpdateGroup = 9,
        DeleteGroup = 10,
        OpenSubscription = 11,
        CloseSubscription = 12,
        Credit = 13,
        Ack = 14,
        Nack = 15,
        Extend = 16,
        Reject = 17,
        Redrive = 18,
    }
}

object! {
    /// `AppendRequestBodyV1`.
    pub struct AppendRequest {
        stream_id: Bytes32,
        lane_id: Bytes32,
        client_message_id: Bytes32,
        client_created_at_ms: u64,
        visible_after_ms: u64,
        expires_at_ms: u64,
        encryption_generation: u64,
        nonce: Bytes24,
        payload: Bytes<{ bound::MAX_INLINE_MESSAGE_BYTES }>,
    }
}

impl AppendRequest {
    /// The header that the record has once it is accepted (§10): everything of it is the client's.
    pub const fn header(&self) -> RecordHeader {
        RecordHeader {
            stream_id: self.stream_id,
            lane_id: self.lane_id,
            origin: RecordOrigin::Client,
            kind: RecordKind::Application,
            client_message_id: self.client_message_id,
            created_at_ms: self.client_created_at_ms,
            visible_after_ms: self.visible_after_ms,
            expires_at_ms: self.expires_at_ms,
            encryption_generation: self.encryption_generation,
            nonce: self.nonce,
        }
    }
}

object! {
    /// `BeginKeyBatchRequestBodyV1`.
    pub struct BeginKeyBatchRequest {
        key_stream_id: Bytes32,
        batch: KeyRotationBatch,
        total_chunks: u32,
    }
    check |begin: &BeginKeyBatchRequest| {
        if begin.total_chunks == 0 { Err(DecodeError::ChunkCount) } else { Ok(()) }
    };
}

object! {
    /// `PutKeyBatchChunkRequestBodyV1`. 1,024 envelopes of 161 bytes stay far below the 4,194,304 of a chunk.
    pub struct PutKeyBatchChunkRequest {
        key_stream_id: Bytes32,
        batch_digest: Bytes32,
        chunk_index: u32,
        envelopes: List<KeyEnvelope, { bound::MAX_KEY_ENVELOPES_PER_CHUNK }>,
    }
}

object! {
    /// `CommitKeyBatchRequestBodyV1`.
    pub struct CommitKeyBatchRequest { key_stream_id: Bytes32, batch_digest: Bytes32, }
}

object! {
    /// `CreateLaneRequestBodyV1`.
    pub struct CreateLaneRequest { stream_id: Bytes32, lane_nonce: Bytes32, metadata_hash: Bytes32, }
}

object! {
    /// `CloseLaneRequestBodyV1`.
    pub struct CloseLaneRequest { stream_id: Bytes32, lane_id: Bytes32, }
}

object! {
    /// `ListLanesRequestBodyV1`. `after_lane_id` is exclusive.
    pub struct ListLanesRequest { stream_id: Bytes32, after_lane_id: Option<Bytes32>, limit: u32, }
}

object! {
    /// `CreateGroupRequestBodyV1`.
    pub struct CreateGroupRequest { stream_id: Bytes32, config: GroupConfig, }
}

object! {
    /// `UpdateGroupRequestBodyV1`.
    pub struct UpdateGroupRequest { stream_id: Bytes32, lane_id: Bytes32, group_id: Bytes32, config: GroupMutableConfig, }
}

object! {
    /// `DeleteGroupRequestBodyV1`.
    pub struct DeleteGroupRequest { stream_id: Bytes32, lane_id: Bytes32, group_id: Bytes32, }
}

object! {
    /// `SubscriptionSourceV1::StandardGroup`.
    pub struct StandardGroupSource { lane_id: Bytes32, group_id: Bytes32, }
}

object! {
    /// `SubscriptionSourceV1::StandardReplay`. `after` is exclusive.
    pub struct StandardReplaySource { scope: LaneScope, after: Option<StandardRecordId>, }
}

object! {
    /// `SubscriptionSourceV1::Fast`. `after` is exclusive.
    pub struct FastSource { scope: LaneScope, after: Option<FastRecordId>, }
}

object! {
    /// `SubscriptionSourceV1::DeadLetters`. `after` is exclusive.
    pub struct DeadLettersSource { lane_id: Bytes32, group_id: Bytes32, after: Option<StandardRecordId>, }
}

union! {
    /// `SubscriptionSourceV1`.
    pub enum SubscriptionSource: u8 {
        StandardGroup(source: StandardGroupSource) = 1,
        StandardReplay(source: StandardReplaySource) = 2,
        Fast(source: FastSource) = 3,
        DeadLetters(source: DeadLettersSource) = 4,
    }
}

tags! {
    /// `VerificationModeV1`: what the provider owes a subscription.
    pub enum VerificationMode: u8 { None = 1, ScopedProofs = 2, FullStream = 3, }
}

object! {
    /// `OpenSubscriptionRequestBodyV1`. Which combinations are legal is `verify`'s `grant` module.
    pub struct OpenSubscriptionRequest {
        stream_id: Bytes32,
        subscription_id: Bytes32,
        source: SubscriptionSource,
        after_group_receipt: Option<Bytes32>,
        verification: VerificationMode,
    }
}

object! {
    /// `CloseSubscriptionRequestBodyV1`.
    pub struct CloseSubscriptionRequest { stream_id: Bytes32, subscription_id: Bytes32, }
}

object! {
    /// `CreditV1`: how many more records and payload bytes a subscription may be sent.
    pub struct Credit { subscription_id: Bytes32, records: u32, bytes: u64, }
}

object! {
    /// `CreditRequestBodyV1`.
    pub struct CreditRequest { stream_id: Bytes32, credit: Credit, }
}

object! {
    /// `AckRequestBodyV1`.
    pub struct AckRequest { lease: DeliveryLeaseRef, }
}

object! {
    /// `NackRequestBodyV1`.
    pub struct NackRequest { lease: DeliveryLeaseRef, retry_after_ms: u64, }
}

object! {
    /// `ExtendRequestBodyV1`.
    pub struct ExtendRequest { lease: DeliveryLeaseRef, extend_by_ms: u64, }
}

object! {
    /// `RejectRequestBodyV1`. An all-zero `reason_hash` is unspecified.
    pub struct RejectRequest { lease: DeliveryLeaseRef, reason_hash: Bytes32, }
}

object! {
    /// `RedriveRequestBodyV1`.
    pub struct RedriveRequest {
        stream_id: Bytes32,
        lane_id: Bytes32,
        group_id: Bytes32,
        record_id: StandardRecordId,
        terminal_cycle_id: Bytes32,
    }
}

union! {
    /// `CbqsRequestBodyV1`: the method's tag, then its body.
    pub enum RequestBody: u16 {
        Append(body: AppendRequest) = 1,
        BeginKeyBatch(body: BeginKeyBatchRequest) = 2,
        PutKeyBatchChunk(body: PutKeyBatchChunkRequest) = 3,
        CommitKeyBatch(body: CommitKeyBatchRequest) = 4,
        CreateLane(body: CreateLaneRequest) = 5,
        CloseLane(body: CloseLaneRequest) = 6,
        ListLanes(body: ListLanesRequest) = 7,
        CreateGroup(body: CreateGroupRequest) = 8,
        UpdateGroup(body: UpdateGroupRequest) = 9,
        DeleteGroup(body: DeleteGroupRequest) = 10,
        OpenSubscription(body: OpenSubscriptionRequest) = 11,
        CloseSubscription(body: CloseSubscriptionRequest) = 12,
        Credit(body: CreditRequest) = 13,
        Ack(body: AckRequest) = 14,
        Nack(body: NackRequest) = 15,
        Extend(body: ExtendRequest) = 16,
        Reject(body: RejectRequest) = 17,
        Redrive(body: RedriveRequest) = 18,
    }
}

impl RequestBody {
    /// The method of this body.
    pub const fn method(&self) -> RequestMethod {
        match self {
            Self::Append(_) => RequestMethod::Append,
            Self::BeginKeyBatch(_) => RequestMethod::BeginKeyBatch,
            Self::PutKeyBatchChunk(_) => RequestMethod::PutKeyBatchChunk,
            Self::CommitKeyBatch(_) => RequestMethod::CommitKeyBatch,
            Self::CreateLane(_) => RequestMethod::CreateLane,
            Self::CloseLane(_) => RequestMethod::CloseLane,
            Self::ListLanes(_) => RequestMethod::ListLanes,
            Self::CreateGroup(_) => RequestMethod::CreateGroup,
            Self::UpdateGroup(_) => RequestMethod::UpdateGroup,
            Self::DeleteGroup(_) => RequestMethod::DeleteGroup,
            Self::OpenSubscription(_) => RequestMethod::OpenSubscription,
            Self::CloseSubscription(_) => RequestMethod::CloseSubscription,
            Self::Credit(_) => RequestMethod::Credit,
            Self::Ack(_) => RequestMethod::Ack,
            Self::Nack(_) => RequestMethod::Nack,
            Self::Extend(_) => RequestMethod::Extend,
            Self::Reject(_) => RequestMethod::Reject,
            Self::Redrive(_) => RequestMethod::Redrive,
        }
    }
}

object! {
    /// `AuthenticatedRequestV1`: a body and the proof that its holder sent it, in this session, now.
    pub struct AuthenticatedRequest {
        request_id: Bytes32,
        proof: RequestProof,
        body: RequestBody,
    }
    check |request: &AuthenticatedRequest| {
        if request.proof.method != request.body.method() {
            return Err(DecodeError::MethodMismatch);
        }
        if request.proof.body_hash == preimage::request_body_hash(&request.body) { Ok(()) } else { Err(DecodeError::BodyHash) }
    };
}
