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
use file::EvidenceFile;

mod file {
    use remuda_wire::{object, Address, Bytes, Bytes32};

    use crate::message::MAX_BROADCAST_BYTES;

    object! {
        /// A file behind its magic.
        pub struct EvidenceFile {
            topic: Bytes32,
            admin: Address,
            a: Bytes<{ MAX_BROADCAST_BYTES }>,
            b: Bytes<{ MAX_BROADCAST_BYTES }>,
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

    /// The pair as a file of its own: [`MAGIC`], then canonically topic, admin and the two broadcasts.
    ///
    /// # Errors
    /// Never: both were judged, which bounds them.
    pub fn to_file(&self, cohort: &Cohort) -> Result<Vec<u8>, BpsRefusal> {
        let bytes = |broadcast: &Broadcast| Bytes::new(broadcast.to_bytes()).map_err(|_| BpsRefusal::SocLength);
        let (a, b) = (bytes(&self.first)?, bytes(&self.second)?);
        let file = EvidenceFile { topic: cohort.topic, admin: cohort.admin, a, b };
        Ok([MAGIC.as_slice(), &file.to_bytes()].concat())
    }
}

/// What a file of evidence of this family begins with. It is none of the audit files of `RESOLUTIONS.md` §8, whose kinds of
/// items are fixed and whose readers refuse every other magic.
pub const MAGIC: &[u8; 8] = b"BPSLTEV1";

/// What somebody else claims to be a contradiction: to be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The cohort that it is about.
    pub cohort: Cohort,
    /// The two broadcasts.
    pub pair: (Broadcast, Broadcast),
}

impl Claim {
    /// Reads a file of evidence.
    ///
    /// # Errors
    /// [`BpsRefusal::Frame`], also for another magic, [`BpsRefusal::Protobuf`].
    pub fn from_file(bytes: &[u8]) -> Result<Self, BpsRefusal> {
        let body = bytes.strip_prefix(MAGIC).ok_or(BpsRefusal::Frame)?;
        let EvidenceFile { topic, admin, a, b } = EvidenceFile::from_bytes(body).map_err(|_| BpsRefusal::Frame)?;
        let pair = (Broadcast::from_bytes(&a)?, Broadcast::from_bytes(&b)?);
        Ok(Self { cohort: Cohort { topic, admin }, pair })
    }

    /// Judges it.
    ///
    /// # Errors
    /// As [`Equivocation::judge`].
    pub fn judge(&self) -> Result<Option<Equivocation>, BpsRefusal> {
        let (a, b) = self.pair.clone();
        Equivocation::judge(&self.cohort, a, b)
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
