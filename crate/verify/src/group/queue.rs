//! Queue positions (§11.2): one per cycle, never reused, initial cycles in record order.

use remuda_wire::verdict::VerifyError;

use crate::sorted::SortedMap;

/// The positions seen so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    taken: SortedMap<u64, ()>,
    /// Of initial cycles: record sequence to position. Both rise together.
    initial: SortedMap<u64, u64>,
}

impl Queue {
    /// A position that no other cycle has.
    ///
    /// # Errors
    /// [`VerifyError::QueueSequence`].
    pub fn check_free(&self, position: u64) -> Result<(), VerifyError> {
        if self.taken.get(&position).is_some() {
            Err(VerifyError::QueueSequence)
        } else {
            Ok(())
        }
    }

    /// A free position that keeps initial cycles in record order. Their first receipts need not come in that order.
    ///
    /// # Errors
    /// [`VerifyError::QueueSequence`].
    pub fn check_initial(&self, record_sequence: u64, position: u64) -> Result<(), VerifyError> {
        self.check_free(position)?;
        let before = self.initial.before(&record_sequence).is_none_or(|(_, before)| *before < position);
        let after = self.initial.from(&record_sequence).next().is_none_or(|(_, after)| position < *after);
        if before && after {
            Ok(())
        } else {
            Err(VerifyError::QueueSequence)
        }
    }

    /// A position above every one seen: a successor enters at the tail.
    ///
    /// # Errors
    /// [`VerifyError::QueueSequence`].
    pub fn check_tail(&self, position: u64) -> Result<(), VerifyError> {
        if self.taken.last().is_none_or(|(last, ())| position > *last) {
            Ok(())
        } else {
            Err(VerifyError::QueueSequence)
        }
    }

    /// Takes a position that was checked.
    pub fn take(&mut self, position: u64, initial_of: Option<u64>) {
        self.taken.insert(position, ());
        if let Some(record_sequence) = initial_of {
            self.initial.insert(record_sequence, position);
        }
    }
}
