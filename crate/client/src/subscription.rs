//! One durable subscription: its boundary, its verifier, and what became of it.

use alloc::rc::Rc;
use alloc::vec::Vec;

use remuda_position::{Boundary, PositionKey};
use remuda_session::ErrorKind;
use remuda_verify::retention::JustifiedRefusal;
use remuda_wire::context::SigningContext;
use remuda_wire::request::{
    FastSource, OpenSubscriptionRequest, StandardReplaySource, SubscriptionSource, VerificationMode,
};
use remuda_wire::scope::LaneScope;
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::verdict::{AdmissionRefused, ProtocolViolation};
use remuda_wire::{bound, Bytes32, Signed};

use crate::failure::Failure;
use crate::group::{Consumer, GroupId};
use crate::verifier::{StreamFacts, Verifier};

/// One to 512 lanes by name: the only scope that can be proven lane by lane (§13.1, §13.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofScope(LaneScope);

impl ProofScope {
    /// Takes an `Exact` or `Set` scope of at most 512 lanes.
    ///
    /// # Errors
    /// [`AdmissionRefused::VerificationMode`] for `Any`; [`AdmissionRefused::ProofScopeTooWide`].
    pub fn new(scope: LaneScope) -> Result<Self, AdmissionRefused> {
        match scope.lanes() {
            None => Err(AdmissionRefused::VerificationMode),
            Some(lanes) if lanes.len() > bound::MAX_PROOF_LANES_PER_SUBSCRIPTION => {
                Err(AdmissionRefused::ProofScopeTooWide)
            }
            Some(_) => Ok(Self(scope)),
        }
    }

    /// The lanes, ascending.
    pub fn lanes(&self) -> &[Bytes32] {
        self.0.lanes().unwrap_or_default()
    }
}

/// What a subscription asks for: one variant per request that CIP-39 §13.1 allows, so that no other can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionSpec {
    /// `ScopedProofs` of these lanes.
    ScopedProofs(ProofScope),
    /// `FullStream` of every lane.
    FullStream,
    /// Every record of these lanes of a standard stream, with its receipt.
    StandardReplay(LaneScope),
    /// Records of a group under leases, with every receipt of the group.
    Group(GroupId),
}

impl SubscriptionSpec {
    /// `ScopedProofs` of a scope.
    ///
    /// # Errors
    /// Those of [`ProofScope::new`].
    pub fn scoped(scope: LaneScope) -> Result<Self, AdmissionRefused> {
        ProofScope::new(scope).map(Self::ScopedProofs)
    }

    /// The mode on the wire.
    pub const fn mode(&self) -> VerificationMode {
        match self {
            Self::ScopedProofs(_) => VerificationMode::ScopedProofs,
            Self::FullStream => VerificationMode::FullStream,
            Self::StandardReplay(_) | Self::Group(_) => VerificationMode::None,
        }
    }

    /// The scope on the wire.
    pub fn scope(&self) -> LaneScope {
        match self {
            Self::ScopedProofs(scope) => scope.0.clone(),
            Self::FullStream => LaneScope::Any,
            Self::StandardReplay(scope) => scope.clone(),
            Self::Group(group) => LaneScope::Exact(group.lane_id),
        }
    }

    /// The name of its position.
    pub fn key(&self, context: &SigningContext, stream_id: &Bytes32) -> PositionKey {
        match self {
            Self::ScopedProofs(_) | Self::FullStream => {
                PositionKey::derive(context, stream_id, self.mode(), &self.scope())
            }
            Self::StandardReplay(scope) => PositionKey::derive_standard(context, stream_id, scope),
            Self::Group(group) => PositionKey::derive_group(context, stream_id, &group.lane_id, &group.group_id),
        }
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

/// Transitions that one subscription holds before it reaches them: a session does not live through more restarts.
const MAX_HELD_TRANSITIONS: usize = 16;

/// Whether the position of a subscription is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// It must be read, once its time has come and no commit of it is under way.
    Needed,
    /// It is being read.
    Asked,
    /// It is known.
    Done,
}

/// When a transition is for a subscription to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Now: it links here, or contradicts what is verified here.
    Now,
    /// Once what precedes it has come: it was sent for a subscription that is further along.
    Later,
    /// Never: it was adopted, or lies before the lineage in force.
    Past,
}

/// One durable subscription.
#[derive(Debug)]
pub struct Subscription {
    pub(crate) spec: SubscriptionSpec,
    pub(crate) boundary: Boundary,
    pub(crate) state: SubscriptionState,
    pub(crate) load: Load,
    /// Since when it is [`SubscriptionState::Live`], while it is.
    pub(crate) live_since_ms: u64,
    /// Its verifier in the open session; `None` while it has no subscription there.
    pub(crate) verifier: Option<Verifier>,
    pub(crate) subscription_id: Option<Bytes32>,
    /// What a consumer of a group keeps; nothing of any other.
    pub(crate) consumer: Consumer,
    /// The id that it last had, and in which session.
    named: Option<(u64, Bytes32)>,
    /// Transitions that came before this subscription reached them.
    held: Vec<Rc<BrokerEpochTransition>>,
    /// The signed floor that it is behind: it failed for that.
    pub(crate) floor: Option<JustifiedRefusal>,
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
    pub(crate) fn new(spec: SubscriptionSpec, boundary: Boundary) -> Self {
        Self {
            spec,
            boundary,
            state: SubscriptionState::Opening,
            load: Load::Needed,
            live_since_ms: 0,
            verifier: None,
            subscription_id: None,
            consumer: Consumer::default(),
            named: None,
            held: Vec::new(),
            floor: None,
            failure: None,
            verified_records: 0,
            verified_batches: 0,
            watermark: None,
            attempts: 0,
            discarded: 0,
        }
    }

    /// Its id in a session while it is recorded: that of the session before, but `fresh_id` where it had one in this session already, since frames
    /// of that one may still be on their way.
    pub(crate) fn name(&mut self, session: u64, fresh_id: Bytes32) -> Bytes32 {
        let earlier = self.named.filter(|(of_session, _)| *of_session != session).map(|(_, id)| id);
        let id = earlier.unwrap_or(fresh_id);
        self.named = Some((session, id));
        id
    }

    /// Starts a verifier at the boundary and gives the request that asks for what follows it.
    pub(crate) fn open(&mut self, stream: &StreamFacts, subscription_id: Bytes32) -> OpenSubscriptionRequest {
        let verifier = Verifier::new(&self.spec, stream, subscription_id, &self.boundary, &mut self.consumer);
        self.verifier = Some(verifier);
        self.subscription_id = Some(subscription_id);
        self.state = SubscriptionState::Opening;
        self.floor = None;
        self.request(stream.stream_id, subscription_id)
    }

    /// What asks for everything behind the boundary.
    pub(crate) fn request(&self, stream_id: Bytes32, subscription_id: Bytes32) -> OpenSubscriptionRequest {
        let scope = self.spec.scope();
        let source = match self.spec {
            SubscriptionSpec::ScopedProofs(_) | SubscriptionSpec::FullStream => {
                SubscriptionSource::Fast(FastSource { scope, after: self.boundary.cursor() })
            }
            SubscriptionSpec::StandardReplay(_) => {
                let after = self.boundary.standard_cursor();
                SubscriptionSource::StandardReplay(StandardReplaySource { scope, after })
            }
            SubscriptionSpec::Group(group) => group.source(),
        };
        let after_group_receipt = match &self.verifier {
            Some(Verifier::Group(group)) => group.chain().cursor(),
            Some(Verifier::Fast(_) | Verifier::Standard(_)) | None => None,
        };
        OpenSubscriptionRequest {
            stream_id,
            subscription_id,
            source,
            after_group_receipt,
            verification: self.spec.mode(),
        }
    }

    /// Leaves the session: what waits is dropped, the boundary stays. Gives its id there, if it had one.
    pub(crate) fn detach(&mut self) -> Option<Bytes32> {
        match self.verifier.take() {
            Some(Verifier::Group(verifier)) => self.consumer.close(verifier),
            verifier => self.discarded += verifier.map_or(0, |verifier| verifier.waiting()),
        }
        self.held.clear();
        self.subscription_id.take()
    }

    /// Where a transition belongs. The frame names no subscription, so every open one sees each copy: one that is behind
    /// must not take a transition for false that it has only not reached.
    pub(crate) fn place(&self, transition: &BrokerEpochTransition) -> Place {
        let Some(Verifier::Fast(verifier)) = &self.verifier else { return Place::Past };
        let state = verifier.state();
        if state.tail == Some(transition.digest()) {
            return Place::Past;
        }
        let Some(lineage) = state.broker_epoch else {
            return if verifier.waiting() == 0 { Place::Now } else { Place::Later };
        };
        match transition.previous_lineage.map(|previous| previous.broker_epoch) {
            Some(previous) if previous > lineage => Place::Later,
            Some(previous) if previous == lineage => {
                let reached = state.last_checkpoint == Some(transition.last_durable_checkpoint);
                let nothing_of_lineage = state.next_sequence == Some(0);
                let behind = nothing_of_lineage || transition.last_durable_sequence > state.last_durable_sequence;
                if behind && !reached {
                    Place::Later
                } else {
                    Place::Now
                }
            }
            _ => Place::Past,
        }
    }

    /// Keeps a transition until it is reached.
    ///
    /// # Errors
    /// [`ProtocolViolation::UnexpectedFrame`] above [`MAX_HELD_TRANSITIONS`].
    pub(crate) fn hold(&mut self, transition: Rc<BrokerEpochTransition>) -> Result<(), ProtocolViolation> {
        if self.held.contains(&transition) {
            return Ok(());
        }
        if self.held.len() >= MAX_HELD_TRANSITIONS {
            return Err(ProtocolViolation::UnexpectedFrame);
        }
        self.held.push(transition);
        Ok(())
    }

    /// The held transition that is reached now.
    pub(crate) fn take_reached(&mut self) -> Option<Rc<BrokerEpochTransition>> {
        let reached = self.held.iter().position(|transition| self.place(transition) == Place::Now)?;
        Some(self.held.remove(reached))
    }

    /// The earliest held transition, when a frame of `broker_epoch` says that it should have been reached by now.
    pub(crate) fn take_overdue(&mut self, broker_epoch: u64) -> Option<Rc<BrokerEpochTransition>> {
        let Some(Verifier::Fast(verifier)) = &self.verifier else { return None };
        let lineage = verifier.state().broker_epoch?;
        let (index, _) = self.held.iter().enumerate().min_by_key(|(_, held)| held.replacement_broker_epoch)?;
        (broker_epoch > lineage).then(|| self.held.remove(index))
    }

    /// When it is to be opened; `None` while it is open, being opened, or failed.
    pub(crate) const fn due_at(&self) -> Option<u64> {
        match self.state {
            SubscriptionState::Due { at_ms, .. } => Some(at_ms),
            SubscriptionState::Opening | SubscriptionState::Live | SubscriptionState::Failed => None,
        }
    }

    /// Whether it is not opened for want of leases only: every one that the grant allows is held until it is settled, or runs out.
    pub(crate) fn waits_for_leases(&self, failure: &Failure) -> bool {
        matches!(self.spec, SubscriptionSpec::Group(_)) && failure.code == ErrorKind::HolderInFlightLimitExceeded.code()
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

    /// The signed floor that it is behind: snapshots, or a gap that is accepted, lead on.
    pub const fn floor(&self) -> Option<&JustifiedRefusal> {
        self.floor.as_ref()
    }

    /// Its last failure and when it was, until there is progress again.
    pub fn failure(&self) -> Option<(&Failure, u64)> {
        self.failure.as_ref().map(|(failure, at_ms)| (failure, *at_ms))
    }

    /// Records that wait for their checkpoint.
    pub fn waiting(&self) -> usize {
        self.verifier.as_ref().map_or(0, Verifier::waiting)
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
