//! STR-072, STR-078: bounded turns, and fresh checks of what waits.

use remuda_position::topic::limits::ACTIVE_DATABASE_POLL_INTERVAL_MS;
use remuda_position::topic::processing::Step;
use remuda_position::topic::turns::ProcessingTurns;
use remuda_streaming::{Topic, TopicKind};
use remuda_testkit::builder::rows::group;

use crate::support::{places, receive_rows, step, store_with_groups};

#[test]
fn a_thousand_ready_topics_are_each_attempted_once_before_any_is_again() {
    let topic = |number: u16| Topic::new(TopicKind::Group, &number.to_be_bytes().repeat(8)).expect("a group");
    let mut turns = ProcessingTurns::default();
    (0..1_000).chain(0..10).for_each(|number| turns.wake(topic(number)));
    let applied = Step::Applied { sequence_id: Default::default(), messages: 0 };
    for number in (0..1_000).chain(0..1_000) {
        assert_eq!(turns.poll(0), Some(topic(number)));
        turns.handle_step(topic(number), Some(&applied), 0);
    }
}

#[test]
fn a_blocked_head_holds_nobody_up_and_is_looked_at_again() {
    let store = store_with_groups(&[1, 2]);
    receive_rows(&store, &group(1), 0, &[(1, b"u"), (2, b"a")]);
    receive_rows(&store, &group(2), 0, &[(3, b"a"), (4, b"r"), (5, b"a")]);
    let mut turns = ProcessingTurns::default();
    turns.wake(group(1));
    turns.wake(group(2));
    let mut attempts = 0;
    while let Some(topic) = turns.poll(0) {
        let step = step(&store, &topic);
        turns.handle_step(topic, Some(&step), 0);
        attempts += 1;
    }
    assert_eq!((places(&store, &group(1)), places(&store, &group(2))), ((2, 0, 2), (5, 5, 0)));
    assert_eq!(attempts, 5, "one for the blocked head, three rows, and one that finds nothing");
    assert_eq!(turns.wake_at(), Some(ACTIVE_DATABASE_POLL_INTERVAL_MS));
    assert_eq!(turns.poll(ACTIVE_DATABASE_POLL_INTERVAL_MS - 1), None);
    assert_eq!(turns.poll(ACTIVE_DATABASE_POLL_INTERVAL_MS), Some(group(1)), "without a wake, by a fresh check");
    turns.handle_step(group(1), None, 1_000);
    turns.wake(group(1));
    assert_eq!((turns.wake_at(), turns.poll(1_000)), (Some(0), Some(group(1))), "and with one, at once");
}
