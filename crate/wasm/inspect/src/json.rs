//! JSON of wire values: digests in hexadecimal, and every `u64` as its decimal digits with an `n`, which the package makes a
//! `bigint` of.

use remuda_wire::Bytes32;
use serde_json::Value;

/// A `u64`.
pub(crate) fn big(number: u64) -> Value {
    format!("{number}n").into()
}

/// A `u64`, or null.
pub(crate) fn optional_big(number: Option<u64>) -> Value {
    number.map_or(Value::Null, big)
}

/// 64 hex digits.
pub(crate) fn hex(digest: &Bytes32) -> Value {
    digest.to_string().into()
}

/// 64 hex digits, or null.
pub(crate) fn optional_hex(digest: Option<&Bytes32>) -> Value {
    digest.map_or(Value::Null, hex)
}

/// Rows for people: as many as they look at. What is beyond is counted.
#[derive(Debug)]
pub(crate) struct Listed {
    rows: Vec<Value>,
    total: usize,
}

/// How many rows of one list are kept.
const MOST_ROWS: usize = 4_096;

impl Listed {
    pub const fn new() -> Self {
        Self { rows: Vec::new(), total: 0 }
    }

    pub fn push(&mut self, row: impl FnOnce() -> Value) {
        self.total += 1;
        if self.rows.len() < MOST_ROWS {
            self.rows.push(row());
        }
    }

    pub fn into_value(self) -> Value {
        serde_json::json!({ "total": self.total, "rows": self.rows })
    }
}
