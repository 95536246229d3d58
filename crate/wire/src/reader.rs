//! Reading canonical bytes, left to right, first failure first.

use crate::error::DecodeError;

/// A cursor over borrowed bytes. It copies nothing and never reads past its end.
///
/// Its first failure stays: nothing is left to read after it, whatever is read is empty or zero, and what fails later is
/// not heard of. So an object is read field by field without a question, and whoever began asks once, at the end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    failure: Option<DecodeError>,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, failure: None }
    }

    /// Bytes not yet read: none after a failure.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// What went wrong first.
    ///
    /// # Errors
    /// The first failure in reading order.
    pub const fn result(&self) -> Result<(), DecodeError> {
        match self.failure {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    /// Fails, unless it already has.
    pub fn fail(&mut self, failure: DecodeError) {
        self.failure.get_or_insert(failure);
        self.rest = &[];
    }

    /// Fails unless `holds`.
    pub fn require(&mut self, holds: bool, failure: DecodeError) {
        if !holds {
            self.fail(failure);
        }
    }

    /// Judges a constraint on what was read: only of what was there.
    pub fn check(&mut self, constraint: impl FnOnce() -> Result<(), DecodeError>) {
        if let Err(failure) = self.result().and_then(|()| constraint()) {
            self.fail(failure);
        }
    }

    /// The next `length` bytes; none, and [`DecodeError::Truncated`], when fewer are left.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            self.fail(DecodeError::Truncated);
            return &[];
        };
        self.rest = rest;
        taken
    }

    /// The next `N` bytes as an array; zeros, and [`DecodeError::Truncated`], when fewer are left.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).first_chunk().copied().unwrap_or([0; N])
    }

    /// A `u32` length or count; zero, and [`DecodeError::LengthOverBound`], above `bound`, before anything is read or
    /// allocated for it.
    pub fn length(&mut self, bound: usize) -> usize {
        let declared = usize::try_from(u32::from_be_bytes(self.array())).unwrap_or(usize::MAX);
        if declared <= bound {
            return declared;
        }
        self.fail(DecodeError::LengthOverBound);
        0
    }

    /// Ends a top-level object.
    ///
    /// # Errors
    /// The first failure, else [`DecodeError::TrailingBytes`] when anything is left.
    pub fn finish(mut self) -> Result<(), DecodeError> {
        self.require(self.rest.is_empty(), DecodeError::TrailingBytes);
        self.result()
    }
}
