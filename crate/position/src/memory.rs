//! A store in memory: for tests, and for a page that asks for no durability by name.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::RefCell;

use remuda_wire::request::AppendRequest;
use remuda_wire::Canonical;

use crate::boundary::{PositionKey, StoredPosition};
use crate::outbox::{OutboxChanges, OutboxEntry, OutboxHead, OutboxKey, OutboxWrite, RowChange, HEAD};
use crate::store::{Fence, Store, StoreError, WriteSet};

/// Positions, rows and outboxes in three maps.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: RefCell<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    fence: u64,
    positions: BTreeMap<PositionKey, Vec<u8>>,
    rows: BTreeMap<(PositionKey, u64), Vec<u8>>,
    outbox: BTreeMap<(OutboxKey, u64), Vec<u8>>,
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
        if let Some(changes) = &write.outbox {
            inner.change_outbox(changes)?;
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

    async fn enqueue(&self, key: OutboxKey, request: &AppendRequest) -> Result<u64, StoreError> {
        let mut inner = self.inner.borrow_mut();
        let mut head = inner.outbox_head(key)?;
        let entry = head.enqueue(request)?;
        inner.outbox.insert((key, entry.number), entry.to_bytes());
        inner.outbox.insert((key, HEAD), head.to_bytes());
        Ok(entry.number)
    }

    async fn outbox_after(&self, key: OutboxKey, after: u64, max_bytes: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        let inner = self.inner.borrow();
        // Above the head, whatever is asked for.
        let next = after.saturating_add(1);
        let mut taken = 0;
        let rows = inner.outbox.range((key, next)..=(key, u64::MAX)).map(|(_, bytes)| bytes);
        rows.take_while(|bytes| {
            let fits = taken == 0 || taken + bytes.len() <= max_bytes;
            taken += bytes.len();
            fits
        })
        .map(|bytes| OutboxEntry::from_bytes(bytes).map_err(|_| StoreError::Corrupt))
        .collect()
    }

    async fn settle(&self, write: &OutboxWrite) -> Result<(), StoreError> {
        let mut inner = self.inner.borrow_mut();
        if inner.fence != write.fence.0 {
            return Err(StoreError::Fenced);
        }
        inner.change_outbox(&write.changes)
    }
}

impl Inner {
    fn load(&self, key: PositionKey) -> Result<Option<StoredPosition>, StoreError> {
        let decode = |bytes: &Vec<u8>| StoredPosition::from_bytes(bytes).map_err(|_| StoreError::Corrupt);
        self.positions.get(&key).map(decode).transpose()
    }

    fn outbox_head(&self, key: OutboxKey) -> Result<OutboxHead, StoreError> {
        OutboxHead::stored(self.outbox.get(&(key, HEAD)).map(Vec::as_slice))
    }

    /// Nothing is written before everything is known to be readable.
    fn change_outbox(&mut self, changes: &OutboxChanges) -> Result<(), StoreError> {
        let mut head = self.outbox_head(changes.key)?;
        let mut rows = BTreeMap::new();
        for change in &changes.changes {
            let place = (changes.key, change.number());
            let row = match rows.get(&place) {
                Some(RowChange::Put(row)) => Some(row),
                Some(RowChange::Delete) => None,
                Some(RowChange::Keep) | None => self.outbox.get(&place),
            };
            let row = head.change(row.map(Vec::as_slice), change)?;
            if row != RowChange::Keep {
                rows.insert(place, row);
            }
        }
        for (place, row) in rows {
            match row {
                RowChange::Put(row) => drop(self.outbox.insert(place, row)),
                RowChange::Delete => drop(self.outbox.remove(&place)),
                RowChange::Keep => {}
            }
        }
        self.outbox.insert((changes.key, HEAD), head.to_bytes());
        Ok(())
    }
}
