//! A row as a backend sent it: what is judged of it, and its bytes, unchanged.

use prost::bytes::Bytes;
use prost::Message;

use crate::proto::{message_hash, ServerEnvelope};
use crate::sequence::SequenceId;
use crate::topic::Topic;
use crate::verdict::StreamRefused;

/// One row of a topic. Its hash is the backend's word, 32 bytes that nobody recomputes; its payload is not
/// authenticated by anything here (STR-060, STR-064).
#[derive(Clone, PartialEq, Eq)]
pub struct ReceivedEnvelope {
    sequence_id: SequenceId,
    message_hash: [u8; 32],
    /// The `ServerEnvelope` as it came, unknown fields included.
    bytes: Bytes,
}

impl ReceivedEnvelope {
    /// Its place in its topic.
    pub const fn sequence_id(&self) -> SequenceId {
        self.sequence_id
    }

    /// The authoritative envelope hash.
    pub const fn message_hash(&self) -> &[u8; 32] {
        &self.message_hash
    }

    /// The received encoding: what pending data is, and what its budgets count (STR-066).
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// Its place and length: never a payload (STR-064).
impl core::fmt::Debug for ReceivedEnvelope {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "row {} of {} bytes", self.sequence_id.get(), self.bytes.len())
    }
}

/// A row that is protobuf, before anything else is judged.
pub(crate) struct DecodedEnvelope {
    bytes: Bytes,
    message: ServerEnvelope,
}

impl DecodedEnvelope {
    pub(crate) fn decode(bytes: Bytes) -> Result<Self, StreamRefused> {
        let message = ServerEnvelope::decode(bytes.clone()).map_err(|_| StreamRefused::Protobuf)?;
        Ok(Self { bytes, message })
    }

    /// Judges one row in the order of `VERDICTS.md`. `last` answers the last place of a requested topic, with whatever
    /// the caller needs to move it.
    pub(crate) fn judge<T>(
        self,
        last: impl FnOnce(&Topic) -> Option<(T, SequenceId)>,
    ) -> Result<(T, ReceivedEnvelope), StreamRefused> {
        let meta = self.message.meta.ok_or(StreamRefused::EnvelopeShape)?;
        let topic = meta.topic.ok_or(StreamRefused::EnvelopeShape)?;
        let envelope = self.message.envelope.ok_or(StreamRefused::EnvelopeShape)?;
        if envelope.payload.is_none() {
            return Err(StreamRefused::Oneof);
        }
        // What is no topic at all was not requested either.
        let topic = Topic::from_bytes(&topic.topic).map_err(|_| StreamRefused::UnrequestedTopic)?;
        let (requested, last) = last(&topic).ok_or(StreamRefused::UnrequestedTopic)?;
        let sequence_id = SequenceId::of_row(meta.cursor.unwrap_or_default().sequence_id)?;
        let hash = meta.message_hash.and_then(|hash| hash.hash);
        let message_hash = match hash {
            Some(message_hash::Hash::Sha256(bytes)) => <[u8; 32]>::try_from(&*bytes).ok(),
            None => None,
        };
        let message_hash = message_hash.ok_or(StreamRefused::HashLength)?;
        if sequence_id <= last {
            return Err(StreamRefused::Order);
        }
        Ok((requested, ReceivedEnvelope { sequence_id, message_hash, bytes: self.bytes }))
    }
}
