//! What an engine tells.

use remuda_position::PositionKey;
use remuda_verify::fast::Assurance;
use remuda_wire::transition::TransitionKind;
use remuda_wire::Bytes32;

use crate::append::{AppendId, AppendOutcome};
use crate::failure::Failure;

/// How the engine stands to its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Not started.
    Idle,
    /// Reading the chain, or in the handshake.
    Connecting,
    /// In session.
    Open,
    /// Cut off; tries again by itself.
    Waiting {
        /// When.
        retry_at_ms: u64,
    },
    /// Ended for good: only a new start helps.
    Closed,
}

/// Something that an application may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "each is handed out as it is made")]
pub enum Event {
    /// The connection, a boundary, or the state of a subscription changed.
    StatusChanged,
    /// A verified batch is durable.
    Batch {
        /// Of which position.
        key: PositionKey,
        /// Its checkpoint.
        checkpoint: Bytes32,
        /// Its lineage.
        broker_epoch: u64,
        /// First sequence of the whole batch.
        first_sequence: u64,
        /// Last sequence of the whole batch.
        last_sequence: u64,
        /// Records of ours in it.
        records: usize,
        /// The root that everything folded to.
        lane_map_root: Bytes32,
        /// The height whose stream record holds the key.
        served_at_height: u64,
        /// The provider's clock.
        committed_at_ms: u64,
        /// What was verified.
        assurance: Assurance,
        /// Number of the last durable item.
        last_item: u64,
    },
    /// A verified transition is durable.
    Transition {
        /// Of which position.
        key: PositionKey,
        /// How the lineage ended.
        kind: TransitionKind,
        /// The lineage that ended.
        from_epoch: Option<u64>,
        /// The lineage that began.
        to_epoch: u64,
        /// Records that waited and are withdrawn.
        discarded: usize,
        /// Number of the last durable item.
        last_item: u64,
    },
    /// Something failed; of a subscription, or of everything.
    Failure {
        /// Of which position.
        key: Option<PositionKey>,
        /// What.
        failure: Failure,
    },
    /// An append was settled.
    Appended {
        /// Which.
        id: AppendId,
        /// How.
        outcome: AppendOutcome,
    },
}
