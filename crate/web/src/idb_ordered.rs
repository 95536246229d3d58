//! Ordered rows in IndexedDB, beside positions and rows of the same database: one snapshot a read, one strict transaction a
//! commit.

use js_sys::Uint8Array;
use remuda_position::topic::key::{Key, KeyRange};
use remuda_position::topic::store::{Change, Entry, TopicStore};
use remuda_position::StoreError;
use wasm_bindgen::JsValue;

use crate::idb_schema::{range, From, ORDERED};
use crate::idb_transaction::{Mode, ObjectStore};
use crate::IdbStore;

/// How many rows are read in one step.
const ROWS_PER_STEP: u32 = 256;

impl TopicStore for IdbStore {
    async fn read(&self, ranges: &[KeyRange]) -> Result<Vec<Vec<Entry>>, StoreError> {
        self.read_ranges(ranges).await.map_err(|fault| self.explain(fault))
    }

    async fn commit(&self, change: &Change) -> Result<(), StoreError> {
        self.compare_and_write(change).await.map_err(|fault| self.explain(fault))
    }
}

impl IdbStore {
    async fn read_ranges(&self, ranges: &[KeyRange]) -> Result<Vec<Vec<Entry>>, StoreError> {
        let transaction = self.begin(&[ORDERED], Mode::Read)?;
        let store = transaction.store(ORDERED)?;
        let mut answers = Vec::with_capacity(ranges.len());
        for range in ranges {
            answers.push(read_range(&store, range).await?);
        }
        Ok(answers)
    }

    /// Leaving before `complete` aborts: a refused change has written nothing.
    async fn compare_and_write(&self, change: &Change) -> Result<(), StoreError> {
        let transaction = self.begin(&[ORDERED], Mode::WriteStrict)?;
        let store = transaction.store(ORDERED)?;
        for (key, expected) in &change.expected {
            if store.get(&database_key(key)).await? != *expected {
                return Err(StoreError::Conflict);
            }
        }
        // From here to `complete` nothing is awaited: all are asked for, or none is kept.
        for (key, value) in &change.writes {
            match value {
                Some(value) => store.put(&database_key(key), value)?,
                None => store.delete(&database_key(key))?,
            }
        }
        transaction.complete().await
    }
}

fn database_key(key: &Key) -> JsValue {
    Uint8Array::from(key.as_bytes()).into()
}

/// At least one row where there is one, then no more than the limit.
async fn read_range(store: &ObjectStore, wanted: &KeyRange) -> Result<Vec<Entry>, StoreError> {
    let mut taken: Vec<Entry> = Vec::new();
    if wanted.is_empty() {
        return Ok(taken);
    }
    let limit = wanted.limit;
    let through = database_key(&wanted.last);
    let (mut from, mut bytes) = (From::At(database_key(&wanted.first)), 0usize);
    loop {
        let room = limit.rows.saturating_sub(taken.len()).max(1);
        let step = u32::try_from(room).unwrap_or(ROWS_PER_STEP).min(ROWS_PER_STEP);
        let entries = store.entries(&range(&from, &through)?, step).await?;
        for (key, value) in entries.keys().zip(entries.values()) {
            let (key, value) = (key?, value?);
            bytes = bytes.saturating_add(usize::try_from(value.length()).map_err(|_| StoreError::Corrupt)?);
            if !taken.is_empty() && (taken.len() >= limit.rows || bytes > limit.bytes) {
                return Ok(taken);
            }
            taken.push((Key::from_bytes(key), value.to_vec()));
        }
        // A range that would begin above its own end is none.
        let ended = entries.len() < step
            || taken.len() >= limit.rows
            || taken.last().is_none_or(|(last, _)| *last >= wanted.last);
        match entries.last_key() {
            Some(last) if !ended => from = From::Above(last),
            _ => return Ok(taken),
        }
    }
}
