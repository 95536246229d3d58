//! The machine against an honest actor: paging, cadence, rotation, lost places, paid payloads, pushes.

mod support;

use remuda_watchtower::content_key::ContentKeys;
use remuda_watchtower::feed::{Cadence, Choice, Content, Feed, FeedConfig, Gap, Mode, Output, Start};
use remuda_watchtower::filter::Filter;
use remuda_watchtower::transport::Request;
use remuda_watchtower::verifier::Cursor;
use remuda_watchtower::WatchtowerRefusal;

use support::*;

#[test]
fn ten_thousand_messages_are_pulled_in_twenty_calls() {
    let mut actor = Actor::new(Author::with(10_000));
    let mut feed = from_zero();
    feed.handle_time(0);
    let mut stored = Vec::new();
    while stored.len() < 10_000 {
        match feed.poll_output().expect("something to do") {
            Output::Request(request) => {
                let (status, body) = actor.answer(request);
                feed.handle_answer(status, &body, at(0));
            }
            Output::Store(batch) => stored.extend(batch.items.into_iter().map(|item| item.message.sequence)),
            Output::KeyHistory(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(stored.iter().copied().eq(1..=10_000));
    let answered = actor.since_calls();
    assert!(answered <= 20, "{answered} calls");
}

#[test]
fn the_key_history_comes_first_and_is_told() {
    let mut actor = Actor::new(Author::with(2));
    let told = run(&mut from_zero(), &mut actor, 0);
    assert!(matches!(actor.calls[0], Request::GetKeyHistory { from_signing_key_id: 1, limit: 500 }));
    assert_eq!(told[0], Output::KeyHistory(actor.author.schedule.clone()));
    assert_eq!(sequences(&told), [1, 2]);
}

#[test]
fn a_pinned_schedule_is_not_asked_for() {
    let mut actor = Actor::new(Author::with(2));
    let schedule = actor.author.schedule.clone();
    let config = FeedConfig { schedule, ..FeedConfig::new(stream_id(), Start::After(Cursor::default())) };
    let told = run(&mut Feed::new(config).unwrap(), &mut actor, 0);
    assert_eq!((sequences(&told), actor.calls.len()), (vec![1, 2], 1));
}

#[test]
fn an_idle_feed_is_asked_less_and_less_and_a_moving_one_again() {
    let cadence = Cadence { least_ms: 1_000, most_ms: 8_000 };
    let mut actor = Actor::new(Author::with(1));
    let config = FeedConfig { cadence, ..FeedConfig::new(stream_id(), Start::After(Cursor::default())) };
    let mut feed = Feed::new(config).unwrap();
    run(&mut feed, &mut actor, 0);
    let mut now = feed.wake_at().expect("due");
    assert!((500..=1_000).contains(&now));
    let mut delays = Vec::new();
    for _ in 0..6 {
        run(&mut feed, &mut actor, now);
        let due = feed.wake_at().expect("due");
        delays.push(due - now);
        now = due;
    }
    for (delay, ceiling) in delays.iter().zip([1_000, 2_000, 4_000, 8_000, 8_000, 8_000]) {
        assert!((ceiling / 2..=ceiling).contains(delay), "{delays:?}");
    }
    actor.author.publish();
    assert_eq!(sequences(&run(&mut feed, &mut actor, now)), [2]);
    assert!(feed.wake_at().expect("due") - now <= 1_000);
}

#[test]
fn nothing_is_asked_before_it_is_due() {
    let mut actor = Actor::new(Author::with(1));
    let mut feed = from_zero();
    run(&mut feed, &mut actor, 0);
    let (due, calls) = (feed.wake_at().expect("due"), actor.calls.len());
    assert!(run(&mut feed, &mut actor, due - 1).is_empty());
    assert_eq!(actor.calls.len(), calls);
}

#[test]
fn a_rotation_is_learnt_once_when_a_message_needs_it() {
    let mut actor = Actor::new(Author::with(2));
    let mut feed = from_zero();
    run(&mut feed, &mut actor, 0);
    actor.author.rotate();
    (0..2).for_each(|_| actor.author.publish());
    actor.calls.clear();
    let now = feed.wake_at().expect("due");
    let told = run(&mut feed, &mut actor, now);
    assert_eq!(sequences(&told), [3, 4]);
    let histories: Vec<_> = actor.calls.iter().filter(|call| matches!(call, Request::GetKeyHistory { .. })).collect();
    assert_eq!(histories, [&Request::GetKeyHistory { from_signing_key_id: 2, limit: 500 }]);
    assert!(told.contains(&Output::KeyHistory(actor.author.schedule.clone())));
}

#[test]
fn a_key_that_no_history_has_is_refused_after_one_look() {
    let mut actor = Actor::new(Author::with(2));
    let mut feed = from_zero();
    run(&mut feed, &mut actor, 0);
    actor.author.rotate();
    actor.author.publish();
    actor.author.schedule.pop();
    actor.calls.clear();
    let now = feed.wake_at().expect("due");
    let told = run(&mut feed, &mut actor, now);
    assert_eq!(told, [Output::Failed(WatchtowerRefusal::KeySchedule)]);
    assert_eq!(actor.calls.len(), 2);
    assert_eq!(feed.wake_at(), None, "nothing goes on by itself");
    assert_eq!(feed.verified_cursor().last_sequence, 2);
}

fn lost_place() -> (Actor, Feed, Vec<Output>) {
    let mut actor = Actor::new(Author::with(20));
    actor.floor = 15;
    let mut feed = feed(Start::After(Cursor { last_sequence: 4, last_digest: None }));
    let told = run(&mut feed, &mut actor, 0);
    (actor, feed, told)
}

#[test]
fn a_lost_place_waits_for_the_application() {
    let (mut actor, mut feed, told) = lost_place();
    let Some(Output::CursorTooOld(too_old)) = told.last() else { panic!("{told:?}") };
    assert_eq!((too_old.floor_sequence, too_old.head_sequence), (15, 20));
    assert_eq!(feed.wake_at(), None);
    assert!(run(&mut feed, &mut actor, 1_000_000).is_empty());
}

#[test]
fn resuming_reports_what_is_lost_and_goes_on_at_the_floor() {
    let (mut actor, mut feed, _) = lost_place();
    feed.choose(Choice::Resume, at(1));
    let told = settle(&mut feed, &mut actor, 1);
    assert_eq!(batches(&told)[0].gaps, [Gap { first: 5, last: 14 }]);
    assert_eq!(sequences(&told), [15, 16, 17, 18, 19, 20]);
}

#[test]
fn reattaching_reports_what_is_lost_and_goes_on_at_the_head() {
    let (mut actor, mut feed, _) = lost_place();
    feed.choose(Choice::Reattach, at(1));
    let told = settle(&mut feed, &mut actor, 1);
    assert_eq!(batches(&told)[0].gaps, [Gap { first: 5, last: 20 }]);
    assert_eq!(batches(&told)[0].cursor, Cursor { last_sequence: 20, last_digest: None });
    actor.author.publish();
    let now = feed.wake_at().expect("due");
    assert_eq!(sequences(&run(&mut feed, &mut actor, now)), [21]);
}

#[test]
fn a_refused_cursor_that_is_not_stale_is_a_contradiction() {
    for (floor, head) in [(5, 20), (0, 20), (30, 20)] {
        let mut actor = Actor::new(Author::with(20));
        let mut feed = feed(Start::After(Cursor { last_sequence: 4, last_digest: None }));
        feed.handle_time(0);
        let Some(Output::Request(history)) = feed.poll_output() else { panic!("a request") };
        let (status, body) = actor.answer(history);
        feed.handle_answer(status, &body, at(0));
        feed.handle_answer(409, &too_old(floor, head), at(0));
        let told = std::iter::from_fn(|| feed.poll_output()).last();
        assert_eq!(told, Some(Output::Failed(WatchtowerRefusal::MessageShape)), "floor {floor}, head {head}");
    }
}

#[test]
fn a_new_reader_begins_at_the_head_or_at_the_floor() {
    for (start, expected) in [(Start::Head, vec![21]), (Start::Floor, (15..=21).collect::<Vec<_>>())] {
        let mut actor = Actor::new(Author::with(20));
        actor.floor = 15;
        let mut feed = feed(start);
        let mut told = run(&mut feed, &mut actor, 0);
        actor.author.publish();
        let now = feed.wake_at().expect("due");
        told.extend(run(&mut feed, &mut actor, now));
        assert_eq!(sequences(&told), expected, "{start:?}");
        assert!(batches(&told).iter().all(|batch| batch.gaps.is_empty()), "nothing was ever held");
    }
}

#[test]
fn the_head_is_found_without_a_floor_as_well() {
    let mut actor = Actor::new(Author::with(3));
    let mut feed = feed(Start::Head);
    assert!(sequences(&run(&mut feed, &mut actor, 0)).is_empty());
    assert_eq!(feed.verified_cursor().last_sequence, 3);
}

#[test]
fn sealed_messages_wait_for_their_key_and_hold_the_cursor() {
    let mut author = Author::with(2);
    author.publish_sealed(7);
    author.publish();
    author.publish_sealed(8);
    let mut actor = Actor::new(author);
    let mut feed = from_zero();
    let told = run(&mut feed, &mut actor, 0);
    assert_eq!(sequences(&told), [1, 2]);
    assert_eq!(batches(&told).last().unwrap().cursor.last_sequence, 2);
    assert!(told.contains(&Output::StreamAccessRequired { key_epoch: 7 }));
    assert_eq!(feed.pending(), 3);

    // A key of a later epoch opens nothing before its turn.
    feed.give_key(8, epoch_key(8), at(1));
    assert!(settle(&mut feed, &mut actor, 1).is_empty());
    feed.give_key(7, epoch_key(7), at(2));
    let told = settle(&mut feed, &mut actor, 2);
    assert_eq!(sequences(&told), [3, 4, 5]);
    let plain: Vec<_> = batches(&told)[0].items.iter().map(|item| item.content.clone()).collect();
    assert_eq!(plain, [3_u64, 4, 5].map(|sequence| Content::Plain(sequence.to_be_bytes().into())));
    assert_eq!(feed.pending(), 0);
}

#[test]
fn an_epoch_is_asked_for_once() {
    let mut author = Author::new();
    (0..3).for_each(|_| author.publish_sealed(7));
    let mut actor = Actor::new(author);
    let mut feed = from_zero();
    let mut told = run(&mut feed, &mut actor, 0);
    actor.author.publish_sealed(7);
    let now = feed.wake_at().expect("due");
    told.extend(run(&mut feed, &mut actor, now));
    let asked = told.iter().filter(|output| matches!(output, Output::StreamAccessRequired { .. })).count();
    assert_eq!(asked, 1);
}

#[test]
fn what_waits_for_a_key_is_bounded_and_lost_nowhere() {
    let mut author = Author::new();
    (0..1_200).for_each(|_| author.publish_sealed(7));
    let mut actor = Actor::new(author);
    let mut feed = from_zero();
    run(&mut feed, &mut actor, 0);
    assert_eq!(feed.pending(), 500);
    assert_eq!(feed.wake_at(), None, "only a key helps");
    feed.give_key(7, epoch_key(7), at(1));
    assert!(sequences(&settle(&mut feed, &mut actor, 1)).into_iter().eq(1..=1_200));
}

#[test]
fn a_gap_is_reported_behind_what_waits_for_a_key() {
    let mut author = Author::new();
    author.publish_sealed(7);
    (0..9).for_each(|_| author.publish());
    let mut actor = Actor::new(author);
    // The first message only.
    let rest = actor.author.log.split_off(1);
    let mut feed = from_zero();
    run(&mut feed, &mut actor, 0);
    actor.author.log.extend(rest);
    actor.floor = 8;
    let now = feed.wake_at().expect("due");
    run(&mut feed, &mut actor, now);
    feed.choose(Choice::Resume, at(now));
    assert!(sequences(&settle(&mut feed, &mut actor, now)).is_empty(), "the cursor does not pass what waits");
    feed.give_key(7, epoch_key(7), at(now));
    let told = settle(&mut feed, &mut actor, now);
    assert_eq!(sequences(&told), [1, 8, 9, 10]);
    assert_eq!(batches(&told)[0].gaps, [Gap { first: 2, last: 7 }]);
}

#[test]
fn a_payload_that_does_not_open_is_delivered_closed() {
    let mut author = Author::new();
    author.publish_sealed(7);
    let mut actor = Actor::new(author);
    let mut keys = ContentKeys::default();
    keys.insert(stream_id(), 7, epoch_key(8));
    let config = FeedConfig { keys, ..FeedConfig::new(stream_id(), Start::After(Cursor::default())) };
    let told = run(&mut Feed::new(config).unwrap(), &mut actor, 0);
    assert_eq!(batches(&told)[0].items[0].content, Content::Unopened);
}

#[test]
fn what_the_filter_does_not_want_moves_the_cursor_and_needs_no_key() {
    let mut author = Author::with(3);
    author.publish_sealed(7);
    let mut actor = Actor::new(author);
    let filter = Filter::from_text(r#"{"field": "kind", "op": "eq", "value": "odd"}"#).unwrap();
    let config = FeedConfig { filter, ..FeedConfig::new(stream_id(), Start::After(Cursor::default())) };
    let mut feed = Feed::new(config).unwrap();
    let told = run(&mut feed, &mut actor, 0);
    assert_eq!(sequences(&told), [1, 3]);
    assert_eq!(batches(&told).last().unwrap().cursor.last_sequence, 4);
    assert_eq!(feed.counters().filtered, 2);
}

#[test]
fn a_failed_request_is_repeated_later_each_time() {
    let mut actor = Actor::new(Author::with(1));
    let mut feed = from_zero();
    feed.handle_time(0);
    let mut now = 0;
    for failure in 0..12_u32 {
        let Some(Output::Request(_)) = feed.poll_output() else { panic!("a request") };
        match failure % 3 {
            0 => feed.handle_transport_failure(at(now)),
            1 => feed.handle_answer(503, b"busy", at(now)),
            _ => feed.handle_answer(409, &remuda_watchtower::cbor::map([("code", "BUSY".into())]).to_bytes(), at(now)),
        }
        let due = feed.wake_at().expect("due");
        assert!(due - now <= 30_000);
        now = due;
        feed.handle_time(now);
    }
    assert_eq!(sequences(&settle(&mut feed, &mut actor, now)), [1]);
}

#[test]
fn pushes_are_taken_in_order_and_pulled_otherwise() {
    let mut actor = Actor::new(Author::with(1));
    let config = FeedConfig {
        mode: Mode::PushWithPullFallback,
        ..FeedConfig::new(stream_id(), Start::After(Cursor::default()))
    };
    let mut feed = Feed::new(config).unwrap();
    run(&mut feed, &mut actor, 0);
    (0..4).for_each(|_| actor.author.publish());
    let pushed = |sequence: usize| actor.author.log[sequence - 1].to_value().to_bytes();
    let (second, fifth, first) = (pushed(2), pushed(5), pushed(1));

    feed.handle_push(&second, at(10));
    let told: Vec<_> = std::iter::from_fn(|| feed.poll_output()).collect();
    assert_eq!(sequences(&told), [2]);
    assert!(feed.wake_at().expect("due") - 10 >= 15_000, "while pushes come, asking is the exception");

    // Again, and an older one: idempotent.
    feed.handle_push(&second, at(11));
    feed.handle_push(&first, at(11));
    assert_eq!(feed.poll_output(), None);

    // A forged one says nothing about the feed.
    let mut forged = actor.author.log[2].clone();
    forged.kind = "forged".into();
    feed.handle_push(&forged.to_value().to_bytes(), at(12));
    assert_eq!(feed.poll_output(), None);

    // One is missing: the rest is pulled at once.
    feed.handle_push(&fifth, at(13));
    assert_eq!(sequences(&settle(&mut feed, &mut actor, 13)), [3, 4, 5]);
    assert_eq!(feed.counters().repeats, 1);
    assert_eq!(feed.counters().pushes_dropped, 3);
}

#[test]
fn without_push_mode_a_push_is_nothing() {
    let mut actor = Actor::new(Author::with(1));
    let mut feed = from_zero();
    run(&mut feed, &mut actor, 0);
    actor.author.publish();
    feed.handle_push(&actor.author.log[1].to_value().to_bytes(), at(1));
    assert_eq!(feed.poll_output(), None);
    assert_eq!(feed.verified_cursor().last_sequence, 1);
}
