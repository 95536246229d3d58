//! The earliest of many numbers that is above a bound.

use alloc::vec::Vec;

/// The running maxima of a sequence: whatever bound is asked for, the earliest element above it is among them.
#[derive(Clone, Debug)]
pub(super) struct Stairs<T> {
    /// Strictly rising in both value and number.
    steps: Vec<(T, u32)>,
}

impl<T> Default for Stairs<T> {
    fn default() -> Self {
        Self { steps: Vec::new() }
    }
}

impl<T: Ord> Stairs<T> {
    /// Adds an element whose number is above all before it.
    pub fn insert(&mut self, value: T, number: u32) {
        if self.steps.last().is_none_or(|(highest, _)| value > *highest) {
            self.steps.push((value, number));
        }
    }

    /// The earliest element.
    pub fn earliest(&self) -> Option<u32> {
        self.steps.first().map(|(_, number)| *number)
    }

    /// The earliest element above `bound`.
    pub fn earliest_above(&self, bound: &T) -> Option<u32> {
        let at = self.steps.partition_point(|(value, _)| value <= bound);
        self.steps.get(at).map(|(_, number)| *number)
    }
}
