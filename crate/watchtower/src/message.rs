//! `StreamMessage` (CIP-7 §3): its shape, and its form in answers.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use remuda_wire::{Bytes32, Signature};

use crate::cbor::{map, Float64, Map, Value};
use crate::refusal::WatchtowerRefusal;

/// The longest `payload_inline`, in bytes: nonce, ciphertext and tag of a sealed one included.
pub const MAX_INLINE_PAYLOAD_BYTES: usize = 16_384;

/// The only `version` of this revision.
pub const VERSION: u64 = 1;

/// A stream's name: text, or 32 bytes. The two are never equal, whatever they spell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamId {
    /// A text.
    Text(String),
    /// 32 bytes.
    Bytes(Bytes32),
}

impl StreamId {
    /// Its raw or UTF-8 bytes, as key derivation and the byte-layout mirrors have it.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => &bytes.0,
        }
    }

    /// As CBOR has it: a text or a byte string.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::Text(text.clone()),
            Self::Bytes(bytes) => bytes.0.as_slice().into(),
        }
    }

    /// From CBOR.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::MessageShape`] for anything but a text or 32 bytes.
    pub fn from_value(value: Value) -> Result<Self, WatchtowerRefusal> {
        match value {
            Value::Text(text) => Ok(Self::Text(text)),
            Value::Bytes(bytes) => Ok(Self::Bytes(Bytes32(fixed(&bytes)?))),
            _ => Err(WatchtowerRefusal::MessageShape),
        }
    }
}

/// The value of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    /// A text.
    Text(String),
    /// A bool.
    Bool(bool),
    /// A number: always a binary64.
    Number(Float64),
}

impl Tag {
    /// A number as a tag.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::MessageShape`] for NaN and infinities.
    pub fn number(number: f64) -> Result<Self, WatchtowerRefusal> {
        Float64::new(number).map(Self::Number).ok_or(WatchtowerRefusal::MessageShape)
    }

    /// As CBOR has it.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::Text(text.clone()),
            Self::Bool(bool) => Value::Bool(*bool),
            Self::Number(number) => Value::Float(*number),
        }
    }

    fn from_value(value: Value) -> Result<Self, WatchtowerRefusal> {
        match value {
            Value::Text(text) => Ok(Self::Text(text)),
            Value::Bool(bool) => Ok(Self::Bool(bool)),
            Value::Float(number) => Ok(Self::Number(number)),
            _ => Err(WatchtowerRefusal::MessageShape),
        }
    }
}

/// Tags by name.
pub type Tags = BTreeMap<String, Tag>;

/// `payload_format`: whether a payload is readable as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadFormat {
    /// Readable by anyone.
    Plaintext,
    /// Sealed under the content key of an epoch.
    Ciphertext,
}

impl PayloadFormat {
    /// The name that is signed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ciphertext => "CIPHERTEXT",
        }
    }
}

/// A message of version 1 whose shape is right, and of which nothing else is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamMessage {
    /// Which stream.
    pub stream_id: StreamId,
    /// Its place: contiguous from 1.
    pub sequence: u64,
    /// When it was published, in milliseconds since the Unix epoch, by the publisher's word.
    pub timestamp_unix_ms: u64,
    /// What kind of message, as filters see it.
    pub kind: String,
    /// Media type of the payload.
    pub content_type: String,
    /// Headers, as filters see them.
    pub tags: Tags,
    /// The payload, sealed or not.
    pub payload_inline: Vec<u8>,
    /// SHA-256 of `payload_inline`, by the publisher's word.
    pub payload_hash: Bytes32,
    /// The epoch whose content key seals the payload: there exactly for a ciphertext.
    pub key_epoch: Option<u64>,
    /// The entry of the key schedule that signed.
    pub signing_key_id: u64,
    /// Pure Ed25519 over the signing payload.
    pub publisher_sig: Signature,
}

impl StreamMessage {
    /// `payload_format`: it follows from the key epoch.
    pub const fn payload_format(&self) -> PayloadFormat {
        match self.key_epoch {
            None => PayloadFormat::Plaintext,
            Some(_) => PayloadFormat::Ciphertext,
        }
    }

    /// The tags as CBOR.
    pub(crate) fn tags_value(&self) -> Value {
        Map::new(self.tags.iter().map(|(name, tag)| (name.clone(), tag.to_value()))).into()
    }

    /// `key_epoch` as CBOR: null when absent.
    pub(crate) fn key_epoch_value(&self) -> Value {
        self.key_epoch.map_or(Value::Null, Value::Unsigned)
    }

    /// The message as an element of an answer.
    pub fn to_value(&self) -> Value {
        map([
            ("version", VERSION.into()),
            ("stream_id", self.stream_id.to_value()),
            ("sequence", self.sequence.into()),
            ("timestamp_unix_ms", self.timestamp_unix_ms.into()),
            ("kind", self.kind.as_str().into()),
            ("content_type", self.content_type.as_str().into()),
            ("tags", self.tags_value()),
            ("payload_format", self.payload_format().name().into()),
            ("payload_inline", self.payload_inline.as_slice().into()),
            ("payload_hash", self.payload_hash.0.as_slice().into()),
            ("key_epoch", self.key_epoch_value()),
            ("signing_key_id", self.signing_key_id.into()),
            ("publisher_sig", self.publisher_sig.0.as_slice().into()),
        ])
        .into()
    }

    /// Judges the shape of a decoded message. Members that this revision does not define are not looked at.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::MessageShape`].
    pub fn from_value(value: Value) -> Result<Self, WatchtowerRefusal> {
        let mut members = Members(value.into_map().ok_or(WatchtowerRefusal::MessageShape)?);
        if members.u64("version")? != VERSION {
            return Err(WatchtowerRefusal::MessageShape);
        }
        let key_epoch = match members.0.remove("key_epoch") {
            None | Some(Value::Null) => None,
            Some(epoch) => Some(epoch.as_u64().ok_or(WatchtowerRefusal::MessageShape)?),
        };
        let format = members.text("payload_format")?;
        match (format.as_str(), key_epoch) {
            ("PLAINTEXT", None) | ("CIPHERTEXT", Some(_)) => {}
            _ => return Err(WatchtowerRefusal::MessageShape),
        }
        let tags = members.take("tags")?.into_map().ok_or(WatchtowerRefusal::MessageShape)?;
        let tags = tags.into_entries().into_iter().map(|(name, value)| Ok((name, Tag::from_value(value)?)));
        Ok(Self {
            stream_id: StreamId::from_value(members.take("stream_id")?)?,
            sequence: members.u64("sequence")?,
            timestamp_unix_ms: members.u64("timestamp_unix_ms")?,
            kind: members.text("kind")?,
            content_type: members.text("content_type")?,
            tags: tags.collect::<Result<_, WatchtowerRefusal>>()?,
            payload_inline: members.bytes("payload_inline")?,
            payload_hash: Bytes32(fixed(&members.bytes("payload_hash")?)?),
            key_epoch,
            signing_key_id: members.u64("signing_key_id")?,
            publisher_sig: Signature(fixed(&members.bytes("publisher_sig")?)?),
        })
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], WatchtowerRefusal> {
    bytes.try_into().map_err(|_| WatchtowerRefusal::MessageShape)
}

/// The members of a map, each taken once, by the type that it must have.
pub(crate) struct Members(pub Map);

impl Members {
    pub fn take(&mut self, name: &str) -> Result<Value, WatchtowerRefusal> {
        self.0.remove(name).ok_or(WatchtowerRefusal::MessageShape)
    }

    pub fn u64(&mut self, name: &str) -> Result<u64, WatchtowerRefusal> {
        self.take(name)?.as_u64().ok_or(WatchtowerRefusal::MessageShape)
    }

    pub fn text(&mut self, name: &str) -> Result<String, WatchtowerRefusal> {
        match self.take(name)? {
            Value::Text(text) => Ok(text),
            _ => Err(WatchtowerRefusal::MessageShape),
        }
    }

    pub fn bytes(&mut self, name: &str) -> Result<Vec<u8>, WatchtowerRefusal> {
        match self.take(name)? {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(WatchtowerRefusal::MessageShape),
        }
    }
}
