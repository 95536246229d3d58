//! Equivocation: two updates of one author for one index that say different things. Portable: the pair and the cohort are
//! all that a third party needs.
//!
//! The author may sign one update again under the next challenge, so the same words twice contradict nothing.

use alloc::vec::Vec;

use remuda_wire::codec::Canonical;
use remuda_wire::Bytes;

use crate::broadcast::{judge, Cohort, Judged};
use crate::message::Broadcast;
use crate::refusal::BpsRefusal;
use pair::Pair;

mod pair {
    use remuda_wire::{object, Bytes};

    object! {
        /// Two broadcasts, as they were sent.
        pub struct Pair {
            a: Bytes<{ crate::message::MAX_BROADCAST_BYTES }>,
            b: Bytes<{ crate::message::MAX_BROADCAST_BYTES }>,
        }
    }
}

/// A proven contradiction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivocation {
    first: Broadcast,
    second: Broadcast,
}

impl Equivocation {
    /// Judges a pair: both valid updates of this cohort, for one index, whose payloads differ. The order of the two means
    /// nothing. `None`: both are valid, and do not contradict each other.
    ///
    /// # Errors
    /// Those of [`judge`] for the first that fails; [`BpsRefusal::UnknownKind`] for what is no update.
    pub fn judge(cohort: &Cohort, first: Broadcast, second: Broadcast) -> Result<Option<Self>, BpsRefusal> {
        let payloads = (update(cohort, &first)?, update(cohort, &second)?);
        let contradicts = first.index == second.index && payloads.0 != payloads.1;
        Ok(contradicts.then_some(Self { first, second }))
    }

    /// The pair as bytes: canonical.
    ///
    /// # Errors
    /// Never: both were judged, which bounds them.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BpsRefusal> {
        let bytes = |broadcast: &Broadcast| Bytes::new(broadcast.to_bytes()).map_err(|_| BpsRefusal::SocLength);
        Ok(Pair { a: bytes(&self.first)?, b: bytes(&self.second)? }.to_bytes())
    }

    /// Reads a pair that somebody else claims to contradict itself: to be judged.
    ///
    /// # Errors
    /// [`BpsRefusal::Frame`], [`BpsRefusal::Protobuf`].
    pub fn read_pair(bytes: &[u8]) -> Result<(Broadcast, Broadcast), BpsRefusal> {
        let Pair { a, b } = Pair::from_bytes(bytes).map_err(|_| BpsRefusal::Frame)?;
        Ok((Broadcast::from_bytes(&a)?, Broadcast::from_bytes(&b)?))
    }
}

/// The payload of a valid update.
fn update(cohort: &Cohort, broadcast: &Broadcast) -> Result<Vec<u8>, BpsRefusal> {
    match judge(cohort, broadcast, None)? {
        Judged::Delivered { payload, .. } => Ok(payload),
        Judged::Dropped(refusal) => Err(refusal),
        Judged::Claim => Err(BpsRefusal::UnknownKind),
    }
}
