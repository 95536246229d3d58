//! Records: ids, headers, origins and kinds (§10).

use crate::bytes::{Bytes24, Bytes32};
use crate::codec::ProviderEpoch;

tags! {
    /// `RecordOriginV1`.
    pub enum RecordOrigin: u8 { Client = 1, ProviderEvent = 2, }
}

tags! {
    /// `RecordKindV1`.
    pub enum RecordKind: u8 { Application = 1, LaneCreated = 2, LaneClosed = 3, KeyBatchHeader = 4, KeyEnvelope = 5, }
}

object! {
    /// `StandardRecordIdV1`, 16 bytes.
    #[derive(Copy, PartialOrd, Ord, Hash)]
    pub struct StandardRecordId {
        provider_epoch: ProviderEpoch,
        sequence: u64,
    }
}

object! {
    /// `FastRecordIdV1`, 24 bytes. `sequence` starts at zero in every broker epoch.
    #[derive(Copy, PartialOrd, Ord, Hash)]
    pub struct FastRecordId {
        provider_epoch: ProviderEpoch,
        broker_epoch: u64,
        sequence: u64,
    }
}

union! {
    /// `RecordIdV1`: a tag, then the id of its delivery class.
    #[derive(Copy, Hash)]
    pub enum RecordId: u8 {
        Standard(id: StandardRecordId) = 1,
        Fast(id: FastRecordId) = 2,
    }
}

impl RecordId {
    /// The sequence, whatever the class.
    pub const fn sequence(&self) -> u64 {
        match self {
            Self::Standard(id) => id.sequence,
            Self::Fast(id) => id.sequence,
        }
    }
}

object! {
    /// `RecordHeaderV1`: what the broker sees of a record.
    #[derive(Copy)]
    pub struct RecordHeader {
        stream_id: Bytes32,
        lane_id: Bytes32,
        origin: RecordOrigin,
        kind: RecordKind,
        client_message_id: Bytes32,
        created_at_ms: u64,
        visible_after_ms: u64,
        expires_at_ms: u64,
        encryption_generation: u64,
        nonce: Bytes24,
    }
}
