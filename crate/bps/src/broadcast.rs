//! The judgement over one broadcast: kind, length, identifier, signer, payload of an AUTH, cursor, in this order.

use alloc::vec::Vec;

use remuda_wire::{Address, Bytes32};

use crate::message::Broadcast;
use crate::refusal::BpsRefusal;
use crate::soc::SingleOwnerChunk;
use crate::topic::{session_topic, update_id, KIND_AUTH, KIND_DATA};

/// What a cohort is: a feed topic and its one author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cohort {
    /// The topic.
    pub topic: Bytes32,
    /// Who alone may publish.
    pub admin: Address,
}

/// Indices that never came, both ends included. Reported, never filled, never waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// What a valid broadcast is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// An update above the cursor, which moves to its index.
    Delivered {
        /// What the author said.
        payload: Vec<u8>,
        /// What is missing since the cursor.
        gap: Option<Gap>,
    },
    /// A claim: never delivered.
    Claim,
    /// Not for us, and no violation: [`BpsRefusal::UnknownKind`] or [`BpsRefusal::ReplayedIndex`].
    Dropped(BpsRefusal),
}

/// Judges a broadcast. `cursor` is the last delivered index: at or below it everything is a replay. The challenge is
/// compared with nothing: it is in the identifier.
///
/// # Errors
/// In this order: [`BpsRefusal::Frame`] for a challenge of another length, [`BpsRefusal::SocLength`], [`BpsRefusal::Id`],
/// [`BpsRefusal::Signer`], [`BpsRefusal::AuthPayload`]. Each is the broker's violation.
pub fn judge(cohort: &Cohort, broadcast: &Broadcast, cursor: Option<u64>) -> Result<Judged, BpsRefusal> {
    let kind = match u8::try_from(broadcast.kind) {
        Ok(kind @ (KIND_DATA | KIND_AUTH)) => kind,
        _ => return Ok(Judged::Dropped(BpsRefusal::UnknownKind)),
    };
    let challenge = Bytes32(broadcast.challenge.as_slice().try_into().map_err(|_| BpsRefusal::Frame)?);
    let chunk = SingleOwnerChunk::new(&broadcast.soc)?;
    if chunk.id() != update_id(&session_topic(&cohort.topic, kind, &challenge), broadcast.index) {
        return Err(BpsRefusal::Id);
    }
    chunk.verify(&cohort.admin)?;
    if kind == KIND_AUTH {
        return if chunk.payload().is_empty() { Ok(Judged::Claim) } else { Err(BpsRefusal::AuthPayload) };
    }
    if cursor.is_some_and(|cursor| broadcast.index <= cursor) {
        return Ok(Judged::Dropped(BpsRefusal::ReplayedIndex));
    }
    let first = cursor.and_then(|cursor| cursor.checked_add(1)).filter(|first| *first < broadcast.index);
    let gap = first.zip(broadcast.index.checked_sub(1)).map(|(first, last)| Gap { first, last });
    Ok(Judged::Delivered { payload: chunk.payload().into(), gap })
}
