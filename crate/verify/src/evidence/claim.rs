//! What an object claims, as far as another can contradict it: the one place where a pair is judged.

use alloc::boxed::Box;
use core::cmp::Ordering;

use remuda_wire::checkpoint::CheckpointReceipt;
use remuda_wire::group::DeliveryStateReceipt;
use remuda_wire::key_batch::KeyBatchReceipt;
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::record::RecordId;
use remuda_wire::retention::{FastRetentionAnchor, GroupRetentionAnchor, StandardRetentionAnchor};
use remuda_wire::signed::ProviderSigned;
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::verdict::Contradiction;
use remuda_wire::Bytes32;

/// The comparable part of an authenticated object.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub digest: Bytes32,
    pub height: u64,
    pub block_hash: Bytes32,
    pub body: Body,
}

/// One body per kind.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Append(Append),
    Checkpoint(Checkpoint),
    Transition(Transition),
    Group(Group),
    /// Boxed: rare, and larger than the receipts that a pool holds by the million.
    Anchor(Box<Anchor>),
    KeyBatch(KeyBatch),
}

#[derive(Clone, Debug)]
pub(crate) struct Append {
    pub record_id: RecordId,
    pub lane_id: Bytes32,
    pub previous_global: Bytes32,
    pub previous_lane: Bytes32,
}

#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub broker_epoch: u64,
    pub first: u64,
    pub last: u64,
    pub previous: Bytes32,
}

#[derive(Clone, Debug)]
pub(crate) struct Transition {
    pub predecessor: Option<u64>,
    pub replacement: u64,
    pub durable_checkpoint: Bytes32,
    pub durable_sequence: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub lane_id: Bytes32,
    pub group_id: Bytes32,
    pub previous: Bytes32,
}

#[derive(Clone, Debug)]
pub(crate) struct Anchor {
    pub scope: AnchorScope,
    pub floor: u64,
    /// What stands just before the floor; a group anchor says nothing of the kind.
    pub predecessors: Option<(Bytes32, Option<Bytes32>)>,
    pub committed_at_ms: u64,
}

/// The comparison key of §15: anchors of different keys are evidence of nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AnchorScope {
    Standard(Option<Bytes32>),
    Group(Bytes32, Bytes32),
    Fast(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct KeyBatch {
    pub key_stream_id: Bytes32,
    pub first: u64,
    pub last: u64,
    pub previous: Bytes32,
}

impl Claim {
    /// Of an object and its signing digest.
    pub fn of(object: &dyn Evident, digest: Bytes32) -> Self {
        let view = object.served_at();
        Self { digest, height: view.height, block_hash: view.block_hash, body: object.body() }
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

/// A kind of provider object, by what another can contradict of it.
pub(crate) trait Evident: ProviderSigned {
    /// That part.
    fn body(&self) -> Body;
}

impl Evident for AppendReceipt {
    fn body(&self) -> Body {
        Body::Append(Append {
            record_id: self.record_id,
            lane_id: self.lane_id,
            previous_global: self.previous_global_receipt,
            previous_lane: self.previous_lane_receipt,
        })
    }
}

impl Evident for CheckpointReceipt {
    fn body(&self) -> Body {
        Body::Checkpoint(Checkpoint {
            broker_epoch: self.broker_epoch,
            first: self.first_sequence,
            last: self.last_sequence,
            previous: self.previous_checkpoint,
        })
    }
}

impl Evident for BrokerEpochTransition {
    fn body(&self) -> Body {
        Body::Transition(Transition {
            predecessor: self.previous_lineage.map(|lineage| lineage.broker_epoch),
            replacement: self.replacement_broker_epoch,
            durable_checkpoint: self.last_durable_checkpoint,
            durable_sequence: self.last_durable_sequence,
        })
    }
}

impl Evident for DeliveryStateReceipt {
    fn body(&self) -> Body {
        Body::Group(Group { lane_id: self.lane_id, group_id: self.group_id, previous: self.previous_group_receipt })
    }
}

impl Evident for StandardRetentionAnchor {
    fn body(&self) -> Body {
        Body::Anchor(Box::new(Anchor {
            scope: AnchorScope::Standard(self.lane_id),
            floor: self.first_retained_sequence,
            predecessors: Some((self.previous_global_receipt, self.previous_lane_receipt)),
            committed_at_ms: self.committed_at_ms,
        }))
    }
}

impl Evident for GroupRetentionAnchor {
    fn body(&self) -> Body {
        Body::Anchor(Box::new(Anchor {
            scope: AnchorScope::Group(self.lane_id, self.group_id),
            floor: self.group_queue_sequence,
            predecessors: None,
            committed_at_ms: self.committed_at_ms,
        }))
    }
}

impl Evident for FastRetentionAnchor {
    fn body(&self) -> Body {
        Body::Anchor(Box::new(Anchor {
            scope: AnchorScope::Fast(self.broker_epoch),
            floor: self.first_retained_sequence,
            predecessors: Some((self.previous_checkpoint, None)),
            committed_at_ms: self.committed_at_ms,
        }))
    }
}

impl Evident for KeyBatchReceipt {
    fn body(&self) -> Body {
        Body::KeyBatch(KeyBatch {
            key_stream_id: self.key_stream_id,
            first: self.first_sequence,
            last: self.last_sequence,
            previous: self.previous_global_receipt,
        })
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
