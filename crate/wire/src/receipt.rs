//! Append receipts (§14.1).

use crate::bytes::{Bytes32, Signature};
use crate::context::{FinalizedView, SigningContext};
use crate::record::{RecordId, RecordKind, RecordOrigin};

object! {
    /// `AppendReceiptV1`: one record, its two predecessors, one signature.
    #[derive(Copy)]
    pub struct AppendReceipt {
        context: SigningContext,
        served_at: FinalizedView,
        stream_id: Bytes32,
        lane_id: Bytes32,
        origin: RecordOrigin,
        kind: RecordKind,
        record_id: RecordId,
        client_message_id: Bytes32,
        header_hash: Bytes32,
        payload_hash: Bytes32,
        visible_after_ms: u64,
        expires_at_ms: u64,
        encryption_generation: u64,
        previous_global_receipt: Bytes32,
        previous_lane_receipt: Bytes32,
        committed_at_ms: u64,
        signature: Signature,
    }
}
