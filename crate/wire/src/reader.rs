//! Reading canonical bytes, left to right, first failure first.

use crate::error::DecodeError;

/// A cursor over borrowed bytes. It copies nothing and never reads past its end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not yet read.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when fewer are left.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A `u32` length or count, refused above `bound` before anything is read or allocated for it.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`], then [`DecodeError::LengthOverBound`].
    pub fn length(&mut self, bound: usize) -> Result<usize, DecodeError> {
        let declared = u32::from_be_bytes(self.array()?);
        usize::try_from(declared).ok().filter(|length| *length <= bound).ok_or(DecodeError::LengthOverBound)
    }

    /// Ends a top-level object.
    ///
    /// # Errors
    /// [`DecodeError::TrailingBytes`] when anything is left.
    pub const fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::TrailingBytes)
        }
    }
}
