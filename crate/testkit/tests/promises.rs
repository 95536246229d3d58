//! Promises that constructors keep where a type alone cannot.

use remuda_client::SubscriptionSpec;
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::verdict::AdmissionRefused;
use remuda_wire::{bound, Bytes32};

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
