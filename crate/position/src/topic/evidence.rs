//! What can move a received boundary: an ordered prefix, and nothing else (STR-060, STR-062).

use remuda_streaming::OrderedPrefix;

mod sealed {
    pub trait Sealed {}
    impl Sealed for remuda_streaming::OrderedPrefix {}
}

/// Evidence that is a prefix of a topic's order, as [`crate::Evidence`] is of a signed history. Sealed: a target, the newest
/// row, a push hint and a publish reply move no F.
pub trait PrefixEvidence: sealed::Sealed {
    /// The rows, and the place behind which they begin.
    fn into_prefix(self) -> OrderedPrefix;
}

impl PrefixEvidence for OrderedPrefix {
    fn into_prefix(self) -> OrderedPrefix {
        self
    }
}
