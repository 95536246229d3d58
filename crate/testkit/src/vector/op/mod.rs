//! The operations by name. Each module holds those of one vector family.

mod decode;
mod endpoint;
mod grant;
mod keys;
mod preimage;

use super::input::Input;
use super::Answer;

/// One operation.
pub type Operation = fn(&Input<'_>) -> Answer;

/// Every operation that this runner knows.
const OPERATIONS: &[(&str, Operation)] = &[
    ("decode", decode::decode),
    ("signing_digest", preimage::signing_digest),
    ("derive", preimage::derive),
    ("body_hash", preimage::body_hash),
    ("endpoint", endpoint::endpoint),
    ("grant", grant::grant),
    ("key_batch", keys::key_batch),
    ("envelope_open", keys::envelope_open),
    ("aead_open", keys::aead_open),
    ("open_subscription", grant::open_subscription),
];

/// The operation called `name`.
pub fn find(name: &str) -> Option<Operation> {
    OPERATIONS.iter().find(|(known, _)| *known == name).map(|(_, operation)| *operation)
}
