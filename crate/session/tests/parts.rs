//! Counters, credit, backoff, ids and errors on their own.

mod support;

use std::collections::BTreeSet;

use proptest::prelude::*;
use remuda_session::counter::RequestCounter;
use remuda_session::entropy::Entropy;
use remuda_session::{Backoff, CreditTarget, CreditWindow, ErrorKind, TransportError};
use remuda_wire::Remedy;

#[test]
fn counters_are_contiguous_from_one() {
    let mut counter = RequestCounter::new();
    assert_eq!((0..4).map(|_| counter.take()).collect::<Vec<_>>(), [Some(1), Some(2), Some(3), Some(4)]);
    assert_eq!(counter.last(), 4);
}

#[test]
fn ids_never_repeat_and_differ_between_seeds() {
    let (mut one, mut two) = (Entropy::new([1; 32]), Entropy::new([2; 32]));
    let ids: BTreeSet<_> = (0..1_000).flat_map(|_| [one.request_id(), two.request_id()]).collect();
    assert_eq!(ids.len(), 2_000);
}

#[test]
fn every_named_code_has_its_remedy() {
    let remedy = |code| ErrorKind::of(code).remedy();
    for code in [3913, 3914, 3925, 3946, 3947] {
        assert_eq!(remedy(code), Remedy::Retry, "{code}");
    }
    for code in [3917, 3930, 3944] {
        assert_eq!(remedy(code), Remedy::ReEnterAtBoundary, "{code}");
    }
    assert_eq!((remedy(3941), remedy(3942)), (Remedy::Surface, Remedy::Halt));
    assert_eq!((remedy(3943), remedy(3945)), (Remedy::FixRequest, Remedy::SplitScope));
    assert_eq!(ErrorKind::ALL.len(), 46);
    let paths: BTreeSet<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
    assert_eq!(paths.len(), ErrorKind::ALL.len());
    for kind in ErrorKind::ALL {
        assert_eq!(ErrorKind::of(kind.number()), *kind);
    }
}

#[test]
fn an_unknown_code_is_kept_and_surfaced() {
    for code in [0, 3899, 3922, 3931, 3948, u16::MAX] {
        let kind = ErrorKind::of(code);
        assert_eq!(kind, ErrorKind::Unknown(code));
        assert_eq!((kind.number(), kind.remedy(), kind.code()), (code, Remedy::Surface, "provider/unknown"));
    }
}

#[test]
fn statuses_by_remedy() {
    for (status, remedy) in [
        (408, Remedy::Retry),
        (429, Remedy::Retry),
        (503, Remedy::Retry),
        (404, Remedy::Surface),
        (302, Remedy::Surface),
    ] {
        assert_eq!(TransportError::Http { status }.remedy(), remedy, "{status}");
    }
}

#[test]
fn a_target_tops_up_below_half() {
    let target = CreditTarget { records: 10, bytes: 100 };
    let at = |records, bytes| target.top_up(CreditWindow { records, bytes });
    assert_eq!(at(0, 0), Some((10, 100)));
    assert_eq!(at(5, 50), None);
    assert_eq!(at(4, 100), Some((6, 0)));
    assert_eq!(at(10, 49), Some((0, 51)));
    assert_eq!(CreditTarget::NONE.top_up(CreditWindow::default()), None);
}

/// The naive model: every grant and delivery on a list, summed anew each time in wide integers.
fn model(steps: &[(bool, u32, u64)]) -> Option<(u128, u128)> {
    let (mut records, mut bytes) = (0_u128, 0_u128);
    for (grants, count, size) in steps {
        if *grants {
            records = (records + u128::from(*count)).min(u128::from(u32::MAX));
            bytes = (bytes + u128::from(*size)).min(u128::from(u64::MAX));
        } else {
            records = records.checked_sub(1)?;
            bytes = bytes.checked_sub(u128::from(*size))?;
        }
    }
    Some((records, bytes))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn credit_is_never_exceeded(steps in prop::collection::vec((any::<bool>(), 0_u32..4, 0_u64..64), 0..40)) {
        let mut window = CreditWindow::default();
        let mut taken = Vec::new();
        for step in &steps {
            let (grants, count, size) = *step;
            taken.push(*step);
            if grants {
                window.grant(count, size);
            } else {
                let before = window;
                if window.spend(usize::try_from(size).unwrap()).is_err() {
                    prop_assert!(model(&taken).is_none());
                    prop_assert_eq!(window, before);
                    taken.pop();
                }
            }
            prop_assert_eq!(model(&taken), Some((u128::from(window.records), u128::from(window.bytes))));
        }
    }

    #[test]
    fn delays_stay_below_their_ceiling(base_ms in 0_u64..10_000, cap_ms: u64, attempt: u32, random: u64) {
        let backoff = Backoff { base_ms, cap_ms };
        prop_assert!(backoff.delay_ms(attempt, random) <= backoff.ceiling_ms(attempt));
        prop_assert!(backoff.ceiling_ms(attempt) <= cap_ms);
        prop_assert_eq!(backoff.delay_ms(attempt, 0), 0);
        prop_assert_eq!(backoff.delay_ms(attempt, u64::MAX), backoff.ceiling_ms(attempt));
    }
}
