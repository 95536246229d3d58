//! The subscriber over both transports: what is delivered, dropped, reported, and when a broker is left.

mod support;

use remuda_bps::broadcast::Gap;
use remuda_bps::connection::{CloseReason, Dial, Transport, DEADLINE_MS};
use remuda_bps::message::{Broadcast, Join, Status};
use remuda_bps::signature::LocalSigner;
use remuda_bps::subscriber::{Subscriber, SubscriberConfig, SubscriberOutput};
use remuda_bps::topic::{KIND_AUTH, KIND_DATA};
use remuda_bps::BpsRefusal;
use remuda_wire::Bytes32;
use support::*;

fn config(transport: Transport, cursor: Option<u64>) -> SubscriberConfig {
    SubscriberConfig { cohort: cohort(), identity: IDENTITY, transport, cursor }
}

fn outputs(subscriber: &mut Subscriber) -> Vec<SubscriberOutput> {
    std::iter::from_fn(|| subscriber.poll_output()).collect()
}

/// Connected and, where that is needed, acknowledged.
fn live(transport: Transport, cursor: Option<u64>) -> Subscriber {
    let mut subscriber = Subscriber::new(config(transport, cursor));
    subscriber.handle_time(at(0));
    subscriber.handle_connected(at(0));
    if transport == Transport::Direct {
        subscriber.handle_message(&ack(Status::Ok, CHALLENGE), at(0));
    }
    outputs(&mut subscriber);
    subscriber
}

fn give(subscriber: &mut Subscriber, transport: Transport, broadcast: &Broadcast) -> Vec<SubscriberOutput> {
    subscriber.handle_message(&carried(transport, broadcast), at(1));
    outputs(subscriber)
}

#[test]
fn the_bridge_is_dialled_with_the_cursor() {
    let admin = cohort().admin;
    let mut subscriber = Subscriber::new(config(BRIDGE, Some(41)));
    assert_eq!(subscriber.wake_at(), Some(0));
    subscriber.handle_time(at(0));
    let path = format!("/bps/subscribe/{admin}/{TOPIC}?broker={BROKER}&identity={IDENTITY}&cursor=41");
    assert_eq!(outputs(&mut subscriber), [SubscriberOutput::Connect(Dial::Bridge(path))]);
    subscriber.handle_connected(at(0));
    assert_eq!(outputs(&mut subscriber), [], "nothing is sent over the bridge");
}

#[test]
fn a_broker_is_joined_and_answers_first() {
    let mut subscriber = Subscriber::new(config(Transport::Direct, None));
    subscriber.handle_time(at(0));
    subscriber.handle_connected(at(0));
    let join = Join { cohort: cohort(), addr: IDENTITY }.to_bytes();
    assert_eq!(outputs(&mut subscriber), [SubscriberOutput::Connect(Dial::Direct), SubscriberOutput::Send(join)]);
    // A broadcast instead of the acknowledgement: its bytes are no Ack.
    subscriber.handle_message(&data(1, b"early").to_bytes(), at(1));
    let told = outputs(&mut subscriber);
    assert_eq!(told[0], SubscriberOutput::Disconnect);
    assert!(matches!(told[1], SubscriberOutput::Ended { reason: CloseReason::Violation(_), retry_at_ms: None }));
}

#[test]
fn updates_are_delivered_with_their_gaps_and_move_the_cursor() {
    for transport in TRANSPORTS {
        let mut subscriber = live(transport, None);
        let mut deliver = |index: u64| {
            let broadcast = data(index, &[u8::try_from(index).unwrap()]);
            let told = give(&mut subscriber, transport, &broadcast);
            let [SubscriberOutput::Deliver(delivery)] = &told[..] else { panic!("{told:?}") };
            assert_eq!((&delivery.broadcast, &delivery.payload[..]), (&broadcast, &[u8::try_from(index).unwrap()][..]));
            delivery.gap
        };
        assert_eq!(deliver(7), None, "nothing is known before the first");
        assert_eq!(deliver(8), None);
        assert_eq!(deliver(12), Some(Gap { first: 9, last: 11 }));
        assert_eq!(subscriber.cursor(), Some(12));
    }
}

#[test]
fn replays_are_dropped_across_streams_and_restarts() {
    for transport in TRANSPORTS {
        let mut subscriber = live(transport, Some(7));
        for index in [0, 6, 7] {
            let replayed = broadcast_by(&admin(), KIND_DATA, Bytes32([9; 32]), index, b"old");
            assert_eq!(give(&mut subscriber, transport, &replayed), []);
        }
        assert_eq!((subscriber.dropped().replayed_index, subscriber.cursor()), (3, Some(7)));
    }
}

#[test]
fn claims_and_unknown_kinds_are_dropped_and_the_stream_goes_on() {
    let mut subscriber = live(Transport::Direct, None);
    assert_eq!(give(&mut subscriber, Transport::Direct, &auth()), []);
    let unknown = Broadcast { kind: 9, ..data(1, b"later") };
    assert_eq!(give(&mut subscriber, Transport::Direct, &unknown), []);
    assert_eq!((subscriber.dropped().claims, subscriber.dropped().unknown_kind), (1, 1));
    assert_eq!(give(&mut subscriber, Transport::Direct, &data(1, b"now")).len(), 1);
}

#[test]
fn each_violation_closes_under_its_code() {
    let stranger = LocalSigner::new(&[0x64; 32]).unwrap();
    let honest = data(7, b"seven");
    let lies = [
        (Broadcast { index: 8, ..honest.clone() }, BpsRefusal::Id),
        (broadcast_by(&stranger, KIND_DATA, CHALLENGE, 7, b"seven"), BpsRefusal::Signer),
        (Broadcast { soc: honest.soc[..104].to_vec(), ..honest.clone() }, BpsRefusal::SocLength),
        // Below the cursor as well: a forgery is no replay.
        (broadcast_by(&stranger, KIND_DATA, CHALLENGE, 2, b"two"), BpsRefusal::Signer),
    ];
    for transport in TRANSPORTS {
        for (lie, refusal) in &lies {
            let mut subscriber = live(transport, Some(5));
            let reason = CloseReason::Violation(*refusal);
            let told = give(&mut subscriber, transport, lie);
            assert_eq!(told, [SubscriberOutput::Disconnect, SubscriberOutput::Ended { reason, retry_at_ms: None }]);
            assert_eq!(subscriber.cursor(), Some(5));
            assert_eq!(subscriber.wake_at(), None, "a broker that lies is not asked again by itself");
            assert_eq!(give(&mut subscriber, transport, &honest), [], "nothing after it counts");
        }
    }
    let mut subscriber = live(Transport::Direct, None);
    let loud = broadcast_by(&admin(), KIND_AUTH, CHALLENGE, 0, b"payload");
    assert!(give(&mut subscriber, Transport::Direct, &loud).iter().any(|told| matches!(
        told,
        SubscriberOutput::Ended { reason: CloseReason::Violation(BpsRefusal::AuthPayload), .. }
    )));
}

#[test]
fn what_is_no_message_is_a_violation() {
    for (transport, bytes, refusal) in
        [(BRIDGE, &[0; 39][..], BpsRefusal::Frame), (Transport::Direct, &[0x0a, 0xff][..], BpsRefusal::Protobuf)]
    {
        let mut subscriber = live(transport, None);
        subscriber.handle_message(bytes, at(1));
        let reason = CloseReason::Violation(refusal);
        assert!(outputs(&mut subscriber).contains(&SubscriberOutput::Ended { reason, retry_at_ms: None }));
    }
    let mut subscriber = live(BRIDGE, None);
    subscriber.handle_text(at(1));
    let reason = CloseReason::Violation(BpsRefusal::Frame);
    assert!(outputs(&mut subscriber).contains(&SubscriberOutput::Ended { reason, retry_at_ms: None }));
}

#[test]
fn closes_are_told_apart_and_only_some_are_come_back_from() {
    for (code, reason, returns) in [
        (4001, CloseReason::InvalidChunk, false),
        (4002, CloseReason::InvalidMessage, false),
        (4003, CloseReason::BrokerGone, true),
        (1013, CloseReason::Exhausted, true),
        (1006, CloseReason::Abnormal, true),
        (1000, CloseReason::Closed(1000), true),
    ] {
        let mut subscriber = live(BRIDGE, None);
        subscriber.handle_close(code, at(5));
        let told = outputs(&mut subscriber);
        let [SubscriberOutput::Ended { reason: ended, retry_at_ms }] = told[..] else { panic!("{told:?}") };
        assert_eq!((ended, retry_at_ms.is_some()), (reason, returns), "{code}");
        assert_eq!(subscriber.wake_at(), retry_at_ms);
    }
}

#[test]
fn a_full_cohort_is_come_back_to_and_a_refusal_is_not() {
    for (status, reason, returns) in
        [(Status::Full, CloseReason::Exhausted, true), (Status::Rejected, CloseReason::Rejected, false)]
    {
        let mut subscriber = Subscriber::new(config(Transport::Direct, None));
        subscriber.handle_time(at(0));
        subscriber.handle_connected(at(0));
        subscriber.handle_message(&ack(status, CHALLENGE), at(1));
        let told = outputs(&mut subscriber);
        let Some(SubscriberOutput::Ended { reason: ended, retry_at_ms }) = told.last() else { panic!("{told:?}") };
        assert_eq!((*ended, retry_at_ms.is_some()), (reason, returns));
    }
}

#[test]
fn a_broker_that_never_answers_is_left() {
    let mut subscriber = Subscriber::new(config(Transport::Direct, None));
    subscriber.handle_time(at(0));
    subscriber.handle_connected(at(0));
    outputs(&mut subscriber);
    assert_eq!(subscriber.wake_at(), Some(DEADLINE_MS));
    subscriber.handle_time(at(DEADLINE_MS - 1));
    assert_eq!(outputs(&mut subscriber), []);
    subscriber.handle_time(at(DEADLINE_MS));
    assert!(matches!(
        outputs(&mut subscriber)[..],
        [SubscriberOutput::Disconnect, SubscriberOutput::Ended { reason: CloseReason::Deadline, retry_at_ms: Some(_) },]
    ));
}

#[test]
fn attempts_wait_one_to_thirty_seconds_and_begin_anew_after_a_connection_that_lasted() {
    let mut subscriber = Subscriber::new(config(BRIDGE, None));
    let mut now = 0;
    let mut longest = 0;
    let mut fail = |now: &mut u64, random: u64, lasts_ms: Option<u64>| {
        let moment = |now_ms| remuda_bps::connection::Moment { now_ms, random };
        subscriber.handle_time(moment(*now));
        if let Some(lasts_ms) = lasts_ms {
            subscriber.handle_connected(moment(*now));
            *now += lasts_ms;
        }
        subscriber.handle_close(1006, moment(*now));
        let due = subscriber.wake_at().expect("due");
        let delay = due - *now;
        *now = due;
        delay
    };
    for attempt in 0..10 {
        let random = if attempt % 2 == 0 { u64::MAX } else { 0 };
        let delay = fail(&mut now, random, None);
        assert!((1_000..=30_000).contains(&delay), "{delay}");
        longest = longest.max(delay);
    }
    assert_eq!(longest, 30_000);
    assert!(fail(&mut now, u64::MAX, Some(1_000)) > 2_000, "a connection that breaks at once is none");
    assert!(fail(&mut now, u64::MAX, Some(60_000)) <= 2_000);
}
