//! What an answer must be beside its request: of the class of the stream (§8, §13.2), and within the grant (§8).

use remuda_verify::response::AnsweredResult;
use remuda_wire::chain::DeliveryClass;
use remuda_wire::record::RecordId;
use remuda_wire::scope::LaneScope;
use remuda_wire::verdict::VerifyError;

/// Checks an answer that is of its request already. `granted` is `None` where grants replace each other: which of them the
/// answer was given under is not known.
///
/// # Errors
/// [`VerifyError::ResultBinding`]: a record id of the other class, or a page with a lane that was not granted.
pub(crate) fn check_answer(
    answered: &AnsweredResult,
    class: DeliveryClass,
    granted: Option<&LaneScope>,
) -> Result<(), VerifyError> {
    let fits = match answered {
        AnsweredResult::Appended(receipt) | AnsweredResult::Lane { receipt, .. } => is_of(class, &receipt.record_id),
        AnsweredResult::Provisional { record_id, .. } => is_of(class, &RecordId::Fast(*record_id)),
        AnsweredResult::Lanes(page) => {
            granted.is_none_or(|scope| page.lanes.iter().all(|lane| scope.contains(&lane.lane_id)))
        }
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
    use remuda_wire::lane::{LanePage, LaneRecord, LaneStatus};
    use remuda_wire::record::{FastRecordId, StandardRecordId};
    use remuda_wire::response::DurableWatermark;
    use remuda_wire::{Bytes32, List, ProviderEpoch};

    const REFUSED: Result<(), VerifyError> = Err(VerifyError::ResultBinding);

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
        assert_eq!(check_answer(&answered, DeliveryClass::Fast, None), Ok(()));
        assert_eq!(check_answer(&answered, DeliveryClass::Standard, None), REFUSED);
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
        let judge = |lanes: Vec<LaneRecord>, granted: Option<&LaneScope>| {
            let page = LanePage { lanes: List::new(lanes).expect("few"), next_after_lane_id: None };
            check_answer(&AnsweredResult::Lanes(page), DeliveryClass::Fast, granted)
        };
        let exact = LaneScope::Exact(Bytes32([2; 32]));
        assert_eq!(judge([lane(2)].into(), Some(&exact)), Ok(()));
        assert_eq!(judge([].into(), Some(&exact)), Ok(()));
        assert_eq!(judge([lane(2), lane(3)].into(), Some(&exact)), REFUSED);
        assert_eq!(judge([lane(2), lane(3)].into(), Some(&LaneScope::Any)), Ok(()));
        assert_eq!(judge([lane(3)].into(), None), Ok(()), "another grant may have been in force");
    }
}
