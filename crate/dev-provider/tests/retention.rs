//! Retention: what is old enough goes, the floor is signed, and a reader behind it is told so with the anchor.

mod common;

use common::group::{config, create, full_session, Followed};
use common::standard::{answered, append, replay_request, Replayed};
use common::{batches, fresh_directory, records, Provider, Session, Subscriber};
use remuda_verify::authentic::{Authority, OneKey};
use remuda_verify::evidence::AuthenticatedObject;
use remuda_verify::fast::{FastState, Verification};
use remuda_verify::retention::judge_cursor_too_old;
use remuda_verify::standard::StandardState;
use remuda_wire::audit::HeldObject;
use remuda_wire::error_frame::CbqsError;
use remuda_wire::frame::ServerMessage;
use remuda_wire::group::{DeliveryStateAction as Action, GroupMode};
use remuda_wire::preimage::keccak256;
use remuda_wire::request::{FastSource, OpenSubscriptionRequest, RequestBody, SubscriptionSource, VerificationMode};
use remuda_wire::scope::LaneScope;
use remuda_wire::Bytes32;

const STANDARD: [&str; 6] = ["--class", "standard", "--poll-ms", "200", "--retention-ms", "1000"];

fn id(text: &str) -> Bytes32 {
    keccak256(text.as_bytes())
}

/// Asks until the answer is a refusal.
fn refused(session: &mut Session, request: &OpenSubscriptionRequest) -> CbqsError {
    for _ in 0..200 {
        match session.request(RequestBody::OpenSubscription(request.clone())).remove(0) {
            ServerMessage::Error(error) => return error,
            ServerMessage::Response(_) => std::thread::sleep(std::time::Duration::from_millis(50)),
            other => panic!("{other:?}"),
        }
    }
    panic!("never refused");
}

fn judged(session: &Session, request: &OpenSubscriptionRequest, error: &CbqsError) -> (AuthenticatedObject, u64) {
    assert_eq!(error.code, 3917, "{error:?}");
    let keys: OneKey = session.stream.keys();
    let authority = Authority { context: &session.stream.context, stream_id: &session.stream.stream_id, keys: &keys };
    let refusal = judge_cursor_too_old(request, &error.details, &authority).expect("justified");
    (refusal.anchor().clone(), refusal.floor())
}

#[test]
fn a_standard_reader_goes_on_from_the_signed_floor() {
    let provider = Provider::start(&fresh_directory("floor"), &STANDARD);
    let mut session = Session::open(&provider, 1);
    let lanes = session.stream.lanes.clone();
    for number in 0..4 {
        append(&mut session, lanes[number % 2], &format!("record {number}"));
    }
    let request = replay_request(&session, id("all"), LaneScope::Any, None);
    let error = refused(&mut session, &request);
    let (anchor, _) = judged(&session, &request, &error);
    assert!(anchor.into_standard_anchor().is_some());
    // Nothing is left out: wait until all four are gone, so that the next is the first.
    let request = replay_request(&session, id("last"), LaneScope::Any, Some(2));
    let error = refused(&mut session, &request);
    let (anchor, floor) = judged(&session, &request, &error);
    assert_eq!(floor, 4);
    let anchor = anchor.into_standard_anchor().expect("of the stream");
    append(&mut session, lanes[0], "next");
    let state = StandardState::from_anchor(&anchor, &LaneScope::Any);
    let mut rest = Replayed::open_at(&mut session, id("rest"), LaneScope::Any, Some(floor - 1), state)
        .unwrap_or_else(|frames| panic!("{frames:?}"));
    rest.poll_until(&mut session, 1).expect("the chain goes on from the anchor");
    assert_eq!(rest.sequences(), [4]);
    // A lane has a floor of its own: after its last record there is nothing that it lacks.
    let request = replay_request(&session, id("lane"), LaneScope::Exact(lanes[1]), Some(2));
    let error = refused(&mut session, &request);
    let (anchor, floor) = judged(&session, &request, &error);
    assert_eq!(anchor.into_standard_anchor().expect("of the lane").lane_id, Some(lanes[1]));
    assert_eq!(floor, 4);
    let request = replay_request(&session, id("other lane"), LaneScope::Exact(lanes[0]), Some(2));
    let answer = session.request(RequestBody::OpenSubscription(request)).remove(0);
    assert!(matches!(answer, ServerMessage::Response(_)), "{answer:?}");
}

#[test]
fn a_reader_that_is_overtaken_is_told_which_subscription_ended() {
    let provider = Provider::start(&fresh_directory("overtaken"), &STANDARD);
    let mut session = Session::open_socket(&provider, 1);
    let lane = session.stream.lanes[0];
    append(&mut session, lane, "one");
    let request = replay_request(&session, id("slow"), LaneScope::Any, None);
    let answer = session.request(RequestBody::OpenSubscription(request.clone()));
    assert!(matches!(&answer[..], [ServerMessage::Response(_)]));
    let error = loop {
        match session.socket.as_mut().and_then(common::Socket::wait) {
            Some(ServerMessage::Error(error)) => break error,
            None => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((error.request_id, error.subscription_id), (None, Some(id("slow"))));
    judged(&session, &request, &error);
}

#[test]
fn a_group_without_a_pin_loses_what_is_too_old_and_says_so() {
    let provider = Provider::start(&fresh_directory("pin"), &STANDARD);
    let mut session = full_session(&provider, 1, false, "");
    let lane = session.stream.lanes[0];
    let mut config = config(lane, id("group"), GroupMode::StrictFifo);
    config.dead_letter_ttl_ms = 1_000;
    let body = create(&session, &config);
    answered(&mut session, body).expect("created");
    append(&mut session, lane, "never taken");
    let mut group = Followed::open(&mut session, id("sub"), &config);
    group.poll_until(&mut session, |group| group.actions.contains(&Action::RecordExpire)).expect("honest");
    assert_eq!(group.verifier.chain().terminal(), 1);
    let request = replay_request(&session, id("all"), LaneScope::Any, None);
    let error = refused(&mut session, &request);
    judged(&session, &request, &error);
}

#[test]
fn a_fast_reader_behind_the_floor_gets_the_anchor_of_its_epoch() {
    let arguments = ["--batch-ms", "20", "--retention-ms", "1000", "--poll-ms", "200"];
    let provider = Provider::start(&fresh_directory("fast-floor"), &arguments);
    let mut writer = Session::open(&provider, 2);
    let lane = writer.stream.lanes[0];
    let verification = Verification::ScopedProofs(LaneScope::Exact(lane));
    let session = Session::open(&provider, 1);
    let mut subscriber = Subscriber::open(session, verification.clone(), None, FastState::default())
        .unwrap_or_else(|refusal| panic!("{refusal:?}"));
    writer.append(lane, "one");
    subscriber.poll_until(|events| records(events) == 1).expect("honest");
    let first = (subscriber.boundary(), subscriber.verifier.state().clone());
    for number in 0..3 {
        writer.append(lane, &format!("more {number}"));
        subscriber.poll_until(|events| !batches(events).is_empty()).expect("honest");
    }
    let last = (subscriber.boundary(), subscriber.verifier.state().clone());
    let request = OpenSubscriptionRequest {
        stream_id: writer.stream.stream_id,
        subscription_id: id("old"),
        source: SubscriptionSource::Fast(FastSource { scope: LaneScope::Exact(lane), after: Some(first.0) }),
        after_group_receipt: None,
        verification: VerificationMode::ScopedProofs,
    };
    let error = refused(&mut writer, &request);
    let (anchor, floor) = judged(&writer, &request, &error);
    assert!(matches!(*anchor, HeldObject::FastRetentionAnchor(_)) && floor > first.0.sequence + 1);
    // Whoever stands exactly at the floor has missed nothing.
    let session = Session::open(&provider, 1);
    let (mut subscriber, _) = Subscriber::open_with_events(session, verification, Some(last.0), last.1)
        .unwrap_or_else(|refusal| panic!("{refusal:?}"));
    writer.append(lane, "next");
    subscriber.poll_until(|events| records(events) == 1).expect("the chain goes on");
}
