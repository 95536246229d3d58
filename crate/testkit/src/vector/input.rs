//! Reading a vector's inputs: hexadecimal and its expressions, decimal strings, canonical objects.

use remuda_bps::BpsRefusal;
use remuda_streaming::StreamRefused;
use remuda_watchtower::WatchtowerRefusal;
use remuda_wire::verdict::{AdmissionRefused, EndpointRefused, VerifyError};
use remuda_wire::{Bytes32, Canonical, DecodeError, Refusal};
use serde_json::Value;

/// Why an operation has no values to answer.
#[derive(Clone, Debug)]
pub enum Refused {
    /// A verdict code, `plane/reason`: what vectors expect.
    Verdict(&'static str),
    /// The vector is not of the format that its operation reads: always a failure.
    Malformed(String),
}

macro_rules! from_plane {
    ($($ty:ty),+) => {$(
        impl From<$ty> for Refused {
            fn from(verdict: $ty) -> Self {
                Self::Verdict(verdict.code())
            }
        }
    )+};
}

from_plane!(
    Refusal,
    DecodeError,
    VerifyError,
    AdmissionRefused,
    EndpointRefused,
    StreamRefused,
    WatchtowerRefusal,
    BpsRefusal
);

/// The `in` of a vector, or a part of it.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(&'a Value);

impl<'a> Input<'a> {
    /// Reads from a JSON value.
    pub const fn new(value: &'a Value) -> Self {
        Self(value)
    }

    /// The JSON itself.
    pub const fn json(self) -> &'a Value {
        self.0
    }

    /// A member; null when absent.
    pub fn at(self, key: &str) -> Self {
        Self(&self.0[key])
    }

    /// True for null and for an absent member.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// `None` for null, else what `read` makes of the value.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn optional<T>(self, read: impl FnOnce(Self) -> Result<T, Refused>) -> Result<Option<T>, Refused> {
        if self.is_null() {
            Ok(None)
        } else {
            read(self).map(Some)
        }
    }

    fn malformed<T>(self, wanted: &str) -> Result<T, Refused> {
        Err(Refused::Malformed(format!("{wanted} expected, not {}", self.0)))
    }

    /// A text.
    ///
    /// # Errors
    /// [`Refused::Malformed`].
    pub fn text(self) -> Result<&'a str, Refused> {
        self.0.as_str().map_or_else(|| self.malformed("a text"), Ok)
    }

    /// A bool.
    ///
    /// # Errors
    /// [`Refused::Malformed`].
    pub fn bool(self) -> Result<bool, Refused> {
        self.0.as_bool().map_or_else(|| self.malformed("a bool"), Ok)
    }

    /// A `u64`, as a decimal string.
    ///
    /// # Errors
    /// [`Refused::Malformed`].
    pub fn u64(self) -> Result<u64, Refused> {
        self.text()?.parse().or_else(|_| self.malformed("a decimal string"))
    }

    /// A small integer, as a JSON number.
    ///
    /// # Errors
    /// [`Refused::Malformed`].
    pub fn number<T: TryFrom<u64>>(self) -> Result<T, Refused> {
        self.0.as_u64().and_then(|number| T::try_from(number).ok()).map_or_else(|| self.malformed("a number"), Ok)
    }

    /// A list.
    ///
    /// # Errors
    /// [`Refused::Malformed`].
    pub fn list(self) -> Result<impl ExactSizeIterator<Item = Self> + 'a, Refused> {
        let elements = self.0.as_array().map_or_else(|| self.malformed("a list"), Ok)?;
        Ok(elements.iter().map(Input::new))
    }

    /// Bytes: hexadecimal, or an expression of `rep` and `cat`.
    ///
    /// # Errors
    /// [`Refused::Malformed`].
    pub fn bytes(self) -> Result<Vec<u8>, Refused> {
        if let Some(text) = self.0.as_str() {
            return hex::decode(text).or_else(|_| self.malformed("hexadecimal"));
        }
        if let Some([part, count]) = self.0["rep"].as_array().map(Vec::as_slice) {
            return Ok(Input(part).bytes()?.repeat(Input(count).number()?));
        }
        if let Some(parts) = self.0["cat"].as_array() {
            let parts: Result<Vec<_>, _> = parts.iter().map(|part| Input(part).bytes()).collect();
            return Ok(parts?.concat());
        }
        self.malformed("bytes")
    }

    /// Exactly `N` bytes.
    ///
    /// # Errors
    /// [`Refused::Malformed`].
    pub fn array<const N: usize>(self) -> Result<[u8; N], Refused> {
        self.bytes()?.try_into().or_else(|_| self.malformed("bytes of another length"))
    }

    /// A digest or identifier.
    ///
    /// # Errors
    /// [`Refused::Malformed`].
    pub fn digest(self) -> Result<Bytes32, Refused> {
        self.array().map(Bytes32)
    }

    /// A list of digests.
    ///
    /// # Errors
    /// [`Refused::Malformed`].
    pub fn digests(self) -> Result<Vec<Bytes32>, Refused> {
        self.list()?.map(Self::digest).collect()
    }

    /// A canonical object.
    ///
    /// # Errors
    /// The decode verdict: bad bytes are what many vectors are about.
    pub fn object<T: Canonical>(self) -> Result<T, Refused> {
        Ok(T::from_bytes(&self.bytes()?)?)
    }
}
