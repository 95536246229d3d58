//! What is refused, and with which code of §17.

mod common;

use std::sync::Arc;

use common::{error_code, exchange, fresh_directory, holder, http, sign, Provider, Session};
use remuda_dev_provider::chain::{stream_config, Chain, Genesis};
use remuda_dev_provider::grant::admit;
use remuda_dev_provider::keys::DevKeys;
use remuda_dev_provider::store::Store;
use remuda_dev_provider::time::Clock;
use remuda_wire::chain::DeliveryClass;
use remuda_wire::frame::{ClientMessage, ServerMessage};
use remuda_wire::grant::{StreamGrant, Verb, Verbs};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::preimage::keccak256;
use remuda_wire::record::FastRecordId;
use remuda_wire::request::{
    CloseSubscriptionRequest, Credit, CreditRequest, ListLanesRequest, OpenSubscriptionRequest, RequestBody,
    StandardReplaySource, SubscriptionSource, VerificationMode,
};
use remuda_wire::response::{DurableWatermark, Response, ResponseBody};
use remuda_wire::retention::FastRetentionAnchor;
use remuda_wire::scope::{GroupScope, LaneScope, LaneSet};
use remuda_wire::session::OpenSession;
use remuda_wire::{Bytes, Bytes32, Canonical, ProviderEpoch, Signature, Signed};

fn id(broker_epoch: u64, sequence: u64) -> Option<FastRecordId> {
    Some(FastRecordId { provider_epoch: ProviderEpoch, broker_epoch, sequence })
}

#[test]
fn grants() {
    let provider = Provider::start(&fresh_directory("grants"), &[]);
    let key = holder(1);
    let good = provider.grant(&key, "");
    let answer = |grant: StreamGrant| {
        let (request_id, stream_id) = (Bytes32::ZERO, grant.stream_id);
        provider.send(ClientMessage::OpenSession(OpenSession { request_id, stream_id, grant }))
    };
    assert!(matches!(&answer(good.clone())[..], [ServerMessage::SessionChallenge(_)]));
    // Nobody but the admin can change a grant.
    assert_eq!(error_code(&answer(StreamGrant { max_in_flight: 1, ..good.clone() })), 3906);
    let mut forged = StreamGrant { expires_at_ms: good.expires_at_ms + 1, ..good.clone() };
    forged.signature = sign(&key, &forged);
    assert_eq!(error_code(&answer(forged)), 3906);
    assert_eq!(error_code(&answer(StreamGrant { stream_id: keccak256(b"other"), ..good.clone() })), 3900);
    let mut elsewhere = good.clone();
    elsewhere.context.chain_id += 1;
    assert_eq!(error_code(&answer(elsewhere)), 3938);
    // Skew covers a minute, so a grant of one millisecond still opens.
    assert!(matches!(&answer(provider.grant(&key, ",\"ttlMs\":1"))[..], [ServerMessage::SessionChallenge(_)]));
}

#[test]
fn grants_out_of_their_time_or_bounds() {
    let store = Arc::new(Store::open(&fresh_directory("standing")).expect("a store"));
    let keys = DevKeys::from_seed(keccak256(b"seed"));
    let class = DeliveryClass::Fast;
    let genesis = Genesis { config: stream_config(class, 100, 1024), class, encrypted: false };
    let chain = Chain::open(store, &keys, "https://127.0.0.1:1/cbqs", &genesis, Clock::System).expect("a chain");
    let grant = StreamGrant {
        context: chain.context().clone(),
        stream_id: chain.stream().stream_id,
        authorization_generation: 1,
        grant_nonce: Bytes32::ZERO,
        holder_signing_key: SigningPublicKey(Bytes32(holder(1).verifying_key().to_bytes())),
        holder_hpke_key: None,
        verbs: Verbs::of(&[Verb::Append]),
        lane_scope: LaneScope::Any,
        group_scope: GroupScope::Any,
        not_before_ms: 1_000_000,
        expires_at_ms: 2_000_000,
        max_message_bytes: 1,
        max_append_bytes_per_sec: 1,
        max_in_flight: 0,
        max_lane_creates_per_min: 0,
        signature: Signature::ZERO,
    };
    let admitted = |change: &dyn Fn(&mut StreamGrant), now_ms| {
        let mut grant = grant.clone();
        change(&mut grant);
        grant.signature = sign(&keys.admin(0), &grant);
        admit(grant, chain.context(), &chain.stream(), now_ms).map(drop).map_err(|refusal| refusal.code.number())
    };
    let unchanged = |_: &mut StreamGrant| {};
    // Skew is inclusive on both ends.
    for (now_ms, verdict) in
        [(939_999, Err(3906)), (940_000, Ok(())), (1_500_000, Ok(())), (2_060_000, Ok(())), (2_060_001, Err(3907))]
    {
        assert_eq!(admitted(&unchanged, now_ms), verdict, "{now_ms}");
    }
    assert_eq!(admitted(&|grant| grant.authorization_generation = 2, 1_500_000), Err(3904));
    assert_eq!(admitted(&|grant| grant.expires_at_ms = 87_400_000, 1_500_000), Ok(()), "a day");
    assert_eq!(admitted(&|grant| grant.expires_at_ms = 87_400_001, 1_500_000), Err(3906), "more than a day");
    assert_eq!(admitted(&|grant| grant.max_lane_creates_per_min = 257, 1_500_000), Err(3906));
    assert_eq!(admitted(&|grant| grant.holder_signing_key.0 = Bytes32([0xff; 32]), 1_500_000), Err(3906));
}

#[test]
fn possession_and_counters() {
    let provider = Provider::start(&fresh_directory("possession"), &[]);
    let grant = provider.grant(&holder(1), "");
    let stolen = Session::with_grant(&provider, holder(2), grant);
    assert!(stolen.is_err(), "a grant without its key opens nothing");
    let mut session = Session::open(&provider, 1);
    let lane = session.stream.lanes[0];
    let body = |session: &Session| RequestBody::Append(session.append_body(lane, "text"));
    let send = |session: &Session, counter| {
        exchange(&session.address, ClientMessage::Request(session.prepare(counter, body(session))))
    };
    assert!(matches!(&send(&session, 5)[..], [ServerMessage::Response(_)]), "gaps are accepted");
    assert_eq!(error_code(&send(&session, 5)), 3911);
    assert_eq!(error_code(&send(&session, 4)), 3911);
    let mut forged = session.prepare(6, body(&session));
    forged.proof.signature = sign(&holder(2), &forged.proof);
    assert_eq!(error_code(&exchange(&session.address, ClientMessage::Request(forged))), 3910);
    assert!(matches!(&send(&session, 6)[..], [ServerMessage::Response(_)]), "a refused proof spends nothing");
    session.id = keccak256(b"no session");
    assert_eq!(error_code(&send(&session, 7)), 3910);
}

#[test]
fn appends() {
    let provider = Provider::start(&fresh_directory("appends"), &[]);
    let lanes = provider.stream().lanes;
    let key = holder(1);
    let grant = provider.grant(&key, &format!(",\"verbs\":[\"APPEND\"],\"lanes\":[\"{}\"]", lanes[0]));
    let mut session = Session::with_grant(&provider, key, grant).unwrap_or_else(|frames| panic!("{frames:?}"));
    let mut refused = |change: &dyn Fn(&mut remuda_wire::request::AppendRequest)| {
        let mut body = session.append_body(lanes[0], "text");
        change(&mut body);
        error_code(&session.request(RequestBody::Append(body)))
    };
    assert_eq!(refused(&|body| body.lane_id = lanes[1]), 3928);
    assert_eq!(refused(&|body| body.visible_after_ms = 1), 3937);
    assert_eq!(refused(&|body| body.encryption_generation = 1), 3905);
    assert_eq!(refused(&|body| body.stream_id = keccak256(b"other")), 3900);
    assert_eq!(refused(&|body| body.payload = Bytes::new(vec![0; 262_145]).expect("below the codec's bound")), 3912);
    let scope = LaneScope::Exact(lanes[0]);
    assert_eq!(error_code(&session.open_subscription(lanes[0], scope, VerificationMode::ScopedProofs, None)), 3908);
    let mut session = Session::open(&provider, 2);
    let body = session.append_body(keccak256(b"no lane"), "text");
    assert_eq!(error_code(&session.request(RequestBody::Append(body))), 3926);
}

#[test]
fn subscriptions() {
    let provider = Provider::start(&fresh_directory("subscriptions"), &["--batch-records", "2"]);
    let mut session = Session::open(&provider, 1);
    let (stream_id, lane) = (session.stream.stream_id, session.stream.lanes[0]);
    session.append(lane, "zero");
    session.append(lane, "one");
    // Until a second batch is durable, so that the first boundary is before the live head.
    let durable = |watermark: DurableWatermark| watermark.last_durable_sequence;
    while session.append(lane, "more").durable_watermark.and_then(durable).is_none_or(|durable| durable < 2) {}
    let exact = LaneScope::Exact(lane);
    let mut open = |scope: &LaneScope, mode, after| session.open_subscription(lane, scope.clone(), mode, after);
    assert_eq!(error_code(&open(&LaneScope::Any, VerificationMode::ScopedProofs, None)), 3943);
    assert_eq!(error_code(&open(&exact, VerificationMode::FullStream, None)), 3943);
    assert_eq!(error_code(&open(&exact, VerificationMode::ScopedProofs, id(0, 0))), 3944);
    assert_eq!(error_code(&open(&exact, VerificationMode::ScopedProofs, id(1, 1))), 3944);
    assert!(matches!(open(&exact, VerificationMode::ScopedProofs, id(0, 1))[0], ServerMessage::Response(_)));
    let lanes = |count: u32| (0..count).map(|index| keccak256(&index.to_be_bytes())).collect();
    let wide = LaneScope::Set(LaneSet::new(lanes(513)).expect("within").expect("some"));
    assert_eq!(error_code(&open(&wide, VerificationMode::ScopedProofs, None)), 3945);
    let standard = |verification| {
        let source = SubscriptionSource::StandardReplay(StandardReplaySource { scope: LaneScope::Any, after: None });
        let (subscription_id, after_group_receipt) = (lane, None);
        RequestBody::OpenSubscription(OpenSubscriptionRequest {
            stream_id,
            subscription_id,
            source,
            after_group_receipt,
            verification,
        })
    };
    assert_eq!(error_code(&session.request(standard(VerificationMode::None))), 3921);
    assert_eq!(error_code(&session.request(standard(VerificationMode::FullStream))), 3943);
    let unknown = keccak256(b"not open");
    let frames = session.credit(unknown, 1, 1);
    assert_eq!(error_code(&frames), 3944);
    assert!(matches!(&frames[0], ServerMessage::Error(error) if error.subscription_id == Some(unknown)));
    let close = CloseSubscriptionRequest { stream_id, subscription_id: unknown };
    assert!(matches!(session.request(RequestBody::CloseSubscription(close))[0], ServerMessage::Response(_)));
    let key = holder(2);
    let narrow = provider.grant(&key, &format!(",\"verbs\":[\"consume\"],\"lanes\":[\"{lane}\"]"));
    let mut narrow = Session::with_grant(&provider, key, narrow).unwrap_or_else(|frames| panic!("{frames:?}"));
    let other = LaneScope::Exact(narrow.stream.lanes[1]);
    assert_eq!(error_code(&narrow.open_subscription(lane, other, VerificationMode::ScopedProofs, None)), 3928);
    assert_eq!(error_code(&narrow.open_subscription(lane, exact, VerificationMode::ScopedProofs, id(0, 1))), 3908);
}

#[test]
fn a_cursor_behind_the_preceding_epoch_gets_a_signed_floor() {
    let data = fresh_directory("too-old");
    let provider = Provider::start(&data, &["--batch-records", "1"]);
    let mut session = Session::open(&provider, 1);
    let lane = session.stream.lanes[0];
    session.append(lane, "zero");
    session.append(lane, "one");
    provider.kill();
    // Two restarts without a checkpoint between: both transitions name the same last checkpoint.
    Provider::start(&data, &[]).terminate();
    let provider = Provider::start(&data, &[]);
    let mut session = Session::open(&provider, 1);
    let exact = LaneScope::Exact(lane);
    let frames = session.open_subscription(lane, exact.clone(), VerificationMode::ScopedProofs, id(0, 0));
    assert_eq!(error_code(&frames), 3917);
    let ServerMessage::Error(error) = &frames[0] else { panic!("{frames:?}") };
    let anchor = FastRetentionAnchor::from_bytes(&error.details).expect("a canonical anchor");
    assert_eq!((anchor.broker_epoch, anchor.first_retained_sequence), (2, 0));
    let keys = session.stream.keys();
    assert!(keys.0.expect("a key").verify_digest(&anchor, &anchor.digest()).is_ok());
    // Without a cursor the transition comes first, and still names the checkpoint of epoch zero.
    let frames = session.open_subscription(lane, exact, VerificationMode::ScopedProofs, None);
    let ServerMessage::BrokerEpochTransition(transition) = &frames[1] else { panic!("{frames:?}") };
    assert_eq!(transition.replacement_broker_epoch, 2);
    assert!(transition.last_durable_sequence.is_some());
    assert_eq!(anchor.previous_checkpoint, transition.digest());
}

#[test]
fn one_request_in_flight() {
    let provider = Provider::start(&fresh_directory("busy"), &["--poll-ms", "1500"]);
    let mut session = Session::open(&provider, 1);
    let (stream_id, lane) = (session.stream.stream_id, session.stream.lanes[0]);
    session.open_subscription(lane, LaneScope::Exact(lane), VerificationMode::ScopedProofs, None);
    let credit = |records| {
        RequestBody::Credit(CreditRequest {
            stream_id,
            credit: Credit { subscription_id: lane, records, bytes: 1_000 },
        })
    };
    let poll = ClientMessage::Request(session.prepare(10, credit(1)));
    let address = session.address.clone();
    let polling = std::thread::spawn(move || exchange(&address, poll));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let second = session.prepare(11, RequestBody::Append(session.append_body(lane, "text")));
    assert_eq!(error_code(&exchange(&session.address, ClientMessage::Request(second.clone()))), 3946);
    assert!(matches!(&polling.join().expect("polled")[..], [ServerMessage::Response(_)]));
    // The refused request spent no counter: the very same bytes are good now.
    assert!(matches!(exchange(&session.address, ClientMessage::Request(second))[0], ServerMessage::Response(_)));
}

#[test]
fn a_poll_that_is_given_up_grants_nothing() {
    use std::io::Write;
    let provider = Provider::start(&fresh_directory("given-up"), &["--poll-ms", "3000", "--batch-ms", "300"]);
    let mut session = Session::open(&provider, 1);
    let (stream_id, lane) = (session.stream.stream_id, session.stream.lanes[0]);
    session.open_subscription(lane, LaneScope::Exact(lane), VerificationMode::ScopedProofs, None);
    let credit = |records| {
        RequestBody::Credit(CreditRequest {
            stream_id,
            credit: Credit { subscription_id: lane, records, bytes: 1_000 },
        })
    };
    let frame = remuda_wire::frame::ClientFrame(ClientMessage::Request(session.prepare(10, credit(5)))).to_bytes();
    let mut socket = std::net::TcpStream::connect(&session.address).expect("connects");
    let head = format!("POST /cbqs HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", frame.len());
    socket.write_all(&[head.as_bytes(), &frame].concat()).expect("sent");
    std::thread::sleep(std::time::Duration::from_millis(200));
    drop(socket);
    std::thread::sleep(std::time::Duration::from_millis(200));
    session.counter = 10;
    session.append(lane, "first");
    session.append(lane, "second");
    let frames = session.credit(lane, 1, 1_000);
    let delivered = frames.iter().filter(|frame| matches!(frame, ServerMessage::Delivery(_))).count();
    assert_eq!(delivered, 1, "only the credit that was echoed counts");
}

#[test]
fn bytes_that_are_no_frame() {
    let provider = Provider::start(&fresh_directory("bytes"), &[]);
    let post = |body: &[u8]| http(&provider.address, "POST", "/cbqs", "application/octet-stream", body);
    let (status, _, body) = post(b"\x02");
    assert_eq!((status, &body[..]), (400, &b"decode/unknown-version"[..]));
    assert_eq!(post(b"").0, 400);
}

#[test]
fn pages_and_origins() {
    let pages = fresh_directory("pages");
    std::fs::create_dir_all(&*pages).expect("a directory");
    std::fs::write(pages.join("index.html"), "<!doctype html>").expect("a page");
    std::fs::write(pages.join("client.wasm"), b"\0asm").expect("a module");
    let data = fresh_directory("pages-data");
    let provider = Provider::start(&data, &["--pages", pages.to_str().expect("text")]);
    let (status, headers, _) = provider.http("GET", "/", "", &[]);
    assert_eq!(status, 200);
    assert!(headers.contains("cache-control: no-cache") && headers.contains("'wasm-unsafe-eval'"));
    let (_, headers, _) = provider.http("GET", "/client.wasm", "", &[]);
    assert!(headers.contains("content-type: application/wasm"));
    for (origin, allowed) in [
        ("http://localhost:5173", true),
        ("http://127.0.0.1:9", true),
        ("https://localhost.example.com", false),
        ("http://127.0.0.1.example.com", false),
        ("http://localhost:80@example.com", false),
    ] {
        let path = "/demo/info HTTP/1.1\r\norigin: ".to_owned() + origin + "\r\nx:";
        let (_, headers, _) = provider.http("GET", &path, "", &[]);
        assert_eq!(headers.contains("access-control-allow-origin"), allowed, "{origin}");
    }
}

#[test]
fn lanes_are_listed_by_page_within_the_grant() {
    let provider = Provider::start(&fresh_directory("list"), &["--lanes", "5"]);
    let mut session = Session::open(&provider, 1);
    let stream_id = session.stream.stream_id;
    let mut list = |after_lane_id, limit| match session
        .request(RequestBody::ListLanes(ListLanesRequest { stream_id, after_lane_id, limit }))
        .remove(0)
    {
        ServerMessage::Response(response) => match response.body {
            ResponseBody::ListLanes(page) => page,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let first = list(None, 3);
    assert_eq!((first.lanes.len(), first.next_after_lane_id), (3, Some(first.lanes[2].lane_id)));
    let second = list(first.next_after_lane_id, 3);
    assert_eq!((second.lanes.len(), second.next_after_lane_id), (2, None));
    let key = holder(2);
    let lane = second.lanes[0].lane_id;
    let grant = provider.grant(&key, &format!(",\"verbs\":[\"CONSUME\"],\"lanes\":[\"{lane}\"]"));
    let mut narrow = Session::with_grant(&provider, key, grant).unwrap_or_else(|frames| panic!("{frames:?}"));
    let body = ListLanesRequest { stream_id, after_lane_id: None, limit: 100 };
    let frames = narrow.request(RequestBody::ListLanes(body.clone()));
    assert!(matches!(&frames[0], ServerMessage::Response(Response { body: ResponseBody::ListLanes(page), .. })
        if page.lanes.len() == 1 && page.lanes[0].lane_id == lane));
    let key = holder(3);
    let grant = provider.grant(&key, ",\"verbs\":[\"APPEND\"]");
    let mut writer = Session::with_grant(&provider, key, grant).unwrap_or_else(|frames| panic!("{frames:?}"));
    assert_eq!(error_code(&writer.request(RequestBody::ListLanes(body))), 3908);
}
