//! What happens on the chain and between the parts, at run time.

mod common;

use common::keys::{batch, key_session, requests};
use common::standard::{answered, append, append_request, now_ms, Replayed};
use common::{error_code, fresh_directory, holder, Provider, Session, Socket};
use remuda_wire::chain::StreamStatus;
use remuda_wire::frame::ServerMessage;
use remuda_wire::preimage::{keccak256, key_batch_genesis};
use remuda_wire::request::RequestBody;
use remuda_wire::scope::LaneScope;

const STANDARD: [&str; 6] = ["--class", "standard", "--control", "--poll-ms", "300", "--block-ms"];

fn provider(name: &str) -> Provider {
    Provider::start(&fresh_directory(name), &[&STANDARD[..], &["0"]].concat())
}

fn chain(provider: &Provider, operation: &str) {
    provider.control("chain", &format!("{{\"operation\":\"{operation}\"}}"));
}

#[test]
fn there_is_no_control_unless_asked_for() {
    let provider = Provider::start(&fresh_directory("uncontrolled"), &[]);
    let unreachable = b"{\"fault\":\"unreachable\"}";
    let (status, ..) = provider.http("POST", "/demo/control/node", "application/json", unreachable);
    assert!((400..500).contains(&status), "{status}");
    assert!(provider.broker_state(&provider.stream().stream_id, None).is_ok());
}

#[test]
fn a_rotated_admin_key_ends_every_session_by_name() {
    let provider = provider("rotate-admin");
    let mut session = Session::open_socket(&provider, 1);
    let mut polled = Session::open(&provider, 2);
    let replayed = Replayed::open(&mut session, keccak256(b"sub"), LaneScope::Any);
    let old = provider.broker_state(&session.stream.stream_id, None).expect("a read");
    chain(&provider, "rotate-admin");
    let socket = session.socket.as_mut().expect("a socket");
    let Some(ServerMessage::Error(error)) = socket.wait() else { panic!("it is told") };
    assert_eq!((error.code, error.subscription_id), (3904, Some(replayed.id)));
    assert_eq!(socket.closed(), 1001);
    let body = RequestBody::Append(append_request(&polled, polled.stream.lanes[0], "late"));
    assert_eq!(error_code(&polled.request(body)), 3904);
    let new = provider.broker_state(&polled.stream.stream_id, None).expect("a read");
    let (was, is) = (old.stream.clone().expect("a stream"), new.stream.expect("a stream"));
    assert_ne!(was.admin_key, is.admin_key);
    assert_eq!((was.authorization_generation, is.authorization_generation), (1, 2));
    assert_eq!(provider.broker_state(&polled.stream.stream_id, Some(&old.view.block_hash)), Ok(old), "as it was");
    // Its grants are good, those of the old key are not.
    let mut session = Session::open(&provider, 1);
    append(&mut session, polled.stream.lanes[0], "with a new grant");
}

#[test]
fn a_rotated_provider_key_leaves_the_stream_its_own() {
    let provider = provider("rotate-provider");
    let mut session = Session::open(&provider, 1);
    let lane = session.stream.lanes[0];
    append(&mut session, lane, "before");
    chain(&provider, "rotate-provider");
    append(&mut session, lane, "after");
    let state = provider.broker_state(&session.stream.stream_id, None).expect("a read");
    let (stream, provider_record) = (state.stream.expect("a stream"), state.provider.expect("a provider"));
    assert_ne!(stream.provider_signing_key, provider_record.signing_key);
    let mut replayed = Replayed::open(&mut session, keccak256(b"all"), LaneScope::Any);
    replayed.poll_until(&mut session, 2).expect("signed by the key that the stream was created with");
}

#[test]
fn a_generation_is_activated_after_its_batch_and_with_it() {
    let arguments = ["--class", "standard", "--encrypted", "--control"];
    let data = fresh_directory("activate");
    let provider = Provider::start(&data, &arguments);
    let activate = b"{\"operation\":\"activate-generation\"}";
    let (status, ..) = provider.http("POST", "/demo/control/chain", "application/json", activate);
    assert_eq!(status, 400, "no batch");
    let (mut session, main, rotation) = key_session(&provider, "\"APPEND\"");
    let genesis = key_batch_genesis(&main.context, &session.stream.stream_id);
    let (batch, envelopes) = batch(&main, &rotation, 1, genesis, 2);
    for body in requests(session.stream.stream_id, &batch, &envelopes) {
        answered(&mut session, body).expect("accepted");
    }
    chain(&provider, "activate-generation");
    let grant = provider.grant(&holder(1), &format!(",\"hpkeKey\":\"{}\"", keccak256(b"member")));
    let mut session = Session::with_grant(&provider, holder(1), grant).expect("a session");
    let mut body = append_request(&session, session.stream.lanes[0], "sealed");
    assert_eq!(answered(&mut session, RequestBody::Append(body.clone())).err(), Some(3905));
    body.encryption_generation = 1;
    assert!(answered(&mut session, RequestBody::Append(body)).is_ok());
    // And so it stays.
    provider.kill();
    let provider = Provider::start(&data, &arguments);
    let state = provider.broker_state(&main.stream_id, None).expect("a read");
    assert_eq!(state.stream.expect("a stream").encryption_generation, 1);
}

#[test]
fn a_suspended_stream_is_read_and_not_written() {
    let provider = provider("suspended");
    let mut session = Session::open(&provider, 1);
    let lane = session.stream.lanes[0];
    append(&mut session, lane, "before");
    chain(&provider, "suspend");
    let state = provider.broker_state(&session.stream.stream_id, None).expect("a read").stream.expect("a stream");
    assert_eq!(state.status, StreamStatus::Suspended);
    assert!(state.suspension_grace_deadline_block > state.suspended_at_block);
    let body = RequestBody::Append(append_request(&session, lane, "meanwhile"));
    assert_eq!(answered(&mut session, body).err(), Some(3902));
    let mut replayed = Replayed::open(&mut session, keccak256(b"all"), LaneScope::Any);
    replayed.poll_until(&mut session, 1).expect("honest");
    chain(&provider, "resume");
    append(&mut session, lane, "after");
}

#[test]
fn a_broker_that_hears_nothing_new_signs_by_what_it_heard() {
    let provider = provider("behind");
    let mut session = Session::open(&provider, 1);
    let lane = session.stream.lanes[0];
    let view = |provider: &Provider, session: &Session| {
        provider.broker_state(&session.stream.stream_id, None).map(|state| state.view)
    };
    let heard = view(&provider, &session).expect("a read");
    provider.control("node", "{\"fault\":\"behind\"}");
    provider.control("chain", "{\"operation\":\"advance\",\"times\":5}");
    append(&mut session, lane, "one");
    let mut replayed = Replayed::open(&mut session, keccak256(b"all"), LaneScope::Any);
    replayed.poll_until(&mut session, 1).expect("honest");
    let receipt = replayed.received[0].append_receipt.clone().expect("a receipt");
    assert_eq!(receipt.served_at, heard);
    assert_eq!(view(&provider, &session).expect("a read").height, heard.height + 5);
    provider.control("node", "{\"fault\":\"inconsistent\"}");
    let contradicting = view(&provider, &session).expect("a read");
    provider.control("node", "{\"fault\":\"unreachable\"}");
    assert_eq!(view(&provider, &session), Err(503));
    provider.control("node", "{\"fault\":null}");
    let again = view(&provider, &session).expect("a read");
    assert_eq!(again.height, contradicting.height);
    assert_ne!(again.block_hash, contradicting.block_hash);
    append(&mut session, lane, "two");
}

#[test]
fn links_are_cut_delayed_and_dead() {
    let provider = provider("links");
    let mut session = Session::open_socket(&provider, 1);
    provider.control("link", "{\"cut\":true}");
    assert_eq!(session.socket.as_mut().expect("a socket").closed(), 1001);
    provider.control("link", "{\"offline\":true}");
    assert_eq!(Socket::connect_from(&provider, None).err(), Some(503));
    let frame = remuda_wire::frame::ClientFrame(remuda_wire::frame::ClientMessage::Request(
        session.prepare(1, RequestBody::Append(append_request(&session, session.stream.lanes[0], "text"))),
    ));
    let (status, ..) = provider.http("POST", "/cbqs", "application/octet-stream", &frame.to_bytes());
    assert_eq!(status, 503);
    provider.control("link", "{\"offline\":false,\"delayMs\":300}");
    let mut session = Session::open(&provider, 1);
    let before = now_ms();
    let lane = session.stream.lanes[0];
    append(&mut session, lane, "slow");
    assert!(now_ms() >= before + 300);
}
