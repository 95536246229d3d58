//! Equivocation: two messages that the publisher signed for one sequence. Portable: the pair and the key schedule are all
//! that a third party needs.

use crate::cbor::{decode, map, Value};
use crate::message::{Members, StreamId, StreamMessage};
use crate::refusal::WatchtowerRefusal;
use crate::schedule::KeySchedule;
use crate::signing::Profile;
use crate::verifier::{Cursor, Verifier};

use alloc::vec::Vec;

/// A proven contradiction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivocation {
    first: StreamMessage,
    second: StreamMessage,
}

impl Equivocation {
    /// Judges a pair: both of this stream and signed under this schedule, for one sequence, with other signing payloads.
    /// The order of the two means nothing. `None`: both are true, and do not contradict each other.
    ///
    /// # Errors
    /// Those of [`Verifier::authenticate`] for the first that fails.
    pub fn judge(
        stream_id: &StreamId,
        schedule: &KeySchedule,
        first: StreamMessage,
        second: StreamMessage,
    ) -> Result<Option<Self>, WatchtowerRefusal> {
        let verifier = Verifier {
            stream_id: stream_id.clone(),
            profile: Profile::default(),
            schedule: schedule.clone(),
            cursor: Cursor::default(),
        };
        let digests = (verifier.authenticate(&first)?, verifier.authenticate(&second)?);
        let contradicts = first.sequence == second.sequence && digests.0 != digests.1;
        Ok(contradicts.then_some(Self { first, second }))
    }

    /// The two messages.
    pub const fn pair(&self) -> (&StreamMessage, &StreamMessage) {
        (&self.first, &self.second)
    }

    /// The pair as bytes: deterministic CBOR of `{a, b}`.
    pub fn to_bytes(&self) -> Vec<u8> {
        map([("a", self.first.to_value()), ("b", self.second.to_value())]).to_bytes()
    }

    /// Reads a pair that somebody else claims to contradict itself: to be judged.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::Cbor`], [`WatchtowerRefusal::MessageShape`].
    pub fn read_pair(bytes: &[u8]) -> Result<(StreamMessage, StreamMessage), WatchtowerRefusal> {
        let mut members = Members(decode(bytes)?.into_map().ok_or(WatchtowerRefusal::MessageShape)?);
        let mut message = |name| -> Result<StreamMessage, WatchtowerRefusal> {
            let value: Value = members.take(name)?;
            StreamMessage::from_value(value)
        };
        Ok((message("a")?, message("b")?))
    }
}
