//! One message after the other: hash, key, signature, then its place in the sequence.

use alloc::boxed::Box;
use core::ops::Deref;

use remuda_wire::Bytes32;

use crate::message::{StreamId, StreamMessage, MAX_INLINE_PAYLOAD_BYTES};
use crate::refusal::WatchtowerRefusal;
use crate::schedule::KeySchedule;
use crate::signing::{sha256, Profile};

/// Where a feed stands: what a message is judged against, and what must be durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The last sequence; 0 before the first message.
    pub last_sequence: u64,
    /// SHA-256 of the signing payload of the message there; `None` when it is not known.
    pub last_digest: Option<Bytes32>,
}

/// A message that the publisher signed. Made by [`Verifier::verify`] alone, in its place in the sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedMessage {
    message: StreamMessage,
    digest: Bytes32,
}

impl VerifiedMessage {
    /// The position just after it.
    pub fn cursor(&self) -> Cursor {
        Cursor { last_sequence: self.message.sequence, last_digest: Some(self.digest) }
    }

    /// The message, no longer known to be verified.
    pub fn into_inner(self) -> StreamMessage {
        self.message
    }
}

impl Deref for VerifiedMessage {
    type Target = StreamMessage;

    fn deref(&self) -> &StreamMessage {
        &self.message
    }
}

/// What a message came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // The large one is the common one.
pub enum Step {
    /// The next one.
    Verified(VerifiedMessage),
    /// The last one again: skipped.
    Repeat,
}

/// A message that was refused. The verifier stands where it stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub verdict: WatchtowerRefusal,
    /// The message.
    pub message: StreamMessage,
}

/// Judges the messages of one stream.
#[derive(Clone, Debug)]
pub struct Verifier {
    /// Which stream.
    pub stream_id: StreamId,
    /// Which fields are signed.
    pub profile: Profile,
    /// Who signs when.
    pub schedule: KeySchedule,
    /// Where we stand.
    pub cursor: Cursor,
}

impl Verifier {
    /// Whether the publisher signed this message of our stream: everything but its place. Answers the SHA-256 of its
    /// signing payload.
    ///
    /// # Errors
    /// In this order: [`PayloadTooLarge`](WatchtowerRefusal::PayloadTooLarge), [`Stream`](WatchtowerRefusal::Stream),
    /// [`PayloadHash`](WatchtowerRefusal::PayloadHash), [`KeySchedule`](WatchtowerRefusal::KeySchedule),
    /// [`Signature`](WatchtowerRefusal::Signature).
    pub fn authenticate(&self, message: &StreamMessage) -> Result<Bytes32, WatchtowerRefusal> {
        if message.payload_inline.len() > MAX_INLINE_PAYLOAD_BYTES {
            return Err(WatchtowerRefusal::PayloadTooLarge);
        }
        if message.stream_id != self.stream_id {
            return Err(WatchtowerRefusal::Stream);
        }
        if message.payload_hash != sha256(&message.payload_inline) {
            return Err(WatchtowerRefusal::PayloadHash);
        }
        let key = self.schedule.key_at(message.sequence, message.signing_key_id)?;
        let key = key.ok_or(WatchtowerRefusal::Signature)?;
        let signed = self.profile.signing_bytes(message);
        key.verify(&signed, &message.publisher_sig).map_err(|_| WatchtowerRefusal::Signature)?;
        Ok(sha256(&signed))
    }

    /// Judges a message and, when it is the next one, moves behind it.
    ///
    /// At a position whose digest is not known the first message there is taken for it.
    ///
    /// # Errors
    /// Those of [`Self::authenticate`], then [`Equivocation`](WatchtowerRefusal::Equivocation),
    /// [`Regression`](WatchtowerRefusal::Regression) or [`Gap`](WatchtowerRefusal::Gap).
    pub fn verify(&mut self, message: StreamMessage) -> Result<Step, Box<Refused>> {
        let refuse = |verdict, message| Err(Box::new(Refused { verdict, message }));
        let digest = match self.authenticate(&message) {
            Ok(digest) => digest,
            Err(verdict) => return refuse(verdict, message),
        };
        let Cursor { last_sequence, last_digest } = self.cursor;
        if message.sequence == last_sequence {
            if last_digest.is_some_and(|last| last != digest) {
                return refuse(WatchtowerRefusal::Equivocation, message);
            }
            self.cursor.last_digest = Some(digest);
            return Ok(Step::Repeat);
        }
        if message.sequence < last_sequence {
            return refuse(WatchtowerRefusal::Regression, message);
        }
        if Some(message.sequence) != last_sequence.checked_add(1) {
            return refuse(WatchtowerRefusal::Gap, message);
        }
        let verified = VerifiedMessage { message, digest };
        self.cursor = verified.cursor();
        Ok(Step::Verified(verified))
    }
}
