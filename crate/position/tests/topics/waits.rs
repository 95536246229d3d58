//! STR-075, STR-076: bounded requests and the healthy wait.

use remuda_position::topic::dependency::{Dependency, DependencyRequests, ReferenceWaits, Resolution};
use remuda_position::topic::limits::{IDENTITY_REFERENCE_WAIT_MS, MAX_DEPENDENCY_REQUESTS};
use remuda_position::topic::processor::IdentityReference;

use crate::support::{identity, place};

fn need(number: u8) -> Dependency {
    Dependency { topic: identity(number), through: place(1) }
}

#[test]
fn eight_at_once_and_one_failure_discards_no_sibling() {
    let mut requests = DependencyRequests::default();
    (0..10).chain(0..10).for_each(|number| requests.require(need(number)));
    assert_eq!(requests.open(), 10, "needed twice is needed once");
    let sent: Vec<_> = std::iter::from_fn(|| requests.poll_request()).collect();
    assert_eq!(sent, (0..8).map(need).collect::<Vec<_>>());
    assert_eq!(sent.len(), MAX_DEPENDENCY_REQUESTS);
    requests.handle_resolution(need(3), Resolution::Failed);
    requests.handle_resolution(need(4), Resolution::Ready);
    requests.handle_resolution(need(5), Resolution::Retry);
    requests.handle_resolution(need(5), Resolution::Failed);
    let next: Vec<_> = std::iter::from_fn(|| requests.poll_request()).collect();
    assert_eq!(next, [need(8), need(9), need(5)], "what is asked again stands behind; what was not sent has no end");
    requests.require(need(3));
    assert!(requests.has_failed(&need(3)) && !requests.has_failed(&need(5)));
    assert_eq!(requests.open(), 8, "what failed for good is not asked again");
}

#[test]
fn only_healthy_time_counts() {
    let reference = IdentityReference { inbox: identity(1), at: place(5) };
    let mut waits = ReferenceWaits::default();
    waits.handle_time(0, true);
    waits.require(reference);
    waits.handle_time(6_000, true);
    waits.handle_time(7_000, false);
    waits.handle_time(32_000, true);
    assert!(waits.invalid().is_empty(), "connected for 7 of 32 seconds");
    waits.handle_time(31_000, true);
    waits.handle_time(31_000 + IDENTITY_REFERENCE_WAIT_MS - 7_001, true);
    assert!(waits.invalid().is_empty());
    waits.handle_time(31_000 + IDENTITY_REFERENCE_WAIT_MS - 7_000, true);
    assert_eq!(waits.invalid().into_iter().collect::<Vec<_>>(), [reference]);
    waits.settle(&reference);
    assert!(waits.invalid().is_empty());
}
