//! Delivered records (§13.2).

use crate::bound;
use crate::bytes::Bytes32;
use crate::codec::Bytes;
use crate::error::DecodeError;
use crate::group::{check_state_digest, DeliveryLease, DeliveryStateAction, DeliveryStateReceipt};
use crate::preimage;
use crate::receipt::AppendReceipt;
use crate::record::{FastRecordId, RecordHeader, RecordId, StandardRecordId};
use crate::response::DurableWatermark;

object! {
    /// `RecordDeliveryV1`. Its options fit its delivery class, and whatever it says twice it says the same.
    pub struct RecordDelivery {
        subscription_id: Bytes32,
        record_id: RecordId,
        header: RecordHeader,
        payload: Bytes<{ bound::MAX_INLINE_MESSAGE_BYTES }>,
        append_receipt: Option<AppendReceipt>,
        lease: Option<DeliveryLease>,
        delivery_state_receipt: Option<DeliveryStateReceipt>,
        durable_watermark: Option<DurableWatermark>,
    }
    check |delivery: &RecordDelivery| match delivery.class()? {
        DeliveryOf::Fast { id, watermark } => check_fast(&delivery.header, id, watermark),
        DeliveryOf::Standard { id, receipt, lease } => check_standard(delivery, id, receipt, lease),
    };
}

/// A delivery by its class, with exactly the parts that the class has.
#[derive(Clone, Copy, Debug)]
pub enum DeliveryOf<'a> {
    /// A record of a standard stream, leased or replayed.
    Standard {
        /// Its id.
        id: StandardRecordId,
        /// Its append receipt.
        receipt: &'a AppendReceipt,
        /// The lease and its `LeaseIssue` receipt, of a consumer group's delivery.
        lease: Option<(&'a DeliveryLease, &'a DeliveryStateReceipt)>,
    },
    /// A record of a fast stream.
    Fast {
        /// Its id.
        id: FastRecordId,
        /// What the provider says is durable.
        watermark: &'a DurableWatermark,
    },
}

impl RecordDelivery {
    /// The delivery by its class.
    ///
    /// # Errors
    /// [`DecodeError::DeliveryShape`]: never for a delivery that was decoded.
    pub fn class(&self) -> Result<DeliveryOf<'_>, DecodeError> {
        let lease = match (&self.lease, &self.delivery_state_receipt) {
            (Some(lease), Some(receipt)) => Some((lease, receipt)),
            (None, None) => None,
            _ => return Err(DecodeError::DeliveryShape),
        };
        match (&self.record_id, &self.append_receipt, &self.durable_watermark) {
            (RecordId::Standard(id), Some(receipt), None) => Ok(DeliveryOf::Standard { id: *id, receipt, lease }),
            (RecordId::Fast(id), None, Some(watermark)) if lease.is_none() => {
                Ok(DeliveryOf::Fast { id: *id, watermark })
            }
            _ => Err(DecodeError::DeliveryShape),
        }
    }
}

fn check_fast(header: &RecordHeader, id: FastRecordId, watermark: &DurableWatermark) -> Result<(), DecodeError> {
    if watermark.stream_id == header.stream_id && watermark.broker_epoch == id.broker_epoch {
        Ok(())
    } else {
        Err(DecodeError::IdentityMismatch)
    }
}

fn check_standard(
    delivery: &RecordDelivery,
    id: StandardRecordId,
    receipt: &AppendReceipt,
    lease: Option<(&DeliveryLease, &DeliveryStateReceipt)>,
) -> Result<(), DecodeError> {
    let header = &delivery.header;
    let receipt_agrees = receipt.record_id == delivery.record_id
        && receipt.stream_id == header.stream_id
        && receipt.lane_id == header.lane_id
        && receipt.origin == header.origin
        && receipt.kind == header.kind
        && receipt.client_message_id == header.client_message_id
        && receipt.visible_after_ms == header.visible_after_ms
        && receipt.expires_at_ms == header.expires_at_ms
        && receipt.encryption_generation == header.encryption_generation;
    let lease_agrees = lease.is_none_or(|(lease, state)| {
        let reference = &lease.reference;
        reference.stream_id == header.stream_id
            && reference.lane_id == header.lane_id
            && reference.record_id == id
            && state.action == DeliveryStateAction::LeaseIssue
            && state.stream_id == reference.stream_id
            && state.lane_id == reference.lane_id
            && state.group_id == reference.group_id
            && state.record_id == Some(reference.record_id)
            && state.lease_id == Some(reference.lease_id)
    });
    if !receipt_agrees || !lease_agrees {
        return Err(DecodeError::IdentityMismatch);
    }
    if preimage::record_header_hash(header) != receipt.header_hash {
        return Err(DecodeError::HeaderHash);
    }
    if preimage::keccak256(&delivery.payload) != receipt.payload_hash {
        return Err(DecodeError::PayloadHash);
    }
    let Some((lease, state_receipt)) = lease else { return Ok(()) };
    let state = lease.implied_state();
    state.check_shape()?;
    check_state_digest(state_receipt, preimage::delivery_result_state_digest(&state_receipt.context, &state))
}
