//! The store: what a disk must do for a position to be durable.

use alloc::vec::Vec;

use remuda_wire::request::AppendRequest;
use remuda_wire::Remedy;

use crate::admission::Admission;
use crate::boundary::{Boundary, PositionKey, StoredPosition};
use crate::item::RowBytes;
use crate::outbox::{OutboxChanges, OutboxEntry, OutboxKey, OutboxWrite};

/// The generation of the one owner that may write. Taking ownership raises it; a write under an older one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence(pub u64);

/// Everything that one transaction writes, complete before it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteSet {
    /// Which position.
    pub key: PositionKey,
    /// The revision that it must still have; `None`: that there is none.
    pub expected: Option<u64>,
    /// The owner that writes.
    pub fence: Fence,
    /// The new [`StoredPosition`], canonical.
    pub position: Vec<u8>,
    /// The new rows, ascending.
    pub rows: Vec<RowBytes>,
    /// What the same evidence says of our own appends: no row is there without it.
    pub outbox: Option<OutboxChanges>,
}

/// Our own disk failed us. Nothing of the write was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The position moved since it was read: another owner was faster.
    Conflict,
    /// Another owner has taken over.
    Fenced,
    /// The origin's quota is used up.
    Quota,
    /// Another connection holds an older version of the database open.
    Blocked,
    /// The database was deleted or closed under us.
    Evicted,
    /// The transaction was aborted.
    Aborted,
    /// A stored value does not decode.
    Corrupt,
    /// The database was written by a newer version of this library.
    NewerVersion,
    /// There is no database here at all.
    Unavailable,
    /// As much waits to be appended as the outbox takes.
    OutboxFull,
}

impl StoreError {
    /// The stable code, `store/reason`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Conflict => "store/conflict",
            Self::Fenced => "store/fenced",
            Self::Quota => "store/quota",
            Self::Blocked => "store/blocked",
            Self::Evicted => "store/evicted",
            Self::Aborted => "store/aborted",
            Self::Corrupt => "store/corrupt",
            Self::NewerVersion => "store/newer-version",
            Self::Unavailable => "store/unavailable",
            Self::OutboxFull => "store/outbox-full",
        }
    }

    /// What is wrong, in one sentence.
    pub const fn meaning(&self) -> &'static str {
        match self {
            Self::Conflict => "the position moved since it was read",
            Self::Fenced => "another tab has taken over the network",
            Self::Quota => "the storage quota of this origin is used up",
            Self::Blocked => "another tab holds an older version of the database open: close it",
            Self::Evicted => "the database was deleted or closed by the browser",
            Self::Aborted => "the transaction was aborted",
            Self::Corrupt => "a stored value does not decode",
            Self::NewerVersion => "the database was written by a newer version: reload the page",
            Self::Unavailable => "this browser gives us no database here",
            Self::OutboxFull => "too much waits to be appended: append again once some of it is settled",
        }
    }

    /// What the caller should do.
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Conflict => Remedy::ReEnterAtBoundary,
            Self::Fenced | Self::Corrupt => Remedy::Halt,
            Self::Aborted | Self::OutboxFull => Remedy::Retry,
            Self::Quota | Self::Blocked | Self::Evicted | Self::NewerVersion | Self::Unavailable => Remedy::Surface,
        }
    }
}

impl core::fmt::Display for StoreError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.code(), self.meaning())
    }
}

impl core::error::Error for StoreError {}

/// A transactional store of positions and rows. Every method is one transaction.
#[allow(async_fn_in_trait, reason = "a page has one thread: its futures are never sent to another")]
pub trait Store {
    /// Takes ownership: raises the stored generation by one, durably, and returns it.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn take_fence(&self) -> Result<Fence, StoreError>;

    /// Reads a position.
    ///
    /// # Errors
    /// [`StoreError`], [`StoreError::Corrupt`] when it does not decode.
    async fn load(&self, key: PositionKey) -> Result<Option<StoredPosition>, StoreError>;

    /// Writes the whole set or nothing, strictly durable, after comparing fence and revision inside the transaction.
    /// Returns only after the transaction's `complete` event.
    ///
    /// # Errors
    /// [`StoreError::Fenced`], [`StoreError::Conflict`], or whatever made the transaction abort.
    async fn apply(&self, write: &WriteSet) -> Result<(), StoreError>;

    /// Rows that hold items above `after_item`, ascending, as stored; the first may begin at or below it. At least one
    /// where there is one, then no more than `max_bytes`.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn rows_after(&self, key: PositionKey, after_item: u64, max_bytes: usize)
        -> Result<Vec<Vec<u8>>, StoreError>;

    /// Adds a request to the end of an outbox, strictly durable, and returns its number. Everyone may, owner or not.
    ///
    /// # Errors
    /// [`StoreError::OutboxFull`]; any other: nothing was added.
    async fn enqueue(&self, key: OutboxKey, request: &AppendRequest) -> Result<u64, StoreError>;

    /// Entries numbered above `after`, ascending. At least one where there is one, then no more than `max_bytes`.
    ///
    /// # Errors
    /// [`StoreError`], [`StoreError::Corrupt`] when one does not decode.
    async fn outbox_after(&self, key: OutboxKey, after: u64, max_bytes: usize) -> Result<Vec<OutboxEntry>, StoreError>;

    /// Writes every change or none, strictly durable, after comparing the fence inside the transaction.
    ///
    /// # Errors
    /// [`StoreError::Fenced`], or whatever made the transaction abort.
    async fn settle(&self, write: &OutboxWrite) -> Result<(), StoreError>;
}

impl<S: Store> Store for alloc::rc::Rc<S> {
    async fn take_fence(&self) -> Result<Fence, StoreError> {
        S::take_fence(self).await
    }

    async fn load(&self, key: PositionKey) -> Result<Option<StoredPosition>, StoreError> {
        S::load(self, key).await
    }

    async fn apply(&self, write: &WriteSet) -> Result<(), StoreError> {
        S::apply(self, write).await
    }

    async fn rows_after(
        &self,
        key: PositionKey,
        after_item: u64,
        max_bytes: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        S::rows_after(self, key, after_item, max_bytes).await
    }

    async fn enqueue(&self, key: OutboxKey, request: &AppendRequest) -> Result<u64, StoreError> {
        S::enqueue(self, key, request).await
    }

    async fn outbox_after(&self, key: OutboxKey, after: u64, max_bytes: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        S::outbox_after(self, key, after, max_bytes).await
    }

    async fn settle(&self, write: &OutboxWrite) -> Result<(), StoreError> {
        S::settle(self, write).await
    }
}

/// Proof that an admission's transaction completed, and the boundary that holds since then.
#[derive(Clone, Debug)]
pub struct Committed {
    boundary: Boundary,
}

impl Committed {
    /// The boundary that holds now.
    pub fn into_boundary(self) -> Boundary {
        self.boundary
    }
}

/// Commits an admission. The only maker of [`Committed`].
///
/// # Errors
/// [`StoreError`]: nothing was written, the boundary is what it was.
pub async fn commit(store: &impl Store, admission: Admission) -> Result<Committed, StoreError> {
    store.apply(&admission.write).await?;
    Ok(Committed { boundary: admission.boundary })
}
