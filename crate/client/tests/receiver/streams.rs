//! STR-050 to STR-054, rule by rule.

use remuda_client::receiver::{Output, Receiver, ReceiverEvent, StreamEnd, StreamId};
use remuda_position::topic::place::Received;
use remuda_streaming::grpc_web::request_body;
use remuda_streaming::{proto, Topic, TopicKind};
use remuda_testkit::builder::rows::{group, keepalive, started};

use crate::backend::{topics_of, HEADERS};
use crate::simulation::{config, decode};

fn topic(number: u16) -> Topic {
    Topic::new(TopicKind::Group, &number.to_be_bytes().repeat(8)).expect("a group")
}

fn nothing_received(topics: impl IntoIterator<Item = Topic>) -> Vec<(Topic, Received)> {
    topics.into_iter().map(|topic| (topic, Received::default())).collect()
}

/// Opened streams with their topics, cancelled streams, events.
#[derive(Default, Debug)]
struct Did {
    opened: Vec<(StreamId, Vec<Topic>)>,
    cancelled: Vec<StreamId>,
    events: Vec<ReceiverEvent>,
}

fn outputs(receiver: &mut Receiver) -> Did {
    let mut did = Did::default();
    while let Some(output) = receiver.poll_output() {
        match output {
            Output::Open { stream, message } => {
                let request: proto::SubscribeStaticRequest = decode(&message);
                did.opened.push((stream, topics_of(&request.topics).into_iter().map(|(topic, _)| topic).collect()));
            }
            Output::Cancel { stream } => did.cancelled.push(stream),
            Output::Event(event) => did.events.push(event),
            other => panic!("{other:?}"),
        }
    }
    did
}

fn say(receiver: &mut Receiver, stream: StreamId, message: &[u8], now_ms: u64) {
    receiver.handle_chunk(stream, &request_body(message).expect("short"), now_ms);
}

fn start(receiver: &mut Receiver, stream: StreamId, topics: &[Topic], interval_ms: u32, now_ms: u64) {
    receiver.handle_head(stream, 200, &HEADERS, now_ms);
    let targets: Vec<_> = topics.iter().map(|topic| (*topic, 0)).collect();
    say(receiver, stream, &started(interval_ms, &targets), now_ms);
}

fn one_stream(interval_ms: u32) -> (Receiver, StreamId) {
    let mut receiver = Receiver::new(config(1), 0);
    receiver.set_interests(&nothing_received([group(1)]), 0);
    let stream = outputs(&mut receiver).opened[0].0;
    start(&mut receiver, stream, &[group(1)], interval_ms, 0);
    outputs(&mut receiver);
    (receiver, stream)
}

#[test]
fn without_a_topic_nothing_is_opened() {
    let mut receiver = Receiver::new(config(1), 0);
    receiver.set_interests(&[], 0);
    receiver.handle_time(1_000_000);
    assert!(outputs(&mut receiver).opened.is_empty());
    assert_eq!(receiver.wake_at(), None);
}

#[test]
fn more_than_ten_thousand_topics_are_split() {
    let mut receiver = Receiver::new(config(1), 0);
    receiver.set_interests(&nothing_received((0..25_000).map(topic)), 0);
    let did = outputs(&mut receiver);
    assert_eq!(did.opened.iter().map(|(_, topics)| topics.len()).collect::<Vec<_>>(), [10_000, 10_000, 5_000]);
    for (stream, topics) in &did.opened {
        start(&mut receiver, *stream, topics, 1_000, 0);
    }
    assert_eq!(receiver.active_topics().len(), 25_000);
    // One more topic replaces the smallest stream alone.
    receiver.set_interests(&nothing_received((0..25_001).map(topic)), 10);
    let did = outputs(&mut receiver);
    assert_eq!(did.opened.iter().map(|(_, topics)| topics.len()).collect::<Vec<_>>(), [5_001]);
    assert!(did.cancelled.is_empty());
}

#[test]
fn what_is_replaced_goes_on_until_its_replacement_is_ready() {
    let (mut receiver, old) = one_stream(1_000);
    receiver.set_interests(&nothing_received([group(1), group(2)]), 10);
    let did = outputs(&mut receiver);
    let (replacement, topics) = did.opened[0].clone();
    assert_eq!((topics.clone(), did.cancelled), (vec![group(1), group(2)], vec![]));
    // More changes while it opens are part of the next one: one replacement at a time.
    receiver.set_interests(&nothing_received([group(1), group(2), group(3)]), 20);
    receiver.set_interests(&nothing_received([group(2), group(3)]), 30);
    assert!(outputs(&mut receiver).opened.is_empty());
    start(&mut receiver, replacement, &topics, 1_000, 40);
    let did = outputs(&mut receiver);
    assert_eq!(did.cancelled, [old]);
    assert_eq!(did.opened.iter().map(|(_, topics)| topics.clone()).collect::<Vec<_>>(), [vec![group(2), group(3)]]);
}

#[test]
fn a_replacement_that_fails_leaves_what_it_was_to_replace() {
    let (mut receiver, old) = one_stream(1_000);
    receiver.set_interests(&nothing_received([group(1), group(2)]), 10);
    let replacement = outputs(&mut receiver).opened[0].0;
    receiver.handle_end(replacement, 20);
    let did = outputs(&mut receiver);
    assert!(did.cancelled.iter().all(|cancelled| *cancelled != old) && did.opened.is_empty(), "{did:?}");
    assert_eq!(receiver.active_topics().into_iter().collect::<Vec<_>>(), [group(1)]);
    let again = receiver.wake_at().expect("another attempt");
    say(&mut receiver, old, &keepalive(), again);
    receiver.handle_time(again);
    assert_eq!(outputs(&mut receiver).opened.len(), 1);
}

#[test]
fn silence_is_three_intervals_without_a_message_and_anything_breaks_it() {
    let (mut receiver, stream) = one_stream(1_000);
    assert_eq!(receiver.wake_at(), Some(3_000));
    say(&mut receiver, stream, &keepalive(), 2_900);
    receiver.handle_time(5_899);
    assert!(outputs(&mut receiver).cancelled.is_empty());
    receiver.handle_time(5_900);
    let did = outputs(&mut receiver);
    assert_eq!(did.cancelled, [stream]);
    assert_eq!(did.events, [ReceiverEvent::Reconnecting(StreamEnd::Silent { started: true })]);
}

#[test]
fn an_interval_of_zero_is_the_clients_own_and_a_huge_one_fits_a_timer() {
    assert_eq!(one_stream(0).0.wake_at(), Some(90_000));
    assert_eq!(one_stream(u32::MAX).0.wake_at(), Some(0x7fff_ffff));
}

#[test]
fn a_timer_that_is_late_is_no_evidence_when_messages_have_arrived() {
    let (mut receiver, stream) = one_stream(1_000);
    // The tab slept for twenty minutes; the driver hands over what arrived before it says what time it is.
    say(&mut receiver, stream, &keepalive(), 1_200_000);
    receiver.handle_time(1_200_000);
    assert!(outputs(&mut receiver).cancelled.is_empty());
    // And when nothing had arrived, it is opened again once.
    receiver.handle_time(2_400_000);
    assert_eq!(outputs(&mut receiver).cancelled, [stream]);
    let again = receiver.wake_at().expect("an opening");
    receiver.handle_time(again);
    receiver.handle_time(again + 1);
    assert_eq!(outputs(&mut receiver).opened.len(), 1);
}

#[test]
fn before_the_head_the_timer_runs_already() {
    let mut receiver = Receiver::new(config(1), 0);
    receiver.set_interests(&nothing_received([group(1)]), 0);
    outputs(&mut receiver);
    receiver.handle_time(90_000);
    let events = outputs(&mut receiver).events;
    assert_eq!(events, [ReceiverEvent::Reconnecting(StreamEnd::Silent { started: false })]);
}

#[test]
fn a_request_that_the_backend_blames_is_not_repeated_until_it_is_another() {
    let mut receiver = Receiver::new(config(1), 0);
    receiver.set_interests(&nothing_received([group(1)]), 0);
    let stream = outputs(&mut receiver).opened[0].0;
    let headers = [HEADERS[0], ("grpc-status", "3"), ("grpc-message", "no")];
    receiver.handle_head(stream, 200, &headers, 10);
    receiver.handle_end(stream, 10);
    assert!(matches!(&outputs(&mut receiver).events[..], [ReceiverEvent::Failed(status)] if status.number == 3));
    assert_eq!(receiver.wake_at(), None);
    receiver.handle_time(10_000_000);
    assert!(outputs(&mut receiver).opened.is_empty());
    receiver.set_interests(&nothing_received([group(2)]), 10_000_001);
    assert_eq!(outputs(&mut receiver).opened.len(), 1);
}

#[test]
fn removing_the_last_topic_cancels_and_opens_nothing() {
    let (mut receiver, stream) = one_stream(1_000);
    receiver.set_interests(&[], 10);
    let did = outputs(&mut receiver);
    assert_eq!((did.cancelled, did.opened.len()), (vec![stream], 0));
}
