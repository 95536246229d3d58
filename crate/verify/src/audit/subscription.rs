//! One subscription item: what it asked for, its verifier while it lasts, and its count.

use remuda_wire::request::{OpenSubscriptionRequest, VerificationMode};
use remuda_wire::Bytes32;

use super::report::SubscriptionAssurance;
use crate::fast::FastSubscription;
use crate::group::GroupSubscriptionConfig;
use crate::standard::StandardReplay;

/// A group within the stream: its lane and its id.
pub(super) type GroupPlace = (Bytes32, Bytes32);

/// The verifier of an open subscription.
#[derive(Debug)]
pub(super) enum Verifier {
    Fast(FastSubscription<()>),
    Replay(StandardReplay),
    Group { config: GroupSubscriptionConfig, place: GroupPlace },
    DeadLetters { place: GroupPlace },
}

impl Verifier {
    pub const fn group(&self) -> Option<GroupPlace> {
        match self {
            Self::Group { place, .. } | Self::DeadLetters { place } => Some(*place),
            Self::Fast(_) | Self::Replay(_) => None,
        }
    }
}

/// A subscription of the file.
#[derive(Debug)]
pub(super) struct Subscription {
    pub request: OpenSubscriptionRequest,
    /// `None` once it ended, or when it could not be judged at all.
    pub verifier: Option<Verifier>,
    pub delivered: usize,
    pub verified: usize,
}

impl Subscription {
    pub const fn new(request: OpenSubscriptionRequest, verifier: Option<Verifier>) -> Self {
        Self { request, verifier, delivered: 0, verified: 0 }
    }

    pub const fn mode(&self) -> VerificationMode {
        self.request.verification
    }

    pub fn group(&self) -> Option<GroupPlace> {
        self.verifier.as_ref().and_then(Verifier::group)
    }

    pub const fn assurance(&self) -> SubscriptionAssurance {
        SubscriptionAssurance {
            subscription: self.request.subscription_id,
            mode: self.mode(),
            verified: self.verified,
            unverified: self.delivered.saturating_sub(self.verified),
        }
    }
}
