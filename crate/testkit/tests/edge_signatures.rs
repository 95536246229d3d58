//! A key with a table judges every edge case as strict verification does.

use std::thread;

use remuda_testkit::edge_signature::{Comparison, EdgeCases};

const CASES: usize = 100_000;
const THREADS: usize = 2;

#[test]
fn a_hundred_thousand_edge_cases_have_the_strict_verdict() {
    let parts: Vec<_> = (0u64..)
        .take(THREADS)
        .map(|seed| thread::spawn(move || Comparison::of(EdgeCases::new(seed).take(CASES / THREADS))))
        .collect();
    let mut accepted = 0;
    for part in parts {
        let comparison = part.join().expect("no panic");
        assert!(comparison.differing.is_empty(), "{:#?}", &comparison.differing[..1]);
        accepted += comparison.accepted;
    }
    assert!((10_000..90_000).contains(&accepted), "{accepted} were accepted: the cases are one-sided");
}
