//! The 18 response bodies (§13.2).

use crate::bytes::Bytes32;
use crate::codec::ProviderEpoch;
use crate::error::DecodeError;
use crate::group::{DeliveryStateAction, DeliveryStateUpdate, GroupStateUpdate};
use crate::key_batch::KeyBatchReceipt;
use crate::lane::{LanePage, LaneRecord, LaneStatus};
use crate::receipt::AppendReceipt;
use crate::record::{RecordId, RecordKind, RecordOrigin};
use crate::request::{Credit, RequestMethod};

object! {
    /// `FastDurableWatermarkV1`: the peer's claim of what is durable, never our position.
    #[derive(Copy)]
    pub struct DurableWatermark {
        stream_id: Bytes32,
        provider_epoch: ProviderEpoch,
        broker_epoch: u64,
        last_durable_sequence: Option<u64>,
        checkpoint_anchor: Bytes32,
    }
    check |watermark: &DurableWatermark| {
        if watermark.checkpoint_anchor.is_zero() { Err(DecodeError::ZeroDigest) } else { Ok(()) }
    };
}

object! {
    /// `AppendResultV1`: a standard append has its receipt, a fast one the watermark.
    pub struct AppendResult {
        record_id: RecordId,
        append_receipt: Option<AppendReceipt>,
        durable_watermark: Option<DurableWatermark>,
    }
    check |result: &AppendResult| {
        let same = match (&result.record_id, &result.append_receipt, &result.durable_watermark) {
            (RecordId::Standard(_), Some(receipt), None) => receipt.record_id == result.record_id,
            (RecordId::Fast(id), None, Some(watermark)) => watermark.broker_epoch == id.broker_epoch,
            _ => return Err(DecodeError::DeliveryShape),
        };
        if same { Ok(()) } else { Err(DecodeError::IdentityMismatch) }
    };
}

object! {
    /// `KeyBatchStageResultV1`.
    pub struct KeyBatchStageResult {
        key_stream_id: Bytes32,
        batch_digest: Bytes32,
        total_chunks: u32,
        accepted_chunks: u32,
    }
    check |result: &KeyBatchStageResult| {
        if result.total_chunks == 0 || result.accepted_chunks > result.total_chunks { Err(DecodeError::ChunkCount) } else { Ok(()) }
    };
}

object! {
    /// `SubscriptionStateV1`.
    pub struct SubscriptionState { stream_id: Bytes32, subscription_id: Bytes32, }
}

object! {
    /// The two structs of a `CreateLane` or `CloseLane` result, one after the other.
    pub struct LaneMutation { lane: LaneRecord, receipt: AppendReceipt, }
}

union! {
    /// `CbqsResponseBodyV1`: the tag of the method that it answers, then its body.
    pub enum ResponseBody: u16 {
        Append(body: AppendResult) = 1,
        BeginKeyBatch(body: KeyBatchStageResult) = 2,
        PutKeyBatchChunk(body: KeyBatchStageResult) = 3,
        CommitKeyBatch(body: KeyBatchReceipt) = 4,
        CreateLane(body: LaneMutation) = 5,
        CloseLane(body: LaneMutation) = 6,
        ListLanes(body: LanePage) = 7,
        CreateGroup(body: GroupStateUpdate) = 8,
        UpdateGroup(body: GroupStateUpdate) = 9,
        DeleteGroup(body: GroupStateUpdate) = 10,
        OpenSubscription(body: SubscriptionState) = 11,
        CloseSubscription(body: SubscriptionState) = 12,
        Credit(body: Credit) = 13,
        Ack(body: DeliveryStateUpdate) = 14,
        Nack(body: DeliveryStateUpdate) = 15,
        Extend(body: DeliveryStateUpdate) = 16,
        Reject(body: DeliveryStateUpdate) = 17,
        Redrive(body: DeliveryStateUpdate) = 18,
    }
    check ResponseBody::check_method;
}

impl ResponseBody {
    /// The method that this body answers.
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

    /// What a body says of its own method: receipt actions and lane mutations name it a second time.
    fn check_method(&self) -> Result<(), DecodeError> {
        use DeliveryStateAction as Action;
        let action_is = |carried: Action, expected: Action| {
            if carried == expected {
                Ok(())
            } else {
                Err(DecodeError::MethodMismatch)
            }
        };
        match self {
            Self::CreateLane(body) => check_lane_mutation(body, RecordKind::LaneCreated, LaneStatus::Active),
            Self::CloseLane(body) => check_lane_mutation(body, RecordKind::LaneClosed, LaneStatus::Closed),
            Self::CreateGroup(update) => action_is(update.receipt.action, Action::GroupCreate),
            Self::UpdateGroup(update) => action_is(update.receipt.action, Action::GroupUpdate),
            Self::DeleteGroup(update) => action_is(update.receipt.action, Action::GroupDelete),
            Self::Ack(update) => action_is(update.receipt.action, Action::Ack),
            Self::Nack(update) => action_is(update.receipt.action, Action::Nack),
            Self::Extend(update) => action_is(update.receipt.action, Action::Extend),
            Self::Reject(update) => action_is(update.receipt.action, Action::Reject),
            Self::Redrive(update) => action_is(update.receipt.action, Action::Redrive),
            Self::Append(_)
            | Self::BeginKeyBatch(_)
            | Self::PutKeyBatchChunk(_)
            | Self::CommitKeyBatch(_)
            | Self::ListLanes(_)
            | Self::OpenSubscription(_)
            | Self::CloseSubscription(_)
            | Self::Credit(_) => Ok(()),
        }
    }
}

fn check_lane_mutation(body: &LaneMutation, kind: RecordKind, status: LaneStatus) -> Result<(), DecodeError> {
    let (lane, receipt) = (&body.lane, &body.receipt);
    let same = lane.stream_id == receipt.stream_id
        && receipt.lane_id.is_zero()
        && receipt.origin == RecordOrigin::ProviderEvent
        && receipt.kind == kind
        && lane.status == status
        && !lane.lane_id.is_zero();
    if same {
        Ok(())
    } else {
        Err(DecodeError::IdentityMismatch)
    }
}

object! {
    /// `CbqsResponseV1`.
    pub struct Response {
        request_id: Bytes32,
        body: ResponseBody,
    }
}
