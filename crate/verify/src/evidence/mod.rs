//! Evidence: two validly signed objects that contradict each other, checkable by a third party from the two alone.
//!
//! | pair | contradiction |
//! |---|---|
//! | two append receipts | one record; one global predecessor; one predecessor in one lane |
//! | two checkpoints | one predecessor; overlapping ranges of one lineage |
//! | two transitions | one predecessor and replacement lineage |
//! | transition, checkpoint | of the predecessor lineage and abandoned; first of its own lineage and not linked |
//! | two group receipts | one predecessor in one group |
//! | two key-batch receipts | one predecessor, or a shared sequence, on one key stream |
//! | two retention anchors of one key | a later lower floor; one floor with two predecessors |
//! | anchor, receipt or checkpoint that ends just before its floor | the anchor names another predecessor |
//! | any two | served at one height under two block hashes |
//!
//! Objects enter only authenticated, so a forgery is never evidence. An honest provider is never accused: objects with
//! equal digests are one object; other lanes, groups and lineages are never compared; heights may fall when nothing that
//! the stream depends on changed; a floor regresses only when time and height both order the pair.

mod claim;
mod coverage;
mod generation;
mod object;
mod pool;
mod stairs;
#[cfg(test)]
mod tests;

pub use object::AuthenticatedObject;
pub use pool::{EvidencePool, GENERATION_OBJECTS};

use remuda_wire::verdict::Contradiction;

use claim::Claim;
pub(crate) use claim::Evident;
pub(crate) use object::evident;

/// How two authenticated objects contradict each other, whichever comes first; `None` when they do not.
pub fn contradiction(a: &AuthenticatedObject, b: &AuthenticatedObject) -> Option<Contradiction> {
    Claim::of(evident(a), a.digest()).contradicts(&Claim::of(evident(b), b.digest()))
}
