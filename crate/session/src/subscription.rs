//! The live subscriptions of one session: which frames are legal for each, and what credit each has.

use alloc::collections::BTreeMap;

use remuda_wire::checkpoint::CheckpointFrame;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::record::RecordId;
use remuda_wire::request::{OpenSubscriptionRequest, SubscriptionSource, VerificationMode};
use remuda_wire::verdict::ProtocolViolation;
use remuda_wire::Bytes32;

use crate::credit::CreditWindow;

/// What a subscription may receive, from its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionKind {
    /// Fast records without lease; checkpoints unless the mode is `None`.
    Fast(VerificationMode),
    /// Standard records without lease.
    Replay,
    /// Standard records with a lease, and the states of one group.
    Group {
        /// The group's lane.
        lane_id: Bytes32,
        /// The group.
        group_id: Bytes32,
    },
    /// Standard records without lease, and the states of one group.
    DeadLetters {
        /// The group's lane.
        lane_id: Bytes32,
        /// The group.
        group_id: Bytes32,
    },
}

impl SubscriptionKind {
    /// The kind of a request.
    pub const fn of(request: &OpenSubscriptionRequest) -> Self {
        match &request.source {
            SubscriptionSource::Fast(_) => Self::Fast(request.verification),
            SubscriptionSource::StandardReplay(_) => Self::Replay,
            SubscriptionSource::StandardGroup(source) => {
                Self::Group { lane_id: source.lane_id, group_id: source.group_id }
            }
            SubscriptionSource::DeadLetters(source) => {
                Self::DeadLetters { lane_id: source.lane_id, group_id: source.group_id }
            }
        }
    }

    fn receives(self, delivery: &RecordDelivery) -> bool {
        let leased = delivery.lease.is_some();
        match (self, &delivery.record_id) {
            (Self::Fast(_), RecordId::Fast(_)) => true,
            (Self::Group { .. }, RecordId::Standard(_)) => leased,
            (Self::Replay | Self::DeadLetters { .. }, RecordId::Standard(_)) => !leased,
            (Self::Fast(_), RecordId::Standard(_))
            | (Self::Group { .. } | Self::Replay | Self::DeadLetters { .. }, RecordId::Fast(_)) => false,
        }
    }

    fn is_verifying(self) -> bool {
        match self {
            Self::Fast(VerificationMode::ScopedProofs | VerificationMode::FullStream) => true,
            Self::Fast(VerificationMode::None) | Self::Replay | Self::Group { .. } | Self::DeadLetters { .. } => false,
        }
    }

    fn follows(self, lane: &Bytes32, group: &Bytes32) -> bool {
        match self {
            Self::Group { lane_id, group_id } | Self::DeadLetters { lane_id, group_id } => {
                lane_id == *lane && group_id == *group
            }
            Self::Fast(_) | Self::Replay => false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Live {
    kind: SubscriptionKind,
    credit: CreditWindow,
}

/// The subscriptions that a session has open, by id.
#[derive(Clone, Debug, Default)]
pub struct Subscriptions(BTreeMap<Bytes32, Live>);

impl Subscriptions {
    /// True when `subscription_id` is open.
    pub fn is_live(&self, subscription_id: &Bytes32) -> bool {
        self.0.contains_key(subscription_id)
    }

    /// True when none is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The open ones, ascending.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = &Bytes32> {
        self.0.keys()
    }

    /// The first open id above `after`, around the end: whose turn it is.
    pub fn next_after(&self, after: &Bytes32) -> Option<Bytes32> {
        let above = (core::ops::Bound::Excluded(*after), core::ops::Bound::Unbounded);
        self.0.range(above).next().or_else(|| self.0.iter().next()).map(|(id, _)| *id)
    }

    /// The credit outstanding at `subscription_id`, or `None` when it is not open.
    pub fn credit(&self, subscription_id: &Bytes32) -> Option<CreditWindow> {
        self.0.get(subscription_id).map(|live| live.credit)
    }

    /// Opens one, without credit.
    pub(crate) fn open(&mut self, subscription_id: Bytes32, kind: SubscriptionKind) {
        self.0.insert(subscription_id, Live { kind, credit: CreditWindow::default() });
    }

    /// Ends one. True when it was open.
    pub(crate) fn end(&mut self, subscription_id: &Bytes32) -> bool {
        self.0.remove(subscription_id).is_some()
    }

    /// Adds what a `Credit` response echoed, unless the subscription has ended meanwhile.
    pub(crate) fn grant(&mut self, subscription_id: &Bytes32, records: u32, bytes: u64) {
        if let Some(live) = self.0.get_mut(subscription_id) {
            live.credit.grant(records, bytes);
        }
    }

    /// Judges a delivery and takes it out of its subscription's credit.
    pub(crate) fn deliver(&mut self, delivery: &RecordDelivery) -> Result<(), ProtocolViolation> {
        let live = self.0.get_mut(&delivery.subscription_id).ok_or(ProtocolViolation::UnknownSubscription)?;
        if !live.kind.receives(delivery) {
            return Err(ProtocolViolation::UnexpectedFrame);
        }
        live.credit.spend(delivery.payload.len())
    }

    /// Judges a checkpoint frame.
    pub(crate) fn checkpoint(&self, frame: &CheckpointFrame) -> Result<(), ProtocolViolation> {
        let live = self.0.get(&frame.subscription_id).ok_or(ProtocolViolation::UnknownSubscription)?;
        if live.kind.is_verifying() {
            Ok(())
        } else {
            Err(ProtocolViolation::UnexpectedCheckpoint)
        }
    }

    /// Judges a state frame of a group.
    pub(crate) fn group(&self, lane_id: &Bytes32, group_id: &Bytes32) -> Result<(), ProtocolViolation> {
        let followed = self.0.values().any(|live| live.kind.follows(lane_id, group_id));
        if followed {
            Ok(())
        } else {
            Err(ProtocolViolation::UnknownGroup)
        }
    }
}
