//! Stream grants (§7): who signed one, whether it is in force, what it permits.
//!
//! A grant is our own credential, so what it lacks is an `admission` refusal: the provider did nothing wrong. Only a
//! false signature, context or stream is a false claim. Quotas (§7 rule 6) are the provider's alone to judge.

use remuda_wire::chain::{Purpose, StreamRecord};
use remuda_wire::context::SigningContext;
use remuda_wire::grant::{StreamGrant, Verb};
use remuda_wire::scope::LaneScope;
use remuda_wire::verdict::{AdmissionRefused, Refusal, VerifyError};
use remuda_wire::{Bytes32, Signed};

use crate::signature::PublicKey;
use crate::subscription::LegalSubscription;

/// The live governance values that a grant is held to on every presentation (§18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantBounds {
    /// `cbqs.max_clock_skew_ms`: allowed on both ends of the window, inclusive.
    pub max_clock_skew_ms: u64,
    /// `cbqs.max_grant_ttl_ms`.
    pub max_grant_ttl_ms: u64,
    /// `cbqs.max_lane_creates_per_min`.
    pub max_lane_creates_per_min: u32,
}

/// A grant that the stream's admin key signed and that is in force. Says nothing of what it permits.
///
/// Made only by [`VerifiedGrant::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedGrant {
    grant: StreamGrant,
    grant_id: Bytes32,
}

impl VerifiedGrant {
    /// Verifies `grant` against `stream`, the trusted record of its stream at the view of the request.
    ///
    /// # Errors
    /// In this order: [`VerifyError::ContextMismatch`], [`VerifyError::StreamMismatch`], [`VerifyError::Signature`];
    /// [`AdmissionRefused::AuthorizationGeneration`], [`AdmissionRefused::GrantNotYetValid`],
    /// [`AdmissionRefused::GrantExpired`], [`AdmissionRefused::GrantBounds`].
    pub fn verify(
        grant: StreamGrant,
        context: &SigningContext,
        stream: &StreamRecord,
        now_ms: u64,
        bounds: &GrantBounds,
    ) -> Result<Self, Refusal> {
        if grant.context != *context {
            return Err(VerifyError::ContextMismatch.into());
        }
        if grant.stream_id != stream.stream_id {
            return Err(VerifyError::StreamMismatch.into());
        }
        let grant_id = grant.digest();
        let admin_key = PublicKey::from_signing_key(&stream.admin_key).ok_or(VerifyError::Signature)?;
        admin_key.verify_digest(&grant, &grant_id)?;
        check_in_force(&grant, stream, now_ms, bounds)?;
        Ok(Self { grant, grant_id })
    }

    /// `grant_id`: the signing digest, never a hash of transport bytes.
    pub const fn grant_id(&self) -> Bytes32 {
        self.grant_id
    }

    /// The grant.
    pub const fn grant(&self) -> &StreamGrant {
        &self.grant
    }
}

fn check_in_force(
    grant: &StreamGrant,
    stream: &StreamRecord,
    now_ms: u64,
    bounds: &GrantBounds,
) -> Result<(), AdmissionRefused> {
    if grant.authorization_generation != stream.authorization_generation {
        return Err(AdmissionRefused::AuthorizationGeneration);
    }
    if now_ms.saturating_add(bounds.max_clock_skew_ms) < grant.not_before_ms {
        return Err(AdmissionRefused::GrantNotYetValid);
    }
    if now_ms > grant.expires_at_ms.saturating_add(bounds.max_clock_skew_ms) {
        return Err(AdmissionRefused::GrantExpired);
    }
    let lifetime_ms = grant.expires_at_ms.saturating_sub(grant.not_before_ms);
    let needs_hpke_key = stream.encrypted && stream.purpose == Purpose::Main;
    let within = lifetime_ms <= bounds.max_grant_ttl_ms
        && grant.max_lane_creates_per_min <= bounds.max_lane_creates_per_min
        && (grant.holder_hpke_key.is_some() || !needs_hpke_key);
    if within {
        Ok(())
    } else {
        Err(AdmissionRefused::GrantBounds)
    }
}

/// One use of a grant. `None` is not asked for and not checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrantUse<'a> {
    /// The verb.
    pub verb: Option<Verb>,
    /// Every lane that the use touches.
    pub lane_scope: Option<&'a LaneScope>,
    /// The group.
    pub group_id: Option<&'a Bytes32>,
}

impl GrantUse<'_> {
    /// Checks that `grant` permits this use. A group scope never widens a lane scope: both are evaluated.
    ///
    /// # Errors
    /// [`AdmissionRefused::VerbDenied`], [`AdmissionRefused::LaneScopeDenied`], [`AdmissionRefused::GroupScopeDenied`].
    pub fn check(&self, grant: &StreamGrant) -> Result<(), AdmissionRefused> {
        if self.verb.is_some_and(|verb| !grant.verbs.contains(verb)) {
            return Err(AdmissionRefused::VerbDenied);
        }
        if self.lane_scope.is_some_and(|requested| !grant.lane_scope.covers(requested)) {
            return Err(AdmissionRefused::LaneScopeDenied);
        }
        if self.group_id.is_some_and(|group_id| !grant.group_scope.contains(group_id)) {
            return Err(AdmissionRefused::GroupScopeDenied);
        }
        Ok(())
    }
}

/// Checks that `grant` permits `subscription`.
///
/// Whether a `Fast` cursor lies before the live head, and so needs `REPLAY` too, only the provider can judge.
///
/// # Errors
/// Those of [`GrantUse::check`].
pub fn check_subscription(grant: &StreamGrant, subscription: &LegalSubscription) -> Result<(), AdmissionRefused> {
    let exact;
    let (verb, lane_scope, group_id) = match subscription {
        LegalSubscription::StandardGroup { lane_id, group_id, .. }
        | LegalSubscription::DeadLetters { lane_id, group_id, .. } => {
            exact = LaneScope::Exact(*lane_id);
            (Verb::Consume, &exact, Some(group_id))
        }
        LegalSubscription::StandardReplay { scope, .. } => (Verb::Replay, scope, None),
        LegalSubscription::Fast { verification, .. } => (Verb::Consume, verification.scope(), None),
    };
    GrantUse { verb: Some(verb), lane_scope: Some(lane_scope), group_id }.check(grant)
}
