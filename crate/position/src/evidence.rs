//! What can move a position: verified evidence, and nothing else.

use alloc::rc::Rc;
use alloc::vec::Vec;

use remuda_verify::fast::{AdoptedTransition, VerifiedBatch};
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::record::{FastRecordId, RecordId};
use remuda_wire::verdict::Contradiction;
use remuda_wire::Bytes32;

use crate::boundary::{AdoptedLineage, Boundary, CheckpointEnd};
use crate::item::{ItemAssurance, StoredItem, StoredItemBody, StoredRecord, StoredTransition};

/// What an engine keeps of a record until its batch closes: the delivery itself, shared and never copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredRecord {
    id: FastRecordId,
    delivery: Rc<RecordDelivery>,
}

impl DeliveredRecord {
    /// Keeps a fast delivery; `None` for one of another class.
    pub fn new(delivery: Rc<RecordDelivery>) -> Option<Self> {
        match delivery.record_id {
            RecordId::Fast(id) => Some(Self { id, delivery }),
            RecordId::Standard(_) => None,
        }
    }

    fn into_stored(self, checkpoint: Bytes32) -> StoredRecord {
        // Whoever verified it has let go of it by now, so this moves the payload; else it copies, and is as right.
        let delivery = Rc::unwrap_or_clone(self.delivery);
        StoredRecord { record_id: self.id, checkpoint, header: delivery.header, payload: delivery.payload }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for remuda_verify::fast::VerifiedBatch<super::DeliveredRecord> {}
    impl Sealed for remuda_verify::fast::AdoptedTransition {}
}

/// Verified evidence: where it begins, where it ends, what it holds. Sealed.
pub trait Evidence: sealed::Sealed {
    /// True when it continues what is durable at `boundary`.
    fn follows(&self, boundary: &Boundary) -> bool;

    /// What it means that another object ends where this one does.
    fn fork(&self) -> Contradiction;

    /// The digest that it ends with.
    fn ends_with(&self) -> Bytes32;

    /// The checkpoint that the position names after it; `None` leaves the one it has.
    fn checkpoint(&self) -> Option<CheckpointEnd>;

    /// The lineage that it adopts.
    fn adopted(&self) -> Option<AdoptedLineage>;

    /// Its items, in order.
    fn into_items(self) -> Vec<StoredItem>;
}

impl Evidence for VerifiedBatch<DeliveredRecord> {
    fn follows(&self, boundary: &Boundary) -> bool {
        boundary.tail() == Some(self.receipt().previous_checkpoint)
    }

    fn fork(&self) -> Contradiction {
        Contradiction::CheckpointFork
    }

    fn ends_with(&self) -> Bytes32 {
        self.receipt().digest()
    }

    fn checkpoint(&self) -> Option<CheckpointEnd> {
        let receipt = self.receipt();
        Some(CheckpointEnd {
            broker_epoch: receipt.broker_epoch,
            last_sequence: receipt.last_sequence,
            digest: receipt.digest(),
        })
    }

    fn adopted(&self) -> Option<AdoptedLineage> {
        None
    }

    fn into_items(self) -> Vec<StoredItem> {
        let assurance = ItemAssurance::from(self.assurance());
        let checkpoint = self.receipt().digest();
        self.into_records()
            .into_iter()
            .map(|record| StoredItem { assurance, body: StoredItemBody::Record(record.into_stored(checkpoint)) })
            .collect()
    }
}

impl Evidence for AdoptedTransition {
    fn follows(&self, boundary: &Boundary) -> bool {
        let previous = self.transition().previous_lineage.map(|lineage| lineage.broker_epoch);
        // Two restarts with no checkpoint between name the same checkpoint; the lineage tells them apart.
        previous == boundary.broker_epoch()
            && boundary.last_durable_checkpoint() == Some(self.transition().last_durable_checkpoint)
    }

    fn fork(&self) -> Contradiction {
        Contradiction::TransitionFork
    }

    fn ends_with(&self) -> Bytes32 {
        self.transition().digest()
    }

    fn checkpoint(&self) -> Option<CheckpointEnd> {
        None
    }

    fn adopted(&self) -> Option<AdoptedLineage> {
        let transition = self.transition();
        Some(AdoptedLineage {
            broker_epoch: transition.replacement_broker_epoch,
            transition: transition.digest(),
            last_durable_checkpoint: transition.last_durable_checkpoint,
        })
    }

    fn into_items(self) -> Vec<StoredItem> {
        let digest = self.transition().digest();
        let transition = self.transition().clone().into_inner();
        let body = StoredItemBody::Transition(StoredTransition { digest, transition });
        alloc::vec![StoredItem { assurance: ItemAssurance::Transition, body }]
    }
}
