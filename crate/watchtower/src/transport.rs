//! The bodies of `POST {endpoint}/watchtower/{stream}/…`: deterministic CBOR both ways.

use alloc::vec::Vec;

use crate::cbor::{decode, map, Value};
use crate::message::Members;
use crate::refusal::WatchtowerRefusal;
use crate::schedule::KeyEntry;

/// The most messages that one `get_since` asks for, and the most entries of one `get_key_history`.
pub const MAX_GET_SINCE_LIMIT: usize = 500;

/// The longest answer that is taken: a full page of the largest payloads, and as much again for their headers.
pub const MAX_ANSWER_BYTES: usize = 2 * MAX_GET_SINCE_LIMIT * crate::message::MAX_INLINE_PAYLOAD_BYTES;

/// The HTTP status of an error answer.
pub const STATUS_REFUSED: u16 = 409;

const CURSOR_TOO_OLD: &str = "CURSOR_TOO_OLD";

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Messages after a cursor.
    GetSince {
        /// The last sequence that is held.
        cursor: u64,
        /// How many at most: 1 to 500.
        limit: usize,
    },
    /// Entries of the key schedule.
    GetKeyHistory {
        /// The first id.
        from_signing_key_id: u64,
        /// How many at most: 1 to 500.
        limit: usize,
    },
}

impl Request {
    /// The last segment of the path.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::GetSince { .. } => "get_since",
            Self::GetKeyHistory { .. } => "get_key_history",
        }
    }

    /// The body.
    pub fn to_bytes(&self) -> Vec<u8> {
        let number = |limit: usize| Value::Unsigned(u64::try_from(limit).unwrap_or(u64::MAX));
        match *self {
            Self::GetSince { cursor, limit } => map([("cursor", cursor.into()), ("limit", number(limit))]).to_bytes(),
            Self::GetKeyHistory { from_signing_key_id, limit } => {
                map([("from_signing_key_id", from_signing_key_id.into()), ("limit", number(limit))]).to_bytes()
            }
        }
    }
}

/// The answer of `get_since`. Each message is still to be judged, beginning with its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Messages after the cursor, ascending.
    pub messages: Vec<Value>,
    /// The latest sequence, by the provider's word.
    pub head_sequence: u64,
    /// The oldest that is retained, by the provider's word.
    pub floor_sequence: u64,
}

impl Page {
    /// Reads an answer.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::Cbor`], [`WatchtowerRefusal::MessageShape`], the latter also for more messages than `limit`.
    pub fn from_bytes(bytes: &[u8], limit: usize) -> Result<Self, WatchtowerRefusal> {
        let mut members = members(bytes)?;
        Ok(Self {
            messages: list(&mut members, "messages", limit)?,
            head_sequence: members.u64("head_sequence")?,
            floor_sequence: members.u64("floor_sequence")?,
        })
    }
}

/// Reads the answer of `get_key_history`.
///
/// # Errors
/// [`WatchtowerRefusal::Cbor`], [`WatchtowerRefusal::MessageShape`], [`WatchtowerRefusal::KeySchedule`] for a key of
/// another length.
pub fn read_key_history(bytes: &[u8], limit: usize) -> Result<Vec<KeyEntry>, WatchtowerRefusal> {
    list(&mut members(bytes)?, "entries", limit)?.into_iter().map(read_entry).collect()
}

/// Reads one entry of a schedule.
pub(crate) fn read_entry(entry: Value) -> Result<KeyEntry, WatchtowerRefusal> {
    let mut members = Members(entry.into_map().ok_or(WatchtowerRefusal::MessageShape)?);
    let pubkey = members.bytes("pubkey")?;
    KeyEntry::new(members.u64("signing_key_id")?, &pubkey, members.u64("effective_sequence")?)
}

/// `CURSOR_TOO_OLD`: what was asked for is no longer retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorTooOld {
    /// The oldest sequence that is retained, by the provider's word.
    pub floor_sequence: u64,
    /// The latest, by the provider's word.
    pub head_sequence: u64,
}

impl CursorTooOld {
    /// Reads an error answer to `cursor`. `None` for another error.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::Cbor`], and [`WatchtowerRefusal::MessageShape`], also when the floor that it names does not
    /// put `cursor` behind it: a cursor is stale when it is below `floor_sequence - 1`.
    pub fn from_bytes(bytes: &[u8], cursor: u64) -> Result<Option<Self>, WatchtowerRefusal> {
        let mut members = members(bytes)?;
        if members.text("code")? != CURSOR_TOO_OLD {
            return Ok(None);
        }
        let (floor_sequence, head_sequence) = (members.u64("floor_sequence")?, members.u64("head_sequence")?);
        let is_stale = floor_sequence.checked_sub(1).is_some_and(|before| cursor < before && before <= head_sequence);
        if !is_stale {
            return Err(WatchtowerRefusal::MessageShape);
        }
        Ok(Some(Self { floor_sequence, head_sequence }))
    }
}

fn members(bytes: &[u8]) -> Result<Members, WatchtowerRefusal> {
    decode(bytes)?.into_map().map(Members).ok_or(WatchtowerRefusal::MessageShape)
}

fn list(members: &mut Members, name: &str, limit: usize) -> Result<Vec<Value>, WatchtowerRefusal> {
    let elements = members.take(name)?.into_array().ok_or(WatchtowerRefusal::MessageShape)?;
    if elements.len() > limit {
        return Err(WatchtowerRefusal::MessageShape);
    }
    Ok(elements)
}
