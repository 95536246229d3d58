//! Does this result answer this request (§13.2)?
//!
//! A genuine receipt for another record, lane, lease or batch is a false answer: what a result names is compared with
//! what was asked, field by field. Relative values (`retry_after_ms`, `extend_by_ms`) are not result state (§14.2), so the
//! provider's absolute outputs of them are its own.

use remuda_wire::context::SigningContext;
use remuda_wire::frame::ServerMessage;
use remuda_wire::group::{
    DeliveryLeaseRef, DeliveryResultState, DeliveryStateReceipt, DeliveryStateUpdate, GroupConfig, GroupStateUpdate,
};
use remuda_wire::key_batch::KeyBatchReceipt;
use remuda_wire::lane::{LanePage, LaneRecord};
use remuda_wire::preimage::{self, GroupKey};
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::record::{FastRecordId, RecordHeader, RecordId};
use remuda_wire::request::{
    AppendRequest, AuthenticatedRequest, CreateLaneRequest, Credit, ListLanesRequest, RedriveRequest, RequestBody,
};
use remuda_wire::response::{
    AppendResult, DurableWatermark, KeyBatchStageResult, LaneMutation, ResponseBody, SubscriptionState,
};
use remuda_wire::verdict::{ProtocolViolation, Refusal, VerifyError};
use remuda_wire::{Bytes32, DecodeError, Signed};

use crate::authentic::{Authority, KeySource, Verified};
use crate::group_config::mutable_part;

/// A result that answers its request, with its receipt authentic. Where the receipt stands in its chain is not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)]
pub enum AnsweredResult {
    /// A standard append, durable.
    Appended(Verified<AppendReceipt>),
    /// A fast append: provisional, whatever the watermark claims.
    Provisional {
        /// The record.
        record_id: FastRecordId,
        /// What the provider says is durable.
        watermark: DurableWatermark,
    },
    /// A staged key batch: not durable.
    Staged(KeyBatchStageResult),
    /// A committed key batch. Its envelope root is judged with the batch itself.
    Committed(Verified<KeyBatchReceipt>),
    /// A lane was created or closed.
    Lane {
        /// The lane.
        lane: LaneRecord,
        /// The receipt of its event on the default lane.
        receipt: Verified<AppendReceipt>,
    },
    /// A page of lanes.
    Lanes(LanePage),
    /// A group mutation.
    Group {
        /// The resulting configuration; `None` after deletion.
        config: Option<GroupConfig>,
        /// Its receipt.
        receipt: Verified<DeliveryStateReceipt>,
    },
    /// A subscription was opened or closed.
    Subscription(SubscriptionState),
    /// Credit was granted, as echoed.
    Credit(Credit),
    /// A delivery cycle changed.
    Delivery {
        /// The resulting state.
        state: DeliveryResultState,
        /// Its receipt.
        receipt: Verified<DeliveryStateReceipt>,
    },
}

impl AnsweredResult {
    /// The digest of the receipt, where the method has one.
    pub const fn receipt_digest(&self) -> Option<Bytes32> {
        match self {
            Self::Appended(receipt) | Self::Lane { receipt, .. } => Some(receipt.digest()),
            Self::Committed(receipt) => Some(receipt.digest()),
            Self::Group { receipt, .. } | Self::Delivery { receipt, .. } => Some(receipt.digest()),
            Self::Provisional { .. } | Self::Staged(_) | Self::Lanes(_) | Self::Subscription(_) | Self::Credit(_) => {
                None
            }
        }
    }

    /// The lane that was created or closed.
    pub const fn lane_id(&self) -> Option<Bytes32> {
        match self {
            Self::Lane { lane, .. } => Some(lane.lane_id),
            _ => None,
        }
    }
}

/// What results are checked against: our chain and the provider keys of the stream.
#[derive(Debug)]
pub struct ResponseVerifier<'a, K> {
    /// The chain.
    pub context: &'a SigningContext,
    /// Provider keys by view.
    pub keys: &'a K,
}

const fn require(holds: bool) -> Result<(), VerifyError> {
    if holds {
        Ok(())
    } else {
        Err(VerifyError::ResultBinding)
    }
}

impl<K: KeySource> ResponseVerifier<'_, K> {
    /// Checks that `message` is the answer to `request`.
    ///
    /// # Errors
    /// In this order: [`ProtocolViolation::UnexpectedFrame`], [`ProtocolViolation::RequestIdMismatch`],
    /// [`ProtocolViolation::ResponseMethod`], [`ProtocolViolation::WatermarkAnchor`], [`Authority::authenticate`] of a
    /// receipt, [`VerifyError::DerivedId`], [`VerifyError::ResultBinding`].
    pub fn verify(&self, request: &AuthenticatedRequest, message: ServerMessage) -> Result<AnsweredResult, Refusal> {
        let ServerMessage::Response(response) = message else {
            return Err(ProtocolViolation::UnexpectedFrame.into());
        };
        if response.request_id != request.request_id {
            return Err(ProtocolViolation::RequestIdMismatch.into());
        }
        self.verify_result(&request.body, response.body)
    }

    /// Checks that `result` is one of `request`, for a caller that has matched them by their id already.
    ///
    /// # Errors
    /// Those of [`Self::verify`] after the id.
    pub fn verify_result(&self, request: &RequestBody, result: ResponseBody) -> Result<AnsweredResult, Refusal> {
        use {RequestBody as Asked, ResponseBody as Told};
        let answered = match (request, result) {
            (Asked::Append(asked), Told::Append(told)) => return self.append(asked, told),
            (Asked::BeginKeyBatch(asked), Told::BeginKeyBatch(told)) => {
                require(told.total_chunks == asked.total_chunks)?;
                staged(&asked.key_stream_id, &asked.batch.digest(), told)
            }
            (Asked::PutKeyBatchChunk(asked), Told::PutKeyBatchChunk(told)) => {
                staged(&asked.key_stream_id, &asked.batch_digest, told)
            }
            (Asked::CommitKeyBatch(asked), Told::CommitKeyBatch(told)) => {
                let receipt = self.authority(&asked.key_stream_id).authenticate(told)?;
                let derives = preimage::key_stream_id(&receipt.main_stream_id) == receipt.key_stream_id;
                require(derives && receipt.batch_digest == asked.batch_digest)?;
                Ok(AnsweredResult::Committed(receipt))
            }
            (Asked::CreateLane(asked), Told::CreateLane(told)) => self.create_lane(asked, told),
            (Asked::CloseLane(asked), Told::CloseLane(told)) => {
                let receipt = self.lane_receipt(&asked.stream_id, told.receipt)?;
                require(told.lane.lane_id == asked.lane_id && is_lane_event(&receipt))?;
                Ok(AnsweredResult::Lane { lane: told.lane, receipt })
            }
            (Asked::ListLanes(asked), Told::ListLanes(told)) => list_lanes(asked, told),
            (Asked::CreateGroup(asked), Told::CreateGroup(told)) => {
                self.group(&asked.stream_id, told, |update| update.config.as_ref() == Some(&asked.config))
            }
            (Asked::UpdateGroup(asked), Told::UpdateGroup(told)) => self.group(&asked.stream_id, told, |update| {
                // Full replacement of what can change; `start` is the group's own and judged along its chain.
                update.config.as_ref().is_some_and(|config| {
                    (config.lane_id, config.group_id) == (asked.lane_id, asked.group_id)
                        && mutable_part(config) == asked.config
                })
            }),
            (Asked::DeleteGroup(asked), Told::DeleteGroup(told)) => self.group(&asked.stream_id, told, |update| {
                (update.receipt.lane_id, update.receipt.group_id) == (asked.lane_id, asked.group_id)
            }),
            (Asked::OpenSubscription(asked), Told::OpenSubscription(told)) => {
                subscription(&asked.stream_id, &asked.subscription_id, told)
            }
            (Asked::CloseSubscription(asked), Told::CloseSubscription(told)) => {
                subscription(&asked.stream_id, &asked.subscription_id, told)
            }
            (Asked::Credit(asked), Told::Credit(told)) => {
                require(told.subscription_id == asked.credit.subscription_id)?;
                Ok(AnsweredResult::Credit(told))
            }
            (Asked::Ack(asked), Told::Ack(told)) => self.lease(&asked.lease, None, told),
            (Asked::Nack(asked), Told::Nack(told)) => self.lease(&asked.lease, None, told),
            (Asked::Extend(asked), Told::Extend(told)) => self.lease(&asked.lease, None, told),
            (Asked::Reject(asked), Told::Reject(told)) => self.lease(&asked.lease, Some(asked.reason_hash), told),
            (Asked::Redrive(asked), Told::Redrive(told)) => self.redrive(asked, told),
            _ => return Err(ProtocolViolation::ResponseMethod.into()),
        };
        answered.map_err(Refusal::from)
    }

    fn authority<'s>(&'s self, stream_id: &'s Bytes32) -> Authority<'s, K> {
        Authority { context: self.context, stream_id, keys: self.keys }
    }

    fn append(&self, asked: &AppendRequest, told: AppendResult) -> Result<AnsweredResult, Refusal> {
        match (told.record_id, told.append_receipt, told.durable_watermark) {
            (RecordId::Fast(record_id), None, Some(watermark)) => {
                check_watermark(self.context, &asked.stream_id, &watermark)?;
                Ok(AnsweredResult::Provisional { record_id, watermark })
            }
            (RecordId::Standard(_), Some(receipt), None) => {
                let receipt = self.authority(&asked.stream_id).authenticate(receipt)?;
                require(commits(&receipt, &asked.header(), &asked.payload))?;
                Ok(AnsweredResult::Appended(receipt))
            }
            // Never of a result that was decoded.
            _ => Err(DecodeError::DeliveryShape.into()),
        }
    }

    fn create_lane(&self, asked: &CreateLaneRequest, told: LaneMutation) -> Result<AnsweredResult, VerifyError> {
        let receipt = self.lane_receipt(&asked.stream_id, told.receipt)?;
        if told.lane.lane_id != preimage::lane_id(&asked.stream_id, &asked.lane_nonce) {
            return Err(VerifyError::DerivedId);
        }
        require(told.lane.metadata_hash == asked.metadata_hash && is_lane_event(&receipt))?;
        Ok(AnsweredResult::Lane { lane: told.lane, receipt })
    }

    fn lane_receipt(
        &self,
        stream_id: &Bytes32,
        receipt: AppendReceipt,
    ) -> Result<Verified<AppendReceipt>, VerifyError> {
        self.authority(stream_id).authenticate(receipt)
    }

    fn group(
        &self,
        stream_id: &Bytes32,
        told: GroupStateUpdate,
        answers: impl FnOnce(&GroupStateUpdate) -> bool,
    ) -> Result<AnsweredResult, VerifyError> {
        let binds = answers(&told);
        let receipt = self.authority(stream_id).authenticate(told.receipt)?;
        require(binds)?;
        Ok(AnsweredResult::Group { config: told.config, receipt })
    }

    fn lease(
        &self,
        asked: &DeliveryLeaseRef,
        reason_hash: Option<Bytes32>,
        told: DeliveryStateUpdate,
    ) -> Result<AnsweredResult, VerifyError> {
        let DeliveryStateUpdate { state, receipt } = told;
        let receipt = self.authority(&asked.stream_id).authenticate(receipt)?;
        check_lease_derives(self.context, &state)?;
        let same_lease = state.lane_id == asked.lane_id
            && state.group_id == asked.group_id
            && state.record_id == asked.record_id
            && state.delivery_cycle_id == asked.delivery_cycle_id
            && state.lease_id == Some(asked.lease_id);
        require(same_lease && state.reason_hash == reason_hash)?;
        Ok(AnsweredResult::Delivery { state, receipt })
    }

    fn redrive(&self, asked: &RedriveRequest, told: DeliveryStateUpdate) -> Result<AnsweredResult, VerifyError> {
        let DeliveryStateUpdate { state, receipt } = told;
        let receipt = self.authority(&asked.stream_id).authenticate(receipt)?;
        let group = GroupKey {
            context: self.context,
            stream_id: &state.stream_id,
            lane_id: &state.lane_id,
            group_id: &state.group_id,
        };
        // The state names the terminal predecessor; its one successor derives from it and the tail before the redrive.
        let successor = preimage::redrive_delivery_cycle_id(
            &group,
            &state.record_id,
            &state.delivery_cycle_id,
            &receipt.previous_group_receipt,
        );
        if state.successor_cycle_id != Some(successor) {
            return Err(VerifyError::DerivedId);
        }
        let same_cycle = state.lane_id == asked.lane_id
            && state.group_id == asked.group_id
            && state.record_id == asked.record_id
            && state.delivery_cycle_id == asked.terminal_cycle_id;
        require(same_cycle)?;
        Ok(AnsweredResult::Delivery { state, receipt })
    }
}

fn check_watermark(context: &SigningContext, stream_id: &Bytes32, watermark: &DurableWatermark) -> Result<(), Refusal> {
    let genesis = preimage::checkpoint_genesis(context, stream_id);
    if watermark.last_durable_sequence.is_none() != (watermark.checkpoint_anchor == genesis) {
        return Err(ProtocolViolation::WatermarkAnchor.into());
    }
    Ok(require(watermark.stream_id == *stream_id)?)
}

/// True when `receipt` commits exactly this record: every field that it repeats, and both hashes.
fn commits(receipt: &AppendReceipt, header: &RecordHeader, payload: &[u8]) -> bool {
    receipt.lane_id == header.lane_id
        && receipt.origin == header.origin
        && receipt.kind == header.kind
        && receipt.client_message_id == header.client_message_id
        && receipt.visible_after_ms == header.visible_after_ms
        && receipt.expires_at_ms == header.expires_at_ms
        && receipt.encryption_generation == header.encryption_generation
        && receipt.header_hash == preimage::record_header_hash(header)
        && receipt.payload_hash == preimage::keccak256(payload)
}

/// What §10 fixes of every lane event, as far as a receipt shows it: its synthetic message id is its payload's hash.
fn is_lane_event(receipt: &AppendReceipt) -> bool {
    receipt.client_message_id == receipt.payload_hash
        && receipt.visible_after_ms == 0
        && receipt.expires_at_ms == 0
        && receipt.encryption_generation == 0
}

/// A state that names the holder (`Extend`) names the one lease that derives for it: our lease under another holder or
/// attempt is another lease.
fn check_lease_derives(context: &SigningContext, state: &DeliveryResultState) -> Result<(), VerifyError> {
    let Some(holder) = &state.holder_signing_key_id else { return Ok(()) };
    let group = GroupKey { context, stream_id: &state.stream_id, lane_id: &state.lane_id, group_id: &state.group_id };
    let lease_id = preimage::lease_id(&group, &state.record_id, &state.delivery_cycle_id, state.attempt, holder);
    if state.lease_id == Some(lease_id) {
        Ok(())
    } else {
        Err(VerifyError::DerivedId)
    }
}

fn staged(
    key_stream_id: &Bytes32,
    batch_digest: &Bytes32,
    told: KeyBatchStageResult,
) -> Result<AnsweredResult, VerifyError> {
    require(told.key_stream_id == *key_stream_id && told.batch_digest == *batch_digest)?;
    Ok(AnsweredResult::Staged(told))
}

fn list_lanes(asked: &ListLanesRequest, told: LanePage) -> Result<AnsweredResult, VerifyError> {
    // The page itself is strictly ascending, so its first lane decides.
    let after = asked.after_lane_id.is_none_or(|after| told.lanes.first().is_none_or(|lane| lane.lane_id > after));
    let within_limit = usize::try_from(asked.limit).is_ok_and(|limit| told.lanes.len() <= limit);
    let of_stream = told.lanes.iter().all(|lane| lane.stream_id == asked.stream_id);
    require(after && within_limit && of_stream)?;
    Ok(AnsweredResult::Lanes(told))
}

fn subscription(
    stream_id: &Bytes32,
    subscription_id: &Bytes32,
    told: SubscriptionState,
) -> Result<AnsweredResult, VerifyError> {
    require(told.stream_id == *stream_id && told.subscription_id == *subscription_id)?;
    Ok(AnsweredResult::Subscription(told))
}
