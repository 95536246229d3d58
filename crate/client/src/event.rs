//! What an engine tells.

use alloc::rc::Rc;
use alloc::vec::Vec;

use remuda_position::PositionKey;
use remuda_session::Transport;
use remuda_verify::fast::Assurance;
use remuda_verify::snapshot::SnapshotCheck;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::transition::TransitionKind;
use remuda_wire::Bytes32;

use crate::command::{CommandId, CommandOutcome};
use crate::engine::{SnapshotDraft, TailKey};
use crate::failure::Failure;
use crate::group::GroupNews;
use crate::outbox::AppendUpdate;
use crate::recorder::Recording;

/// How the engine stands to its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Not started.
    Idle,
    /// Reading the chain, or in the handshake.
    Connecting,
    /// In session.
    Open {
        /// Over what.
        transport: Transport,
    },
    /// Cut off; tries again by itself.
    Waiting {
        /// When.
        retry_at_ms: u64,
    },
    /// Ended for good: only a new start helps.
    Closed,
}

/// A verified batch as people are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSummary {
    /// Its checkpoint.
    pub checkpoint: Bytes32,
    /// Its lineage.
    pub broker_epoch: u64,
    /// First sequence of the whole batch.
    pub first_sequence: u64,
    /// Last sequence of the whole batch.
    pub last_sequence: u64,
    /// Records of ours in it.
    pub records: usize,
    /// The root that everything folded to.
    pub lane_map_root: Bytes32,
    /// The key that signed, of the stream record at that height.
    pub signing_key: Option<Bytes32>,
    /// The height whose stream record holds the key.
    pub served_at_height: u64,
    /// The provider's clock.
    pub committed_at_ms: u64,
    /// What was verified.
    pub assurance: Assurance,
}

/// Verified records of a standard stream as people are told of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Sequence of the last record.
    pub last_sequence: u64,
    /// Digest of its receipt.
    pub receipt: Bytes32,
    /// How many.
    pub records: usize,
}

/// A verified transition as people are told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransitionSummary {
    /// How the lineage ended.
    pub kind: TransitionKind,
    /// The lineage that ended.
    pub from_epoch: Option<u64>,
    /// The lineage that began.
    pub to_epoch: u64,
    /// Our own appends that were acknowledged in the lineage that ended, are void, and are sent again.
    pub returned: usize,
}

/// Snapshots that a position begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hydrated {
    /// Which position.
    pub key: PositionKey,
    /// The bytes of each, in the order in which they were given: the buffers that were hashed.
    pub contents: Vec<Vec<u8>>,
    /// The checks that each of them passed, in order.
    pub checks: Vec<SnapshotCheck>,
    /// Number of the last durable item: the one that names them.
    pub last_item: u64,
}

/// Something that an application may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "each is handed out as it is made")]
pub enum Event {
    /// The connection, a boundary, or the state of a subscription changed.
    StatusChanged,
    /// The latest view of the chain was read: [`crate::Engine::stream`].
    ChainRead,
    /// A verified batch is durable.
    Batch {
        /// Of which position.
        key: PositionKey,
        /// What was verified, and by what.
        batch: BatchSummary,
        /// Number of the last durable item.
        last_item: u64,
    },
    /// Verified records of a standard stream are durable.
    Segment {
        /// Of which position.
        key: PositionKey,
        /// What was verified.
        segment: SegmentSummary,
        /// Number of the last durable item.
        last_item: u64,
    },
    /// Receipts of a group, verified, are durable; or a decision came to nothing.
    Group {
        /// Of which position.
        key: PositionKey,
        /// What they say, in order.
        news: Vec<GroupNews>,
    },
    /// A verified transition is durable.
    Transition {
        /// Of which position.
        key: PositionKey,
        /// What it says.
        transition: TransitionSummary,
        /// Records that waited and are withdrawn.
        discarded: usize,
        /// Number of the last durable item.
        last_item: u64,
    },
    /// A position goes on behind a hole, which is its last item.
    Gap {
        /// Of which position.
        key: PositionKey,
        /// Number of the last durable item.
        last_item: u64,
    },
    /// What came of [`crate::Engine::hydrate`].
    Hydrated {
        /// Which.
        id: CommandId,
        /// The snapshots, whose position is durable, or why there is none: then nothing has changed.
        outcome: Result<Hydrated, Failure>,
    },
    /// What came of [`crate::Engine::draft`].
    Drafted {
        /// Which.
        id: CommandId,
        /// The manifests, to be signed.
        outcome: Result<SnapshotDraft, Failure>,
    },
    /// Something failed; of a subscription, or of everything.
    Failure {
        /// Of which position.
        key: Option<PositionKey>,
        /// What.
        failure: Failure,
    },
    /// A record of a tail came: in order, and nothing of it is proven.
    Painted {
        /// Of which tail.
        key: TailKey,
        /// The record.
        record: Rc<RecordDelivery>,
    },
    /// A tail ended by a failure that repeating cannot help.
    TailFailed {
        /// Which tail.
        key: TailKey,
        /// Why.
        failure: Failure,
    },
    /// A recording ended; `None` when there was none.
    Recorded(Option<Recording>),
    /// An append stands elsewhere, and the database holds that.
    Append(AppendUpdate),
    /// A command was settled.
    Settled {
        /// Which.
        id: CommandId,
        /// How.
        outcome: CommandOutcome,
    },
}
