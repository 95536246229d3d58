//! Deterministic CBOR (RFC 8949 §4.2.1) of this profile: what decodes encodes to the same bytes again.
//!
//! Maps have text keys only. Numbers that are no integers are binary64, finite, and never minus zero. Tags, other simple
//! values, indefinite lengths and more than [`MAX_DEPTH`] nested arrays and maps do not exist.

mod decode;
mod encode;

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

pub use decode::decode;

/// How many arrays and maps may be nested in each other.
pub const MAX_DEPTH: usize = 32;

/// A finite binary64 whose zero has no sign: what this profile can write.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Float64(f64);

impl Float64 {
    /// `None` for NaN and infinities; minus zero becomes plus zero.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value + 0.0))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

// Finite numbers are equal to themselves.
impl Eq for Float64 {}

/// One data item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An unsigned integer.
    Unsigned(u64),
    /// The integer `-1 - n`.
    Negative(u64),
    /// A byte string.
    Bytes(Vec<u8>),
    /// A text string.
    Text(String),
    /// An array.
    Array(Vec<Value>),
    /// A map.
    Map(Map),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
    /// A binary64.
    Float(Float64),
}

impl Value {
    /// The number of an unsigned integer.
    pub const fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Unsigned(number) => Some(*number),
            _ => None,
        }
    }

    /// The contents of a byte string.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The contents of a text string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The map.
    pub fn into_map(self) -> Option<Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn into_array(self) -> Option<Vec<Value>> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Unsigned(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

/// Entries with text keys, each key once, in the bytewise order of their encodings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map(Vec<(String, Value)>);

/// The bytewise order of two encoded text keys: the head grows with the length, so the shorter comes first.
fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

impl Map {
    /// Of these entries, whatever their order. Of two values for one key the later stays.
    pub fn new(entries: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut map = Self::default();
        entries.into_iter().for_each(|(key, value)| map.insert(key, value));
        map
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: String, value: Value) {
        match self.position(&key) {
            Ok(at) => {
                if let Some(entry) = self.0.get_mut(at) {
                    entry.1 = value;
                }
            }
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).ok().and_then(|at| self.0.get(at)).map(|(_, value)| value)
    }

    /// Takes the value of a key out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).ok().map(|at| self.0.remove(at).1)
    }

    /// The entries in order.
    pub fn entries(&self) -> &[(String, Value)] {
        &self.0
    }

    /// The entries in order, owned.
    pub fn into_entries(self) -> Vec<(String, Value)> {
        self.0
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| key_order(known, key))
    }

    /// Adds an entry at the end; false when that is not its place.
    fn append(&mut self, key: String, value: Value) -> bool {
        let ascends = self.0.last().is_none_or(|(last, _)| key_order(last, &key) == Ordering::Less);
        if ascends {
            self.0.push((key, value));
        }
        ascends
    }
}

/// A map from literal keys: how bodies and payloads are written down.
pub fn map<const N: usize>(entries: [(&str, Value); N]) -> Map {
    Map::new(entries.into_iter().map(|(key, value)| (key.into(), value)))
}
