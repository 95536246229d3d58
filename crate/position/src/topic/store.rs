//! What a disk does for topics: ordered rows, reads of one snapshot, and writes that compare first.

use alloc::vec::Vec;

use super::key::{Key, KeyRange};
use crate::store::StoreError;

/// A row as it is stored.
pub type Entry = (Key, Vec<u8>);

/// Everything that one transaction compares and writes, complete before it opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Rows that must still be what they were when this was planned; `None`: absent.
    pub expected: Vec<(Key, Option<Vec<u8>>)>,
    /// Rows to write; `None` removes.
    pub writes: Vec<(Key, Option<Vec<u8>>)>,
}

/// A transactional store of ordered rows. Every method is one transaction.
#[allow(async_fn_in_trait, reason = "a page has one thread: its futures are never sent to another")]
pub trait TopicStore {
    /// Reads all ranges from one snapshot: no write falls between them (STR-099).
    ///
    /// # Errors
    /// [`StoreError`].
    async fn read(&self, ranges: &[KeyRange]) -> Result<Vec<Vec<Entry>>, StoreError>;

    /// Compares and writes everything or nothing, strictly durable. Returns only after the transaction's `complete` event.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when a row is not as expected; or whatever made the transaction abort.
    async fn commit(&self, change: &Change) -> Result<(), StoreError>;
}

impl<S: TopicStore> TopicStore for alloc::rc::Rc<S> {
    async fn read(&self, ranges: &[KeyRange]) -> Result<Vec<Vec<Entry>>, StoreError> {
        S::read(self, ranges).await
    }

    async fn commit(&self, change: &Change) -> Result<(), StoreError> {
        S::commit(self, change).await
    }
}
