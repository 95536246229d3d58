//! What an engine keeps of a record until its evidence is whole.

use alloc::rc::Rc;

use remuda_wire::delivery::RecordDelivery;
use remuda_wire::record::{RecordId, StandardRecordId};
use remuda_wire::Bytes32;

use crate::item::{StoredRecord, StoredStandardRecord};

/// The delivery itself, shared and never copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredRecord(Rc<RecordDelivery>);

impl DeliveredRecord {
    /// Keeps a delivery.
    pub const fn new(delivery: Rc<RecordDelivery>) -> Self {
        Self(delivery)
    }

    /// The record as it came.
    pub fn delivery(&self) -> &RecordDelivery {
        &self.0
    }

    /// Its id in a standard stream; `None` for a fast one.
    pub fn standard_id(&self) -> Option<StandardRecordId> {
        match self.0.record_id {
            RecordId::Standard(id) => Some(id),
            RecordId::Fast(_) => None,
        }
    }

    /// A record of a fast stream as it is stored; `None` for one of a standard stream, which no batch holds.
    pub(crate) fn into_fast(self, checkpoint: Bytes32) -> Option<StoredRecord> {
        // Whoever verified it has let go of it by now, so this moves the payload; else it copies, and is as right.
        let delivery = Rc::unwrap_or_clone(self.0);
        let RecordId::Fast(record_id) = delivery.record_id else { return None };
        Some(StoredRecord { record_id, checkpoint, header: delivery.header, payload: delivery.payload })
    }

    /// A record of a standard stream as it is stored; `None` for one of a fast stream, which no receipt chain holds.
    pub(crate) fn into_standard(self, receipt: Bytes32) -> Option<StoredStandardRecord> {
        let delivery = Rc::unwrap_or_clone(self.0);
        let RecordId::Standard(record_id) = delivery.record_id else { return None };
        Some(StoredStandardRecord { record_id, receipt, header: delivery.header, payload: delivery.payload })
    }
}
