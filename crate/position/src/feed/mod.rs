//! Sources whose verification is their own: numbered items, and the cursor behind them, in an ordered store.
//!
//! ```text
//! verified ──Ledger::advance──▶ items and cursor, in one strict transaction ──read──▶ the application
//! ```
//! What an item or a cursor is, only its source knows: here both are bytes. A cursor moves only with its items, and only from
//! the cursor that it was planned from, so of two writers of one source one is refused and nothing is there twice.

#[cfg(feature = "suite")]
pub mod suite;

use alloc::vec;
use alloc::vec::Vec;

use remuda_wire::Bytes32;

use crate::store::StoreError;
use crate::topic::key::{Key, KeyRange};
use crate::topic::limits::Limit;
use crate::topic::store::{Change, TopicStore};

/// Names a source in its database: a digest of all that decides which items it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceKey(pub Bytes32);

/// Length of the number in front of a stored cursor.
const NUMBER_BYTES: usize = 8;

/// Where a source stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The number of the last item; items are numbered from 1, without gaps.
    pub last_item: u64,
    /// The source's own cursor; `None` before the first.
    pub cursor: Option<Vec<u8>>,
}

/// The one writer of a source.
#[derive(Debug)]
pub struct Ledger<S> {
    store: S,
    source: SourceKey,
    /// The row of the cursor as it was last read or written.
    held: Option<Vec<u8>>,
    last_item: u64,
}

impl<S: TopicStore> Ledger<S> {
    /// Reads where the source stands.
    ///
    /// # Errors
    /// [`StoreError`], [`StoreError::Corrupt`] when the row is no cursor.
    pub async fn open(store: S, source: SourceKey) -> Result<Self, StoreError> {
        let held = cursor_row(&store, source).await?;
        let last_item = parse(held.as_deref())?.last_item;
        Ok(Self { store, source, held, last_item })
    }

    /// The source's own cursor, durable; `None` before the first.
    pub fn cursor(&self) -> Option<&[u8]> {
        self.held.as_deref().and_then(|row| row.get(NUMBER_BYTES..))
    }

    /// The number of the last durable item; 0 before the first.
    pub const fn last_item(&self) -> u64 {
        self.last_item
    }

    /// Makes items durable, and the cursor behind them: everything or nothing, in one transaction. Answers the number of
    /// the last item.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when another writer has moved the cursor, or what made the transaction abort. Nothing moved.
    pub async fn advance(&mut self, items: Vec<Vec<u8>>, cursor: &[u8]) -> Result<u64, StoreError> {
        let mut last_item = self.last_item;
        let mut writes = Vec::with_capacity(items.len().saturating_add(1));
        for bytes in items {
            last_item = last_item.checked_add(1).ok_or(StoreError::Corrupt)?;
            writes.push((Key::feed_item(&self.source.0, last_item), Some(bytes)));
        }
        let row = [last_item.to_be_bytes().as_slice(), cursor].concat();
        let key = Key::feed_cursor(&self.source.0);
        writes.push((key.clone(), Some(row.clone())));
        self.store.commit(&Change { expected: vec![(key, self.held.clone())], writes }).await?;
        (self.held, self.last_item) = (Some(row), last_item);
        Ok(last_item)
    }
}

/// Where a source stands, whoever writes it.
///
/// # Errors
/// [`StoreError`], [`StoreError::Corrupt`] when the row is no cursor.
pub async fn standing(store: &impl TopicStore, source: SourceKey) -> Result<Standing, StoreError> {
    parse(cursor_row(store, source).await?.as_deref())
}

/// Items above `after`, ascending, with their numbers: at least one where there is one, then no more than `max_bytes`.
///
/// # Errors
/// [`StoreError`], [`StoreError::Corrupt`] when a key has no number.
pub async fn items_after(
    store: &impl TopicStore,
    source: SourceKey,
    after: u64,
    max_bytes: usize,
) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
    if after == u64::MAX {
        return Ok(Vec::new());
    }
    let limit = Limit { rows: usize::MAX, bytes: max_bytes };
    let rows = store.read(&[KeyRange::feed_items(&source.0, after, limit)]).await?.into_iter().next();
    let numbered = |(key, bytes): (Key, Vec<u8>)| Ok((key.last_number().ok_or(StoreError::Corrupt)?, bytes));
    rows.unwrap_or_default().into_iter().map(numbered).collect()
}

async fn cursor_row(store: &impl TopicStore, source: SourceKey) -> Result<Option<Vec<u8>>, StoreError> {
    let rows = store.read(&[KeyRange::one(Key::feed_cursor(&source.0))]).await?;
    Ok(rows.into_iter().flatten().next().map(|(_, row)| row))
}

fn parse(row: Option<&[u8]>) -> Result<Standing, StoreError> {
    let Some(row) = row else { return Ok(Standing::default()) };
    let (number, cursor) = row.split_first_chunk::<NUMBER_BYTES>().ok_or(StoreError::Corrupt)?;
    Ok(Standing { last_item: u64::from_be_bytes(*number), cursor: Some(cursor.into()) })
}
