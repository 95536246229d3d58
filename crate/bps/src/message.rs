//! The protobuf messages of `pubsub/1.0.0` (package `bps`), and the values that they may carry. Unknown fields are ignored.

use alloc::vec::Vec;

use prost::Message;
use remuda_wire::{Address, Bytes32};

use crate::broadcast::Cohort;
use crate::refusal::BpsRefusal;

/// `FEED_TOPIC`, the only binding that is accepted.
pub const BINDING_FEED_TOPIC: i32 = 4;

/// The longest encoding of a valid broadcast: its chunk and its other fields.
pub(crate) const MAX_BROADCAST_BYTES: usize = crate::soc::MAX_SOC_BYTES + 64;

#[derive(Clone, PartialEq, Message)]
struct CohortSpecMessage {
    #[prost(bytes = "vec", tag = "1")]
    topic: Vec<u8>,
    #[prost(int32, tag = "2")]
    binding: i32,
    #[prost(bytes = "vec", tag = "3")]
    admin: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct JoinMessage {
    #[prost(message, optional, tag = "1")]
    cohort: Option<CohortSpecMessage>,
    #[prost(bytes = "vec", tag = "2")]
    addr: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct AckMessage {
    #[prost(int32, tag = "1")]
    status: i32,
    #[prost(bytes = "vec", tag = "2")]
    challenge: Vec<u8>,
}

/// `Broadcast`: a chunk, and what its identifier was derived from. None of it is taken on trust, so nothing of it is
/// looked at before [`crate::judge`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Broadcast {
    /// The single-owner chunk.
    #[prost(bytes = "vec", tag = "1")]
    pub soc: Vec<u8>,
    /// The kind, known or not.
    #[prost(int32, tag = "2")]
    pub kind: i32,
    /// The challenge of the stream that it was signed on.
    #[prost(bytes = "vec", tag = "3")]
    pub challenge: Vec<u8>,
    /// Its place in the feed.
    #[prost(uint64, tag = "4")]
    pub index: u64,
}

fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M, BpsRefusal> {
    M::decode(bytes).map_err(|_| BpsRefusal::Protobuf)
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], BpsRefusal> {
    bytes.try_into().map_err(|_| BpsRefusal::Frame)
}

impl Broadcast {
    /// Decodes it.
    ///
    /// # Errors
    /// [`BpsRefusal::Protobuf`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BpsRefusal> {
        decode(bytes)
    }

    /// Its fields in order, without defaults.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}

/// `Join`: which cohort, and as whom. Only the admin may publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Which cohort.
    pub cohort: Cohort,
    /// The identity of the stream.
    pub addr: Address,
}

impl Join {
    /// Decodes and checks it.
    ///
    /// # Errors
    /// [`BpsRefusal::Protobuf`], [`BpsRefusal::Frame`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BpsRefusal> {
        let JoinMessage { cohort, addr } = decode(bytes)?;
        let cohort = cohort.ok_or(BpsRefusal::Frame)?;
        if cohort.binding != BINDING_FEED_TOPIC {
            return Err(BpsRefusal::Frame);
        }
        let cohort = Cohort { topic: Bytes32(fixed(&cohort.topic)?), admin: Address(fixed(&cohort.admin)?) };
        Ok(Self { cohort, addr: Address(fixed(&addr)?) })
    }

    /// Its fields in order.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Cohort { topic, admin } = self.cohort;
        let cohort = CohortSpecMessage { topic: topic.0.into(), binding: BINDING_FEED_TOPIC, admin: admin.0.into() };
        JoinMessage { cohort: Some(cohort), addr: self.addr.0.into() }.encode_to_vec()
    }
}

/// `Status` of an [`Ack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Joined.
    Ok,
    /// No room now.
    Full,
    /// Not here, ever.
    Rejected,
}

impl Status {
    const ALL: [(i32, Self); 3] = [(1, Self::Ok), (2, Self::Full), (3, Self::Rejected)];

    /// The specification's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Full => "FULL",
            Self::Rejected => "REJECTED",
        }
    }
}

/// `Ack`: the broker's answer to a [`Join`]. With `OK` comes the challenge of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The answer.
    pub status: Status,
    /// 32 bytes for `OK`; whatever came otherwise.
    pub challenge: Vec<u8>,
}

impl Ack {
    /// Decodes and checks it.
    ///
    /// # Errors
    /// [`BpsRefusal::Protobuf`], [`BpsRefusal::Frame`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BpsRefusal> {
        let AckMessage { status, challenge } = decode(bytes)?;
        let status = Status::ALL.iter().find(|(number, _)| *number == status).ok_or(BpsRefusal::Frame)?.1;
        if status == Status::Ok {
            fixed::<32>(&challenge)?;
        }
        Ok(Self { status, challenge })
    }

    /// The challenge of the stream, when it was joined.
    pub fn joined(&self) -> Option<Bytes32> {
        (self.status == Status::Ok).then(|| fixed(&self.challenge).ok().map(Bytes32)).flatten()
    }

    /// Its fields in order, without defaults.
    pub fn to_bytes(&self) -> Vec<u8> {
        let status = Status::ALL.iter().find(|(_, status)| *status == self.status).map_or(0, |(number, _)| *number);
        AckMessage { status, challenge: self.challenge.clone() }.encode_to_vec()
    }
}
