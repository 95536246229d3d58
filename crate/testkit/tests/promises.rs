//! Promises that constructors keep where a type alone cannot.

use remuda_client::SubscriptionSpec;
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::verdict::AdmissionRefused;
use remuda_wire::{bound, Bytes32, Canonical};

fn set(count: usize) -> LaneScope {
    let lane = |number: usize| {
        let mut lane = Bytes32::ZERO;
        lane.0[..8].copy_from_slice(&u64::try_from(number).expect("small").to_be_bytes());
        lane
    };
    LaneScope::Set(LaneSet::new((0..count).map(lane).collect()).expect("within the bound").expect("a lane"))
}

#[test]
fn lane_proofs_need_lanes_by_name() {
    assert_eq!(SubscriptionSpec::scoped(LaneScope::Any), Err(AdmissionRefused::VerificationMode));
    assert!(SubscriptionSpec::scoped(LaneScope::Exact(Bytes32::ZERO)).is_ok());
}

#[test]
fn lane_proofs_have_a_width() {
    let widest = bound::MAX_PROOF_LANES_PER_SUBSCRIPTION;
    assert!(SubscriptionSpec::scoped(set(widest)).is_ok());
    assert_eq!(SubscriptionSpec::scoped(set(widest + 1)), Err(AdmissionRefused::ProofScopeTooWide));
}

#[test]
fn a_lane_set_is_sorted_and_has_no_duplicates() {
    let lanes = [3, 1, 2, 3, 1].map(|byte| Bytes32([byte; 32]));
    let set = LaneSet::new(lanes.to_vec()).expect("within the bound").expect("a lane");
    assert_eq!(set.to_vec(), [1, 2, 3].map(|byte| Bytes32([byte; 32])));
    assert_eq!(LaneSet::from_bytes(&set.to_bytes()), Ok(set));
    assert_eq!(LaneSet::new(vec![]), Ok(None));
}
