//! Retention floors (§15): the signed anchor that justifies a refused cursor, or does not.
//!
//! Whether two anchors contradict each other is [`crate::evidence`]'s to say.

use remuda_wire::audit::HeldObject;
use remuda_wire::request::{OpenSubscriptionRequest, SubscriptionSource};
use remuda_wire::scope::LaneScope;
use remuda_wire::verdict::{ProtocolViolation, Refusal, VerifyError};
use remuda_wire::{Canonical, Reader};

use crate::authentic::{Authority, KeySource};
use crate::evidence::AuthenticatedObject;

/// A refusal that its anchor justifies: what was asked for lies behind a signed floor.
///
/// Made only by [`judge_cursor_too_old`].
#[derive(Clone, Debug)]
pub struct JustifiedRefusal {
    anchor: AuthenticatedObject,
    floor: u64,
}

impl JustifiedRefusal {
    /// The governing anchor.
    pub const fn anchor(&self) -> &AuthenticatedObject {
        &self.anchor
    }

    /// Its first retained sequence, or the queue position of its latest retained group receipt.
    pub const fn floor(&self) -> u64 {
        self.floor
    }
}

/// Judges the details of a `CursorTooOld` (3917) that answered this subscription.
///
/// # Errors
/// [`ProtocolViolation::AnchorMissing`] when the details are not exactly an anchor of the source's class, then
/// authenticity ([`Authority::authenticate`]), then [`VerifyError::AnchorScope`], [`VerifyError::UnjustifiedRefusal`].
pub fn judge_cursor_too_old(
    subscription: &OpenSubscriptionRequest,
    details: &[u8],
    authority: &Authority<'_, impl KeySource>,
) -> Result<JustifiedRefusal, Refusal> {
    let anchor = decode_anchor(&subscription.source, details)?;
    let anchor = authority.authenticate_held(anchor)?;
    let floor = check_refusal(subscription, &anchor)?;
    Ok(JustifiedRefusal { anchor, floor })
}

/// The anchor in the details, typed by the source.
///
/// # Errors
/// [`ProtocolViolation::AnchorMissing`].
pub fn decode_anchor(source: &SubscriptionSource, details: &[u8]) -> Result<HeldObject, ProtocolViolation> {
    let mut reader = Reader::new(details);
    let anchor = match source {
        SubscriptionSource::StandardReplay(_) => HeldObject::StandardRetentionAnchor(Canonical::read(&mut reader)),
        SubscriptionSource::Fast(_) => HeldObject::FastRetentionAnchor(Canonical::read(&mut reader)),
        SubscriptionSource::StandardGroup(_) | SubscriptionSource::DeadLetters(_) => {
            HeldObject::GroupRetentionAnchor(Canonical::read(&mut reader))
        }
    };
    reader.finish().map(|()| anchor).map_err(|_| ProtocolViolation::AnchorMissing)
}

/// Whether an authenticated anchor governs the subscription and puts its position behind the floor. Answers the floor.
///
/// # Errors
/// [`VerifyError::AnchorScope`], then [`VerifyError::UnjustifiedRefusal`].
pub(crate) fn check_refusal(
    subscription: &OpenSubscriptionRequest,
    anchor: &AuthenticatedObject,
) -> Result<u64, VerifyError> {
    let (governs, is_behind, floor) = match (&subscription.source, &**anchor) {
        (SubscriptionSource::StandardReplay(source), HeldObject::StandardRetentionAnchor(anchor)) => {
            let floor = anchor.first_retained_sequence;
            let governs = anchor.lane_id.is_none_or(|lane| governs_exactly(&source.scope, &lane));
            (governs, floor > next(source.after.map(|id| id.sequence)), floor)
        }
        (SubscriptionSource::Fast(source), HeldObject::FastRetentionAnchor(anchor)) => {
            let floor = anchor.first_retained_sequence;
            let position = source.after.map_or((0, 0), |id| (id.broker_epoch, next(Some(id.sequence))));
            // Sequences restart with a lineage: a floor in a later one is behind nothing of an earlier one.
            (anchor.broker_epoch >= position.0, (anchor.broker_epoch, floor) > position, floor)
        }
        (SubscriptionSource::StandardGroup(source), HeldObject::GroupRetentionAnchor(anchor)) => {
            let governs = (anchor.lane_id, anchor.group_id) == (source.lane_id, source.group_id);
            (governs, !names_cursor(subscription, anchor.latest_retained_receipt), anchor.group_queue_sequence)
        }
        (SubscriptionSource::DeadLetters(source), HeldObject::GroupRetentionAnchor(anchor)) => {
            let governs = (anchor.lane_id, anchor.group_id) == (source.lane_id, source.group_id);
            (governs, !names_cursor(subscription, anchor.latest_retained_receipt), anchor.group_queue_sequence)
        }
        _ => return Err(VerifyError::AnchorScope),
    };
    if !governs {
        return Err(VerifyError::AnchorScope);
    }
    if is_behind {
        Ok(floor)
    } else {
        Err(VerifyError::UnjustifiedRefusal)
    }
}

/// The sequence that a subscription after `last` needs first.
fn next(last: Option<u64>) -> u64 {
    last.map_or(0, |last| last.saturating_add(1))
}

/// A lane's floor governs a scope of that lane alone: other lanes of a set have floors of their own.
fn governs_exactly(scope: &LaneScope, lane_id: &remuda_wire::Bytes32) -> bool {
    scope.lanes().is_some_and(|lanes| *lanes == [*lane_id])
}

/// A receipt that the anchor itself retains is no reason to refuse the cursor that names it.
fn names_cursor(subscription: &OpenSubscriptionRequest, latest_retained_receipt: remuda_wire::Bytes32) -> bool {
    subscription.after_group_receipt == Some(latest_retained_receipt)
}
