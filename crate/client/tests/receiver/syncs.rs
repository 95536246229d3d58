//! STR-040 to STR-044: targets that do not move, and ends that say what is left.

use remuda_client::receiver::{Cause, SyncOutcome, SyncRun};
use remuda_position::topic::obligation::Obligation;
use remuda_position::topic::processor::Block;
use remuda_streaming::Topic;
use remuda_testkit::builder::rows::group;

use crate::backend::Backend;

fn backend(rows: &[u8]) -> Backend {
    let mut backend = Backend::default();
    rows.iter().for_each(|number| backend.publish(group(*number), b"row", 0, 0));
    backend
}

fn ask(run: &mut SyncRun, backend: &Backend) -> Vec<(Topic, u64)> {
    let query = run.poll_newest().expect("a question");
    let answer = backend.newest(&query.to_bytes(), 0);
    let targets = run.handle_newest(query, Some(answer)).expect("honest");
    targets.iter().map(|(topic, target)| (*topic, target.through().get())).collect()
}

fn unfinished(run: &SyncRun) -> Obligation {
    let (_, target) = run.open()[0];
    Obligation::Unfinished { target, received: Default::default(), processed: None, unresolved: vec![] }
}

#[test]
fn targets_are_fixed_when_it_starts_and_later_traffic_extends_nothing() {
    let mut backend = backend(&[1, 1]);
    let mut run = SyncRun::start([group(1), group(2)], 0, None);
    assert_eq!(ask(&mut run, &backend), [(group(1), 2), (group(2), 0)], "an empty topic owes nothing");
    backend.publish(group(1), b"later", 0, 0);
    run.enroll(group(1));
    assert!(run.poll_newest().is_none(), "what is enrolled keeps its target");
    for (topic, _) in run.open() {
        run.handle_measured(&topic, Obligation::Complete, None);
    }
    assert_eq!(run.poll_outcome(0), Some(SyncOutcome::Complete));
    run.enroll(group(3));
    assert_eq!(run.poll_outcome(0), None, "a discovered group is part of it");
    assert_eq!(ask(&mut run, &backend), [(group(3), 0)]);
}

#[test]
fn what_is_blocked_ends_nothing_before_the_others_are_done() {
    let backend = backend(&[1, 2]);
    let mut run = SyncRun::start([group(1), group(2)], 1_000, Some(5_000));
    ask(&mut run, &backend);
    let open = unfinished(&run);
    run.handle_measured(&group(1), open.clone(), Some(Block::Unsupported));
    assert_eq!(run.poll_outcome(5_999), None);
    run.handle_measured(&group(2), Obligation::Complete, None);
    let Some(SyncOutcome::Incomplete(left)) = run.poll_outcome(1_001) else { panic!("all that is left is blocked") };
    assert_eq!((left[0].topic, left[0].cause), (group(1), Cause::Blocked(Block::Unsupported)));
    assert_eq!(left[0].obligation, Some(open));
}

#[test]
fn the_deadline_and_a_cancellation_name_every_obligation() {
    let backend = backend(&[1]);
    let mut run = SyncRun::start([group(1)], 1_000, Some(5_000));
    let lost = run.poll_newest().expect("a question");
    assert!(run.handle_newest(lost, None).is_err());
    let Some(SyncOutcome::Incomplete(left)) = run.poll_outcome(6_000) else { panic!("the deadline") };
    assert_eq!(left.iter().map(|left| left.cause).collect::<Vec<_>>(), [Cause::NoTarget]);
    ask(&mut run, &backend);
    let open = unfinished(&run);
    run.handle_measured(&group(1), open, None);
    let SyncOutcome::Incomplete(left) = run.cancel() else { panic!("unfinished") };
    assert_eq!(left.iter().map(|left| left.cause).collect::<Vec<_>>(), [Cause::Cancelled]);
}
