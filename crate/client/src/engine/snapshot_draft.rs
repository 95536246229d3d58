//! Composing snapshots (§15): manifests bound to the receipt at which a durable-only replica stands, for the application's
//! key to sign. The engine never sees that key, nor what the snapshots say.

use alloc::vec::Vec;

use remuda_position::PositionKey;
use remuda_wire::audit::HeldObject;
use remuda_wire::preimage::keccak256;
use remuda_wire::record::RecordId;
use remuda_wire::snapshot::{SnapshotCoverage, SnapshotManifest, SnapshotScope};
use remuda_wire::{bound, Bytes, Bytes32, Signature, Signed};

use super::Engine;
use crate::command::CommandId;
use crate::event::Event;
use crate::failure::Failure;

/// One snapshot as it is stored already.
#[derive(Clone, Debug)]
pub struct SnapshotPart<'a> {
    /// Of one lane; `None` of the whole stream.
    pub lane_id: Option<Bytes32>,
    /// The stored bytes, exactly.
    pub bytes: &'a [u8],
    /// Where they are stored.
    pub cbfs_reference: Bytes<{ bound::MAX_CBFS_REFERENCE_BYTES }>,
    /// The data-key generation that they are encrypted under; 0 in the clear.
    pub encryption_generation: u64,
}

/// Manifests that are not signed yet: each is published with the receipt, once the application's key has signed its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotDraft {
    /// The receipt that all of them are bound to.
    pub receipt: HeldObject,
    /// In the order of the parts. Their digests are [`remuda_wire::Signed::digest`].
    pub manifests: Vec<SnapshotManifest>,
}

impl Engine {
    /// Composes manifests; told by [`Event::Drafted`].
    pub fn draft(&mut self, id: CommandId, key: PositionKey, last_item: u64, parts: &[SnapshotPart<'_>]) {
        let outcome = self.draft_snapshots(key, last_item, parts);
        self.tell(Event::Drafted { id, outcome });
    }

    /// Composes manifests of a replica that holds exactly the items through `last_item` of this position, all of which are
    /// durable: nothing provisional can be in it.
    ///
    /// # Errors
    /// `client/not-subscribed`; `client/snapshot-place` when no receipt of late ends there, since the item is in the middle
    /// of a batch, too far back, or was verified before this engine started; `client/snapshot-scope`.
    pub fn draft_snapshots(
        &self,
        key: PositionKey,
        last_item: u64,
        parts: &[SnapshotPart<'_>],
    ) -> Result<SnapshotDraft, Failure> {
        let subscription = self.subscriptions.get(&key).ok_or_else(Failure::not_subscribed)?;
        let receipts = self.receipts.get(&key).ok_or_else(Failure::snapshot_place)?;
        let receipt = *receipts.at(last_item).ok_or_else(Failure::snapshot_place)?;
        let (digest, covered_through) = match &receipt {
            HeldObject::CheckpointReceipt(receipt) => {
                (receipt.digest(), SnapshotCoverage::CheckpointReceiptDigest(receipt.digest()))
            }
            HeldObject::AppendReceipt(receipt) => match receipt.record_id {
                RecordId::Standard(id) => (receipt.digest(), SnapshotCoverage::StandardRecordId(id)),
                RecordId::Fast(_) => return Err(Failure::snapshot_place()),
            },
            _ => return Err(Failure::snapshot_place()),
        };
        let scope = subscription.spec.scope();
        let holds = |part: &SnapshotPart<'_>| match (part.lane_id, scope.lanes(), &receipt) {
            // A lane's snapshot of a standard stream ends with a record of that lane.
            (Some(lane), lanes, HeldObject::AppendReceipt(receipt)) => {
                receipt.lane_id == lane && lanes.is_none_or(|lanes| lanes.contains(&lane))
            }
            (Some(lane), lanes, _) => lanes.is_none_or(|lanes| lanes.contains(&lane)),
            (None, lanes, _) => lanes.is_none(),
        };
        if !parts.iter().all(holds) {
            return Err(Failure::snapshot_scope());
        }
        let manifest = |part: &SnapshotPart<'_>| SnapshotManifest {
            context: self.config.context.clone(),
            stream_id: self.config.stream_id,
            scope: part.lane_id.map_or(SnapshotScope::Stream, SnapshotScope::Lane),
            snapshot_hash: keccak256(part.bytes),
            cbfs_reference: part.cbfs_reference.clone(),
            covered_through,
            encryption_generation: part.encryption_generation,
            provider_anchor: digest,
            application_signature: Signature::ZERO,
        };
        Ok(SnapshotDraft { receipt, manifests: parts.iter().map(manifest).collect() })
    }
}
