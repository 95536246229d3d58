//! STR-080 to STR-086, STR-115.

use remuda_position::topic::limits::WELCOME_RETENTION_MS;
use remuda_position::topic::obligation::{measure, Obligation};
use remuda_position::topic::processing::{discovered_groups, rejections, Step};
use remuda_position::topic::processor::{Block, RejectionReason};
use remuda_position::topic::store::TopicStore;
use remuda_position::topic::welcome::{process_welcome, unresolved};
use remuda_position::StoreError;
use remuda_streaming::Target;
use remuda_testkit::builder::rows::group;

use crate::support::{now, place, places, receive_rows, step, store, store_with_groups, welcome, Fault, Script};

fn open(store: &impl TopicStore, sequence_id: u64, now_ms: u64) -> Step {
    let script = Script { transient: true };
    now(process_welcome(store, &script, &welcome(), place(sequence_id), now_ms)).expect("a store")
}

fn joined(sequence_id: u64) -> Step {
    Step::Applied { sequence_id: place(sequence_id), messages: 1 }
}

fn rejected(sequence_id: u64, reason: RejectionReason) -> Step {
    Step::Rejected { sequence_id: place(sequence_id), reason }
}

#[test]
fn a_join_sets_p_and_f_to_its_anchor_and_keeps_what_is_pending_above() {
    let store = store();
    receive_rows(&store, &group(1), 0, &[(3, b"a"), (7, b"a"), (9, b"a")]);
    receive_rows(&store, &welcome(), 0, &[(20, b"j\x01\x07\x02"), (21, b"j\x02\x0f\x01")]);
    assert_eq!([open(&store, 20, 0), open(&store, 21, 0)], [joined(20), joined(21)]);
    assert_eq!(places(&store, &group(1)), (9, 7, 1), "rows at and below the anchor are not processed again");
    assert_eq!(places(&store, &group(2)), (15, 15, 0), "an anchor is the only way to skip a prefix");
    assert_eq!(now(discovered_groups(&store)), Ok(vec![group(1), group(2)]));
    assert!(matches!(step(&store, &group(1)), Step::Applied { .. }));
}

#[test]
fn one_that_waits_hinders_nobody_and_is_not_hidden_by_later_ones() {
    let store = store();
    receive_rows(&store, &welcome(), 0, &[(20, b"t"), (21, b"r"), (22, b"j\x01\x00\x01")]);
    assert_eq!(open(&store, 20, 5), Step::Retry { sequence_id: place(20) });
    assert_eq!(open(&store, 21, 5), rejected(21, RejectionReason::Validation(1)));
    assert_eq!(open(&store, 22, 5), joined(22));
    assert_eq!(now(unresolved(&store, &welcome(), place(22))), Ok(vec![place(20)]));
    let through = |through| now(measure(&store, &welcome(), Target::kept(place(through)))).expect("a store");
    assert!(matches!(through(22), Obligation::Unfinished { unresolved, .. } if unresolved == [place(20)]));
    assert_eq!(through(19), Obligation::Complete, "what is above a target owes it nothing");
}

#[test]
fn an_anchor_that_cannot_be_is_rejected() {
    let store = store();
    receive_rows(&store, &welcome(), 0, &[(20, b"j\x01\x14\x01"), (21, b"j\x01\x63\x01")]);
    for sequence_id in [20, 21] {
        assert_eq!(open(&store, sequence_id, 0), rejected(sequence_id, RejectionReason::InvalidAnchor));
    }
    assert_eq!(places(&store, &group(1)), (0, 0, 0));
}

#[test]
fn an_active_group_is_never_overwritten() {
    let store = store_with_groups(&[1]);
    receive_rows(&store, &group(1), 0, &[(1, b"c"), (2, b"c"), (9, b"a")]);
    step(&store, &group(1));
    step(&store, &group(1));
    receive_rows(&store, &welcome(), 0, &[(20, b"j\x01\x09\x02"), (21, b"j\x01\x09\x03"), (22, b"j\x01\x01\x03")]);
    assert_eq!(open(&store, 20, 0), rejected(20, RejectionReason::StaleWelcome), "our epoch is as late");
    let first = Block::GroupPrefix { group: group(1), through: place(9) };
    assert_eq!(open(&store, 21, 0), Step::Blocked { sequence_id: place(21), block: first });
    assert_eq!(open(&store, 22, 0), rejected(22, RejectionReason::ConflictingWelcome), "P is past its anchor");
    step(&store, &group(1));
    assert_eq!(open(&store, 21, 0), rejected(21, RejectionReason::ConflictingWelcome), "and we are still in");
}

#[test]
fn a_removal_in_the_prefix_permits_the_welcome_that_names_it() {
    let store = store_with_groups(&[1]);
    receive_rows(&store, &group(1), 0, &[(1, b"a"), (4, b"x"), (6, b"a")]);
    receive_rows(&store, &welcome(), 0, &[(20, b"j\x01\x04\x01"), (21, b"j\x01\x03\x09"), (22, b"j\x01\x04\x01")]);
    assert!(matches!(open(&store, 20, 0), Step::Blocked { .. }), "active, and the anchor is ahead");
    step(&store, &group(1));
    step(&store, &group(1));
    assert_eq!(open(&store, 21, 0), rejected(21, RejectionReason::StaleWelcome), "P is never rewound");
    assert_eq!(open(&store, 20, 0), joined(20), "the commit that removed us and added us again");
    assert_eq!(places(&store, &group(1)), (6, 4, 1));
    assert!(matches!(step(&store, &group(1)), Step::Applied { .. }));
    assert_eq!(open(&store, 22, 0), rejected(22, RejectionReason::StaleWelcome));
}

#[test]
fn an_installation_that_fails_leaves_everything() {
    let store = store();
    receive_rows(&store, &group(1), 0, &[(3, b"a")]);
    receive_rows(&store, &welcome(), 0, &[(20, b"j\x01\x07\x02")]);
    store.fault.set(Some(Fault::Aborts));
    let failed = now(process_welcome(&store, &Script::default(), &welcome(), place(20), 0));
    assert_eq!(failed, Err(StoreError::Aborted));
    assert_eq!((places(&store, &group(1)), places(&store, &welcome())), ((3, 0, 1), (20, 0, 1)));
    assert_eq!(now(discovered_groups(&store)), Ok(vec![]));
    assert_eq!(open(&store, 20, 0), joined(20));
}

#[test]
fn what_cannot_be_processed_ends_once_at_its_deadline_with_one_further_attempt() {
    let store = store();
    receive_rows(&store, &welcome(), 0, &[(20, b"u"), (21, b"t"), (22, b"t")]);
    for sequence_id in [20, 21, 22] {
        open(&store, sequence_id, 1_000);
    }
    let deadline = 1_000 + WELCOME_RETENTION_MS;
    assert!(matches!(open(&store, 20, deadline - 1), Step::Blocked { .. }));
    assert_eq!(open(&store, 20, deadline), rejected(20, RejectionReason::Expired), "a retry did not extend it");
    assert_eq!(open(&store, 21, deadline + 9), rejected(21, RejectionReason::Expired));
    let lucky = now(process_welcome(&store, &Script::default(), &welcome(), place(22), deadline)).expect("a store");
    assert_eq!(lucky, rejected(22, RejectionReason::Expired), "what applies to no welcome is no success");
    assert_eq!(now(rejections(&store, &welcome())).expect("a store").len(), 3);
    assert_eq!(places(&store, &welcome()), (22, 0, 0), "and its capacity is free");
}
