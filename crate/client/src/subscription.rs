//! One durable subscription: its boundary, its verifier, and what became of it.

use remuda_position::{Boundary, DeliveredRecord, PositionKey};
use remuda_verify::fast::{FastSubscription, FastSubscriptionConfig, Verification};
use remuda_wire::context::SigningContext;
use remuda_wire::request::{FastSource, OpenSubscriptionRequest, SubscriptionSource, VerificationMode};
use remuda_wire::scope::LaneScope;
use remuda_wire::verdict::AdmissionRefused;
use remuda_wire::{bound, Bytes32};

use crate::failure::Failure;

/// What a subscription asks for: one variant per request that CIP-39 §13.1 allows, so that no other can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionSpec {
    /// `ScopedProofs` of these lanes.
    ScopedProofs(LaneScope),
    /// `FullStream` of every lane.
    FullStream,
}

impl SubscriptionSpec {
    /// `ScopedProofs` of an `Exact` or `Set` scope of at most 512 lanes.
    ///
    /// # Errors
    /// [`AdmissionRefused::VerificationMode`] for `Any`; [`AdmissionRefused::ProofScopeTooWide`].
    pub fn scoped(scope: LaneScope) -> Result<Self, AdmissionRefused> {
        match scope.lanes() {
            None => Err(AdmissionRefused::VerificationMode),
            Some(lanes) if lanes.len() > bound::MAX_PROOF_LANES_PER_SUBSCRIPTION => {
                Err(AdmissionRefused::ProofScopeTooWide)
            }
            Some(_) => Ok(Self::ScopedProofs(scope)),
        }
    }

    /// The mode on the wire.
    pub const fn mode(&self) -> VerificationMode {
        match self {
            Self::ScopedProofs(_) => VerificationMode::ScopedProofs,
            Self::FullStream => VerificationMode::FullStream,
        }
    }

    /// The scope on the wire.
    pub fn scope(&self) -> LaneScope {
        match self {
            Self::ScopedProofs(scope) => scope.clone(),
            Self::FullStream => LaneScope::Any,
        }
    }

    /// The name of its position.
    pub fn key(&self, context: &SigningContext, stream_id: &Bytes32) -> PositionKey {
        PositionKey::derive(context, stream_id, self.mode(), &self.scope())
    }
}

/// Where a subscription is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionState {
    /// Its position is being loaded, or the provider's answer is awaited.
    Opening,
    /// Frames of it arrive.
    Live,
    /// It is opened once there is a session and its time has come: at first, after a cut, or to re-enter at its boundary.
    Due {
        /// Failures since the last progress.
        attempt: u32,
        /// Not before this time.
        at_ms: u64,
    },
    /// A failure that repeating cannot help: nothing more is asked for.
    Failed,
}

/// One durable subscription.
#[derive(Debug)]
pub struct Subscription {
    pub(crate) spec: SubscriptionSpec,
    pub(crate) boundary: Boundary,
    pub(crate) state: SubscriptionState,
    /// Its verifier in the open session; `None` while it has no subscription there.
    pub(crate) verifier: Option<FastSubscription<DeliveredRecord>>,
    pub(crate) subscription_id: Option<Bytes32>,
    /// The last failure and when it was, until there is progress again.
    pub(crate) failure: Option<(Failure, u64)>,
    pub(crate) verified_records: u64,
    pub(crate) verified_batches: u64,
    /// What the provider says is durable, never our position.
    pub(crate) watermark: Option<u64>,
    /// Re-entries since the last progress.
    pub(crate) attempts: u32,
    /// Records that waited when their session ended: a void transition withdraws them.
    pub(crate) discarded: usize,
}

impl Subscription {
    pub(crate) const fn new(spec: SubscriptionSpec, boundary: Boundary) -> Self {
        Self {
            spec,
            boundary,
            state: SubscriptionState::Opening,
            verifier: None,
            subscription_id: None,
            failure: None,
            verified_records: 0,
            verified_batches: 0,
            watermark: None,
            attempts: 0,
            discarded: 0,
        }
    }

    /// Starts a verifier at the boundary and gives the request that asks for what follows it.
    pub(crate) fn open(
        &mut self,
        context: &SigningContext,
        stream_id: Bytes32,
        encrypted: bool,
        subscription_id: Bytes32,
    ) -> OpenSubscriptionRequest {
        let verification = match &self.spec {
            SubscriptionSpec::ScopedProofs(scope) => Verification::ScopedProofs(scope.clone()),
            SubscriptionSpec::FullStream => Verification::FullStream,
        };
        let config =
            FastSubscriptionConfig { context: context.clone(), stream_id, encrypted, subscription_id, verification };
        self.verifier = Some(FastSubscription::new(config, self.boundary.resume_state()));
        self.subscription_id = Some(subscription_id);
        self.state = SubscriptionState::Opening;
        OpenSubscriptionRequest {
            stream_id,
            subscription_id,
            source: SubscriptionSource::Fast(FastSource { scope: self.spec.scope(), after: self.boundary.cursor() }),
            after_group_receipt: None,
            verification: self.spec.mode(),
        }
    }

    /// Leaves the session: what waits is dropped, the boundary stays. Gives its id there, if it had one.
    pub(crate) fn detach(&mut self) -> Option<Bytes32> {
        self.discarded += self.verifier.take().map_or(0, |verifier| verifier.waiting());
        self.subscription_id.take()
    }

    /// When it is to be opened; `None` while it is open, being opened, or failed.
    pub(crate) const fn due_at(&self) -> Option<u64> {
        match self.state {
            SubscriptionState::Due { at_ms, .. } => Some(at_ms),
            SubscriptionState::Opening | SubscriptionState::Live | SubscriptionState::Failed => None,
        }
    }

    /// Where it is.
    pub const fn state(&self) -> &SubscriptionState {
        &self.state
    }

    /// Its durable boundary.
    pub const fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// What it asks for.
    pub const fn spec(&self) -> &SubscriptionSpec {
        &self.spec
    }

    /// Its last failure and when it was, until there is progress again.
    pub fn failure(&self) -> Option<(&Failure, u64)> {
        self.failure.as_ref().map(|(failure, at_ms)| (failure, *at_ms))
    }

    /// Records that wait for their checkpoint.
    pub fn waiting(&self) -> usize {
        self.verifier.as_ref().map_or(0, FastSubscription::waiting)
    }

    /// Records and batches verified since the engine started.
    pub const fn verified(&self) -> (u64, u64) {
        (self.verified_records, self.verified_batches)
    }

    /// The provider's claim of what is durable in the adopted lineage.
    pub const fn watermark(&self) -> Option<u64> {
        self.watermark
    }
}
