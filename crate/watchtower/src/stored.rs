//! What of a feed is durable: its items in order, and where it stands behind them. Our own format, in the CBOR of this
//! profile; whoever reads it back reads what was verified before, by us.

use alloc::string::ToString;
use alloc::vec::Vec;

use crate::cbor::{decode, map, Value};
use crate::feed::{Batch, Content, Gap, Item};
use crate::message::{Members, StreamMessage};
use crate::refusal::WatchtowerRefusal;
use crate::schedule::KeyEntry;
use crate::transport::read_entry;
use crate::verifier::Cursor;

use remuda_wire::Bytes32;

/// Where a feed stands, and the schedule that it knows there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The last message.
    pub cursor: Cursor,
    /// The key schedule.
    pub schedule: Vec<KeyEntry>,
}

impl Standing {
    /// As it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let digest = self.cursor.last_digest.map_or(Value::Null, |digest| digest.0.as_slice().into());
        map([
            ("last_sequence", self.cursor.last_sequence.into()),
            ("last_digest", digest),
            ("schedule", Value::Array(self.schedule.iter().map(KeyEntry::to_value).collect())),
        ])
        .to_bytes()
    }

    /// As it was stored.
    ///
    /// # Errors
    /// [`WatchtowerRefusal`] for what was never written here.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WatchtowerRefusal> {
        let mut members = Members(decode(bytes)?.into_map().ok_or(WatchtowerRefusal::MessageShape)?);
        let last_digest = match members.take("last_digest")? {
            Value::Null => None,
            digest => {
                let bytes = digest.as_bytes().and_then(|digest| digest.try_into().ok());
                Some(Bytes32(bytes.ok_or(WatchtowerRefusal::MessageShape)?))
            }
        };
        let schedule = members.take("schedule")?.into_array().ok_or(WatchtowerRefusal::MessageShape)?;
        Ok(Self {
            cursor: Cursor { last_sequence: members.u64("last_sequence")?, last_digest },
            schedule: schedule.into_iter().map(read_entry).collect::<Result<_, _>>()?,
        })
    }
}

/// One stored item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // The large one is the common one.
pub enum StoredItem {
    /// A message that was verified, and what was in it.
    Message {
        /// The message as it was signed.
        message: StreamMessage,
        /// Its payload.
        content: Content,
    },
    /// Sequences that were lost.
    Gap(Gap),
}

impl StoredItem {
    /// The items of a batch, gaps in their places, each as it is stored.
    pub fn rows(batch: &Batch) -> Vec<Vec<u8>> {
        let gaps = batch.gaps.iter().map(|gap| (gap.first, gap_bytes(gap)));
        let items = batch.items.iter().map(|item| (item.message.sequence, item_bytes(item)));
        let mut rows: Vec<_> = gaps.chain(items).collect();
        rows.sort_by_key(|(sequence, _)| *sequence);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// As it was stored.
    ///
    /// # Errors
    /// [`WatchtowerRefusal`] for what was never written here.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WatchtowerRefusal> {
        let mut members = Members(decode(bytes)?.into_map().ok_or(WatchtowerRefusal::MessageShape)?);
        if members.0.get("first").is_some() {
            return Ok(Self::Gap(Gap { first: members.u64("first")?, last: members.u64("last")? }));
        }
        let message = StreamMessage::from_value(members.take("message")?)?;
        let content = match members.take("content")? {
            Value::Null => Content::Plain(message.payload_inline.clone()),
            Value::Bytes(opened) => Content::Plain(opened),
            Value::Bool(false) => Content::Unopened,
            _ => return Err(WatchtowerRefusal::MessageShape),
        };
        Ok(Self::Message { message, content })
    }
}

fn gap_bytes(gap: &Gap) -> Vec<u8> {
    map([("first", gap.first.into()), ("last", gap.last.into())]).to_bytes()
}

/// A payload that is readable as it is stands in the message, once.
fn item_bytes(item: &Item) -> Vec<u8> {
    let content = match &item.content {
        Content::Unopened => Value::Bool(false),
        Content::Plain(_) if item.message.key_epoch.is_none() => Value::Null,
        Content::Plain(opened) => opened.as_slice().into(),
    };
    map([("message", item.message.to_value()), ("content", content)]).to_bytes()
}

/// Names what decides which items a feed has: its stream and its filter, by the text that was given.
pub fn source_name(stream_id: &crate::StreamId, filter: Option<&str>) -> Vec<u8> {
    map([
        ("source", "watchtower".into()),
        ("stream_id", stream_id.to_value()),
        ("filter", filter.map_or(Value::Null, |filter| Value::Text(filter.to_string()))),
    ])
    .to_bytes()
}
