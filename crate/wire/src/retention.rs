//! Retention anchors (§15): the signed floors that a `CursorTooOld` carries.

use crate::bytes::{Bytes32, Signature};
use crate::codec::ProviderEpoch;
use crate::context::{FinalizedView, SigningContext};
use crate::error::DecodeError;

object! {
    /// `StandardRetentionAnchorV1`: the floor of a stream, or of one lane.
    #[derive(Copy)]
    pub struct StandardRetentionAnchor {
        context: SigningContext,
        served_at: FinalizedView,
        stream_id: Bytes32,
        provider_epoch: ProviderEpoch,
        lane_id: Option<Bytes32>,
        first_retained_sequence: u64,
        previous_global_receipt: Bytes32,
        previous_lane_receipt: Option<Bytes32>,
        committed_at_ms: u64,
        signature: Signature,
    }
    check |anchor: &StandardRetentionAnchor| {
        if anchor.lane_id.is_some() == anchor.previous_lane_receipt.is_some() { Ok(()) } else { Err(DecodeError::AnchorShape) }
    };
}

object! {
    /// `GroupRetentionAnchorV1`: the latest retained receipt of a group.
    #[derive(Copy)]
    pub struct GroupRetentionAnchor {
        context: SigningContext,
        served_at: FinalizedView,
        stream_id: Bytes32,
        provider_epoch: ProviderEpoch,
        lane_id: Bytes32,
        group_id: Bytes32,
        latest_retained_receipt: Bytes32,
        group_queue_sequence: u64,
        committed_at_ms: u64,
        signature: Signature,
    }
}

object! {
    /// `FastRetentionAnchorV1`: the floor of one broker epoch.
    #[derive(Copy)]
    pub struct FastRetentionAnchor {
        context: SigningContext,
        served_at: FinalizedView,
        stream_id: Bytes32,
        provider_epoch: ProviderEpoch,
        broker_epoch: u64,
        first_retained_sequence: u64,
        previous_checkpoint: Bytes32,
        committed_at_ms: u64,
        signature: Signature,
    }
}
