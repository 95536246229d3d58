//! `grant`, `open_subscription`.

use remuda_verify::fast::Verification;
use remuda_verify::grant::{check_subscription, GrantBounds, GrantUse, VerifiedGrant};
use remuda_verify::subscription::LegalSubscription;
use remuda_wire::grant::{StreamGrant, Verb};
use remuda_wire::request::OpenSubscriptionRequest;
use remuda_wire::scope::LaneScope;
use serde_json::json;

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// Whether a grant is in force and permits one use.
pub fn grant(input: &Input<'_>) -> Answer {
    let bounds = input.at("bounds");
    let bounds = GrantBounds {
        max_clock_skew_ms: bounds.at("max_clock_skew_ms").u64()?,
        max_grant_ttl_ms: bounds.at("max_grant_ttl_ms").u64()?,
        max_lane_creates_per_min: rate(bounds.at("max_lane_creates_per_min"))?,
    };
    let (context, stream) = (input.at("context").object()?, input.at("stream").object()?);
    let grant: StreamGrant = input.at("grant").object()?;
    let lane_scope = input.at("lane_id").optional(Input::digest)?.map(LaneScope::Exact);
    let group_id = input.at("group_id").optional(Input::digest)?;
    let verb = input.at("verb").optional(verb)?;
    let verified = VerifiedGrant::verify(grant, &context, &stream, input.at("now_ms").u64()?, &bounds)?;
    GrantUse { verb, lane_scope: lane_scope.as_ref(), group_id: group_id.as_ref() }.check(verified.grant())?;
    Ok(json!({ "grant_id": verified.grant_id().to_string() }))
}

/// Whether a subscription is legal, and within a grant.
pub fn open_subscription(input: &Input<'_>) -> Answer {
    let grant = input.at("grant").object()?;
    let body: OpenSubscriptionRequest = input.at("body").object()?;
    let subscription = LegalSubscription::of(&body)?;
    check_subscription(&grant, &subscription)?;
    let (source, mode) = match subscription {
        LegalSubscription::StandardGroup { .. } => ("StandardGroup", "none"),
        LegalSubscription::StandardReplay { .. } => ("StandardReplay", "none"),
        LegalSubscription::DeadLetters { .. } => ("DeadLetters", "none"),
        LegalSubscription::Fast { verification: Verification::None(_), .. } => ("Fast", "none"),
        LegalSubscription::Fast { verification: Verification::ScopedProofs(_), .. } => ("Fast", "scoped"),
        LegalSubscription::Fast { verification: Verification::FullStream, .. } => ("Fast", "full"),
    };
    Ok(json!({ "source": source, "mode": mode }))
}

/// A `u32` that is written as a decimal string or as a number.
fn rate(input: Input<'_>) -> Result<u32, Refused> {
    match input.json().as_str() {
        Some(text) => text.parse().map_err(|_| Refused::Malformed(format!("no rate: {text}"))),
        None => input.number(),
    }
}

fn verb(input: Input<'_>) -> Result<Verb, Refused> {
    let name = input.text()?;
    let known = Verb::ALL.into_iter().find(|verb| verb.name() == name);
    known.ok_or_else(|| Refused::Malformed(format!("unknown verb {name}")))
}
