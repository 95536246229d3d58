//! Whether a grant is good here and now (§7), in the order of the document.

use remuda_verify::signature::PublicKey;
use remuda_wire::chain::{StreamRecord, StreamStatus};
use remuda_wire::context::SigningContext;
use remuda_wire::grant::StreamGrant;
use remuda_wire::{Bytes32, Signed};

use crate::refusal::{Code, Refusal};

/// `cbqs.max_clock_skew_ms`, default.
pub const MAX_CLOCK_SKEW_MS: u64 = 60_000;
/// `cbqs.max_grant_ttl_ms`, default.
pub const MAX_GRANT_TTL_MS: u64 = 86_400_000;
/// `cbqs.max_lane_creates_per_min`, default.
const MAX_LANE_CREATES_PER_MIN: u32 = 256;
/// `cbqs.max_lane_ids_per_grant`, default.
const MAX_LANE_IDS_PER_GRANT: usize = 4_096;

/// A grant that was admitted: its id and its holder's key, parsed.
#[derive(Clone, Debug)]
pub struct AdmittedGrant {
    /// `grant_id`.
    pub id: Bytes32,
    /// The grant.
    pub grant: StreamGrant,
    /// The holder.
    pub holder: PublicKey,
}

/// Admits a grant of this stream.
///
/// # Errors
/// 3938, 3900, 3906, 3904, 3907 or 3901, the first that applies.
pub fn admit(
    grant: StreamGrant,
    context: &SigningContext,
    stream: &StreamRecord,
    now_ms: u64,
) -> Result<AdmittedGrant, Refusal> {
    check_context(&grant.context, context)?;
    if grant.stream_id != stream.stream_id {
        return Err(Refusal::new(Code::StreamNotFound, "no such stream here"));
    }
    let id = grant.digest();
    let admin = PublicKey::from_signing_key(&stream.admin_key);
    if admin.is_none_or(|admin| admin.verify_digest(&grant, &id).is_err()) {
        return Err(Refusal::new(Code::InvalidGrant, "the admin key did not sign this grant"));
    }
    let holder = PublicKey::from_signing_key(&grant.holder_signing_key)
        .ok_or_else(|| Refusal::new(Code::InvalidGrant, "the holder key is no canonical point"))?;
    check_standing(&grant, stream, now_ms)?;
    check_bounds(&grant)?;
    if stream.encrypted && grant.holder_hpke_key.is_none() {
        return Err(Refusal::new(Code::InvalidGrant, "a grant of an encrypted stream binds an HPKE key"));
    }
    Ok(AdmittedGrant { id, grant, holder })
}

/// What can change while a session lives: generation, time and status.
///
/// # Errors
/// 3904, 3906 before its time, 3907 after it, 3901.
pub fn check_standing(grant: &StreamGrant, stream: &StreamRecord, now_ms: u64) -> Result<(), Refusal> {
    if grant.authorization_generation != stream.authorization_generation {
        return Err(Refusal::new(
            Code::AuthorizationGenerationStale,
            "the grant is of another authorization generation",
        ));
    }
    if now_ms.saturating_add(MAX_CLOCK_SKEW_MS) < grant.not_before_ms {
        return Err(Refusal::new(Code::InvalidGrant, "the grant is not valid yet"));
    }
    if now_ms > grant.expires_at_ms.saturating_add(MAX_CLOCK_SKEW_MS) {
        return Err(Refusal::new(Code::GrantExpired, "the grant has expired"));
    }
    match stream.status {
        StreamStatus::Active | StreamStatus::Suspended => Ok(()),
        StreamStatus::Closed | StreamStatus::DataExpired => {
            Err(Refusal::new(Code::StreamNotActive, "the stream is closed"))
        }
    }
}

/// The chain is ours.
///
/// # Errors
/// 3938.
pub fn check_context(given: &SigningContext, ours: &SigningContext) -> Result<(), Refusal> {
    if given == ours {
        Ok(())
    } else {
        Err(Refusal::new(Code::ChainInstanceMismatch, "signed for another chain"))
    }
}

fn check_bounds(grant: &StreamGrant) -> Result<(), Refusal> {
    let lifetime = grant.expires_at_ms.saturating_sub(grant.not_before_ms);
    let lanes = grant.lane_scope.lanes().map_or(0, <[_]>::len);
    let within = lifetime <= MAX_GRANT_TTL_MS
        && grant.max_lane_creates_per_min <= MAX_LANE_CREATES_PER_MIN
        && lanes <= MAX_LANE_IDS_PER_GRANT;
    if within {
        Ok(())
    } else {
        Err(Refusal::new(Code::InvalidGrant, "the grant exceeds a protocol bound"))
    }
}
