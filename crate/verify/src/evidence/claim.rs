//! What an object claims, as far as another can contradict it: the one place where a pair is judged.

use alloc::boxed::Box;
use core::cmp::Ordering;

use remuda_wire::record::RecordId;
use remuda_wire::verdict::Contradiction;
use remuda_wire::Bytes32;

use super::AuthenticatedObject;

/// The comparable part of an authenticated object.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub digest: Bytes32,
    pub height: u64,
    pub block_hash: Bytes32,
    pub body: Body,
}

/// One body per kind.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Append(Append),
    Checkpoint(Checkpoint),
    Transition(Transition),
    Group(Group),
    /// Boxed: rare, and larger than the receipts that a pool holds by the million.
    Anchor(Box<Anchor>),
    KeyBatch(KeyBatch),
}

#[derive(Clone, Debug)]
pub(super) struct Append {
    pub record_id: RecordId,
    pub lane_id: Bytes32,
    pub previous_global: Bytes32,
    pub previous_lane: Bytes32,
}

#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    pub broker_epoch: u64,
    pub first: u64,
    pub last: u64,
    pub previous: Bytes32,
}

#[derive(Clone, Debug)]
pub(super) struct Transition {
    pub predecessor: Option<u64>,
    pub replacement: u64,
    pub durable_checkpoint: Bytes32,
    pub durable_sequence: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    pub lane_id: Bytes32,
    pub group_id: Bytes32,
    pub previous: Bytes32,
}

#[derive(Clone, Debug)]
pub(super) struct Anchor {
    pub scope: AnchorScope,
    pub floor: u64,
    /// What stands just before the floor; a group anchor says nothing of the kind.
    pub predecessors: Option<(Bytes32, Option<Bytes32>)>,
    pub committed_at_ms: u64,
}

/// The comparison key of §15: anchors of different keys are evidence of nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AnchorScope {
    Standard(Option<Bytes32>),
    Group(Bytes32, Bytes32),
    Fast(u64),
}

#[derive(Clone, Debug)]
pub(super) struct KeyBatch {
    pub key_stream_id: Bytes32,
    pub first: u64,
    pub last: u64,
    pub previous: Bytes32,
}

impl Claim {
    pub fn of(object: &AuthenticatedObject) -> Self {
        let view = object.served_at();
        Self { digest: object.digest(), height: view.height, block_hash: view.block_hash, body: Body::of(object) }
    }

    /// The kind of fork, else a conflict of views. Equal digests are one object.
    pub fn contradicts(&self, other: &Self) -> Option<Contradiction> {
        if self.digest == other.digest {
            return None;
        }
        let view_conflict = self.height == other.height && self.block_hash != other.block_hash;
        self.fork(other).or(view_conflict.then_some(Contradiction::ViewConflict))
    }

    fn fork(&self, other: &Self) -> Option<Contradiction> {
        match (&self.body, &other.body) {
            (Body::Append(a), Body::Append(b)) => a.fork(b),
            (Body::Checkpoint(a), Body::Checkpoint(b)) => a.forks(b).then_some(Contradiction::CheckpointFork),
            (Body::Transition(a), Body::Transition(b)) => a.forks(b).then_some(Contradiction::TransitionFork),
            (Body::Group(a), Body::Group(b)) => a.forks(b).then_some(Contradiction::GroupFork),
            (Body::KeyBatch(a), Body::KeyBatch(b)) => a.forks(b).then_some(Contradiction::KeyBatchFork),
            (Body::Anchor(a), Body::Anchor(b)) => a.fork(self.height, b, other.height),
            (Body::Transition(transition), Body::Checkpoint(checkpoint)) => {
                transition.against(&self.digest, checkpoint, &other.digest)
            }
            (Body::Checkpoint(checkpoint), Body::Transition(transition)) => {
                transition.against(&other.digest, checkpoint, &self.digest)
            }
            (Body::Anchor(anchor), body) => anchor.against(body, &other.digest),
            (body, Body::Anchor(anchor)) => anchor.against(body, &self.digest),
            _ => None,
        }
    }
}

impl Body {
    fn of(object: &AuthenticatedObject) -> Self {
        match object {
            AuthenticatedObject::AppendReceipt(receipt) => Self::Append(Append {
                record_id: receipt.record_id,
                lane_id: receipt.lane_id,
                previous_global: receipt.previous_global_receipt,
                previous_lane: receipt.previous_lane_receipt,
            }),
            AuthenticatedObject::CheckpointReceipt(receipt) => Self::Checkpoint(Checkpoint {
                broker_epoch: receipt.broker_epoch,
                first: receipt.first_sequence,
                last: receipt.last_sequence,
                previous: receipt.previous_checkpoint,
            }),
            AuthenticatedObject::BrokerEpochTransition(transition) => Self::Transition(Transition {
                predecessor: transition.previous_lineage.map(|lineage| lineage.broker_epoch),
                replacement: transition.replacement_broker_epoch,
                durable_checkpoint: transition.last_durable_checkpoint,
                durable_sequence: transition.last_durable_sequence,
            }),
            AuthenticatedObject::DeliveryStateReceipt(receipt) => Self::Group(Group {
                lane_id: receipt.lane_id,
                group_id: receipt.group_id,
                previous: receipt.previous_group_receipt,
            }),
            AuthenticatedObject::StandardRetentionAnchor(anchor) => Self::Anchor(Box::new(Anchor {
                scope: AnchorScope::Standard(anchor.lane_id),
                floor: anchor.first_retained_sequence,
                predecessors: Some((anchor.previous_global_receipt, anchor.previous_lane_receipt)),
                committed_at_ms: anchor.committed_at_ms,
            })),
            AuthenticatedObject::GroupRetentionAnchor(anchor) => Self::Anchor(Box::new(Anchor {
                scope: AnchorScope::Group(anchor.lane_id, anchor.group_id),
                floor: anchor.group_queue_sequence,
                predecessors: None,
                committed_at_ms: anchor.committed_at_ms,
            })),
            AuthenticatedObject::FastRetentionAnchor(anchor) => Self::Anchor(Box::new(Anchor {
                scope: AnchorScope::Fast(anchor.broker_epoch),
                floor: anchor.first_retained_sequence,
                predecessors: Some((anchor.previous_checkpoint, None)),
                committed_at_ms: anchor.committed_at_ms,
            })),
            AuthenticatedObject::KeyBatchReceipt(receipt) => Self::KeyBatch(KeyBatch {
                key_stream_id: receipt.key_stream_id,
                first: receipt.first_sequence,
                last: receipt.last_sequence,
                previous: receipt.previous_global_receipt,
            }),
        }
    }
}

impl Append {
    fn fork(&self, other: &Self) -> Option<Contradiction> {
        if self.record_id == other.record_id {
            Some(Contradiction::AppendFork)
        } else if self.previous_global == other.previous_global {
            Some(Contradiction::GlobalFork)
        } else if self.lane_id == other.lane_id && self.previous_lane == other.previous_lane {
            Some(Contradiction::LaneFork)
        } else {
            None
        }
    }
}

impl Checkpoint {
    fn forks(&self, other: &Self) -> bool {
        let overlap = self.first <= other.last && other.first <= self.last;
        self.previous == other.previous || (self.broker_epoch == other.broker_epoch && overlap)
    }
}

impl Transition {
    fn forks(&self, other: &Self) -> bool {
        self.predecessor == other.predecessor && self.replacement == other.replacement
    }

    fn against(&self, digest: &Bytes32, checkpoint: &Checkpoint, checkpoint_digest: &Bytes32) -> Option<Contradiction> {
        let abandons = self.predecessor == Some(checkpoint.broker_epoch)
            && match Some(checkpoint.last).cmp(&self.durable_sequence) {
                Ordering::Greater => true,
                Ordering::Equal => *checkpoint_digest != self.durable_checkpoint,
                Ordering::Less => false,
            };
        let unlinked =
            self.replacement == checkpoint.broker_epoch && checkpoint.first == 0 && checkpoint.previous != *digest;
        (abandons || unlinked).then_some(Contradiction::TransitionContradictsCheckpoint)
    }
}

impl Group {
    fn forks(&self, other: &Self) -> bool {
        (self.lane_id, self.group_id, self.previous) == (other.lane_id, other.group_id, other.previous)
    }
}

impl KeyBatch {
    fn forks(&self, other: &Self) -> bool {
        let overlap = self.first <= other.last && other.first <= self.last;
        self.key_stream_id == other.key_stream_id && (self.previous == other.previous || overlap)
    }
}

impl Anchor {
    fn fork(&self, height: u64, other: &Self, other_height: u64) -> Option<Contradiction> {
        if self.scope != other.scope {
            return None;
        }
        let regresses = |earlier: (u64, u64, u64), later: (u64, u64, u64)| {
            earlier.0 < later.0 && earlier.1 < later.1 && earlier.2 > later.2
        };
        let (a, b) = ((self.committed_at_ms, height, self.floor), (other.committed_at_ms, other_height, other.floor));
        if regresses(a, b) || regresses(b, a) {
            Some(Contradiction::FloorRegression)
        } else if self.floor == other.floor && self.predecessors != other.predecessors {
            Some(Contradiction::AnchorFork)
        } else {
            None
        }
    }

    /// Only what ends just before the floor can contradict the anchor, and a lane floor only by its lane predecessor:
    /// what precedes it in the stream is of another lane.
    fn against(&self, body: &Body, digest: &Bytes32) -> Option<Contradiction> {
        let (global, lane) = self.predecessors?;
        let named = match (self.scope, body) {
            (AnchorScope::Standard(scope), Body::Append(receipt)) => match receipt.record_id {
                RecordId::Standard(id) if id.sequence.checked_add(1) == Some(self.floor) => match scope {
                    None => Some(global),
                    Some(lane_id) if lane_id == receipt.lane_id => lane,
                    Some(_) => None,
                },
                RecordId::Standard(_) | RecordId::Fast(_) => None,
            },
            (AnchorScope::Fast(epoch), Body::Checkpoint(checkpoint)) => {
                let ends_before = checkpoint.last.checked_add(1) == Some(self.floor);
                (checkpoint.broker_epoch == epoch && ends_before).then_some(global)
            }
            _ => None,
        };
        named.filter(|named| named != digest).map(|_| Contradiction::AnchorContradictsReceipt)
    }
}
