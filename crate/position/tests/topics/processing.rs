//! STR-020, STR-072 to STR-077, STR-086, and the document's review cases.

use std::collections::BTreeSet;

use remuda_position::topic::obligation::{measure, Obligation};
use remuda_position::topic::processing::{process, rejections, Step};
use remuda_position::topic::processor::{Block, IdentityReference, RejectionReason};
use remuda_position::StoreError;
use remuda_streaming::{Target, Topic};
use remuda_testkit::builder::rows::group;

use crate::support::{identity, now, place, places, receive_rows, step, store, store_with_groups, Fault, Script};

fn applied(sequence_id: u64, messages: usize) -> Step {
    Step::Applied { sequence_id: place(sequence_id), messages }
}

fn rejected(sequence_id: u64, reason: RejectionReason) -> Step {
    Step::Rejected { sequence_id: place(sequence_id), reason }
}

fn blocked(sequence_id: u64, block: Block) -> Step {
    Step::Blocked { sequence_id: place(sequence_id), block }
}

fn step_with(store: &impl remuda_position::topic::store::TopicStore, script: &Script, topic: &Topic) -> Step {
    now(process(store, script, topic, &BTreeSet::new())).expect("a store")
}

#[test]
fn p_never_passes_what_failed_transiently() {
    let store = store_with_groups(&[1]);
    receive_rows(&store, &group(1), 0, &[(4, b"a"), (5, b"t"), (6, b"a"), (9, b"a")]);
    let script = Script { transient: true };
    assert_eq!(step_with(&store, &script, &group(1)), applied(4, 1));
    for _ in 0..3 {
        assert_eq!(step_with(&store, &script, &group(1)), Step::Retry { sequence_id: place(5) });
    }
    assert_eq!(places(&store, &group(1)), (9, 4, 3));
    assert_eq!(step(&store, &group(1)), applied(5, 1), "and when it no longer fails, it is applied");
}

/// Review case "future epoch".
#[test]
fn an_envelope_of_a_future_epoch_is_rejected_after_a_complete_prefix_and_the_next_applies() {
    let store = store_with_groups(&[1]);
    receive_rows(&store, &group(1), 0, &[(1, b"c"), (2, b"e\x05"), (3, b"e\x01"), (4, b"e\x00")]);
    let steps = [(); 4].map(|()| step(&store, &group(1)));
    let reason = RejectionReason::Validation(1);
    assert_eq!(steps, [applied(1, 0), rejected(2, reason), applied(3, 1), rejected(4, reason)]);
    assert_eq!(now(rejections(&store, &group(1))), Ok(vec![(place(2), reason), (place(4), reason)]));
    assert_eq!(step(&store, &group(1)), Step::Idle);
}

/// Review case "missing proposal": lost local state blocks, and so does what is not supported.
#[test]
fn missing_state_and_unsupported_input_block_their_topic_alone() {
    for (command, block) in [(b"m", Block::MissingState), (b"u", Block::Unsupported)] {
        let store = store_with_groups(&[1, 2]);
        receive_rows(&store, &group(1), 0, &[(1, command), (2, b"a")]);
        receive_rows(&store, &group(2), 0, &[(3, b"a")]);
        assert_eq!(step(&store, &group(1)), blocked(1, block));
        assert_eq!(step(&store, &group(2)), applied(3, 1));
        assert_eq!(places(&store, &group(1)), (2, 0, 2));
    }
}

#[test]
fn a_rejection_and_p_are_written_together_or_not_at_all() {
    for fault in [Fault::Aborts, Fault::Unheard] {
        let store = store_with_groups(&[1]);
        receive_rows(&store, &group(1), 0, &[(1, b"r")]);
        store.fault.set(Some(fault));
        let failed = now(process(&store, &Script::default(), &group(1), &BTreeSet::new()));
        assert_eq!(failed, Err(StoreError::Aborted));
        let recorded = now(rejections(&store, &group(1))).expect("a store").len();
        let expected = if fault == Fault::Aborts { ((1, 0, 1), 0) } else { ((1, 1, 0), 1) };
        assert_eq!((places(&store, &group(1)), recorded), expected);
    }
}

#[test]
fn an_identity_is_supplied_at_exactly_the_place_that_is_named() {
    let store = store_with_groups(&[1]);
    receive_rows(&store, &group(1), 0, &[(50, b"i\x03\x10"), (60, b"i\x03\x0c")]);
    let reference = IdentityReference { inbox: identity(3), at: place(16) };
    assert_eq!(step(&store, &group(1)), blocked(50, Block::Identity(reference)));
    receive_rows(&store, &identity(3), 0, &[(10, b"s"), (16, b"s"), (20, b"s")]);
    assert_eq!(step(&store, &group(1)), blocked(50, Block::Identity(reference)), "received is not processed");
    for _ in 0..3 {
        step(&store, &identity(3));
    }
    assert_eq!(step(&store, &group(1)), applied(50, 1));
    // P(identity) is beyond 12, and no update is there: that is not enough.
    let never = IdentityReference { inbox: identity(3), at: place(12) };
    assert_eq!(step(&store, &group(1)), blocked(60, Block::Identity(never)));
    let over = now(process(&store, &Script::default(), &group(1), &BTreeSet::from([never])));
    assert_eq!(over, Ok(rejected(60, RejectionReason::InvalidReference)), "after the wait it is invalid");
}

#[test]
fn a_reference_to_what_comes_later_is_invalid_at_once() {
    let store = store_with_groups(&[1]);
    receive_rows(&store, &group(1), 0, &[(16, b"i\x03\x10"), (17, b"i\x03\x60"), (18, b"a")]);
    let reason = RejectionReason::InvalidReference;
    assert_eq!([(); 3].map(|()| step(&store, &group(1))), [rejected(16, reason), rejected(17, reason), applied(18, 1)]);
}

#[test]
fn a_parent_that_somebody_else_completed_is_not_applied_again() {
    let store = store_with_groups(&[1]);
    receive_rows(&store, &group(1), 0, &[(50, b"i\x03\x10")]);
    step(&store, &group(1));
    receive_rows(&store, &identity(3), 0, &[(16, b"s")]);
    step(&store, &identity(3));
    assert_eq!(step(&store, &group(1)), applied(50, 1), "another tab");
    assert_eq!(step(&store, &group(1)), Step::Idle, "we, coming back from the network");
}

#[test]
fn a_removed_installation_stops_where_it_was_removed_and_owes_no_more() {
    let store = store_with_groups(&[1]);
    receive_rows(&store, &group(1), 0, &[(1, b"a"), (2, b"x"), (3, b"a")]);
    let target = Target::kept(place(3));
    let unfinished = now(measure(&store, &group(1), target)).expect("a store");
    assert!(matches!(unfinished, Obligation::Unfinished { .. }), "receipt alone is no completion");
    assert_eq!([(); 3].map(|()| step(&store, &group(1))), [applied(1, 1), applied(2, 0), Step::Inactive]);
    assert_eq!(places(&store, &group(1)), (3, 2, 1), "what is pending above stays");
    assert_eq!(now(measure(&store, &group(1), target)), Ok(Obligation::Complete));
}

#[test]
fn a_group_that_was_not_joined_keeps_its_rows() {
    let store = store();
    receive_rows(&store, &group(1), 0, &[(1, b"a")]);
    assert_eq!(step(&store, &group(1)), Step::Inactive);
    let owed = now(measure(&store, &group(1), Target::kept(place(1)))).expect("a store");
    assert!(matches!(owed, Obligation::Unfinished { .. }), "nothing of it was processed");
}

#[test]
fn decisions_are_the_same_however_topics_are_interleaved() {
    let rows: [(u64, &[u8]); 6] = [(1, b"a"), (2, b"r"), (3, b"c"), (4, b"e\x01"), (5, b"e\x00"), (6, b"a")];
    let decided = |order: &[u8]| {
        let store = store_with_groups(&[1, 2]);
        for number in [1, 2] {
            receive_rows(&store, &group(number), 0, &rows);
        }
        for number in order {
            step(&store, &group(*number));
        }
        [1, 2].map(|number| (places(&store, &group(number)), now(rejections(&store, &group(number)))))
    };
    let one_by_one = decided(&[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
    assert_eq!(one_by_one[0], one_by_one[1]);
    assert_eq!(decided(&[1, 2, 1, 2, 2, 2, 1, 1, 2, 1, 2, 1]), one_by_one);
}
