//! What of a cohort is durable: its updates in order, each with the broadcast that proves it. Our own format; whoever reads
//! it back reads what was verified before, by us.

use alloc::vec::Vec;

use remuda_wire::codec::Canonical;
use remuda_wire::Bytes;

use crate::broadcast::{Cohort, Gap};
use crate::message::Broadcast;
use crate::refusal::BpsRefusal;
use crate::soc::SingleOwnerChunk;
use crate::subscriber::Delivery;
use row::{Row, StoredGap};

mod row {
    use remuda_wire::{object, Bytes};

    object! {
        /// Both ends of a gap.
        pub struct StoredGap {
            first: u64,
            last: u64,
        }
    }

    object! {
        /// A row.
        pub struct Row {
            gap: Option<StoredGap>,
            broadcast: Bytes<{ crate::message::MAX_BROADCAST_BYTES }>,
        }
    }
}

/// One stored update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredUpdate {
    /// What is missing before it.
    pub gap: Option<Gap>,
    /// The broadcast: whoever has it can verify it.
    pub broadcast: Broadcast,
}

impl StoredUpdate {
    /// What the author said.
    ///
    /// # Errors
    /// [`BpsRefusal::SocLength`] for what was never written here.
    pub fn payload(&self) -> Result<&[u8], BpsRefusal> {
        Ok(SingleOwnerChunk::new(&self.broadcast.soc)?.payload())
    }

    /// As it is stored.
    ///
    /// # Errors
    /// [`BpsRefusal::SocLength`] for a broadcast that was not judged.
    pub fn row(delivery: &Delivery) -> Result<Vec<u8>, BpsRefusal> {
        let gap = delivery.gap.map(|Gap { first, last }| StoredGap { first, last });
        let broadcast = Bytes::new(delivery.broadcast.to_bytes()).map_err(|_| BpsRefusal::SocLength)?;
        Ok(Row { gap, broadcast }.to_bytes())
    }

    /// As it was stored.
    ///
    /// # Errors
    /// [`BpsRefusal::Frame`], [`BpsRefusal::Protobuf`] for what was never written here.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BpsRefusal> {
        let Row { gap, broadcast } = Row::from_bytes(bytes).map_err(|_| BpsRefusal::Frame)?;
        let gap = gap.map(|StoredGap { first, last }| Gap { first, last });
        Ok(Self { gap, broadcast: Broadcast::from_bytes(&broadcast)? })
    }
}

/// An index as a stored cursor: of a subscriber the last delivered, of a publisher the lowest that was never used.
pub const fn index_bytes(index: u64) -> [u8; 8] {
    index.to_be_bytes()
}

/// A stored index.
///
/// # Errors
/// [`BpsRefusal::Frame`] for what was never written here.
pub fn index_from_bytes(bytes: &[u8]) -> Result<u64, BpsRefusal> {
    bytes.try_into().map(u64::from_be_bytes).map_err(|_| BpsRefusal::Frame)
}

/// Which side of a cohort a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What is received.
    Subscriber,
    /// What is sent.
    Publisher,
}

/// Names what decides which items a cohort has on one side.
pub fn source_name(side: Side, cohort: &Cohort) -> Vec<u8> {
    let side: &[u8] = match side {
        Side::Subscriber => b"bps-subscriber",
        Side::Publisher => b"bps-publisher",
    };
    [side, &cohort.topic.0, &cohort.admin.0].concat()
}
