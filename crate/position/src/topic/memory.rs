//! Rows in memory: for tests, and for a page that asks for no durability by name.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::RefCell;

use super::key::{Key, KeyRange};
use super::store::{Change, Entry, TopicStore};
use crate::store::StoreError;

/// One ordered map.
#[derive(Debug, Default)]
pub struct MemoryTopicStore {
    rows: RefCell<BTreeMap<Key, Vec<u8>>>,
}

impl TopicStore for MemoryTopicStore {
    async fn read(&self, ranges: &[KeyRange]) -> Result<Vec<Vec<Entry>>, StoreError> {
        let rows = self.rows.borrow();
        Ok(ranges.iter().map(|range| read(&rows, range)).collect())
    }

    async fn commit(&self, change: &Change) -> Result<(), StoreError> {
        let mut rows = self.rows.borrow_mut();
        if change.expected.iter().any(|(key, value)| rows.get(key) != value.as_ref()) {
            return Err(StoreError::Conflict);
        }
        for (key, value) in &change.writes {
            match value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        Ok(())
    }
}

fn read(rows: &BTreeMap<Key, Vec<u8>>, range: &KeyRange) -> Vec<Entry> {
    if range.is_empty() {
        return Vec::new();
    }
    let (mut taken, mut bytes) = (Vec::new(), 0usize);
    for (key, value) in rows.range(range.first.clone()..=range.last.clone()) {
        bytes = bytes.saturating_add(value.len());
        if !taken.is_empty() && (taken.len() >= range.limit.rows || bytes > range.limit.bytes) {
            break;
        }
        taken.push((key.clone(), value.clone()));
    }
    taken
}
