//! Evidence by which a position begins anew: a signed floor with a hole before it, or a snapshot that stands for what was.
//!
//! Neither moves a position backwards (`SNP-19`): what lies at or behind what is durable leads nowhere.

use alloc::vec::Vec;

use remuda_verify::retention::JustifiedRefusal;
use remuda_verify::snapshot::SnapshotResume;
use remuda_verify::snapshot_generation::VerifiedGeneration;
use remuda_verify::standard::{NewLanes, StandardState};
use remuda_wire::audit::HeldObject;
use remuda_wire::codec::List;
use remuda_wire::record::{RecordId, StandardRecordId};
use remuda_wire::scope::LaneScope;
use remuda_wire::verdict::{AdmissionRefused, Contradiction, Refusal, VerifyError};
use remuda_wire::{bound, ProviderEpoch};

use crate::boundary::{AdoptedLineage, Anchor, Boundary, CheckpointEnd, Place, StreamPoint};
use crate::evidence::{fast_record, receipt_chain_place, Evidence, FastEnd};
use crate::item::{ItemAssurance, StoredGap, StoredItem, StoredItemBody, StoredSnapshot};

/// A signed floor that the application goes on from: what lay behind it is a hole, and stays one (`ANC-13`).
#[derive(Debug)]
pub struct AcceptedGap {
    refusal: JustifiedRefusal,
    scope: LaneScope,
}

impl AcceptedGap {
    /// Goes on from the floor that justified the refusal of a subscription to `scope`.
    pub const fn new(refusal: JustifiedRefusal, scope: LaneScope) -> Self {
        Self { refusal, scope }
    }

    /// The first record behind the floor.
    fn first(&self) -> Option<RecordId> {
        match &**self.refusal.anchor() {
            HeldObject::FastRetentionAnchor(anchor) => {
                Some(fast_record(anchor.broker_epoch, anchor.first_retained_sequence))
            }
            HeldObject::StandardRetentionAnchor(anchor) => {
                let sequence = anchor.first_retained_sequence;
                Some(RecordId::Standard(StandardRecordId { provider_epoch: ProviderEpoch, sequence }))
            }
            _ => None,
        }
    }
}

impl Evidence for AcceptedGap {
    fn place(&self, boundary: &Boundary) -> Result<Option<Place>, Refusal> {
        match &**self.refusal.anchor() {
            HeldObject::FastRetentionAnchor(anchor) => {
                let digest = anchor.previous_checkpoint;
                let broker_epoch = anchor.broker_epoch;
                let point = StreamPoint { broker_epoch, next_sequence: anchor.first_retained_sequence };
                if boundary.point().is_some_and(|durable| point <= durable) {
                    return Ok(None);
                }
                let place = match anchor.first_retained_sequence.checked_sub(1) {
                    Some(last_sequence) => {
                        let checkpoint = CheckpointEnd { broker_epoch, last_sequence, digest };
                        Place::Fast { checkpoint: Some(checkpoint), adopted: None }
                    }
                    // The whole lineage is there, but no cursor names its beginning.
                    None => {
                        let adopted =
                            AdoptedLineage { broker_epoch, transition: digest, last_durable_checkpoint: digest };
                        Place::Fast { checkpoint: None, adopted: Some(adopted) }
                    }
                };
                Ok(Some(place))
            }
            HeldObject::StandardRetentionAnchor(_) => {
                let Some(anchor) = self.refusal.anchor().clone().into_standard_anchor() else { return Ok(None) };
                let state = StandardState::from_anchor(&anchor, &self.scope);
                let Some(last_sequence) = state.last_sequence else { return Ok(None) };
                if boundary.receipt_chain_end().is_some_and(|end| last_sequence <= end.last_sequence) {
                    return Ok(None);
                }
                receipt_chain_place(&state, last_sequence, false).map(Some)
            }
            // No other anchor is of a position.
            _ => Ok(None),
        }
    }

    fn anchor(&self, _: &Boundary) -> Anchor {
        Anchor::Retention
    }

    fn into_items(self, boundary: &Boundary) -> Vec<StoredItem> {
        let anchor = Some(**self.refusal.anchor());
        let gap = self.first().map(|before| StoredGap { after: boundary.last_record(), before, anchor });
        gap.map(StoredItem::gap).into_iter().collect()
    }
}

impl Evidence for VerifiedGeneration {
    fn place(&self, boundary: &Boundary) -> Result<Option<Place>, Refusal> {
        if self.manifests().len() > bound::MAX_PROOF_LANES_PER_SUBSCRIPTION {
            return Err(AdmissionRefused::BatchTooLarge.into());
        }
        match (self.resume(), &**self.anchor()) {
            (SnapshotResume::Fast(_), HeldObject::CheckpointReceipt(receipt)) => {
                let digest = self.anchor().digest();
                let checkpoint =
                    CheckpointEnd { broker_epoch: receipt.broker_epoch, last_sequence: receipt.last_sequence, digest };
                // What it stands for need not continue what is durable: that is what it is for.
                let fork = Contradiction::CheckpointFork;
                let end = FastEnd { point: checkpoint.into(), digest, follows: true, fork };
                Ok(end.leads_on(boundary)?.then_some(Place::Fast { checkpoint: Some(checkpoint), adopted: None }))
            }
            (SnapshotResume::Standard { last_sequence, global_tail, lane_id }, _) => {
                if boundary.receipt_chain_end().is_some_and(|end| *last_sequence <= end.last_sequence) {
                    return Ok(None);
                }
                let state = StandardState {
                    // A scope of lanes follows no global chain.
                    global_tail: matches!(self.scope(), LaneScope::Any).then_some(*global_tail),
                    last_sequence: Some(*last_sequence),
                    lane_tails: [(*lane_id, *global_tail)].into_iter().collect(),
                    new_lanes: NewLanes::Unknown,
                };
                receipt_chain_place(&state, *last_sequence, false).map(Some)
            }
            _ => Err(VerifyError::SnapshotCoverage.into()),
        }
    }

    fn anchor(&self, _: &Boundary) -> Anchor {
        Anchor::Snapshot
    }

    fn into_items(self, _: &Boundary) -> Vec<StoredItem> {
        let receipt = **Self::anchor(&self);
        // At most one for each lane of a scope.
        let Ok(manifests) = List::new(self.manifests().to_vec()) else { return Vec::new() };
        let body = StoredItemBody::Snapshot(StoredSnapshot { receipt, manifests });
        alloc::vec![StoredItem { assurance: ItemAssurance::Snapshot, body }]
    }
}
