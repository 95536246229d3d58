//! Planning one commit: what was read, what it must still be, what is written.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use remuda_streaming::{Topic, TopicKind};
use remuda_wire::Canonical;

use super::key::{Key, KeyRange};
use super::row::{decode, DatabaseRow, KindRow, TopicRow};
use super::store::{Change, Entry, TopicStore};
use crate::store::StoreError;

/// Rows that were read from one snapshot, and the change that is planned from them. What is read again after the first
/// snapshot is compared at the commit like everything else.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    read: BTreeMap<Key, Option<Vec<u8>>>,
    writes: BTreeMap<Key, Option<Vec<u8>>>,
}

impl Transaction {
    /// Reads single rows, each of which is compared when this commits, and ranges beside them from the same snapshot, which
    /// are not: what is in them changes only together with a row that is compared.
    pub(crate) async fn load(
        &mut self,
        store: &impl TopicStore,
        keys: &[Key],
        beside: &[KeyRange],
    ) -> Result<Vec<Vec<Entry>>, StoreError> {
        let unread: Vec<_> = keys.iter().filter(|key| !self.read.contains_key(*key)).cloned().collect();
        let ranges: Vec<_> = unread.iter().cloned().map(KeyRange::one).chain(beside.iter().cloned()).collect();
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = store.read(&ranges).await?.into_iter();
        for (key, mut rows) in unread.into_iter().zip(&mut answers) {
            self.read.insert(key, rows.pop().map(|(_, value)| value));
        }
        Ok(answers.collect())
    }

    /// What a loaded row holds now: as planned, else as read.
    pub(crate) fn get(&self, key: &Key) -> Option<&[u8]> {
        self.writes.get(key).or_else(|| self.read.get(key)).and_then(Option::as_deref)
    }

    /// A loaded row, decoded.
    pub(crate) fn decoded<T: Canonical>(&self, key: &Key) -> Result<Option<T>, StoreError> {
        self.get(key).map(decode).transpose()
    }

    pub(crate) fn put(&mut self, key: Key, value: Vec<u8>) {
        self.writes.insert(key, Some(value));
    }

    pub(crate) fn remove(&mut self, key: Key) {
        self.writes.insert(key, None);
    }

    /// The row of a loaded topic; an empty one where nothing is durable.
    pub(crate) fn topic(&self, topic: &Topic) -> Result<TopicRow, StoreError> {
        Ok(self.decoded(&Key::topic(topic))?.unwrap_or_else(|| TopicRow::empty(topic)))
    }

    pub(crate) fn put_topic(&mut self, topic: &Topic, mut row: TopicRow) {
        row.revision = row.revision.saturating_add(1);
        self.put(Key::topic(topic), row.to_bytes());
    }

    pub(crate) fn kind(&self, kind: TopicKind) -> Result<KindRow, StoreError> {
        Ok(self.decoded(&Key::kind(kind))?.unwrap_or(KindRow::EMPTY))
    }

    /// The database's row.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the database was never founded.
    pub(crate) fn database(&self) -> Result<DatabaseRow, StoreError> {
        self.decoded(&Key::database())?.ok_or(StoreError::Unavailable)
    }

    /// Takes a pending envelope out of its topic, whose row and kind are loaded.
    pub(crate) fn take_pending(
        &mut self,
        topic: &Topic,
        row: &mut TopicRow,
        key: Key,
        bytes: usize,
    ) -> Result<(), StoreError> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let mut kind = self.kind(topic.kind())?;
        (row.pending_rows, row.pending_bytes) =
            (row.pending_rows.saturating_sub(1), row.pending_bytes.saturating_sub(bytes));
        (kind.rows, kind.bytes) = (kind.rows.saturating_sub(1), kind.bytes.saturating_sub(bytes));
        self.put(Key::kind(topic.kind()), kind.to_bytes());
        self.remove(key);
        Ok(())
    }

    /// Commits what is planned; nothing when nothing is.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Conflict`] when something that was read is no longer so.
    pub(crate) async fn commit(self, store: &impl TopicStore) -> Result<(), StoreError> {
        if self.writes.is_empty() {
            return Ok(());
        }
        let change = Change { expected: self.read.into_iter().collect(), writes: self.writes.into_iter().collect() };
        store.commit(&change).await
    }
}

/// How often a commit that was overtaken is planned again before its caller hears of it.
pub(crate) const ATTEMPTS: usize = 8;
