//! The two stores of a source: durable by default, in memory only when asked for by name.

use remuda_position::topic::key::KeyRange;
use remuda_position::topic::memory::MemoryTopicStore;
use remuda_position::topic::store::{Change, Entry, TopicStore};
use remuda_position::StoreError;

use crate::IdbStore;

/// A store that an application chose.
pub enum FeedStore {
    /// In IndexedDB, beside the streams.
    Idb(IdbStore),
    /// In memory: gone with the page. Never a silent fallback.
    Memory(MemoryTopicStore),
}

impl FeedStore {
    /// Its health, as a status names it.
    pub fn health(&self) -> &'static str {
        match self {
            Self::Idb(store) if store.is_evicted() => "evicted",
            Self::Idb(_) => "ready",
            Self::Memory(_) => "memory",
        }
    }
}

impl TopicStore for FeedStore {
    async fn read(&self, ranges: &[KeyRange]) -> Result<Vec<Vec<Entry>>, StoreError> {
        match self {
            Self::Idb(store) => store.read(ranges).await,
            Self::Memory(store) => store.read(ranges).await,
        }
    }

    async fn commit(&self, change: &Change) -> Result<(), StoreError> {
        match self {
            Self::Idb(store) => store.commit(change).await,
            Self::Memory(store) => store.commit(change).await,
        }
    }
}
