//! The canonical transport: the same frames, receipts and refusals as long-poll, pushed as credit allows.

mod common;

use common::{
    batches, bytes32, error_code, exchange, fresh_directory, holder, records, Event, Provider, Session, Socket,
    Subscriber,
};
use remuda_verify::fast::{FastState, Verification};
use remuda_wire::chain::EndpointTransport;
use remuda_wire::frame::{ClientMessage, ServerMessage};
use remuda_wire::preimage::keccak256;
use remuda_wire::request::{RequestBody, VerificationMode};
use remuda_wire::scope::LaneScope;
use remuda_wire::Canonical;
use tungstenite::Message;

fn subscribe(session: Session, verification: Verification) -> Subscriber {
    Subscriber::open(session, verification, None, FastState::default()).unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

#[test]
fn both_endpoints_are_announced() {
    let provider = Provider::start(&fresh_directory("announced"), &[]);
    let info = provider.json("GET", "/demo/info", "");
    assert_eq!(info["webSocket"], format!("ws://{}/cbqs", provider.address));
    let state = provider.broker_state(&bytes32(info["streamId"].as_str().expect("text")), None).expect("a read");
    let endpoints = state.provider.expect("a provider").endpoints;
    let announced: Vec<_> = endpoints.iter().map(|endpoint| (endpoint.transport, &*endpoint.uri)).collect();
    let (socket, poll) = (format!("wss://{}/cbqs", provider.address), format!("https://{}/cbqs", provider.address));
    assert_eq!(announced, [(EndpointTransport::WebSocketTls, &*socket), (EndpointTransport::Https, &*poll)]);
}

#[test]
fn a_verifying_subscription_is_pushed_to() {
    let provider = Provider::start(&fresh_directory("pushed"), &["--writer", "300"]);
    let verification = Verification::ScopedProofs(provider.stream().scope(3));
    let mut subscriber = subscribe(Session::open_socket(&provider, 1), verification);
    let events = subscriber.poll_until(|events| batches(events).len() >= 5 && records(events) > 50).expect("honest");
    assert!(events.iter().all(|event| matches!(event, Event::Batch(_))));
}

#[test]
fn one_script_gives_the_same_frames_over_both() {
    let provider = Provider::start(&fresh_directory("same"), &["--batch-ms", "50"]);
    let lanes = provider.stream().lanes;
    let scope = provider.stream().scope(2);
    let mut told = Vec::new();
    let mut writer = Session::open(&provider, 9);
    let mut sessions = [Session::open(&provider, 1), Session::open_socket(&provider, 2)];
    for session in &mut sessions {
        let opened = session.open_subscription(lanes[0], scope.clone(), VerificationMode::ScopedProofs, None);
        assert!(matches!(&opened[..], [ServerMessage::Response(_)]));
        assert_eq!(
            error_code(&session.open_subscription(lanes[1], LaneScope::Any, VerificationMode::ScopedProofs, None)),
            3943
        );
    }
    for number in 0..6 {
        writer.append(lanes[number % 3], &format!("record {number}"));
    }
    for session in &mut sessions {
        let mut frames = Vec::new();
        while frames.iter().filter(|frame| matches!(frame, ServerMessage::Delivery(_))).count() < 4
            || !matches!(frames.last(), Some(ServerMessage::Checkpoint(_)))
        {
            frames.extend(session.credit(lanes[0], 1, 100).into_iter().skip(1));
        }
        told.push(frames);
    }
    // The watermark of a delivery is of the moment that it is sent.
    for frame in told.iter_mut().flatten() {
        if let ServerMessage::Delivery(delivery) = frame {
            delivery.durable_watermark = None;
        }
    }
    assert_eq!(told[0], told[1]);
}

#[test]
fn nothing_is_pushed_beyond_credit_and_credit_alone_brings_it() {
    let provider = Provider::start(&fresh_directory("push-credit"), &["--batch-ms", "20"]);
    let mut session = Session::open_socket(&provider, 1);
    let lane = session.stream.lanes[0];
    session.open_subscription(lane, LaneScope::Exact(lane), VerificationMode::None, None);
    for number in 0..4 {
        session.append(lane, &format!("record {number}"));
    }
    assert_eq!(session.socket.as_mut().and_then(Socket::wait), None, "no credit, no record");
    let mut given = session.credit(lane, 1, 8);
    given.extend(session.socket.as_mut().and_then(Socket::wait));
    assert!(matches!(&given[..], [ServerMessage::Response(_), ServerMessage::Delivery(_)]), "{given:?}");
    let given = session.credit(lane, 10, 7);
    assert!(matches!(&given[..], [ServerMessage::Response(_)]), "seven bytes cover none of them: {given:?}");
    let mut given = session.credit(lane, 0, 1_000);
    while let Some(frame) = session.socket.as_mut().and_then(Socket::wait) {
        given.push(frame);
    }
    assert_eq!(given.len(), 4, "{given:?}");
    // A record that comes later needs no further request.
    session.append(lane, "later");
    assert!(matches!(session.socket.as_mut().and_then(Socket::wait), Some(ServerMessage::Delivery(_))));
}

#[test]
fn many_subscriptions_have_their_turns() {
    let provider = Provider::start(&fresh_directory("turns"), &["--batch-ms", "1000"]);
    let mut session = Session::open_socket(&provider, 1);
    let lane = session.stream.lanes[0];
    let ids: Vec<_> = (0..4u8).map(|number| keccak256(&[number])).collect();
    for id in &ids {
        session.open_subscription(*id, LaneScope::Exact(lane), VerificationMode::None, None);
        session.credit(*id, 1_000, 1 << 20);
    }
    let mut writer = Session::open(&provider, 2);
    // One batch: everything is owed to everybody at once.
    for number in 0..100 {
        writer.append(lane, &format!("record {number}"));
    }
    let mut sent = Vec::new();
    while sent.len() < 400 {
        match session.socket.as_mut().and_then(Socket::wait) {
            Some(ServerMessage::Delivery(delivery)) => sent.push(delivery.subscription_id),
            None => {}
            other => panic!("{other:?}"),
        }
    }
    let runs: Vec<_> = sent.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
    assert!(runs.len() >= 12 && runs.iter().all(|run| *run <= 32), "{runs:?}");
}

#[test]
fn a_session_is_of_one_transport() {
    let provider = Provider::start(&fresh_directory("one-transport"), &[]);
    let session = Session::open_socket(&provider, 1);
    let body = |session: &Session| RequestBody::Append(session.append_body(session.stream.lanes[0], "text"));
    let request = session.prepare(1, body(&session));
    assert_eq!(error_code(&exchange(&provider.address, ClientMessage::Request(request.clone()))), 3910);
    let mut other = Socket::connect(&provider);
    assert_eq!(error_code(&other.ask(ClientMessage::Request(request.clone()))), 3910, "nor of another connection");
    let mut session = session;
    let answer = session.socket.as_mut().expect("a socket").ask(ClientMessage::Request(request.clone()));
    assert!(matches!(&answer[..], [ServerMessage::Response(_)]), "nothing was spent: {answer:?}");
    assert_eq!(error_code(&session.socket.as_mut().expect("a socket").ask(ClientMessage::Request(request))), 3911);
    let polled = Session::open(&provider, 2);
    let request = polled.prepare(1, body(&polled));
    assert_eq!(error_code(&other.ask(ClientMessage::Request(request))), 3910);
}

#[test]
fn what_is_no_frame_closes_the_connection() {
    let provider = Provider::start(&fresh_directory("no-frame"), &[]);
    let mut socket = Socket::connect(&provider);
    socket.send(Message::Text("text".into()));
    assert_eq!(socket.closed(), 1003);
    for bytes in [vec![], vec![2], vec![1, 9], keccak256(b"noise").to_bytes()] {
        let mut socket = Socket::connect(&provider);
        socket.send(Message::Binary(bytes.into()));
        assert_eq!(socket.closed(), 1002);
    }
    assert_eq!(Socket::connect_from(&provider, Some("https://elsewhere.example")).err(), Some(403));
    assert!(Socket::connect_from(&provider, Some("http://localhost:5173")).is_ok());
}

#[test]
fn a_session_that_ends_says_so_for_each_subscription() {
    let provider = Provider::start(&fresh_directory("ends"), &["--session-ms", "700"]);
    let mut session = Session::open_socket(&provider, 1);
    let lane = session.stream.lanes[0];
    for id in [b"one".as_slice(), b"two"] {
        session.open_subscription(keccak256(id), LaneScope::Exact(lane), VerificationMode::None, None);
    }
    let socket = session.socket.as_mut().expect("a socket");
    let mut ended = Vec::new();
    while ended.len() < 2 {
        match socket.wait() {
            Some(ServerMessage::Error(error)) => ended.push((error.code, error.request_id, error.subscription_id)),
            None => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ended, [b"one", b"two"].map(|id| (3910, None, Some(keccak256(id)))));
    assert_eq!(socket.closed(), 1001);
}

#[test]
fn it_resumes_after_a_kill_from_its_boundary() {
    let data = fresh_directory("socket-resumes");
    let provider = Provider::start(&data, &["--writer", "200", "--batch-ms", "50"]);
    let verification = Verification::ScopedProofs(provider.stream().scope(3));
    let mut subscriber = subscribe(Session::open_socket(&provider, 1), verification.clone());
    subscriber.poll_until(|events| batches(events).len() >= 2).expect("honest");
    let (after, state) = (subscriber.boundary(), subscriber.verifier.state().clone());
    provider.kill();
    let provider = Provider::start(&data, &["--writer", "200", "--batch-ms", "50"]);
    let session = Session::open_socket(&provider, holder(1).to_bytes()[0]);
    let (mut subscriber, mut events) = Subscriber::open_with_events(session, verification, Some(after), state)
        .unwrap_or_else(|refusal| panic!("{refusal:?}"));
    events.extend(subscriber.poll_until(|events| batches(events).len() >= 2).expect("honest"));
    assert!(events
        .iter()
        .any(|event| matches!(event, Event::Transition(transition) if transition.replacement_broker_epoch == 1)));
}
