//! The JSON filter language: what of a stream is wanted, judged on headers alone.
//!
//! The whole filter is checked before it is used, also branches that are never reached. A predicate on a missing field is
//! false, except `exists` with `false`; a type mismatch is not equal; `all` of nothing is true, `any` of nothing false.

mod number;
mod parse;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

pub use number::Number;

use crate::message::{StreamMessage, Tag, Tags};

/// How many forms (`all`, `any`, `not`) may be nested in each other.
pub const MAX_DEPTH: usize = 4;

/// How many predicates a filter may have.
pub const MAX_PREDICATES: usize = 16;

/// A header that a predicate looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Kind,
    Sequence,
    TimestampUnixMs,
    /// `tags.` and this name.
    Tag(String),
}

/// A value of a header or of a predicate. Values of different types are never equal.
#[derive(Clone, Debug, PartialEq)]
enum Scalar {
    Text(String),
    Bool(bool),
    Number(Number),
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Eq(Scalar),
    Ne(Scalar),
    In(Vec<Scalar>),
    Nin(Vec<Scalar>),
    Gte(Number),
    Lte(Number),
    Exists(bool),
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Predicate(Field, Test),
}

/// A valid filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(Node);

/// Lets everything through.
impl Default for Filter {
    fn default() -> Self {
        Self(Node::All(Vec::new()))
    }
}

/// What a filter sees of a message.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    /// Its kind.
    pub kind: &'a str,
    /// Its sequence.
    pub sequence: u64,
    /// Its timestamp.
    pub timestamp_unix_ms: u64,
    /// Its tags.
    pub tags: &'a Tags,
}

impl<'a> From<&'a StreamMessage> for Headers<'a> {
    fn from(message: &'a StreamMessage) -> Self {
        let StreamMessage { kind, sequence, timestamp_unix_ms, tags, .. } = message;
        Self { kind, sequence: *sequence, timestamp_unix_ms: *timestamp_unix_ms, tags }
    }
}

impl Filter {
    /// Whether a message is wanted.
    pub fn matches<'a>(&self, headers: impl Into<Headers<'a>>) -> bool {
        self.0.holds(&headers.into())
    }
}

impl Node {
    fn holds(&self, headers: &Headers<'_>) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.holds(headers)),
            Self::Any(nodes) => nodes.iter().any(|node| node.holds(headers)),
            Self::Not(node) => !node.holds(headers),
            Self::Predicate(field, test) => {
                field.of(headers).map_or(*test == Test::Exists(false), |value| test.holds(&value))
            }
        }
    }
}

impl Field {
    fn of(&self, headers: &Headers<'_>) -> Option<Scalar> {
        match self {
            Self::Kind => Some(Scalar::Text(headers.kind.into())),
            Self::Sequence => Some(Scalar::Number(headers.sequence.into())),
            Self::TimestampUnixMs => Some(Scalar::Number(headers.timestamp_unix_ms.into())),
            Self::Tag(name) => headers.tags.get(name).map(|tag| match tag {
                Tag::Text(text) => Scalar::Text(text.clone()),
                Tag::Bool(bool) => Scalar::Bool(*bool),
                Tag::Number(number) => Scalar::Number(Number::from(*number)),
            }),
        }
    }
}

impl Test {
    fn holds(&self, value: &Scalar) -> bool {
        let compares = |to: &Number, wanted: Ordering| match value {
            Scalar::Number(number) => number.compare(*to) != wanted.reverse(),
            _ => false,
        };
        match self {
            Self::Eq(wanted) => value == wanted,
            Self::Ne(unwanted) => value != unwanted,
            Self::In(wanted) => wanted.contains(value),
            Self::Nin(unwanted) => !unwanted.contains(value),
            Self::Gte(least) => compares(least, Ordering::Greater),
            Self::Lte(most) => compares(most, Ordering::Less),
            Self::Exists(wanted) => *wanted,
        }
    }
}
