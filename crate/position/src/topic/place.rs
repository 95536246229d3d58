//! F, P and D. Each is made only by the commit that moves it, and none converts into another.

use remuda_streaming::SequenceId;

/// F: everything retained behind the starting anchor and up to here is durably pending or handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Received(pub(crate) SequenceId);

/// P: everything up to here is applied or terminally rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Processed(pub(crate) SequenceId);

/// A message's number in this database: never reused, never moved (STR-090).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryNumber(pub(crate) u64);

/// D: everything of one group up to here is acknowledged or was excluded by a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Delivered(pub(crate) DeliveryNumber);

macro_rules! sequence {
    ($($ty:ty),+) => {$(
        impl $ty {
            /// The place itself: what a cursor or a comparison with a target takes.
            pub const fn sequence_id(self) -> SequenceId {
                self.0
            }
        }
    )+};
}
sequence!(Received, Processed);

impl DeliveryNumber {
    /// The number; 0 is before the first message.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Delivered {
    /// The number that it stands at.
    pub const fn number(self) -> DeliveryNumber {
        self.0
    }
}
