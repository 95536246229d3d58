//! The feed, pulled by the client's own machine: a long backlog, the ring buffer, rotations, paid epochs, and every lie.

mod common;

use clap::ValueEnum;
use common::{fresh_directory, Provider};
use remuda_dev_provider::time::Clock;
use remuda_dev_provider::watchtower::actor::{Answer, FeedActor};
use remuda_dev_provider::watchtower::lie::FeedLie;
use remuda_dev_provider::watchtower::FeedSettings;
use remuda_watchtower::content_key::SecretBytes;
use remuda_watchtower::evidence::Claim;
use remuda_watchtower::feed::{Choice, Content, Feed, FeedConfig, Gap, Moment, Output, Start};
use remuda_watchtower::transport::Request;
use remuda_watchtower::verifier::Cursor;
use remuda_watchtower::StreamId;
use remuda_wire::Bytes32;

const HONEST: FeedSettings = FeedSettings {
    feed_capacity: 10_000,
    feed_backlog: 0,
    feed_rate: 0,
    feed_paid: false,
    feed_epoch_messages: 50,
    feed_rotate_every: 0,
    feed_lie: None,
    feed_lie_after: 10,
};

fn actor(settings: FeedSettings) -> FeedActor {
    FeedActor::new(&settings, Bytes32([7; 32]), Clock::System).expect("a feed")
}

fn feed(stream_id: &StreamId, start: Start) -> Feed {
    Feed::new(FeedConfig::new(stream_id.clone(), start)).expect("a feed")
}

fn answer(actor: &FeedActor, request: Request) -> (u16, Vec<u8>) {
    let body = request.to_bytes();
    let answer = match request {
        Request::GetSince { .. } => actor.get_since(&body),
        Request::GetKeyHistory { .. } => actor.get_key_history(&body),
    };
    let Answer { refused, body } = answer.expect("the documented request");
    (if refused { 409 } else { 200 }, body)
}

/// Pulls until nothing is asked for, from a feed that is due; hands back what it told.
fn pull(feed: &mut Feed, actor: &FeedActor, now_ms: u64) -> Vec<Output> {
    feed.handle_time(now_ms);
    let mut told = Vec::new();
    while let Some(output) = feed.poll_output() {
        match output {
            Output::Request(request) => {
                let (status, body) = answer(actor, request);
                feed.handle_answer(status, &body, Moment { now_ms, random: 1 });
            }
            other => told.push(other),
        }
    }
    told
}

fn publish(actor: &FeedActor, count: u64) {
    for _ in 0..count {
        actor.publish_demo().expect("published");
    }
}

fn sequences(told: &[Output]) -> Vec<u64> {
    let items = told.iter().filter_map(|output| match output {
        Output::Store(batch) => Some(batch.items.iter().map(|item| item.message.sequence)),
        _ => None,
    });
    items.flatten().collect()
}

const FROM_ZERO: Start = Start::After(Cursor { last_sequence: 0, last_digest: None });

#[test]
fn ten_thousand_messages_over_http_in_twenty_calls() {
    let provider =
        Provider::start(&fresh_directory("backlog"), &["--feed-backlog", "10000", "--feed-rotate-every", "4000"]);
    let info = provider.json("GET", "/demo/watchtower", "");
    let name = info["streamId"].as_str().expect("a stream");
    let mut feed = feed(&StreamId::Text(name.into()), FROM_ZERO);
    feed.handle_time(0);
    let (mut stored, mut calls) = (Vec::new(), 0);
    while stored.len() < 10_000 {
        match feed.poll_output().expect("something to do") {
            Output::Request(request) => {
                calls += usize::from(matches!(request, Request::GetSince { .. }));
                let path = format!("/watchtower/{name}/{}", request.method());
                let (status, _, body) = provider.http("POST", &path, "application/cbor", &request.to_bytes());
                feed.handle_answer(status, &body, Moment { now_ms: 0, random: 1 });
            }
            Output::Store(batch) => stored.extend(batch.items.into_iter().map(|item| item.message.sequence)),
            Output::KeyHistory(schedule) => assert_eq!(schedule.len(), 3),
            other => panic!("{other:?}"),
        }
    }
    assert!(stored.into_iter().eq(1..=10_000));
    assert!(calls <= 20, "{calls} calls");
}

#[test]
fn another_stream_and_another_request_are_refused() {
    let provider = Provider::start(&fresh_directory("requests"), &["--feed-backlog", "3"]);
    let info = provider.json("GET", "/demo/watchtower", "");
    let path = format!("/watchtower/{}/get_since", info["streamId"].as_str().expect("a stream"));
    let body = Request::GetSince { cursor: 0, limit: 500 }.to_bytes();
    let status = |path: &str, body: &[u8]| provider.http("POST", path, "application/cbor", body).0;
    assert_eq!(status(&path, &body), 200);
    assert_eq!(status("/watchtower/another/get_since", &body), 404);
    assert_eq!(status(&path, b"\xa0"), 400);
    assert_eq!(status(&path, &Request::GetSince { cursor: 0, limit: 501 }.to_bytes()), 409);
    let published = provider.json("POST", "/demo/watchtower/publish", r#"{"text": "hello"}"#);
    assert_eq!(published["sequence"], "4");
    assert_eq!(provider.json("POST", "/demo/watchtower/rotate", "")["signingKeyId"], "2");
}

#[test]
fn the_ring_buffer_forgets_the_oldest_and_says_so() {
    let actor = actor(FeedSettings { feed_capacity: 5, feed_backlog: 4, ..HONEST });
    let mut feed = feed(actor.stream_id(), FROM_ZERO);
    assert_eq!(sequences(&pull(&mut feed, &actor, 0)), [1, 2, 3, 4]);
    publish(&actor, 8);
    let now = feed.wake_at().expect("due");
    let told = pull(&mut feed, &actor, now);
    let [Output::CursorTooOld(too_old)] = told[..] else { panic!("{told:?}") };
    assert_eq!((too_old.floor_sequence, too_old.head_sequence), (8, 12));
    feed.choose(Choice::Resume, Moment { now_ms: now, random: 1 });
    let told = pull(&mut feed, &actor, now);
    assert_eq!(sequences(&told), [8, 9, 10, 11, 12]);
    let Some(Output::Store(batch)) = told.first() else { panic!("{told:?}") };
    assert_eq!(batch.gaps, [Gap { first: 5, last: 7 }]);
}

#[test]
fn a_cursor_just_below_the_floor_is_not_too_old() {
    let actor = actor(FeedSettings { feed_capacity: 5, feed_backlog: 12, ..HONEST });
    let at = |last_sequence| Start::After(Cursor { last_sequence, last_digest: None });
    assert_eq!(sequences(&pull(&mut feed(actor.stream_id(), at(7)), &actor, 0)), [8, 9, 10, 11, 12]);
    let told = pull(&mut feed(actor.stream_id(), at(6)), &actor, 0);
    assert!(matches!(told.last(), Some(Output::CursorTooOld(_))));
}

#[test]
fn rotations_are_followed() {
    let actor = actor(FeedSettings { feed_backlog: 10, feed_rotate_every: 3, ..HONEST });
    let mut feed = feed(actor.stream_id(), FROM_ZERO);
    assert!(sequences(&pull(&mut feed, &actor, 0)).into_iter().eq(1..=10));
    publish(&actor, 10);
    let now = feed.wake_at().expect("due");
    assert!(sequences(&pull(&mut feed, &actor, now)).into_iter().eq(11..=20));
}

#[test]
fn paid_epochs_open_one_by_one() {
    let provider = Provider::start(
        &fresh_directory("paid"),
        &["--feed-backlog", "9", "--feed-paid", "--feed-epoch-messages", "4"],
    );
    let info = provider.json("GET", "/demo/watchtower", "");
    let name = info["streamId"].as_str().expect("a stream");
    let mut feed = feed(&StreamId::Text(name.into()), FROM_ZERO);
    feed.handle_time(0);
    let (mut opened, mut asked) = (Vec::new(), Vec::new());
    while let Some(output) = feed.poll_output() {
        match output {
            Output::Request(request) => {
                let path = format!("/watchtower/{name}/{}", request.method());
                let (status, _, body) = provider.http("POST", &path, "application/cbor", &request.to_bytes());
                feed.handle_answer(status, &body, Moment { now_ms: 0, random: 1 });
            }
            Output::StreamAccessRequired { key_epoch } => {
                asked.push((key_epoch, opened.len()));
                let answer = provider.json("GET", &format!("/demo/watchtower/content-key?epoch={key_epoch}"), "");
                let key = common::bytes32(answer["key"].as_str().expect("a key"));
                feed.give_key(key_epoch, SecretBytes::new(key.0));
            }
            Output::Store(batch) => {
                for item in batch.items {
                    let Content::Plain(plain) = item.content else { panic!("unopened") };
                    assert!(plain.starts_with(b"{\"at\":"));
                    opened.push(item.message.sequence);
                }
            }
            _ => {}
        }
    }
    assert!(opened.into_iter().eq(1..=9));
    assert_eq!(asked, [(0, 0), (1, 3), (2, 7)], "each epoch when its first message is next");
}

fn caught(lie: FeedLie) {
    let actor = actor(FeedSettings { feed_backlog: 20, feed_lie: Some(lie), ..HONEST });
    let mut feed = feed(actor.stream_id(), FROM_ZERO);
    let mut told = pull(&mut feed, &actor, 0);
    let mut now = 0;
    while !told.iter().any(|output| matches!(output, Output::Failed(_))) {
        now = feed.wake_at().expect("nothing is refused yet");
        told.extend(pull(&mut feed, &actor, now));
    }
    let Some(Output::Failed(verdict)) = told.last() else { panic!("{told:?}") };
    assert_eq!(verdict.code(), lie.verdict());
    let honest = sequences(&told);
    assert!(honest.len() >= 10 && honest.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{lie:?}: {honest:?}");
    if let Some(Output::Equivocation { evidence, .. }) =
        told.iter().find(|output| matches!(output, Output::Equivocation { .. }))
    {
        let evidence = evidence.as_ref().expect("both halves are here");
        let Some(Output::KeyHistory(entries)) = told.iter().find(|output| matches!(output, Output::KeyHistory(_)))
        else {
            panic!("a history")
        };
        let claim = Claim::from_file(&evidence.to_file(entries)).expect("a file of evidence");
        assert_eq!((&claim.stream_id, &claim.schedule), (actor.stream_id(), entries));
        assert!(claim.judge(entries).expect("both signed").is_some());
    }
    // The same again from where it stands: the lie persists while there is something to lie about.
    feed.resume();
    let told = pull(&mut feed, &actor, now);
    let again = told.iter().any(|output| matches!(output, Output::Failed(verdict) if verdict.code() == lie.verdict()));
    assert!(again || feed.verified_cursor().last_sequence == 20, "{told:?}");
}

macro_rules! lies {
    ($($test:ident = $lie:ident,)+) => {
        $(#[test] fn $test() { caught(FeedLie::$lie); })+

        #[test]
        fn every_lie_has_a_test() {
            assert_eq!(FeedLie::value_variants(), [$(FeedLie::$lie,)+]);
        }
    };
}

lies! {
    a_withheld_message_is_caught = WithholdMessage,
    a_repeated_message_is_caught = RepeatMessage,
    an_altered_payload_is_caught = AlterPayload,
    an_altered_header_is_caught = AlterHeader,
    a_wrong_key_is_caught = WrongKey,
    an_unannounced_key_is_caught = UnannouncedKey,
    another_stream_is_caught = OtherStream,
    an_oversized_payload_is_caught = OversizedPayload,
    a_later_version_is_caught = LaterVersion,
    an_equivocation_is_caught = Equivocate,
    a_trailing_byte_is_caught = TrailingByte,
    a_false_floor_is_caught = FalseFloor,
}
