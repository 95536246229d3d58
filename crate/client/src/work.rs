//! What waits to be applied, in order, and what it waits for.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;

use remuda_position::PositionKey;
use remuda_verify::snapshot::SnapshotCheck;
use remuda_wire::audit::HeldObject;
use remuda_wire::checkpoint::{CheckpointFrame, CheckpointReceipt};
use remuda_wire::context::FinalizedView;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::record::RecordId;
use remuda_wire::response::ResponseBody;
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::Bytes32;

use crate::command::{receipt_view, CommandId, PendingRequest};
use crate::engine::Beginning;
use crate::event::{BatchSummary, SegmentSummary, TransitionSummary};
use crate::failure::Failure;
use crate::group::GroupUpdate;

/// One frame for one subscription.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "as large as the frame that it is, for as long as it is judged")]
pub(crate) enum Work {
    /// A record.
    Delivery(Rc<RecordDelivery>),
    /// The end of a batch.
    Checkpoint(CheckpointFrame),
    /// A transition, for the subscription named: the frame itself names none, so every open one gets it.
    Transition(Bytes32, Rc<BrokerEpochTransition>),
    /// A transition that the subscription named has reached.
    Adopt(Bytes32, Rc<BrokerEpochTransition>),
    /// A link of a group's chain, for the subscription that follows it.
    Group(Bytes32, GroupUpdate),
    /// The provider ended the subscription named, after everything that came before.
    Ended(Bytes32, Failure),
    /// The provider refused the cursor of the subscription named.
    TooOld(Bytes32, TooOld),
    /// A position begins anew: of no subscription.
    Begin(PositionKey, Box<Beginning>),
    /// A request was answered: of no subscription.
    Answer(PendingRequest, ResponseBody),
}

impl Work {
    /// The subscription that it is for, where it is for one.
    pub(crate) fn subscription_id(&self) -> Option<Bytes32> {
        match self {
            Self::Delivery(delivery) => Some(delivery.subscription_id),
            Self::Checkpoint(frame) => Some(frame.subscription_id),
            Self::Transition(subscription_id, _)
            | Self::Adopt(subscription_id, _)
            | Self::Group(subscription_id, _)
            | Self::Ended(subscription_id, _)
            | Self::TooOld(subscription_id, _) => Some(*subscription_id),
            Self::Begin(..) | Self::Answer(..) => None,
        }
    }

    /// Whether it can show what became of our own appends.
    pub(crate) const fn is_evidence(&self) -> bool {
        matches!(self, Self::Checkpoint(_) | Self::Adopt(..))
    }

    /// The lineage that it is of, where it is of one.
    pub(crate) fn lineage(&self) -> Option<u64> {
        match self {
            Self::Delivery(delivery) => match &delivery.record_id {
                RecordId::Fast(id) => Some(id.broker_epoch),
                RecordId::Standard(_) => None,
            },
            Self::Checkpoint(frame) => Some(frame.receipt.broker_epoch),
            Self::Transition(..)
            | Self::Adopt(..)
            | Self::Group(..)
            | Self::Ended(..)
            | Self::TooOld(..)
            | Self::Begin(..)
            | Self::Answer(..) => None,
        }
    }

    /// The views whose keys it needs.
    pub(crate) fn served_at(&self) -> impl Iterator<Item = &FinalizedView> {
        let (one, other) = match self {
            Self::Delivery(delivery) => (
                delivery.append_receipt.as_ref().map(|receipt| &receipt.served_at),
                delivery.delivery_state_receipt.as_ref().map(|receipt| &receipt.served_at),
            ),
            Self::Transition(..) | Self::Ended(..) | Self::Begin(..) => (None, None),
            Self::TooOld(_, too_old) => (Some(too_old.anchor.signed().served_at()), None),
            Self::Checkpoint(frame) => (Some(&frame.receipt.served_at), None),
            Self::Adopt(_, transition) => (Some(&transition.served_at), None),
            Self::Group(_, update) => (Some(&update.receipt().served_at), None),
            Self::Answer(_, result) => (receipt_view(result), None),
        };
        one.into_iter().chain(other)
    }
}

/// What the queue waits for.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// Nothing: the next piece of work is taken.
    Nothing,
    /// A chain read; `retry_at_ms` when the last one failed.
    Key { view: FinalizedView, retry_at_ms: Option<u64> },
    /// A commit.
    Commit { key: PositionKey, told: Told },
}

/// What is told of a commit once it is one.
#[derive(Debug)]
pub(crate) enum Told {
    /// A batch, with its receipt.
    Batch(BatchSummary, Box<CheckpointReceipt>),
    /// Records of a standard stream, with the receipt of the last one.
    Segment(SegmentSummary, Option<Box<AppendReceipt>>),
    /// So many of what a group's consumer has to tell.
    Group(usize),
    /// A transition.
    Transition(TransitionSummary),
    /// A position that begins anew.
    Begun(Begun),
}

/// What a position began anew with.
#[derive(Debug)]
pub(crate) enum Begun {
    /// A hole.
    Gap,
    /// Snapshots, asked for under this id.
    Snapshots { id: CommandId, contents: Vec<Vec<u8>>, checks: Vec<SnapshotCheck> },
}

/// A `CursorTooOld` whose anchor is not judged yet.
#[derive(Debug)]
pub(crate) struct TooOld {
    /// The anchor, not authentic yet.
    pub(crate) anchor: HeldObject,
    /// The same, as it came.
    pub(crate) details: Vec<u8>,
    /// What it is when the anchor is good.
    pub(crate) failure: Failure,
}
