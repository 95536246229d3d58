//! Writing canonical bytes.

use alloc::vec::Vec;

/// Collects canonical bytes.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty writer.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// An empty writer that will hold about `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { bytes: Vec::with_capacity(capacity) }
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a `u32` length. Lengths come from bounded containers, so the conversion cannot fail there; a longer
    /// one would saturate and so be refused by every reader.
    pub fn length(&mut self, length: usize) {
        self.raw(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    }

    /// The bytes so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// The collected bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
