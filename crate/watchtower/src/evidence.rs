//! Equivocation: two messages that the publisher signed for one sequence. Portable: the pair and the key schedule are all
//! that a third party needs, and a file has both.

use crate::cbor::{decode, map, Value};
use crate::message::{Members, StreamId, StreamMessage};
use crate::refusal::WatchtowerRefusal;
use crate::schedule::{KeyEntry, KeySchedule, MAX_ENTRIES};
use crate::signing::Profile;
use crate::transport::read_entry;
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

    /// The pair as a file of its own: [`MAGIC`], then deterministic CBOR of `{stream_id, schedule, a, b}`. The schedule is for
    /// readers who have none: those who trust another one judge by that.
    pub fn to_file(&self, schedule: &[KeyEntry]) -> Vec<u8> {
        let body = map([
            ("stream_id", self.first.stream_id.to_value()),
            ("schedule", Value::Array(schedule.iter().map(KeyEntry::to_value).collect())),
            ("a", self.first.to_value()),
            ("b", self.second.to_value()),
        ]);
        [MAGIC.as_slice(), &body.to_bytes()].concat()
    }
}

/// What a file of evidence of this family begins with. It is none of the audit files of `RESOLUTIONS.md` §8, whose kinds of
/// items are fixed and whose readers refuse every other magic.
pub const MAGIC: &[u8; 8] = b"WATCHEV1";

/// What somebody else claims to be a contradiction: to be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The stream that it is about.
    pub stream_id: StreamId,
    /// The key schedule, by the word of whoever made the file.
    pub schedule: Vec<KeyEntry>,
    /// The two messages.
    pub pair: (StreamMessage, StreamMessage),
}

impl Claim {
    /// Reads a file of evidence.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::Cbor`], also for another magic, [`WatchtowerRefusal::MessageShape`],
    /// [`WatchtowerRefusal::KeySchedule`] for a key of another length or too many of them.
    pub fn from_file(bytes: &[u8]) -> Result<Self, WatchtowerRefusal> {
        let body = bytes.strip_prefix(MAGIC).ok_or(WatchtowerRefusal::Cbor)?;
        let mut members = Members(decode(body)?.into_map().ok_or(WatchtowerRefusal::MessageShape)?);
        let schedule = members.take("schedule")?.into_array().ok_or(WatchtowerRefusal::MessageShape)?;
        if schedule.len() > MAX_ENTRIES {
            return Err(WatchtowerRefusal::KeySchedule);
        }
        let mut message = |name| StreamMessage::from_value(members.take(name)?);
        let pair = (message("a")?, message("b")?);
        let stream_id = StreamId::from_value(members.take("stream_id")?)?;
        Ok(Self { stream_id, schedule: schedule.into_iter().map(read_entry).collect::<Result<_, _>>()?, pair })
    }

    /// Judges it under a schedule: that of the file, or one that the reader trusts.
    ///
    /// # Errors
    /// As [`Equivocation::judge`], and [`WatchtowerRefusal::KeySchedule`] for a schedule that is none.
    pub fn judge(&self, schedule: &[KeyEntry]) -> Result<Option<Equivocation>, WatchtowerRefusal> {
        let schedule = KeySchedule::new(schedule.iter().copied())?;
        let (a, b) = self.pair.clone();
        Equivocation::judge(&self.stream_id, &schedule, a, b)
    }
}
