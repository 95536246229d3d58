//! The provider as a library: one connection without a socket, on a clock that a test moves.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::group::{config, create, Followed};
use common::standard::append_request;
use common::{holder, sign, Session, Stream};
use remuda_dev_provider::demo;
use remuda_dev_provider::exchange::Connection;
use remuda_dev_provider::http::Site;
use remuda_dev_provider::server::site;
use remuda_dev_provider::settings::{Class, Settings};
use remuda_dev_provider::store::Store;
use remuda_dev_provider::time::Clock;
use remuda_wire::frame::{ClientFrame, ClientMessage, ServerFrame, ServerMessage};
use remuda_wire::grant::StreamGrant;
use remuda_wire::group::{DeliveryStateAction as Action, GroupMode};
use remuda_wire::preimage::keccak256;
use remuda_wire::request::{
    Credit, CreditRequest, OpenSubscriptionRequest, RequestBody, StandardGroupSource, SubscriptionSource,
    VerificationMode,
};
use remuda_wire::session::{CompleteSession, OpenSession, SessionProof};
use remuda_wire::{Canonical, ProviderEpoch, Signature, Signed};
use tokio::sync::watch;
use tokio::time::Instant;

fn virtual_clock() -> Clock {
    let start = Instant::now();
    Clock::Virtual(Arc::new(move || {
        1_900_000_000_000 + u64::try_from(start.elapsed().as_millis()).expect("this millennium")
    }))
}

fn frames(bytes: Vec<Vec<u8>>) -> Vec<ServerMessage> {
    bytes.iter().map(|bytes| ServerFrame::from_bytes(bytes).expect("canonical").0).collect()
}

async fn ask(connection: &mut Connection<'_>, message: ClientMessage) -> Vec<ServerMessage> {
    frames(connection.receive(ClientFrame(message)).await.expect("a store"))
}

/// Opens a session with every verb.
async fn open(site: &Site, connection: &mut Connection<'_>) -> Session {
    let (broker, key) = (&site.exchange.broker, holder(1));
    let stream = Stream {
        context: broker.chain.context().clone(),
        stream_id: broker.chain.stream_id(),
        provider_key: broker.chain.stream().provider_signing_key.0,
        lanes: site.lanes.iter().map(|lane| lane.id).collect(),
    };
    let verbs = ["APPEND", "CONSUME", "ACKNOWLEDGE", "REPLAY", "GROUP_ADMIN"];
    let request = serde_json::json!({ "holderKey": hex::encode(key.verifying_key().to_bytes()), "verbs": verbs });
    let request = serde_json::from_value(request).expect("a request");
    let answer = serde_json::to_value(demo::grant(&request, &broker.chain, &broker.keys).expect("a grant"));
    let bytes = hex::decode(answer.expect("JSON")["grant"].as_str().expect("text")).expect("hexadecimal");
    let grant = StreamGrant::from_bytes(&bytes).expect("a canonical grant");
    let (request_id, stream_id, grant_id) = (keccak256(b"open"), stream.stream_id, grant.digest());
    let mut answer = ask(connection, ClientMessage::OpenSession(OpenSession { request_id, stream_id, grant })).await;
    let Some(ServerMessage::SessionChallenge(challenge)) = answer.pop() else { panic!("{answer:?}") };
    let mut proof = SessionProof {
        context: challenge.context,
        stream_id,
        provider_epoch: ProviderEpoch,
        grant_id,
        session_id: challenge.session_id,
        challenge: challenge.challenge,
        signature: Signature::ZERO,
    };
    proof.signature = sign(&key, &proof);
    let mut answer = ask(connection, ClientMessage::CompleteSession(CompleteSession { request_id, proof })).await;
    let Some(ServerMessage::SessionOpened(opened)) = answer.pop() else { panic!("{answer:?}") };
    let (address, inbox) = (String::new(), Vec::new());
    Session { address, socket: None, stream, key, id: opened.session_id, counter: 0, inbox }
}

async fn request(connection: &mut Connection<'_>, session: &mut Session, body: RequestBody) -> Vec<ServerMessage> {
    session.counter += 1;
    let request = session.prepare(session.counter, body);
    let answer = ask(connection, ClientMessage::Request(request)).await;
    assert!(matches!(answer.first(), Some(ServerMessage::Response(_))), "{answer:?}");
    answer
}

#[tokio::test(start_paused = true)]
async fn a_lease_runs_out_when_the_virtual_clock_says_so() {
    let settings = Settings { class: Class::Standard, ..Settings::default() };
    let store = Arc::new(Store::in_memory().expect("memory"));
    let clock = virtual_clock();
    let (_stop, closing) = watch::channel(false);
    let site = site(&settings, store, clock.clone(), "127.0.0.1:1", closing).expect("a site");
    let mut connection = Connection::new(&site.exchange);
    let mut session = open(&site, &mut connection).await;
    let mut config = config(session.stream.lanes[0], keccak256(b"group"), GroupMode::StrictFifo);
    config.visibility_timeout_ms = 30_000;
    config.max_attempts = 2;
    let body = create(&session, &config);
    request(&mut connection, &mut session, body).await;
    let id = keccak256(b"sub");
    let mut group = Followed::new(&session, id, &config, None);
    let source = StandardGroupSource { lane_id: config.lane_id, group_id: config.group_id };
    let open = OpenSubscriptionRequest {
        stream_id: session.stream.stream_id,
        subscription_id: id,
        source: SubscriptionSource::StandardGroup(source),
        after_group_receipt: None,
        verification: VerificationMode::None,
    };
    let answer = request(&mut connection, &mut session, RequestBody::OpenSubscription(open)).await;
    group.judge(answer).expect("honest");
    let credit = Credit { subscription_id: id, records: 10, bytes: 1_000 };
    let credit = RequestBody::Credit(CreditRequest { stream_id: session.stream.stream_id, credit });
    request(&mut connection, &mut session, credit).await;
    let mut append = append_request(&session, config.lane_id, "once");
    append.client_created_at_ms = clock.now_ms();
    let began = Instant::now();
    let answer = request(&mut connection, &mut session, RequestBody::Append(append)).await;
    group.judge(answer).expect("honest");
    // Nobody settles it: twice thirty seconds pass, of which this test waits for none.
    while group.verifier.chain().terminal() == 0 {
        let pushed = frames(connection.ready().await.expect("a store"));
        group.judge_pushed(pushed).expect("honest");
    }
    let lease = Action::LeaseIssue;
    assert_eq!(group.actions, [Action::GroupCreate, lease, Action::LeaseExpire, lease, Action::AttemptsExhaust]);
    let passed = began.elapsed();
    assert!((Duration::from_secs(60)..Duration::from_secs(61)).contains(&passed), "{passed:?}");
}
