//! Snapshot manifests (§15).

use crate::bound;
use crate::bytes::{Bytes32, Signature};
use crate::codec::Bytes;
use crate::context::SigningContext;
use crate::error::DecodeError;
use crate::record::StandardRecordId;

union! {
    /// What a snapshot holds.
    #[derive(Copy)]
    pub enum SnapshotScope: u8 {
        Stream = 1,
        Lane(lane_id: Bytes32) = 2,
    }
}

union! {
    /// Through where a snapshot holds it.
    #[derive(Copy)]
    pub enum SnapshotCoverage: u8 {
        StandardRecordId(id: StandardRecordId) = 1,
        CheckpointReceiptDigest(digest: Bytes32) = 2,
    }
}

object! {
    /// `CbqsSnapshotManifestV1`: signed by the application, bound to one provider receipt.
    pub struct SnapshotManifest {
        context: SigningContext,
        stream_id: Bytes32,
        scope: SnapshotScope,
        snapshot_hash: Bytes32,
        cbfs_reference: Bytes<{ bound::MAX_CBFS_REFERENCE_BYTES }>,
        covered_through: SnapshotCoverage,
        encryption_generation: u64,
        provider_anchor: Bytes32,
        application_signature: Signature,
    }
    check |manifest: &SnapshotManifest| {
        if manifest.provider_anchor.is_zero() { Err(DecodeError::ZeroDigest) } else { Ok(()) }
    };
}
