//! The operations by name. Each module holds those of one vector family.

mod append;
mod common;
mod decode;
mod evidence;
mod group;
mod preimage;
mod retention;

use super::input::Input;
use super::Answer;

/// One operation.
pub type Operation = fn(&Input<'_>) -> Answer;

/// Every operation that this runner knows.
const OPERATIONS: &[(&str, Operation)] = &[
    ("append_chain", append::append_chain),
    ("decode", decode::decode),
    ("signing_digest", preimage::signing_digest),
    ("derive", preimage::derive),
    ("body_hash", preimage::body_hash),
    ("cursor_too_old", retention::cursor_too_old),
    ("evidence_pair", evidence::pair),
    ("group_chain", group::group_chain),
    ("retention_pair", evidence::pair),
];

/// The operation called `name`.
pub fn find(name: &str) -> Option<Operation> {
    OPERATIONS.iter().find(|(known, _)| *known == name).map(|(_, operation)| *operation)
}
