//! The canonical encoding (CIP-39 §14, `RESOLUTIONS.md` §1): integers, options, vectors, strings.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Deref;

use crate::error::DecodeError;
use crate::reader::Reader;
use crate::writer::Writer;

/// A value with exactly one canonical encoding.
///
/// What decodes re-encodes to the same bytes.
pub trait Canonical: Sized {
    /// The fewest bytes that an encoding can have: bounds what a declared count may reserve.
    const MIN_BYTES: usize;

    /// Reads one value, leaving what follows it. What went wrong is the reader's to say, and the value is then none.
    ///
    /// A constraint is judged when the last field has been read.
    fn read(reader: &mut Reader<'_>) -> Self;

    /// Appends the canonical bytes.
    fn encode(&self, writer: &mut Writer);

    /// Reads one value, leaving what follows it.
    ///
    /// # Errors
    /// The first [`DecodeError`] in reading order.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let value = Self::read(reader);
        reader.result().map(|()| value)
    }

    /// Reads a whole buffer.
    ///
    /// # Errors
    /// As [`Canonical::decode`], then [`DecodeError::TrailingBytes`].
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = Self::read(&mut reader);
        reader.finish().map(|()| value)
    }

    /// The canonical bytes.
    fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        writer.into_bytes()
    }
}

macro_rules! integer {
    ($($ty:ty),+) => {$(
        impl Canonical for $ty {
            const MIN_BYTES: usize = size_of::<$ty>();

            fn read(reader: &mut Reader<'_>) -> Self {
                Self::from_be_bytes(reader.array())
            }

            fn encode(&self, writer: &mut Writer) {
                writer.raw(&self.to_be_bytes());
            }
        }
    )+};
}
integer!(u8, u16, u32, u64, u128);

impl Canonical for bool {
    const MIN_BYTES: usize = 1;

    fn read(reader: &mut Reader<'_>) -> Self {
        let tag = u8::read(reader);
        reader.require(tag <= 1, DecodeError::UnknownTag);
        tag == 1
    }

    fn encode(&self, writer: &mut Writer) {
        u8::from(*self).encode(writer);
    }
}

impl<T: Canonical> Canonical for Option<T> {
    const MIN_BYTES: usize = 1;

    fn read(reader: &mut Reader<'_>) -> Self {
        bool::read(reader).then(|| T::read(reader))
    }

    fn encode(&self, writer: &mut Writer) {
        self.is_some().encode(writer);
        if let Some(value) = self {
            value.encode(writer);
        }
    }
}

/// A version byte that can only be 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct VersionOne;

impl Canonical for VersionOne {
    const MIN_BYTES: usize = 1;

    fn read(reader: &mut Reader<'_>) -> Self {
        let version = u8::read(reader);
        reader.require(version == 1, DecodeError::UnknownVersion);
        Self
    }

    fn encode(&self, writer: &mut Writer) {
        1u8.encode(writer);
    }
}

/// `provider_epoch`: eight bytes that are zero in v1 (§4). No other value can be represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ProviderEpoch;

impl Canonical for ProviderEpoch {
    const MIN_BYTES: usize = 8;

    fn read(reader: &mut Reader<'_>) -> Self {
        let epoch = u64::read(reader);
        reader.require(epoch == 0, DecodeError::NonzeroProviderEpoch);
        Self
    }

    fn encode(&self, writer: &mut Writer) {
        0u64.encode(writer);
    }
}

/// A value is longer than its bound: said by constructors, so that no encoder can make what no decoder takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBound {
    /// What was given.
    pub length: usize,
    /// What is allowed.
    pub bound: usize,
}

impl core::fmt::Display for OverBound {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "a length of {} exceeds the bound of {}", self.length, self.bound)
    }
}

impl core::error::Error for OverBound {}

const fn within(length: usize, bound: usize) -> Result<(), OverBound> {
    if length <= bound {
        Ok(())
    } else {
        Err(OverBound { length, bound })
    }
}

/// A vector of at most `MAX` elements: `u32` count, then each element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> List<T, MAX> {
    /// The list without elements.
    pub const EMPTY: Self = Self(Vec::new());

    /// Takes at most `MAX` elements.
    ///
    /// # Errors
    /// [`OverBound`].
    pub fn new(elements: Vec<T>) -> Result<Self, OverBound> {
        within(elements.len(), MAX)?;
        Ok(Self(elements))
    }

    /// Adds an element where there is room for one.
    ///
    /// # Errors
    /// [`OverBound`]: nothing was added.
    pub fn push(&mut self, element: T) -> Result<(), OverBound> {
        within(self.0.len().saturating_add(1), MAX)?;
        self.0.push(element);
        Ok(())
    }

    /// The elements.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T, const MAX: usize> Deref for List<T, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Canonical, const MAX: usize> Canonical for List<T, MAX> {
    const MIN_BYTES: usize = 4;

    fn read(reader: &mut Reader<'_>) -> Self {
        let count = reader.length(MAX);
        // A count is only a claim: reserve no more than the bytes at hand could hold.
        let mut elements = Vec::with_capacity(count.min(reader.remaining() / T::MIN_BYTES.max(1)));
        for _ in 0..count {
            let element = T::read(reader);
            if reader.result().is_err() {
                break;
            }
            elements.push(element);
        }
        Self(elements)
    }

    fn encode(&self, writer: &mut Writer) {
        writer.length(self.0.len());
        for element in &self.0 {
            element.encode(writer);
        }
    }
}

/// A byte string of at most `MAX` bytes: `u32` length, then the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Bytes<const MAX: usize>(Vec<u8>);

impl<const MAX: usize> Bytes<MAX> {
    /// Takes at most `MAX` bytes.
    ///
    /// # Errors
    /// [`OverBound`].
    pub fn new(bytes: Vec<u8>) -> Result<Self, OverBound> {
        within(bytes.len(), MAX)?;
        Ok(Self(bytes))
    }

    /// The bytes.
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }
}

/// Prints the length only: payloads and details are not for logs.
impl<const MAX: usize> core::fmt::Debug for Bytes<MAX> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Bytes({} bytes)", self.0.len())
    }
}

impl<const MAX: usize> Deref for Bytes<MAX> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<const MAX: usize> Canonical for Bytes<MAX> {
    const MIN_BYTES: usize = 4;

    fn read(reader: &mut Reader<'_>) -> Self {
        let length = reader.length(MAX);
        Self(reader.take(length).to_vec())
    }

    fn encode(&self, writer: &mut Writer) {
        writer.length(self.0.len());
        writer.raw(&self.0);
    }
}

/// A UTF-8 string of at most `MAX` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<const MAX: usize>(String);

impl<const MAX: usize> Text<MAX> {
    /// Takes at most `MAX` bytes of text.
    ///
    /// # Errors
    /// [`OverBound`].
    pub fn new(text: String) -> Result<Self, OverBound> {
        within(text.len(), MAX)?;
        Ok(Self(text))
    }
}

impl<const MAX: usize> Deref for Text<MAX> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> Canonical for Text<MAX> {
    const MIN_BYTES: usize = 4;

    fn read(reader: &mut Reader<'_>) -> Self {
        let length = reader.length(MAX);
        let text = core::str::from_utf8(reader.take(length));
        reader.require(text.is_ok(), DecodeError::InvalidUtf8);
        Self(text.unwrap_or_default().into())
    }

    fn encode(&self, writer: &mut Writer) {
        writer.length(self.0.len());
        writer.raw(self.0.as_bytes());
    }
}
