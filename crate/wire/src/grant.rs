//! Stream grants (§7).

use crate::bytes::{Bytes32, Signature};
use crate::codec::Canonical;
use crate::context::SigningContext;
use crate::error::DecodeError;
use crate::key::{HpkePublicKey, SigningPublicKey};
use crate::reader::Reader;
use crate::scope::{GroupScope, LaneScope};
use crate::writer::Writer;

/// One verb of a grant: bit `n` of its `verbs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Verb {
    Append,
    Consume,
    Acknowledge,
    Replay,
    GroupAdmin,
    Redrive,
    LaneAdmin,
}

impl Verb {
    /// Every verb, ascending by bit.
    pub const ALL: [Self; 7] = [
        Self::Append,
        Self::Consume,
        Self::Acknowledge,
        Self::Replay,
        Self::GroupAdmin,
        Self::Redrive,
        Self::LaneAdmin,
    ];

    /// The mask of this verb's bit.
    pub const fn mask(self) -> u16 {
        match self {
            Self::Append => 1,
            Self::Consume => 1 << 1,
            Self::Acknowledge => 1 << 2,
            Self::Replay => 1 << 3,
            Self::GroupAdmin => 1 << 4,
            Self::Redrive => 1 << 5,
            Self::LaneAdmin => 1 << 6,
        }
    }

    /// The specification's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Append => "APPEND",
            Self::Consume => "CONSUME",
            Self::Acknowledge => "ACKNOWLEDGE",
            Self::Replay => "REPLAY",
            Self::GroupAdmin => "GROUP_ADMIN",
            Self::Redrive => "REDRIVE",
            Self::LaneAdmin => "LANE_ADMIN",
        }
    }
}

/// The verb bits of a grant. Unknown bits cannot be represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Verbs(u16);

impl Verbs {
    const KNOWN: u16 = (1 << 7) - 1;

    /// Exactly these verbs.
    pub fn of(verbs: &[Verb]) -> Self {
        Self(verbs.iter().fold(0, |bits, verb| bits | verb.mask()))
    }

    /// True when `verb` is granted.
    pub const fn contains(self, verb: Verb) -> bool {
        self.0 & verb.mask() != 0
    }
}

impl Canonical for Verbs {
    const MIN_BYTES: usize = 2;

    fn read(reader: &mut Reader<'_>) -> Self {
        Self(Canonical::read(reader))
    }

    fn encode(&self, writer: &mut Writer) {
        self.0.encode(writer);
    }
}

object! {
    /// `StreamGrantV1`: signed by the stream's admin key, held by `holder_signing_key`.
    pub struct StreamGrant {
        context: SigningContext,
        stream_id: Bytes32,
        authorization_generation: u64,
        grant_nonce: Bytes32,
        holder_signing_key: SigningPublicKey,
        holder_hpke_key: Option<HpkePublicKey>,
        verbs: Verbs,
        lane_scope: LaneScope,
        group_scope: GroupScope,
        not_before_ms: u64,
        expires_at_ms: u64,
        max_message_bytes: u32,
        max_append_bytes_per_sec: u64,
        max_in_flight: u32,
        max_lane_creates_per_min: u32,
        signature: Signature,
    }
    check |grant: &StreamGrant| {
        if grant.verbs.0 & !Verbs::KNOWN == 0 { Ok(()) } else { Err(DecodeError::UnknownVerb) }
    };
}
