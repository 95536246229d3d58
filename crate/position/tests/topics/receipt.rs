//! STR-060 to STR-063, STR-066.

use remuda_position::topic::limits::{Limit, ReceiptLimits};
use remuda_position::topic::receipt::{receive, ReceiptRefused};
use remuda_position::StoreError;
use remuda_streaming::{OrderedPrefix, TopicKind};
use remuda_testkit::builder::rows::{group, prefix, topic};

use crate::support::{
    identity, now, places, receive_one, receive_rows, small_limits, step, store, store_with_groups, welcome, Fault,
};

const A: &[u8] = b"a";

#[test]
fn rows_and_f_move_together_and_gaps_between_ids_are_no_gaps() {
    let store = store();
    let receipt = receive_rows(&store, &group(1), 0, &[(3, A), (1_000_000_007, A)]);
    assert_eq!((receipt.admitted, receipt.refused, receipt.rest), (2, None, None));
    assert_eq!(places(&store, &group(1)), (1_000_000_007, 0, 2));
}

#[test]
fn a_source_that_starts_beyond_f_is_refused_and_an_empty_batch_moves_nothing() {
    let store = store();
    receive_rows(&store, &group(1), 0, &[(3, A)]);
    let gap = receive_rows(&store, &group(1), 4, &[(9, A)]);
    assert_eq!((gap.admitted, gap.refused), (0, Some(ReceiptRefused::Gap)));
    let empty = receive_rows(&store, &group(1), 3, &[]);
    assert_eq!((empty.admitted, empty.refused), (0, None));
    assert_eq!(places(&store, &group(1)), (3, 0, 1));
}

#[test]
fn an_overlap_adds_its_suffix_alone_and_a_contradiction_nothing() {
    let store = store();
    receive_rows(&store, &group(1), 0, &[(3, A), (5, b"a five")]);
    let overlap = receive_rows(&store, &group(1), 0, &[(3, A), (5, b"a five"), (8, A)]);
    assert_eq!((overlap.admitted, overlap.refused), (1, None));
    let conflict = receive_rows(&store, &group(1), 3, &[(5, b"a FIVE"), (9, A)]);
    assert_eq!((conflict.admitted, conflict.refused, conflict.rest), (0, Some(ReceiptRefused::Conflict), None));
    assert_eq!(places(&store, &group(1)), (8, 0, 3));
}

#[test]
fn a_failed_transaction_leaves_rows_and_f_and_an_unheard_one_both() {
    for fault in [Fault::Aborts, Fault::Quota, Fault::Unheard] {
        let store = store();
        store.fault.set(Some(fault));
        let limits = ReceiptLimits::default();
        let failed = now(receive(&store, &limits, vec![prefix(&group(1), 0, &[(3, A), (5, A)])]));
        assert_eq!(failed, Err(if fault == Fault::Quota { StoreError::Quota } else { StoreError::Aborted }));
        let expected = if fault == Fault::Unheard { (5, 0, 2) } else { (0, 0, 0) };
        assert_eq!(places(&store, &group(1)), expected, "{fault:?}");
        // Whatever happened, the same again ends in the same place.
        receive_rows(&store, &group(1), 0, &[(3, A), (5, A)]);
        assert_eq!(places(&store, &group(1)), (5, 0, 2), "{fault:?}");
    }
}

#[test]
fn a_full_topic_pauses_alone_and_goes_on_when_it_has_room() {
    let store = store_with_groups(&[1, 2]);
    let flood: Vec<_> = (1..=9).map(|place| (place, A)).collect();
    let mut rest = Some(prefix(&group(1), 0, &flood));
    for admitted in [4, 1, 0] {
        let receipt = receive_one(&store, &small_limits(), rest.take().expect("a rest"));
        assert_eq!(receipt.admitted, admitted);
        rest = receipt.rest;
    }
    let receipt = receive_one(&store, &small_limits(), rest.clone().expect("a rest"));
    assert_eq!(receipt.refused, Some(ReceiptRefused::TopicFull));
    assert_eq!(receive_one(&store, &small_limits(), prefix(&group(2), 0, &[(10, A)])).admitted, 1, "the other flows");
    assert_eq!(places(&store, &group(1)), (5, 0, 5));
    for _ in 0..2 {
        step(&store, &group(1));
    }
    assert_eq!(receive_one(&store, &small_limits(), rest.expect("a rest")).admitted, 2);
    assert_eq!(places(&store, &group(1)), (7, 2, 5));
}

/// The document's review case "shared capacity".
#[test]
fn a_full_kind_refuses_even_an_empty_topic_and_no_other_kind() {
    let store = store_with_groups(&[1, 2, 3, 4]);
    let rows: Vec<_> = (1..=4).map(|place| (place, A)).collect();
    receive_one(&store, &small_limits(), prefix(&group(1), 0, &rows));
    receive_one(&store, &small_limits(), prefix(&group(2), 0, &rows));
    let refused = receive_one(&store, &small_limits(), prefix(&group(3), 0, &[(9, A)]));
    assert_eq!((refused.admitted, refused.refused), (0, Some(ReceiptRefused::KindFull)));
    assert_eq!(places(&store, &group(3)), (0, 0, 0));
    assert_eq!(receive_one(&store, &small_limits(), prefix(&welcome(), 0, &[(9, A)])).admitted, 1);
    assert_eq!(receive_one(&store, &small_limits(), prefix(&identity(1), 0, &[(9, A)])).admitted, 1);
    // Two places become free. Who holds least is served first: the empty ones, before group 2 gets anything.
    step(&store, &group(1));
    step(&store, &group(1));
    let waiting =
        vec![prefix(&group(2), 4, &[(11, A)]), prefix(&group(3), 0, &[(9, A)]), prefix(&group(4), 0, &[(8, A)])];
    let receipts = now(receive(&store, &small_limits(), waiting)).expect("a store");
    let admitted: Vec<_> = receipts.iter().map(|receipt| (receipt.admitted, receipt.refused)).collect();
    assert_eq!(admitted, [(0, Some(ReceiptRefused::KindFull)), (1, None), (1, None)]);
    assert!(receipts[0].rest.is_some(), "what waits is not dropped");
}

#[test]
fn rows_and_bytes_are_both_bounds_and_a_row_above_its_budget_says_so() {
    let exact = prefix(&group(1), 0, &[(1, A), (2, A)]).byte_count();
    let bytes = |bytes| ReceiptLimits { topic: Limit { rows: 9, bytes }, ..small_limits() };
    for (bytes_allowed, admitted) in [(exact, 2), (exact - 1, 1)] {
        let receipt = receive_one(&store(), &bytes(bytes_allowed), prefix(&group(1), 0, &[(1, A), (2, A)]));
        assert_eq!(receipt.admitted, admitted);
    }
    let store = store();
    let oversized = receive_one(&store, &bytes(200), prefix(&group(1), 0, &[(1, &[b'a'; 200])]));
    assert_eq!((oversized.admitted, oversized.refused), (0, Some(ReceiptRefused::Oversized)));
    assert_eq!(places(&store, &group(1)), (0, 0, 0));
}

#[test]
fn one_transaction_takes_turns_and_leaves_the_rest_for_the_next() {
    let store = store();
    let flood: Vec<_> = (1..=5).map(|place| (place, A)).collect();
    let mut waiting =
        vec![prefix(&group(1), 0, &flood), prefix(&group(1), 5, &[(6, A)]), prefix(&group(2), 0, &[(7, A)])];
    let mut turns = Vec::new();
    let limits = ReceiptLimits { topic: Limit { rows: 9, bytes: 100_000 }, ..small_limits() };
    while !waiting.is_empty() {
        let receipts = now(receive(&store, &limits, waiting)).expect("a store");
        assert!(receipts.iter().all(|receipt| receipt.refused.is_none()));
        turns.push(receipts.iter().map(|receipt| receipt.admitted).collect::<Vec<_>>());
        waiting = receipts.into_iter().filter_map(|receipt| receipt.rest).filter(has_rows).collect();
    }
    assert_eq!(turns, [vec![3, 0, 1], vec![2, 0], vec![1]], "four rows a transaction, and nobody waits for a flood");
    assert_eq!((places(&store, &group(1)), places(&store, &group(2))), ((6, 0, 6), (7, 0, 1)));
}

fn has_rows(prefix: &OrderedPrefix) -> bool {
    !prefix.rows().is_empty()
}

#[test]
fn key_packages_and_commit_logs_are_never_received() {
    let store = store();
    for kind in [TopicKind::KeyPackage, TopicKind::CommitLog] {
        assert_eq!(receive_rows(&store, &topic(kind, 1), 0, &[(1, A)]).refused, Some(ReceiptRefused::Kind));
    }
}
