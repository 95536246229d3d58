//! Sequence ids: places in one topic, of which a row, a cursor and a target each mean something else.

use crate::verdict::StreamRefused;

/// A place in a topic: 0 is its beginning, every row is at 1 or above. Numbers have gaps (STR-010).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(u64);

impl SequenceId {
    /// Before the first row.
    pub const BEGINNING: Self = Self(0);
    /// `i64::MAX`.
    pub const MAX: Self = Self(i64::MAX.unsigned_abs());

    /// A place that a cursor or target names.
    ///
    /// # Errors
    /// [`StreamRefused::SequenceRange`] above `i64::MAX`.
    pub const fn new(number: u64) -> Result<Self, StreamRefused> {
        if number > Self::MAX.0 {
            Err(StreamRefused::SequenceRange)
        } else {
            Ok(Self(number))
        }
    }

    /// The place of a row.
    ///
    /// # Errors
    /// [`StreamRefused::SequenceRange`] at 0 and above `i64::MAX`.
    pub const fn of_row(number: u64) -> Result<Self, StreamRefused> {
        if number == 0 {
            Err(StreamRefused::SequenceRange)
        } else {
            Self::new(number)
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// H: what one registration or sync obligation has to reach, as the serving database saw it. It is neither received nor
/// processed, and nothing makes it either (STR-012, STR-062).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target(pub(crate) SequenceId);

impl Target {
    /// A target that was kept.
    pub const fn kept(through: SequenceId) -> Self {
        Self(through)
    }

    /// Whether what lies at and below `place` includes it.
    pub fn is_reached_by(self, place: SequenceId) -> bool {
        place >= self.0
    }

    /// The last sequence id that it asks for; 0 for an empty topic.
    pub const fn through(self) -> SequenceId {
        self.0
    }
}
