//! What an answer must be beside its request: of the class of the stream (§8, §13.2), and within the grant (§8).

use remuda_verify::response::AnsweredResult;
use remuda_wire::chain::DeliveryClass;
use remuda_wire::grant::StreamGrant;
use remuda_wire::record::RecordId;
use remuda_wire::verdict::VerifyError;

/// Checks an answer that is of its request already.
///
/// # Errors
/// [`VerifyError::ResultBinding`]: a record id of the other class, or a page with a lane that the grant does not cover.
pub(crate) fn check_answer(
    answered: &AnsweredResult,
    class: DeliveryClass,
    grant: &StreamGrant,
) -> Result<(), VerifyError> {
    let fits = match answered {
        AnsweredResult::Appended(receipt) | AnsweredResult::Lane { receipt, .. } => is_of(class, &receipt.record_id),
        AnsweredResult::Provisional { record_id, .. } => is_of(class, &RecordId::Fast(*record_id)),
        AnsweredResult::Lanes(page) => page.lanes.iter().all(|lane| grant.lane_scope.contains(&lane.lane_id)),
        AnsweredResult::Staged(_)
        | AnsweredResult::Committed(_)
        | AnsweredResult::Group { .. }
        | AnsweredResult::Subscription(_)
        | AnsweredResult::Credit(_)
        | AnsweredResult::Delivery { .. } => true,
    };
    if fits {
        Ok(())
    } else {
        Err(VerifyError::ResultBinding)
    }
}

const fn is_of(class: DeliveryClass, record_id: &RecordId) -> bool {
    matches!(
        (class, record_id),
        (DeliveryClass::Standard, RecordId::Standard(_)) | (DeliveryClass::Fast, RecordId::Fast(_))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use remuda_testkit::builder::Provider;
    use remuda_wire::grant::Verbs;
    use remuda_wire::lane::{LanePage, LaneRecord, LaneStatus};
    use remuda_wire::record::{FastRecordId, StandardRecordId};
    use remuda_wire::response::DurableWatermark;
    use remuda_wire::scope::{GroupScope, LaneScope};
    use remuda_wire::{Bytes32, List, ProviderEpoch, Signature};

    const REFUSED: Result<(), VerifyError> = Err(VerifyError::ResultBinding);

    fn grant(lane_scope: LaneScope) -> StreamGrant {
        let provider = Provider::new();
        StreamGrant {
            context: provider.context,
            stream_id: provider.stream_id,
            authorization_generation: 0,
            grant_nonce: Bytes32([4; 32]),
            holder_signing_key: provider.public_key(),
            holder_hpke_key: None,
            verbs: Verbs::default(),
            lane_scope,
            group_scope: GroupScope::Any,
            not_before_ms: 0,
            expires_at_ms: 1,
            max_message_bytes: 1,
            max_append_bytes_per_sec: 1,
            max_in_flight: 1,
            max_lane_creates_per_min: 0,
            signature: Signature::ZERO,
        }
    }

    #[test]
    fn a_record_is_of_the_class_of_its_stream() {
        let standard = RecordId::Standard(StandardRecordId { provider_epoch: ProviderEpoch, sequence: 1 });
        let fast_id = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: 0, sequence: 1 };
        let fast = RecordId::Fast(fast_id);
        assert!(is_of(DeliveryClass::Standard, &standard) && is_of(DeliveryClass::Fast, &fast));
        assert!(!is_of(DeliveryClass::Standard, &fast) && !is_of(DeliveryClass::Fast, &standard));
        let watermark = DurableWatermark {
            stream_id: Bytes32([1; 32]),
            provider_epoch: ProviderEpoch,
            broker_epoch: 0,
            last_durable_sequence: None,
            checkpoint_anchor: Bytes32([2; 32]),
        };
        let answered = AnsweredResult::Provisional { record_id: fast_id, watermark };
        assert_eq!(check_answer(&answered, DeliveryClass::Fast, &grant(LaneScope::Any)), Ok(()));
        assert_eq!(check_answer(&answered, DeliveryClass::Standard, &grant(LaneScope::Any)), REFUSED);
    }

    #[test]
    fn a_page_of_lanes_is_within_the_grant() {
        let lane = |byte| LaneRecord {
            stream_id: Bytes32([1; 32]),
            lane_id: Bytes32([byte; 32]),
            metadata_hash: Bytes32::ZERO,
            status: LaneStatus::Active,
            created_at_ms: 1,
        };
        let judge = |lanes: Vec<LaneRecord>, scope| {
            let page = LanePage { lanes: List::new(lanes).expect("few"), next_after_lane_id: None };
            check_answer(&AnsweredResult::Lanes(page), DeliveryClass::Fast, &grant(scope))
        };
        let exact = LaneScope::Exact(Bytes32([2; 32]));
        assert_eq!(judge([lane(2)].into(), exact.clone()), Ok(()));
        assert_eq!(judge([].into(), exact.clone()), Ok(()));
        assert_eq!(judge([lane(2), lane(3)].into(), exact), REFUSED);
        assert_eq!(judge([lane(2), lane(3)].into(), LaneScope::Any), Ok(()));
    }
}
