//! What can move a position: verified evidence, and nothing else.

use alloc::vec::Vec;

use remuda_verify::fast::{AdoptedTransition, VerifiedBatch};
use remuda_verify::group::GroupSegment;
use remuda_verify::standard::{NewLanes, ReceiptChainSegment, StandardState};
use remuda_wire::codec::List;
use remuda_wire::record::{FastRecordId, RecordId};
use remuda_wire::verdict::{AdmissionRefused, Contradiction, Refusal, VerifyError};
use remuda_wire::{Bytes32, ProviderEpoch};

use crate::boundary::{AdoptedLineage, Anchor, Boundary, CheckpointEnd, LaneTail, Place, ReceiptChainEnd, StreamPoint};
use crate::delivered::DeliveredRecord;
use crate::item::{ItemAssurance, StoredGap, StoredItem, StoredItemBody, StoredTransition};

mod sealed {
    use super::DeliveredRecord;

    pub trait Sealed {}
    impl Sealed for remuda_verify::fast::VerifiedBatch<DeliveredRecord> {}
    impl Sealed for remuda_verify::fast::AdoptedTransition {}
    impl Sealed for remuda_verify::group::GroupSegment {}
    impl Sealed for remuda_verify::standard::ReceiptChainSegment<DeliveredRecord> {}
    impl Sealed for crate::beginning::AcceptedGap {}
    impl Sealed for remuda_verify::snapshot_generation::VerifiedGeneration {}
}

/// Verified evidence: where it leads from a boundary, and what it holds. Sealed.
pub trait Evidence: sealed::Sealed {
    /// The place that it leads to from `boundary`; `None` when all of it is durable already, since a provider serves again
    /// what lies between a cursor and a boundary, or when it has nothing to hold on to yet.
    ///
    /// # Errors
    /// What it means that another object is durable where this one ends; or that it does not begin at F.
    fn place(&self, boundary: &Boundary) -> Result<Option<Place>, Refusal>;

    /// What the position rests on once it is there: what it rested on before, or, where it begins with it, what that rests on.
    fn anchor(&self, boundary: &Boundary) -> Anchor {
        boundary.anchor().unwrap_or(Anchor::Provider)
    }

    /// Its items from `boundary` on, in order.
    fn into_items(self, boundary: &Boundary) -> Vec<StoredItem>;
}

/// A record of a fast stream by its place.
pub(crate) const fn fast_record(broker_epoch: u64, sequence: u64) -> RecordId {
    RecordId::Fast(FastRecordId { provider_epoch: ProviderEpoch, broker_epoch, sequence })
}

/// How evidence of a fast stream ends.
pub(crate) struct FastEnd {
    pub(crate) point: StreamPoint,
    /// The digest that it ends with.
    pub(crate) digest: Bytes32,
    /// Whether it continues what is durable.
    pub(crate) follows: bool,
    /// What another object that ends here means.
    pub(crate) fork: Contradiction,
}

impl FastEnd {
    /// Whether it leads on from `boundary`.
    pub(crate) fn leads_on(&self, boundary: &Boundary) -> Result<bool, Refusal> {
        let Some(point) = boundary.point() else { return Ok(true) };
        if self.point == point && boundary.tail() != Some(self.digest) {
            return Err(self.fork.into());
        }
        if self.point <= point {
            return Ok(false);
        }
        if self.follows {
            Ok(true)
        } else {
            Err(VerifyError::CheckpointPredecessor.into())
        }
    }
}

impl Evidence for VerifiedBatch<DeliveredRecord> {
    fn place(&self, boundary: &Boundary) -> Result<Option<Place>, Refusal> {
        let (receipt, digest) = (self.receipt(), self.receipt().digest());
        let checkpoint =
            CheckpointEnd { broker_epoch: receipt.broker_epoch, last_sequence: receipt.last_sequence, digest };
        let end = FastEnd {
            point: checkpoint.into(),
            digest,
            follows: boundary.is_unanchored() || boundary.tail() == Some(receipt.previous_checkpoint),
            fork: Contradiction::CheckpointFork,
        };
        Ok(end.leads_on(boundary)?.then_some(Place::Fast { checkpoint: Some(checkpoint), adopted: None }))
    }

    fn into_items(self, boundary: &Boundary) -> Vec<StoredItem> {
        let assurance = ItemAssurance::from(self.assurance());
        let checkpoint = self.receipt().digest();
        let is_behind_hole = boundary.is_unanchored() && boundary.tail() != Some(self.receipt().previous_checkpoint);
        let hole = is_behind_hole.then(|| {
            let first = fast_record(self.receipt().broker_epoch, self.receipt().first_sequence);
            StoredItem::gap(StoredGap { after: boundary.last_record(), before: first, anchor: None })
        });
        let item = |record: DeliveredRecord| {
            let body = StoredItemBody::Record(record.into_fast(checkpoint)?);
            Some(StoredItem { assurance, body })
        };
        hole.into_iter().chain(self.into_records().into_iter().filter_map(item)).collect()
    }
}

impl Evidence for AdoptedTransition {
    /// Before the first checkpoint a transition has nothing to end, and no cursor names the place after it: a position that
    /// began there could not be resumed without a gap.
    fn place(&self, boundary: &Boundary) -> Result<Option<Place>, Refusal> {
        let (transition, digest) = (self.transition(), self.transition().digest());
        let Some(checkpoint) = boundary.checkpoint() else { return Ok(None) };
        let adopted = AdoptedLineage {
            broker_epoch: transition.replacement_broker_epoch,
            transition: digest,
            last_durable_checkpoint: transition.last_durable_checkpoint,
        };
        let previous = transition.previous_lineage.map(|lineage| lineage.broker_epoch);
        let end = FastEnd {
            point: adopted.into(),
            digest,
            // Two restarts with no checkpoint between name the same checkpoint; the lineage tells them apart.
            follows: previous == boundary.broker_epoch()
                && boundary.last_durable_checkpoint() == Some(transition.last_durable_checkpoint),
            fork: Contradiction::TransitionFork,
        };
        let place = Place::Fast { checkpoint: Some(checkpoint), adopted: Some(adopted) };
        Ok(end.leads_on(boundary)?.then_some(place))
    }

    fn into_items(self, _: &Boundary) -> Vec<StoredItem> {
        let digest = self.transition().digest();
        let transition = self.transition().clone().into_inner();
        let body = StoredItemBody::Transition(StoredTransition { digest, transition });
        alloc::vec![StoredItem { assurance: ItemAssurance::Transition, body }]
    }
}

/// The place after the record of `last_sequence`, where the chains stand as in `state`.
pub(crate) fn receipt_chain_place(
    state: &StandardState,
    last_sequence: u64,
    from_genesis: bool,
) -> Result<Place, Refusal> {
    let tail = |(lane_id, receipt): (&Bytes32, &Bytes32)| LaneTail { lane_id: *lane_id, receipt: *receipt };
    let lane_tails = state.lane_tails.iter().map(tail).collect();
    Ok(Place::Standard(ReceiptChainEnd {
        last_sequence,
        global_tail: state.global_tail,
        lane_tails: List::new(lane_tails).map_err(|_| AdmissionRefused::BatchTooLarge)?,
        from_genesis,
    }))
}

impl Evidence for ReceiptChainSegment<DeliveredRecord> {
    fn place(&self, boundary: &Boundary) -> Result<Option<Place>, Refusal> {
        let Some(last_sequence) = self.end().last_sequence else { return Ok(None) };
        if let Some(end) = boundary.receipt_chain_end() {
            if last_sequence <= end.last_sequence {
                return Ok(None);
            }
            if *self.start() != boundary.receipt_chain_state() {
                return Err(VerifyError::GlobalChain.into());
            }
        }
        let from_genesis = match boundary.receipt_chain_end() {
            Some(end) => end.from_genesis,
            None => self.anchor(boundary) == Anchor::Genesis,
        };
        receipt_chain_place(self.end(), last_sequence, from_genesis).map(Some)
    }

    fn anchor(&self, boundary: &Boundary) -> Anchor {
        if let Some(anchor) = boundary.anchor() {
            return anchor;
        }
        let first = self.records().first().and_then(|(_, record)| record.standard_id());
        let knows_all = self.start().new_lanes == NewLanes::Genesis || first.is_some_and(|id| id.sequence == 0);
        if knows_all {
            Anchor::Genesis
        } else {
            Anchor::Provider
        }
    }

    fn into_items(self, _: &Boundary) -> Vec<StoredItem> {
        let item = |(receipt, record): (Bytes32, DeliveredRecord)| {
            let body = StoredItemBody::StandardRecord(record.into_standard(receipt)?);
            Some(StoredItem { assurance: ItemAssurance::Receipt, body })
        };
        self.into_records().into_iter().filter_map(item).collect()
    }
}

impl Evidence for GroupSegment {
    fn place(&self, boundary: &Boundary) -> Result<Option<Place>, Refusal> {
        if boundary.group_receipt() == Some(self.receipt()) {
            return Ok(None);
        }
        if boundary.group_receipt() != self.after() {
            return Err(VerifyError::GroupChain.into());
        }
        Ok(Some(Place::Group(self.receipt())))
    }

    /// A group is followed from its creation, or behind a receipt of ours that was.
    fn anchor(&self, _: &Boundary) -> Anchor {
        Anchor::Genesis
    }

    fn into_items(self, _: &Boundary) -> Vec<StoredItem> {
        Vec::new()
    }
}
