//! A standard stream: durable before it is answered, appended once, replayed along its receipt chains.

mod common;

use common::standard::{answered, replay_request, sequence_of, Replayed};
use common::{batches, error_code, fresh_directory, holder, records, Provider, Session, Subscriber};
use remuda_verify::fast::{FastState, Verification};
use remuda_verify::response::AnsweredResult;
use remuda_wire::frame::ServerMessage;
use remuda_wire::lane::LaneStatus;
use remuda_wire::preimage::keccak256;
use remuda_wire::record::{RecordId, RecordKind};
use remuda_wire::request::{
    AppendRequest, CloseLaneRequest, CreateLaneRequest, FastSource, ListLanesRequest, RequestBody, SubscriptionSource,
    VerificationMode,
};
use remuda_wire::response::ResponseBody;
use remuda_wire::scope::LaneScope;
use remuda_wire::Bytes32;

const STANDARD: [&str; 2] = ["--class", "standard"];

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_millis()).expect("this millennium")
}

fn body(session: &Session, lane: Bytes32, text: &str) -> AppendRequest {
    AppendRequest { client_created_at_ms: now_ms(), ..session.append_body(lane, text) }
}

fn append(session: &mut Session, lane: Bytes32, text: &str) -> u64 {
    let body = RequestBody::Append(body(session, lane, text));
    sequence_of(&answered(session, body).expect("accepted"))
}

#[test]
fn records_are_replayed_along_their_chains_over_both_transports() {
    let provider = Provider::start(&fresh_directory("standard"), &STANDARD);
    let mut writer = Session::open(&provider, 9);
    let lanes = writer.stream.lanes.clone();
    for number in 0..12 {
        assert_eq!(append(&mut writer, lanes[number % 3], &format!("record {number}")), number as u64);
    }
    for mut session in [Session::open(&provider, 1), Session::open_socket(&provider, 2)] {
        let mut all = Replayed::open(&mut session, keccak256(b"all"), LaneScope::Any);
        all.poll_until(&mut session, 12).expect("honest");
        assert_eq!(all.sequences()[..12], (0..12).collect::<Vec<_>>());
        let mut one = Replayed::open(&mut session, keccak256(b"one"), LaneScope::Exact(lanes[1]));
        one.poll_until(&mut session, 4).expect("honest");
        assert_eq!(one.sequences(), [1, 4, 7, 10]);
        let scope = session.stream.scope(2);
        let mut two = Replayed::open(&mut session, keccak256(b"two"), scope);
        two.poll_until(&mut session, 8).expect("honest");
        assert_eq!(two.sequences()[..8], [0, 1, 3, 4, 6, 7, 9, 10]);
        // From a position, with the tails that are known there.
        let state = all.verifier.state().clone();
        append(&mut writer, lanes[0], &format!("after {}", session.key.to_bytes()[0]));
        let last = *all.sequences().last().expect("twelve");
        let mut rest = Replayed::open_at(&mut session, keccak256(b"rest"), LaneScope::Any, Some(last), state)
            .unwrap_or_else(|frames| panic!("{frames:?}"));
        rest.poll_until(&mut session, 1).expect("it follows");
    }
}

#[test]
fn what_was_answered_survives_a_kill_with_its_chains() {
    let data = fresh_directory("standard-kill");
    let provider = Provider::start(&data, &STANDARD);
    let mut session = Session::open(&provider, 1);
    let lane = session.stream.lanes[0];
    append(&mut session, lane, "one");
    let retried = body(&session, lane, "two");
    let first = answered(&mut session, RequestBody::Append(retried.clone())).expect("accepted");
    provider.kill();
    let provider = Provider::start(&data, &STANDARD);
    let mut session = Session::open(&provider, 1);
    let again = answered(&mut session, RequestBody::Append(retried)).expect("accepted");
    assert_eq!(again.receipt_digest(), first.receipt_digest(), "the original receipt, byte for byte");
    assert_eq!(append(&mut session, lane, "three"), 2);
    let mut replayed = Replayed::open(&mut session, keccak256(b"all"), LaneScope::Any);
    replayed.poll_until(&mut session, 3).expect("one chain across the kill");
}

#[test]
fn a_message_is_appended_once() {
    let provider = Provider::start(&fresh_directory("once"), &STANDARD);
    let mut session = Session::open(&provider, 1);
    let lanes = session.stream.lanes.clone();
    let original = body(&session, lanes[0], "text");
    let first = answered(&mut session, RequestBody::Append(original.clone())).expect("accepted");
    let again = answered(&mut session, RequestBody::Append(original.clone())).expect("accepted");
    assert_eq!((again.receipt_digest(), sequence_of(&again)), (first.receipt_digest(), 0));
    let changed = |change: &dyn Fn(&mut AppendRequest)| {
        let mut body = original.clone();
        change(&mut body);
        RequestBody::Append(body)
    };
    assert_eq!(answered(&mut session, changed(&|body| body.lane_id = lanes[1])).err(), Some(3915), "another lane");
    assert_eq!(answered(&mut session, changed(&|body| body.client_created_at_ms += 1)).err(), Some(3915));
    let another = keccak256(b"another");
    let day_and_more = 86_400_000 + 70_000;
    for created in [original.client_created_at_ms - day_and_more, original.client_created_at_ms + 70_000] {
        let old = changed(&|body| {
            body.client_message_id = another;
            body.client_created_at_ms = created;
        });
        assert_eq!(answered(&mut session, old).err(), Some(3916));
    }
    // Another holder's message of the same id is another message.
    let mut other = Session::open(&provider, 2);
    assert_eq!(sequence_of(&answered(&mut other, RequestBody::Append(original)).expect("accepted")), 1);
}

#[test]
fn lanes_are_made_closed_and_told_of_on_a_standard_stream() {
    lanes_are_made_and_closed(&["--class", "standard"]);
}

#[test]
fn lanes_are_made_closed_and_told_of_on_a_fast_stream() {
    lanes_are_made_and_closed(&["--batch-ms", "20"]);
}

fn lanes_are_made_and_closed(arguments: &[&str]) {
    let provider =
        Provider::start(&fresh_directory(&format!("lanes{}", arguments.len() + arguments[0].len())), arguments);
    let mut fast = (arguments[0] != "--class").then(|| {
        let verification = Verification::ScopedProofs(LaneScope::Exact(Bytes32::ZERO));
        Subscriber::open(Session::open_socket(&provider, 2), verification, None, FastState::default())
            .unwrap_or_else(|refusal| panic!("{refusal:?}"))
    });
    let key = holder(1);
    let grant =
        provider.grant(&key, ",\"verbs\":[\"APPEND\",\"CONSUME\",\"REPLAY\",\"LANE_ADMIN\"],\"laneCreatesPerMin\":3");
    let mut session = Session::with_grant(&provider, key, grant).unwrap_or_else(|frames| panic!("{frames:?}"));
    let stream_id = session.stream.stream_id;
    let create = |nonce: &[u8], metadata: &[u8]| {
        let (lane_nonce, metadata_hash) = (keccak256(nonce), keccak256(metadata));
        RequestBody::CreateLane(CreateLaneRequest { stream_id, lane_nonce, metadata_hash })
    };
    let first = answered(&mut session, create(b"one", b"room")).expect("created");
    let lane_id = first.lane_id().expect("a lane");
    let AnsweredResult::Lane { lane, receipt } = &first else { panic!("{first:?}") };
    assert_eq!(
        (lane.status, receipt.lane_id, receipt.kind),
        (LaneStatus::Active, Bytes32::ZERO, RecordKind::LaneCreated)
    );
    let again = answered(&mut session, create(b"one", b"room")).expect("the same");
    assert_eq!(again.receipt_digest(), first.receipt_digest());
    assert_eq!(answered(&mut session, create(b"one", b"other")).err(), Some(3915));
    let append = RequestBody::Append(body(&session, lane_id, "here"));
    assert!(answered(&mut session, append).is_ok());
    let close = RequestBody::CloseLane(CloseLaneRequest { stream_id, lane_id });
    let closed = answered(&mut session, close.clone()).expect("closed");
    let AnsweredResult::Lane { receipt: closing, .. } = &closed else { panic!("{closed:?}") };
    if matches!(closing.record_id, RecordId::Fast(_)) {
        assert_eq!(closing.previous_global_receipt, receipt.digest(), "lane events are a fast stream's receipts");
    }
    assert_eq!(closing.previous_lane_receipt, receipt.digest());
    assert_eq!(answered(&mut session, close).expect("the same").receipt_digest(), closed.receipt_digest());
    let late = RequestBody::Append(body(&session, lane_id, "late"));
    assert_eq!(answered(&mut session, late).err(), Some(3927));
    assert_eq!(answered(&mut session, create(b"one", b"room")).err(), Some(3927), "an id is never used again");
    assert!(
        answered(&mut session, create(b"two", b"")).is_ok() && answered(&mut session, create(b"three", b"")).is_ok()
    );
    assert_eq!(answered(&mut session, create(b"four", b"")).err(), Some(3913), "three in a minute");
    let nowhere = RequestBody::CloseLane(CloseLaneRequest { stream_id, lane_id: keccak256(b"nowhere") });
    assert_eq!(answered(&mut session, nowhere).err(), Some(3926));
    let list = RequestBody::ListLanes(ListLanesRequest { stream_id, after_lane_id: None, limit: 256 });
    let AnsweredResult::Lanes(page) = answered(&mut session, list).expect("a page") else { panic!("a page") };
    assert_eq!(page.lanes.len(), session.stream.lanes.len() + 3);
    assert!(page.lanes.iter().any(|lane| lane.lane_id == lane_id && lane.status == LaneStatus::Closed));
    // Whoever reads the default lane is told.
    let told: Vec<_> = match &mut fast {
        None => {
            let mut replayed = Replayed::open(&mut session, keccak256(b"events"), LaneScope::Exact(Bytes32::ZERO));
            replayed.poll_until(&mut session, 4).expect("honest");
            replayed.received.iter().map(|delivery| delivery.header.kind).collect()
        }
        Some(subscriber) => {
            let events = subscriber.poll_until(|events| records(events) == 4).expect("honest");
            batches(&events).iter().flat_map(|batch| batch.records()).map(|delivery| delivery.header.kind).collect()
        }
    };
    let (created, closed) = (RecordKind::LaneCreated, RecordKind::LaneClosed);
    assert_eq!(told, [created, closed, created, created]);
}

#[test]
fn subscriptions_that_the_class_or_the_grant_cannot_carry() {
    let provider = Provider::start(&fresh_directory("standard-refused"), &STANDARD);
    let key = holder(1);
    let lanes = provider.stream().lanes;
    let grant = provider.grant(&key, &format!(",\"verbs\":[\"REPLAY\"],\"lanes\":[\"{}\"]", lanes[0]));
    let mut session = Session::with_grant(&provider, key, grant).unwrap_or_else(|frames| panic!("{frames:?}"));
    let id = keccak256(b"id");
    let mut refused = |change: &dyn Fn(&mut remuda_wire::request::OpenSubscriptionRequest)| {
        let mut request = replay_request(&session, id, LaneScope::Exact(lanes[0]), None);
        change(&mut request);
        match &session.request(RequestBody::OpenSubscription(request))[..] {
            [ServerMessage::Response(response), ..] => {
                assert!(matches!(response.body, ResponseBody::OpenSubscription(_)));
                0
            }
            frames => error_code(frames),
        }
    };
    assert_eq!(refused(&|_| {}), 0);
    assert_eq!(refused(&|request| request.verification = VerificationMode::ScopedProofs), 3943);
    assert_eq!(refused(&|request| request.verification = VerificationMode::FullStream), 3943);
    let fast = |request: &mut remuda_wire::request::OpenSubscriptionRequest| {
        request.source = SubscriptionSource::Fast(FastSource { scope: LaneScope::Any, after: None });
    };
    assert_eq!(refused(&fast), 3943);
    assert_eq!(refused(&|request| request.after_group_receipt = Some(id)), 3943);
    assert_eq!(refused(&|request| *request = replay_request_of(request, LaneScope::Any)), 3928);
    assert_eq!(refused(&|request| *request = replay_request_of(request, LaneScope::Exact(lanes[1]))), 3928);
    let append = RequestBody::Append(body(&session, lanes[0], "text"));
    assert_eq!(answered(&mut session, append).err(), Some(3908));
}

fn replay_request_of(
    request: &remuda_wire::request::OpenSubscriptionRequest,
    scope: LaneScope,
) -> remuda_wire::request::OpenSubscriptionRequest {
    let source = remuda_wire::request::StandardReplaySource { scope, after: None };
    remuda_wire::request::OpenSubscriptionRequest {
        source: SubscriptionSource::StandardReplay(source),
        ..request.clone()
    }
}
