//! The outbox: what was asked to be appended, kept in the database until it is known what came of it.
//!
//! ```text
//! enqueue ─▶ Queued ─▶ Sent ─▶ Provisional ─▶ Durable       a fast stream; a void makes of Provisional Queued again
//!                        └──────────────────▶ Durable       a standard stream
//!            each of the first three ───────▶ Failed
//! ```
//! The request is stored as it is sent, sealed already, and never changes: a retry that is not byte-identical is another
//! message (CIP-39 §11.1). Numbers ascend in the order of [`crate::Store::enqueue`], from 1, and are not used again.

use alloc::vec::Vec;

use remuda_wire::codec::{Canonical, VersionOne};
use remuda_wire::context::SigningContext;
use remuda_wire::preimage::keccak256;
use remuda_wire::record::{FastRecordId, RecordId};
use remuda_wire::request::AppendRequest;
use remuda_wire::{object, union, Bytes, Bytes32, Remedy, Text, Writer};

use crate::store::{Fence, StoreError};

/// Entries that may wait for their outcome.
pub const MAX_OPEN_ENTRIES: u32 = 1_024;
/// Bytes of the requests that may wait for their outcome.
pub const MAX_OPEN_BYTES: u64 = 16 * 1024 * 1024;
/// The number under which the head is stored, before every entry.
pub const HEAD: u64 = 0;

/// Names the outbox of one stream of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutboxKey(pub Bytes32);

impl OutboxKey {
    /// `keccak("remuda/outbox/v1" || context || stream_id)`.
    pub fn derive(context: &SigningContext, stream_id: &Bytes32) -> Self {
        let mut writer = Writer::new();
        writer.raw(b"remuda/outbox/v1");
        context.encode(&mut writer);
        stream_id.encode(&mut writer);
        Self(keccak256(writer.as_slice()))
    }
}

object! {
    /// A record that is durable at the provider, by evidence of its signature.
    #[derive(Copy)]
    pub struct DurableAppend {
        record_id: RecordId,
        /// The digest of its append receipt, or of the checkpoint that covers it.
        evidence: Bytes32,
    }
}

object! {
    /// Why an entry ended without a durable record.
    pub struct AppendFailure {
        code: Text<64>,
        remedy: Text<32>,
        rule: Text<64>,
        meaning: Text<256>,
    }
}

impl AppendFailure {
    /// A failure; a text that is too long is left out, and its code says the same.
    pub fn new(code: &str, remedy: Remedy, rule: &str, meaning: &str) -> Self {
        Self { code: fitting(code), remedy: fitting(remedy.name()), rule: fitting(rule), meaning: fitting(meaning) }
    }
}

fn fitting<const MAX: usize>(text: &str) -> Text<MAX> {
    Text::new(text.into()).unwrap_or_default()
}

union! {
    /// Where an entry stands.
    pub enum OutboxState: u8 {
        /// It was never sent.
        Queued = 1,
        /// It is being sent, or was: its outcome is not known.
        Sent = 2,
        /// The provider acknowledged it and has not shown it durable (§12).
        Provisional(record_id: FastRecordId) = 3,
        /// It is durable at the provider.
        Durable(durable: DurableAppend) = 4,
        /// It ended otherwise.
        Failed(failure: AppendFailure) = 5,
    }
}

impl OutboxState {
    /// Whether its outcome is known for good.
    pub const fn is_ended(&self) -> bool {
        matches!(self, Self::Durable(_) | Self::Failed(_))
    }
}

object! {
    /// An entry as it is stored.
    pub struct OutboxEntry {
        version: VersionOne,
        number: u64,
        state: OutboxState,
        /// The exact body that is sent. Without its payload once it is durable.
        request: AppendRequest,
    }
}

object! {
    /// What an outbox holds, so that no write needs to count.
    pub struct OutboxHead {
        version: VersionOne,
        /// The number of the newest entry that there was.
        last_number: u64,
        open_entries: u32,
        open_bytes: u64,
    }
}

impl Default for OutboxHead {
    fn default() -> Self {
        Self { version: VersionOne, last_number: HEAD, open_entries: 0, open_bytes: 0 }
    }
}

impl OutboxHead {
    /// The head that is stored; a new one where there is none.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn stored(row: Option<&[u8]>) -> Result<Self, StoreError> {
        row.map_or_else(|| Ok(Self::default()), |row| Self::from_bytes(row).map_err(|_| StoreError::Corrupt))
    }

    /// Takes one more request.
    ///
    /// # Errors
    /// [`StoreError::OutboxFull`] above [`MAX_OPEN_ENTRIES`] or [`MAX_OPEN_BYTES`].
    pub fn enqueue(&mut self, request: &AppendRequest) -> Result<OutboxEntry, StoreError> {
        let open_bytes = self.open_bytes.saturating_add(size(request));
        if self.open_entries >= MAX_OPEN_ENTRIES || open_bytes > MAX_OPEN_BYTES {
            return Err(StoreError::OutboxFull);
        }
        let number = self.last_number.checked_add(1).ok_or(StoreError::Corrupt)?;
        (self.last_number, self.open_bytes) = (number, open_bytes);
        self.open_entries += 1;
        Ok(OutboxEntry { version: VersionOne, number, state: OutboxState::Queued, request: request.clone() })
    }

    /// What a change makes of the row that is stored. Repeating it changes nothing, and what has ended stays as it ended.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn change(&mut self, row: Option<&[u8]>, change: &OutboxChange) -> Result<RowChange, StoreError> {
        let Some(row) = row else { return Ok(RowChange::Keep) };
        let mut entry = OutboxEntry::from_bytes(row).map_err(|_| StoreError::Corrupt)?;
        match change {
            OutboxChange::Forget { .. } if entry.state.is_ended() => Ok(RowChange::Delete),
            OutboxChange::Forget { .. } => Ok(RowChange::Keep),
            OutboxChange::Become { .. } if entry.state.is_ended() => Ok(RowChange::Keep),
            OutboxChange::Become { state, .. } => {
                if state.is_ended() {
                    self.open_entries = self.open_entries.saturating_sub(1);
                    self.open_bytes = self.open_bytes.saturating_sub(size(&entry.request));
                }
                if matches!(state, OutboxState::Durable(_)) {
                    entry.request.payload = Bytes::default();
                }
                entry.state = state.clone();
                Ok(RowChange::Put(entry.to_bytes()))
            }
        }
    }
}

fn size(request: &AppendRequest) -> u64 {
    u64::try_from(request.to_bytes().len()).unwrap_or(u64::MAX)
}

/// A change of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxChange {
    /// It stands elsewhere.
    Become {
        /// Which entry.
        number: u64,
        /// Its new state.
        state: OutboxState,
    },
    /// It has ended, and nobody asks for it any more.
    Forget {
        /// Which entry.
        number: u64,
    },
}

impl OutboxChange {
    /// Which entry.
    pub const fn number(&self) -> u64 {
        match self {
            Self::Become { number, .. } | Self::Forget { number } => *number,
        }
    }
}

/// What becomes of a stored row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// It stays.
    Keep,
    /// It is replaced.
    Put(Vec<u8>),
    /// It goes.
    Delete,
}

/// Changes of one outbox, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxChanges {
    /// Which outbox.
    pub key: OutboxKey,
    /// The changes.
    pub changes: Vec<OutboxChange>,
}

/// Changes of an outbox by themselves: one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxWrite {
    /// The owner that writes.
    pub fence: Fence,
    /// What it writes.
    pub changes: OutboxChanges,
}
