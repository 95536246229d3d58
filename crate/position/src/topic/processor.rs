//! What an application does with envelopes: it applies them to its own state, inside the attempt (STR-070, STR-071).

use alloc::vec::Vec;

use remuda_streaming::{SequenceId, Topic};

use super::message::NewMessage;
pub use super::row::RejectionReason;

/// An identity update that an envelope names: exactly this inbox at exactly this place (STR-076).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentityReference {
    /// The inbox's identity topic.
    pub inbox: Topic,
    /// The update.
    pub at: SequenceId,
}

/// One envelope, and everything that may decide about it: the ordered prefix before it is in `state`.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Whose envelope.
    pub topic: Topic,
    /// Its place.
    pub sequence_id: SequenceId,
    /// The `ServerEnvelope`, as received.
    pub envelope: &'a [u8],
    /// The backend's hash of it.
    pub message_hash: &'a [u8; 32],
    /// The state after everything before it; of a welcome, `None`.
    pub state: Option<&'a [u8]>,
    /// The identity states that it asked for, by exact reference.
    pub identities: &'a [(IdentityReference, Vec<u8>)],
}

impl Attempt<'_> {
    /// The verified state of an inbox at exactly this update, when it was asked for and is there.
    pub fn identity(&self, reference: &IdentityReference) -> Option<&[u8]> {
        self.identities.iter().find(|(known, _)| known == reference).map(|(_, state)| state.as_slice())
    }
}

/// What applying an envelope of a group or identity makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The state after it; of an identity, also the snapshot that references to this place get.
    pub state: Vec<u8>,
    /// The epoch of that state.
    pub epoch: u64,
    /// Messages that it makes deliverable (STR-103).
    pub messages: Vec<NewMessage>,
    /// It removes this installation from the group (STR-086).
    pub removes_us: bool,
}

/// Where a joined group begins (STR-083).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinAnchor {
    /// Behind this place of the group's topic; it is not 0.
    At(SequenceId),
    /// The group's initial state: the only case in which it is 0.
    InitialState,
}

impl JoinAnchor {
    pub(crate) const fn place(self) -> SequenceId {
        match self {
            Self::At(place) => place,
            Self::InitialState => SequenceId::BEGINNING,
        }
    }
}

/// What a valid welcome installs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The group's topic.
    pub group: Topic,
    /// From the validated join metadata.
    pub anchor: JoinAnchor,
    /// The welcome's epoch.
    pub epoch: u64,
    /// The joined state.
    pub state: Vec<u8>,
    /// The join's transcript.
    pub messages: Vec<NewMessage>,
}

/// Why an envelope waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// It needs the state of an inbox at an exact place.
    Identity(IdentityReference),
    /// A welcome for an active group needs the group's prefix through its anchor first (STR-082).
    GroupPrefix {
        /// The group.
        group: Topic,
        /// The anchor.
        through: SequenceId,
    },
    /// State that is known to have been there is gone (STR-074).
    MissingState,
    /// It is of a version that is not supported here.
    Unsupported,
    /// A welcome pointer whose destination has nothing yet (STR-081).
    UnresolvedPointer,
}

/// The processor's word. A rejection depends on the ordered prefix, the installed state and verified proofs alone, never
/// on time or on what was sent (STR-074).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A group's or identity's envelope is applied.
    Applied(Applied),
    /// A welcome is valid.
    Joined(Join),
    /// Supported input that validation definitively rejects.
    Rejected(RejectionReason),
    /// Valid or unsupported work that cannot go on.
    Blocked(Block),
    /// A transient failure.
    Retry,
}

/// Applies envelopes. Synchronous: it waits for nothing, and what it computed is thrown away when the commit fails.
pub trait Processor {
    /// Judges one envelope.
    fn process(&self, attempt: &Attempt<'_>) -> Outcome;
}
