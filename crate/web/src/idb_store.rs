//! The store in IndexedDB: positions, rows and outboxes that survive the tab, written in strict transactions.

use std::cell::Cell;
use std::rc::Rc;

use remuda_position::outbox::{OutboxChanges, OutboxEntry, OutboxHead, OutboxKey, OutboxWrite, RowChange, HEAD};
use remuda_position::{Fence, PositionKey, Store, StoreError, StoredPosition, WriteSet};
use remuda_wire::codec::Canonical;
use remuda_wire::request::AppendRequest;
use wasm_bindgen::JsValue;
use web_sys::IdbDatabase;

use crate::event::Listener;
use crate::idb_schema::{
    self, entry_key, fence_key, position_key, range, row_key, From, META, OUTBOX, POSITIONS, ROWS,
};
use crate::idb_transaction::{Mode, ObjectStore, Transaction};

/// How many rows are read in a first step; more in the next where they turn out to be small.
const FIRST_ROWS: u32 = 16;
/// How many at most in one step.
const MAX_ROWS: u32 = 1_024;

/// A connection to one database.
///
/// When another connection deletes or upgrades the database, or the browser closes it, the connection is closed at once
/// after what is in flight, and every later call is [`StoreError::Evicted`]. It does not reopen by itself: what was
/// durable may be gone, so the caller has to open anew and read its position again.
///
/// Its futures must be polled in the microtask that their event wakes, as `wasm_bindgen_futures` does: later the
/// transaction has ended by itself, and the call is [`StoreError::Aborted`]. Dropping one aborts its transaction.
pub struct IdbStore {
    database: IdbDatabase,
    closed: Rc<Cell<bool>>,
    _listeners: [Listener; 2],
}

impl IdbStore {
    /// Opens the database `name` of this origin, making it where there is none.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] without IndexedDB, [`StoreError::Blocked`] while another connection holds an older
    /// version, [`StoreError::NewerVersion`], [`StoreError::Quota`], [`StoreError::Aborted`].
    pub async fn open(name: &str) -> Result<Self, StoreError> {
        let database = idb_schema::open(name).await?;
        let closed = Rc::new(Cell::new(false));
        let (giving_way, gone, connection) = (Rc::clone(&closed), Rc::clone(&closed), database.clone());
        let listeners = [
            Listener::new(&database, "versionchange", move |_| {
                giving_way.set(true);
                connection.close();
            }),
            Listener::new(&database, "close", move |_| gone.set(true)),
        ];
        Ok(Self { database, closed, _listeners: listeners })
    }

    /// Deletes the database `name` and all that it holds. Open connections of this library give way.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] without IndexedDB; [`StoreError::Blocked`] when a connection stays open: the deletion
    /// still happens when that closes.
    pub async fn delete(name: &str) -> Result<(), StoreError> {
        idb_schema::delete(name).await
    }

    /// Whether the connection is gone: the database was deleted, upgraded or closed under us.
    pub fn is_evicted(&self) -> bool {
        self.closed.get()
    }

    /// Opens a transaction.
    ///
    /// # Errors
    /// As [`Transaction::open`]; [`StoreError::Evicted`] once the connection is gone.
    pub(crate) fn begin(&self, stores: &[&str], mode: Mode) -> Result<Transaction, StoreError> {
        if self.closed.get() {
            return Err(StoreError::Evicted);
        }
        Transaction::open(&self.database, stores, mode)
    }

    /// An abort without a cause of its own is an eviction where the connection has gone with it.
    pub(crate) fn explain(&self, fault: StoreError) -> StoreError {
        if fault == StoreError::Aborted && self.closed.get() {
            StoreError::Evicted
        } else {
            fault
        }
    }

    async fn raise_fence(&self) -> Result<Fence, StoreError> {
        let transaction = self.begin(&[META], Mode::WriteStrict)?;
        let meta = transaction.store(META)?;
        let raised = stored_fence(&meta).await?.checked_add(1).ok_or(StoreError::Corrupt)?;
        meta.put(&fence_key(), &raised.to_be_bytes())?;
        transaction.complete().await?;
        Ok(Fence(raised))
    }

    async fn read_position(&self, key: PositionKey) -> Result<Option<StoredPosition>, StoreError> {
        let transaction = self.begin(&[POSITIONS], Mode::Read)?;
        stored_position(&transaction.store(POSITIONS)?, key).await
    }

    /// Leaving before `complete` aborts: a refused write has written nothing.
    async fn write(&self, write: &WriteSet) -> Result<(), StoreError> {
        // Who enqueues waits for no commit that has nothing to say of appends.
        let stores: &[&str] =
            if write.outbox.is_some() { &[META, POSITIONS, ROWS, OUTBOX] } else { &[META, POSITIONS, ROWS] };
        let transaction = self.begin(stores, Mode::WriteStrict)?;
        let (meta, positions) = (transaction.store(META)?, transaction.store(POSITIONS)?);
        let rows = transaction.store(ROWS)?;
        if stored_fence(&meta).await? != write.fence.0 {
            return Err(StoreError::Fenced);
        }
        if stored_position(&positions, write.key).await?.map(|position| position.revision()) != write.expected {
            return Err(StoreError::Conflict);
        }
        if let Some(changes) = &write.outbox {
            change_outbox(&transaction.store(OUTBOX)?, changes).await?;
        }
        // From here to `complete` nothing is awaited: all are asked for, or none is kept.
        for row in &write.rows {
            rows.put(&row_key(write.key, row.first_item), &row.bytes)?;
        }
        positions.put(&position_key(write.key), &write.position)?;
        transaction.complete().await
    }

    async fn read_rows(&self, key: PositionKey, after_item: u64, max_bytes: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let transaction = self.begin(&[ROWS], Mode::Read)?;
        let rows = transaction.store(ROWS)?;
        let next = row_key(key, after_item.saturating_add(1));
        let at_or_below = range(&From::At(row_key(key, 0)), &next)?;
        let from = From::At(rows.last_key(&at_or_below).await?.unwrap_or(next));
        Page::read(&rows, from, &row_key(key, u64::MAX), max_bytes).await
    }

    async fn add_to_outbox(&self, key: OutboxKey, request: &AppendRequest) -> Result<u64, StoreError> {
        let transaction = self.begin(&[OUTBOX], Mode::WriteStrict)?;
        let outbox = transaction.store(OUTBOX)?;
        let mut head = stored_head(&outbox, key).await?;
        let entry = head.enqueue(request)?;
        outbox.put(&entry_key(key, entry.number), &entry.to_bytes())?;
        outbox.put(&entry_key(key, HEAD), &head.to_bytes())?;
        transaction.complete().await?;
        Ok(entry.number)
    }

    async fn read_outbox(&self, key: OutboxKey, after: u64, max_bytes: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        let transaction = self.begin(&[OUTBOX], Mode::Read)?;
        let outbox = transaction.store(OUTBOX)?;
        let from = From::Above(entry_key(key, after));
        let rows = Page::read(&outbox, from, &entry_key(key, u64::MAX), max_bytes).await?;
        rows.iter().map(|row| OutboxEntry::from_bytes(row).map_err(|_| StoreError::Corrupt)).collect()
    }

    async fn write_outbox(&self, write: &OutboxWrite) -> Result<(), StoreError> {
        let transaction = self.begin(&[META, OUTBOX], Mode::WriteStrict)?;
        let (meta, outbox) = (transaction.store(META)?, transaction.store(OUTBOX)?);
        if stored_fence(&meta).await? != write.fence.0 {
            return Err(StoreError::Fenced);
        }
        change_outbox(&outbox, &write.changes).await?;
        transaction.complete().await
    }
}

impl Drop for IdbStore {
    /// Closes the connection after what is in flight, so that it blocks no upgrade or deletion.
    fn drop(&mut self) {
        self.database.close();
    }
}

impl Store for IdbStore {
    async fn take_fence(&self) -> Result<Fence, StoreError> {
        self.raise_fence().await.map_err(|fault| self.explain(fault))
    }

    async fn load(&self, key: PositionKey) -> Result<Option<StoredPosition>, StoreError> {
        self.read_position(key).await.map_err(|fault| self.explain(fault))
    }

    async fn apply(&self, write: &WriteSet) -> Result<(), StoreError> {
        self.write(write).await.map_err(|fault| self.explain(fault))
    }

    async fn rows_after(
        &self,
        key: PositionKey,
        after_item: u64,
        max_bytes: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        self.read_rows(key, after_item, max_bytes).await.map_err(|fault| self.explain(fault))
    }

    async fn enqueue(&self, key: OutboxKey, request: &AppendRequest) -> Result<u64, StoreError> {
        self.add_to_outbox(key, request).await.map_err(|fault| self.explain(fault))
    }

    async fn outbox_after(&self, key: OutboxKey, after: u64, max_bytes: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        self.read_outbox(key, after, max_bytes).await.map_err(|fault| self.explain(fault))
    }

    async fn settle(&self, write: &OutboxWrite) -> Result<(), StoreError> {
        self.write_outbox(write).await.map_err(|fault| self.explain(fault))
    }
}

/// Zero where nobody has owned the database yet.
async fn stored_fence(meta: &ObjectStore) -> Result<u64, StoreError> {
    let Some(bytes) = meta.get(&fence_key()).await? else { return Ok(0) };
    bytes.try_into().map(u64::from_be_bytes).map_err(|_| StoreError::Corrupt)
}

async fn stored_position(positions: &ObjectStore, key: PositionKey) -> Result<Option<StoredPosition>, StoreError> {
    let Some(bytes) = positions.get(&position_key(key)).await? else { return Ok(None) };
    StoredPosition::from_bytes(&bytes).map(Some).map_err(|_| StoreError::Corrupt)
}

async fn stored_head(outbox: &ObjectStore, key: OutboxKey) -> Result<OutboxHead, StoreError> {
    OutboxHead::stored(outbox.get(&entry_key(key, HEAD)).await?.as_deref())
}

/// A change that fails half-way leaves the transaction without `complete`, and nothing of it is kept.
async fn change_outbox(outbox: &ObjectStore, changes: &OutboxChanges) -> Result<(), StoreError> {
    let mut head = stored_head(outbox, changes.key).await?;
    for change in &changes.changes {
        let key = entry_key(changes.key, change.number());
        match head.change(outbox.get(&key).await?.as_deref(), change)? {
            RowChange::Keep => {}
            RowChange::Put(row) => outbox.put(&key, &row)?,
            RowChange::Delete => outbox.delete(&key)?,
        }
    }
    outbox.put(&entry_key(changes.key, HEAD), &head.to_bytes())
}

/// Rows of one answer, bounded by bytes.
struct Page {
    rows: Vec<Vec<u8>>,
    bytes: usize,
    max_bytes: usize,
}

impl Page {
    /// The values from `from` through `through`, as many as fit.
    async fn read(
        store: &ObjectStore,
        mut from: From,
        through: &JsValue,
        max_bytes: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut page = Self { rows: Vec::new(), bytes: 0, max_bytes };
        loop {
            let limit = page.next_limit();
            let entries = store.entries(&range(&from, through)?, limit).await?;
            for value in entries.values() {
                let value = value?;
                let length = usize::try_from(value.length()).map_err(|_| StoreError::Corrupt)?;
                if !page.fits(length) {
                    return Ok(page.rows);
                }
                page.push(value.to_vec());
            }
            match entries.last_key() {
                Some(last) if entries.len() == limit && page.has_room() => from = From::Above(last),
                _ => return Ok(page.rows),
            }
        }
    }

    /// One row always fits.
    fn fits(&self, length: usize) -> bool {
        self.rows.is_empty() || self.bytes.saturating_add(length) <= self.max_bytes
    }

    fn has_room(&self) -> bool {
        self.bytes < self.max_bytes
    }

    fn push(&mut self, row: Vec<u8>) {
        self.bytes = self.bytes.saturating_add(row.len());
        self.rows.push(row);
    }

    /// About as many rows as still fit, were they like those before.
    fn next_limit(&self) -> u32 {
        let Some(average) = self.bytes.checked_div(self.rows.len()) else { return FIRST_ROWS };
        let room = self.max_bytes.saturating_sub(self.bytes) / average.max(1) + 1;
        u32::try_from(room).unwrap_or(MAX_ROWS).clamp(1, MAX_ROWS)
    }
}
