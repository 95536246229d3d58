//! A store in memory: for tests, and for a page that asks for no durability by name.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::RefCell;

use remuda_wire::Canonical;

use crate::boundary::{PositionKey, StoredPosition};
use crate::store::{Fence, Store, StoreError, WriteSet};

/// Positions and rows in two maps.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: RefCell<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    fence: u64,
    positions: BTreeMap<PositionKey, Vec<u8>>,
    rows: BTreeMap<(PositionKey, u64), Vec<u8>>,
}

impl Store for MemoryStore {
    async fn take_fence(&self) -> Result<Fence, StoreError> {
        let mut inner = self.inner.borrow_mut();
        inner.fence += 1;
        Ok(Fence(inner.fence))
    }

    async fn load(&self, key: PositionKey) -> Result<Option<StoredPosition>, StoreError> {
        self.inner.borrow().load(key)
    }

    async fn apply(&self, write: &WriteSet) -> Result<(), StoreError> {
        let mut inner = self.inner.borrow_mut();
        if inner.fence != write.fence.0 {
            return Err(StoreError::Fenced);
        }
        if inner.load(write.key)?.map(|position| position.revision()) != write.expected {
            return Err(StoreError::Conflict);
        }
        for row in &write.rows {
            inner.rows.insert((write.key, row.first_item), row.bytes.clone());
        }
        inner.positions.insert(write.key, write.position.clone());
        Ok(())
    }

    async fn rows_after(
        &self,
        key: PositionKey,
        after_item: u64,
        max_bytes: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let inner = self.inner.borrow();
        let next = after_item.saturating_add(1);
        let start = inner.rows.range((key, 0)..=(key, next)).next_back().map_or(next, |((_, first), _)| *first);
        let mut taken = 0;
        let rows = inner.rows.range((key, start)..=(key, u64::MAX)).map(|(_, bytes)| bytes);
        Ok(rows
            .take_while(|bytes| {
                let fits = taken == 0 || taken + bytes.len() <= max_bytes;
                taken += bytes.len();
                fits
            })
            .cloned()
            .collect())
    }
}

impl Inner {
    fn load(&self, key: PositionKey) -> Result<Option<StoredPosition>, StoreError> {
        let decode = |bytes: &Vec<u8>| StoredPosition::from_bytes(bytes).map_err(|_| StoreError::Corrupt);
        self.positions.get(&key).map(decode).transpose()
    }
}
