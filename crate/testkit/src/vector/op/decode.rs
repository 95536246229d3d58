//! `decode`: every object by its name in CIP-39.

use remuda_wire::{
    chain, checkpoint, context, delivery, error_frame, frame, grant, group, key, key_batch, lane, price, receipt,
    record, request, response, retention, scope, session, snapshot, transition, Canonical, DecodeError,
};
use serde_json::json;

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

type Recode = fn(&[u8]) -> Result<Vec<u8>, DecodeError>;

fn recode<T: Canonical>(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    T::from_bytes(bytes).map(|value| value.to_bytes())
}

macro_rules! types {
    ($($name:literal = $ty:ty,)+) => { &[$(($name, recode::<$ty>),)+] };
}

/// Every struct and enum by its specification name.
const TYPES: &[(&str, Recode)] = types! {
    "AckRequestBodyV1" = request::AckRequest,
    "AppendReceiptV1" = receipt::AppendReceipt,
    "AppendRequestBodyV1" = request::AppendRequest,
    "AppendResultV1" = response::AppendResult,
    "AuthenticatedRequestV1" = request::AuthenticatedRequest,
    "BaseRateAdmissionV1" = chain::BaseRateAdmission,
    "BaseRateClassV1" = price::BaseRateClass,
    "BaseRateReservationTotalsV1" = chain::BaseRateReservationTotals,
    "BaseRateScheduleV1" = price::BaseRateSchedule,
    "BaseRateSchedulesV1" = price::BaseRateSchedules,
    "BeginKeyBatchRequestBodyV1" = request::BeginKeyBatchRequest,
    "BrokerEpochTransitionV1" = transition::BrokerEpochTransition,
    "BrokerStateV1" = chain::BrokerState,
    "CbqsErrorV1" = error_frame::CbqsError,
    "CbqsRequestBodyV1" = request::RequestBody,
    "CbqsRequestMethodV1" = request::RequestMethod,
    "CbqsResponseBodyV1" = response::ResponseBody,
    "CbqsResponseV1" = response::Response,
    "CbqsSigningContextV1" = context::SigningContext,
    "CbqsSnapshotManifestV1" = snapshot::SnapshotManifest,
    "CheckpointFrameV1" = checkpoint::CheckpointFrame,
    "CheckpointReceiptV1" = checkpoint::CheckpointReceipt,
    "CloseLaneRequestBodyV1" = request::CloseLaneRequest,
    "CloseSubscriptionRequestBodyV1" = request::CloseSubscriptionRequest,
    "CommitKeyBatchRequestBodyV1" = request::CommitKeyBatchRequest,
    "CompleteSessionRequestV1" = session::CompleteSession,
    "CreateGroupRequestBodyV1" = request::CreateGroupRequest,
    "CreateLaneRequestBodyV1" = request::CreateLaneRequest,
    "CreditRequestBodyV1" = request::CreditRequest,
    "CreditV1" = request::Credit,
    "DeleteGroupRequestBodyV1" = request::DeleteGroupRequest,
    "DeliveryLeaseRefV1" = group::DeliveryLeaseRef,
    "DeliveryLeaseV1" = group::DeliveryLease,
    "DeliveryResultStateV1" = group::DeliveryResultState,
    "DeliveryStateActionV1" = group::DeliveryStateAction,
    "DeliveryStateReceiptV1" = group::DeliveryStateReceipt,
    "DeliveryStateUpdateV1" = group::DeliveryStateUpdate,
    "ExtendRequestBodyV1" = request::ExtendRequest,
    "FastDurableWatermarkV1" = response::DurableWatermark,
    "FastLineageV1" = transition::FastLineage,
    "FastRecordIdV1" = record::FastRecordId,
    "FastRetentionAnchorV1" = retention::FastRetentionAnchor,
    "FinalizedViewV1" = context::FinalizedView,
    "GroupConfigV1" = group::GroupConfig,
    "GroupMutableConfigV1" = group::GroupMutableConfig,
    "GroupRetentionAnchorV1" = retention::GroupRetentionAnchor,
    "GroupScopeV1" = scope::GroupScope,
    "GroupStateUpdateV1" = group::GroupStateUpdate,
    "HpkePublicKey" = key::HpkePublicKey,
    "KeyBatchReceiptV1" = key_batch::KeyBatchReceipt,
    "KeyBatchStageResultV1" = response::KeyBatchStageResult,
    "KeyEnvelopeV1" = key_batch::KeyEnvelope,
    "KeyRotationBatchV1" = key_batch::KeyRotationBatch,
    "LaneEventV1" = lane::LaneEvent,
    "LanePageV1" = lane::LanePage,
    "LanePayloadV1" = checkpoint::LanePayload,
    "LaneProofV1" = checkpoint::LaneProof,
    "LaneRecordV1" = lane::LaneRecord,
    "LaneScopeV1" = scope::LaneScope,
    "ListLanesRequestBodyV1" = request::ListLanesRequest,
    "NackRequestBodyV1" = request::NackRequest,
    "OpenSessionRequestV1" = session::OpenSession,
    "OpenSubscriptionRequestBodyV1" = request::OpenSubscriptionRequest,
    "PriceQuoteV1" = price::PriceQuote,
    "PricingBasisV1" = chain::PricingBasis,
    "ProviderEndpointTransportV1" = chain::EndpointTransport,
    "ProviderEndpointV1" = chain::ProviderEndpoint,
    "ProviderRecordV1" = chain::ProviderRecord,
    "PutKeyBatchChunkRequestBodyV1" = request::PutKeyBatchChunkRequest,
    "RecordDeliveryV1" = delivery::RecordDelivery,
    "RecordHeaderV1" = record::RecordHeader,
    "RecordIdV1" = record::RecordId,
    "RecordKindV1" = record::RecordKind,
    "RecordOriginV1" = record::RecordOrigin,
    "RedriveRequestBodyV1" = request::RedriveRequest,
    "RejectRequestBodyV1" = request::RejectRequest,
    "RequestProofV1" = session::RequestProof,
    "SessionChallengeV1" = session::SessionChallenge,
    "SessionOpenedV1" = session::SessionOpened,
    "SessionProofV1" = session::SessionProof,
    "SigningPublicKey" = key::SigningPublicKey,
    "SnapshotCoverageV1" = snapshot::SnapshotCoverage,
    "SnapshotScopeV1" = snapshot::SnapshotScope,
    "StandardRecordIdV1" = record::StandardRecordId,
    "StandardRetentionAnchorV1" = retention::StandardRetentionAnchor,
    "StreamConfigV1" = chain::StreamConfig,
    "StreamGrantV1" = grant::StreamGrant,
    "StreamRecordV1" = chain::StreamRecord,
    "SubscriptionScopeV1" = scope::LaneScope,
    "SubscriptionSourceV1" = request::SubscriptionSource,
    "SubscriptionStateV1" = response::SubscriptionState,
    "UpdateGroupRequestBodyV1" = request::UpdateGroupRequest,
    "VerificationModeV1" = request::VerificationMode,
};

/// The frames, whose version byte is no part of their body.
const FRAMES: &[(&str, Recode)] = &[
    ("CbqsClientFrameV1", |bytes| frame::ClientFrame::from_bytes(bytes).map(|frame| frame.to_bytes())),
    ("CbqsServerFrameV1", |bytes| frame::ServerFrame::from_bytes(bytes).map(|frame| frame.to_bytes())),
    ("CbqsServerFrameBatchV1", |bytes| frame::ServerFrameBatch::from_bytes(bytes).map(|batch| batch.to_bytes())),
];

/// Decodes a whole object of the type called `name` and encodes it again; `None` when there is no such type.
pub fn recode_as(name: &str, bytes: &[u8]) -> Option<Result<Vec<u8>, DecodeError>> {
    TYPES.iter().chain(FRAMES).find(|(known, _)| *known == name).map(|(_, recode)| recode(bytes))
}

/// The names of all types.
pub fn type_names() -> impl Iterator<Item = &'static str> {
    TYPES.iter().chain(FRAMES).map(|(name, _)| *name)
}

/// Decodes a whole object, encodes it again and requires the same bytes.
pub fn decode(input: &Input<'_>) -> Answer {
    let name = input.at("type").text()?;
    let bytes = input.at("bytes").bytes()?;
    let again = recode_as(name, &bytes).ok_or_else(|| Refused::Malformed(format!("unknown type {name}")))??;
    if again == bytes {
        Ok(json!({ "length": bytes.len() }))
    } else {
        Err(Refused::Malformed(format!("{name} encodes to other bytes than it was decoded from")))
    }
}
