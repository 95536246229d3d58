//! The two stores of a page: durable by default, in memory only when asked for by name.

use remuda_position::memory::MemoryStore;
use remuda_position::outbox::{OutboxEntry, OutboxKey, OutboxWrite};
use remuda_position::{Fence, PositionKey, Store, StoreError, StoredPosition, WriteSet};
use remuda_wire::request::AppendRequest;

use crate::IdbStore;

/// A store that an application chose.
pub enum AnyStore {
    /// In IndexedDB.
    Idb(IdbStore),
    /// In memory: gone with the page. Never a silent fallback.
    Memory(MemoryStore),
}

impl AnyStore {
    /// Its health, as a status names it.
    pub fn health(&self) -> &'static str {
        match self {
            Self::Idb(store) if store.is_evicted() => "evicted",
            Self::Idb(_) => "ready",
            Self::Memory(_) => "memory",
        }
    }
}

impl Store for AnyStore {
    async fn take_fence(&self) -> Result<Fence, StoreError> {
        match self {
            Self::Idb(store) => store.take_fence().await,
            Self::Memory(store) => store.take_fence().await,
        }
    }

    async fn load(&self, key: PositionKey) -> Result<Option<StoredPosition>, StoreError> {
        match self {
            Self::Idb(store) => store.load(key).await,
            Self::Memory(store) => store.load(key).await,
        }
    }

    async fn apply(&self, write: &WriteSet) -> Result<(), StoreError> {
        match self {
            Self::Idb(store) => store.apply(write).await,
            Self::Memory(store) => store.apply(write).await,
        }
    }

    async fn rows_after(
        &self,
        key: PositionKey,
        after_item: u64,
        max_bytes: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        match self {
            Self::Idb(store) => store.rows_after(key, after_item, max_bytes).await,
            Self::Memory(store) => store.rows_after(key, after_item, max_bytes).await,
        }
    }

    async fn enqueue(&self, key: OutboxKey, request: &AppendRequest) -> Result<u64, StoreError> {
        match self {
            Self::Idb(store) => store.enqueue(key, request).await,
            Self::Memory(store) => store.enqueue(key, request).await,
        }
    }

    async fn outbox_after(&self, key: OutboxKey, after: u64, max_bytes: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        match self {
            Self::Idb(store) => store.outbox_after(key, after, max_bytes).await,
            Self::Memory(store) => store.outbox_after(key, after, max_bytes).await,
        }
    }

    async fn settle(&self, write: &OutboxWrite) -> Result<(), StoreError> {
        match self {
            Self::Idb(store) => store.settle(write).await,
            Self::Memory(store) => store.settle(write).await,
        }
    }
}
