//! Every lie that the feed tells on request, and the verdict that must catch it.

use clap::ValueEnum;
use ed25519_dalek::SigningKey;
use remuda_watchtower::cbor::Value;
use remuda_watchtower::message::MAX_INLINE_PAYLOAD_BYTES;
use remuda_watchtower::signing::sha256;
use remuda_watchtower::{StreamId, StreamMessage};

use super::author::{sign, Author};

/// A lie by name. What takes the publisher's key is the publisher's lie; the others are the actor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FeedLie {
    /// One message in the middle of an answer is left out. Caught by `watchtower/gap`.
    WithholdMessage,
    /// An answer ends with its first message again. Caught by `watchtower/regression`.
    RepeatMessage,
    /// A payload is changed. Caught by `watchtower/payload-hash`.
    AlterPayload,
    /// A header is changed. Caught by `watchtower/signature`.
    AlterHeader,
    /// A message is signed by a stranger. Caught by `watchtower/signature`.
    WrongKey,
    /// A message names a key that no history has. Caught by `watchtower/key-schedule`.
    UnannouncedKey,
    /// A message of another stream, validly signed. Caught by `watchtower/stream`.
    OtherStream,
    /// A payload above the bound, validly signed. Caught by `watchtower/payload-too-large`.
    OversizedPayload,
    /// A message of another version. Caught by `watchtower/message-shape`.
    LaterVersion,
    /// A second message for one sequence, validly signed. Caught by `watchtower/equivocation`.
    Equivocate,
    /// An answer with a byte behind it. Caught by `watchtower/cbor`.
    TrailingByte,
    /// A cursor that is retained is called too old. Caught by `watchtower/message-shape`.
    FalseFloor,
}

impl FeedLie {
    /// The code that a feed must report.
    pub const fn verdict(self) -> &'static str {
        match self {
            Self::WithholdMessage => "watchtower/gap",
            Self::RepeatMessage => "watchtower/regression",
            Self::AlterPayload => "watchtower/payload-hash",
            Self::AlterHeader | Self::WrongKey => "watchtower/signature",
            Self::UnannouncedKey => "watchtower/key-schedule",
            Self::OtherStream => "watchtower/stream",
            Self::OversizedPayload => "watchtower/payload-too-large",
            Self::LaterVersion | Self::FalseFloor => "watchtower/message-shape",
            Self::Equivocate => "watchtower/equivocation",
            Self::TrailingByte => "watchtower/cbor",
        }
    }

    /// Bends an answer of at least two messages; a shorter one is told as it is.
    pub fn bend_page(self, page: Vec<StreamMessage>, author: &Author) -> Vec<Value> {
        let mut page = page;
        let [first, .., last] = page.as_mut_slice() else {
            return page.iter().map(StreamMessage::to_value).collect();
        };
        match self {
            Self::AlterPayload => last.payload_inline.push(b'!'),
            Self::AlterHeader => last.kind.push('!'),
            Self::WrongKey => sign(&SigningKey::from_bytes(&[0x57; 32]), last),
            Self::UnannouncedKey => {
                last.signing_key_id += 1;
                sign(&SigningKey::from_bytes(&[0x57; 32]), last);
            }
            Self::OtherStream => {
                last.stream_id = StreamId::Text("another".into());
                author.sign_again(last);
            }
            Self::OversizedPayload => {
                last.payload_inline.resize(MAX_INLINE_PAYLOAD_BYTES + 1, 0);
                last.payload_hash = sha256(&last.payload_inline);
                author.sign_again(last);
            }
            Self::RepeatMessage => {
                let again = first.clone();
                page.push(again);
            }
            Self::Equivocate => {
                let mut other = last.clone();
                other.kind.push('!');
                author.sign_again(&mut other);
                page.push(other);
            }
            Self::WithholdMessage => {
                let before_last = page.len() - 2;
                page.remove(before_last);
            }
            Self::LaterVersion | Self::TrailingByte | Self::FalseFloor => {}
        }
        let mut values: Vec<_> = page.iter().map(StreamMessage::to_value).collect();
        if let (Self::LaterVersion, Some(Value::Map(last))) = (self, values.last_mut()) {
            last.insert("version".into(), 2.into());
        }
        values
    }
}
