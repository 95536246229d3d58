//! A real provider process, and a small client that shares no code with the product's own.
#![allow(dead_code)]

pub mod socket;
pub mod standard;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ed25519_dalek::{Signer, SigningKey};
use remuda_verify::authentic::OneKey;
use remuda_verify::fast::{FastState, FastSubscription, FastSubscriptionConfig, Verification, VerifiedBatch};
use remuda_verify::signature::PublicKey;
use remuda_wire::chain::BrokerState;
use remuda_wire::context::SigningContext;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::frame::{ClientFrame, ClientMessage, ServerFrameBatch, ServerMessage};
use remuda_wire::grant::StreamGrant;
use remuda_wire::preimage::{keccak256, request_body_hash};
use remuda_wire::record::FastRecordId;
use remuda_wire::request::{
    AppendRequest, AuthenticatedRequest, Credit, CreditRequest, FastSource, OpenSubscriptionRequest, RequestBody,
    SubscriptionSource, VerificationMode,
};
use remuda_wire::response::{AppendResult, ResponseBody};
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::session::{CompleteSession, OpenSession, RequestProof, SessionProof};
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::verdict::Refusal;
use remuda_wire::{Bytes, Bytes24, Bytes32, Canonical, ProviderEpoch, Signature, Signed};
pub use socket::Socket;

/// A directory that is removed when dropped.
pub struct Directory(PathBuf);

impl Deref for Directory {
    type Target = PathBuf;

    fn deref(&self) -> &PathBuf {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A fresh directory that no other test uses.
pub fn fresh_directory(name: &str) -> Directory {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    Directory(directory)
}

/// A running provider; killed when dropped.
pub struct Provider {
    child: Child,
    pub address: String,
}

impl Provider {
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_remuda-dev-provider"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the provider starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("its first line");
        let address = line.trim().rsplit_once("http://").expect("an address").1.to_owned();
        Self { child, address }
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }

    /// SIGTERM, and waits for a clean end.
    pub fn terminate(mut self) {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill");
        assert!(status.success());
        assert!(self.child.wait().expect("reaped").success(), "a clean end");
    }

    pub fn http(&self, method: &str, path: &str, mime: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
        http(&self.address, method, path, mime, body)
    }

    pub fn json(&self, method: &str, path: &str, body: &str) -> serde_json::Value {
        let (status, _, body) = self.http(method, path, "application/json", body.as_bytes());
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).expect("JSON")
    }

    pub fn stream(&self) -> Stream {
        let info = self.json("GET", "/demo/info", "");
        let text = |name: &str| info[name].as_str().expect("text").to_owned();
        let lanes = info["lanes"].as_array().expect("lanes");
        Stream {
            context: SigningContext::from_bytes(&hex::decode(text("context")).expect("hex")).expect("context"),
            stream_id: bytes32(&text("streamId")),
            provider_key: bytes32(&text("providerKey")),
            lanes: lanes.iter().map(|lane| bytes32(lane["id"].as_str().expect("id"))).collect(),
        }
    }

    /// A demo grant for `key`; `extra` continues the JSON object.
    pub fn grant(&self, key: &SigningKey, extra: &str) -> StreamGrant {
        let holder = hex::encode(key.verifying_key().to_bytes());
        let answer = self.json("POST", "/demo/grant", &format!("{{\"holderKey\":\"{holder}\"{extra}}}"));
        let bytes = hex::decode(answer["grant"].as_str().expect("grant")).expect("hex");
        StreamGrant::from_bytes(&bytes).expect("a canonical grant")
    }

    pub fn broker_state(&self, stream: &Bytes32, block: Option<&Bytes32>) -> Result<BrokerState, u16> {
        let block = block.map_or(String::new(), |block| format!("&block={block}"));
        let (status, _, body) = self.http("GET", &format!("/cbqs/broker-state?stream={stream}{block}"), "", &[]);
        if status == 200 {
            Ok(BrokerState::from_bytes(&body).expect("canonical"))
        } else {
            Err(status)
        }
    }

    /// Sends one client frame.
    pub fn send(&self, message: ClientMessage) -> Vec<ServerMessage> {
        exchange(&self.address, message)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn exchange(address: &str, message: ClientMessage) -> Vec<ServerMessage> {
    let body = ClientFrame(message).to_bytes();
    let (status, _, body) = http(address, "POST", "/cbqs", "application/octet-stream", &body);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let batch = ServerFrameBatch::from_bytes(&body).expect("canonical frames");
    batch.0.into_iter().map(|frame| frame.0).collect()
}

pub fn http(address: &str, method: &str, path: &str, mime: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("timeout");
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: {mime}\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("head");
    stream.write_all(body).expect("body");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answer");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("headers");
    let headers = String::from_utf8(answer[..end].to_vec()).expect("text").to_ascii_lowercase();
    let status = headers.split(' ').nth(1).expect("status").parse().expect("number");
    (status, headers, answer[end + 4..].to_vec())
}

pub fn bytes32(text: &str) -> Bytes32 {
    let mut bytes = Bytes32::ZERO;
    hex::decode_to_slice(text, &mut bytes.0).expect("64 digits");
    bytes
}

/// What `/demo/info` says.
#[derive(Clone, Debug)]
pub struct Stream {
    pub context: SigningContext,
    pub stream_id: Bytes32,
    pub provider_key: Bytes32,
    pub lanes: Vec<Bytes32>,
}

impl Stream {
    pub fn keys(&self) -> OneKey {
        OneKey(PublicKey::parse(&self.provider_key))
    }

    /// The first `count` demo lanes.
    pub fn scope(&self, count: usize) -> LaneScope {
        LaneScope::Set(LaneSet::new(self.lanes[..count].to_vec()).expect("few").expect("some"))
    }
}

pub fn holder(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

pub fn sign<T: Signed>(key: &SigningKey, object: &T) -> Signature {
    Signature(key.sign(&object.digest().0).to_bytes())
}

/// The code of the one error frame in an answer.
pub fn error_code(frames: &[ServerMessage]) -> u16 {
    match frames {
        [ServerMessage::Error(error), ..] => error.code,
        other => panic!("no error: {other:?}"),
    }
}

/// An open session.
pub struct Session {
    pub address: String,
    /// Over a WebSocket; else over long-poll.
    pub socket: Option<Socket>,
    pub stream: Stream,
    pub key: SigningKey,
    pub id: Bytes32,
    pub counter: u64,
}

impl Session {
    pub fn open(provider: &Provider, seed: u8) -> Self {
        let key = holder(seed);
        let grant = provider.grant(&key, "");
        Self::with_grant(provider, key, grant).unwrap_or_else(|frames| panic!("{frames:?}"))
    }

    /// The same over a WebSocket.
    pub fn open_socket(provider: &Provider, seed: u8) -> Self {
        let key = holder(seed);
        let grant = provider.grant(&key, "");
        let socket = Some(Socket::connect(provider));
        Self::over(provider, socket, key, grant).unwrap_or_else(|frames| panic!("{frames:?}"))
    }

    pub fn with_grant(provider: &Provider, key: SigningKey, grant: StreamGrant) -> Result<Self, Vec<ServerMessage>> {
        Self::over(provider, None, key, grant)
    }

    pub fn over(
        provider: &Provider,
        mut socket: Option<Socket>,
        key: SigningKey,
        grant: StreamGrant,
    ) -> Result<Self, Vec<ServerMessage>> {
        let mut send = |message| match &mut socket {
            Some(socket) => socket.ask(message),
            None => provider.send(message),
        };
        let stream = provider.stream();
        let (request_id, stream_id) = (keccak256(b"open"), grant.stream_id);
        let grant_id = grant.digest();
        let mut frames = send(ClientMessage::OpenSession(OpenSession { request_id, stream_id, grant }));
        let Some(ServerMessage::SessionChallenge(challenge)) = frames.pop() else { return Err(frames) };
        assert_eq!((challenge.request_id, challenge.grant_id), (request_id, grant_id));
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
        let mut frames = send(ClientMessage::CompleteSession(CompleteSession { request_id, proof }));
        let Some(ServerMessage::SessionOpened(opened)) = frames.pop() else { return Err(frames) };
        Ok(Self { address: provider.address.clone(), socket, stream, key, id: opened.session_id, counter: 0 })
    }

    pub fn prepare(&self, counter: u64, body: RequestBody) -> AuthenticatedRequest {
        let mut proof = RequestProof {
            context: self.stream.context.clone(),
            session_id: self.id,
            counter,
            method: body.method(),
            body_hash: request_body_hash(&body),
            signature: Signature::ZERO,
        };
        proof.signature = sign(&self.key, &proof);
        AuthenticatedRequest { request_id: keccak256(&counter.to_be_bytes()), proof, body }
    }

    pub fn request(&mut self, body: RequestBody) -> Vec<ServerMessage> {
        self.counter += 1;
        let message = ClientMessage::Request(self.prepare(self.counter, body));
        match &mut self.socket {
            Some(socket) => socket.ask(message),
            None => exchange(&self.address, message),
        }
    }

    pub fn append_body(&self, lane_id: Bytes32, text: &str) -> AppendRequest {
        AppendRequest {
            stream_id: self.stream.stream_id,
            lane_id,
            client_message_id: keccak256(text.as_bytes()),
            client_created_at_ms: 1,
            visible_after_ms: 0,
            expires_at_ms: 0,
            encryption_generation: 0,
            nonce: Bytes24::ZERO,
            payload: Bytes::new(text.as_bytes().to_vec()).expect("short"),
        }
    }

    pub fn append(&mut self, lane_id: Bytes32, text: &str) -> AppendResult {
        let body = RequestBody::Append(self.append_body(lane_id, text));
        match &self.request(body)[..] {
            [ServerMessage::Response(response), ..] => match &response.body {
                ResponseBody::Append(result) => result.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    pub fn open_subscription(
        &mut self,
        id: Bytes32,
        scope: LaneScope,
        verification: VerificationMode,
        after: Option<FastRecordId>,
    ) -> Vec<ServerMessage> {
        self.request(RequestBody::OpenSubscription(OpenSubscriptionRequest {
            stream_id: self.stream.stream_id,
            subscription_id: id,
            source: SubscriptionSource::Fast(FastSource { scope, after }),
            after_group_receipt: None,
            verification,
        }))
    }

    pub fn credit(&mut self, subscription_id: Bytes32, records: u32, bytes: u64) -> Vec<ServerMessage> {
        let credit = Credit { subscription_id, records, bytes };
        let mut frames = self.request(RequestBody::Credit(CreditRequest { stream_id: self.stream.stream_id, credit }));
        // A poll waits; so does the reader of a socket.
        frames.extend(self.socket.as_mut().filter(|_| frames.len() == 1).and_then(Socket::wait));
        frames
    }
}

/// What a subscription yields.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Event {
    Batch(VerifiedBatch<RecordDelivery>),
    Transition(BrokerEpochTransition),
}

/// A verifying subscription over a session.
pub struct Subscriber {
    pub session: Session,
    pub id: Bytes32,
    pub verifier: FastSubscription<RecordDelivery>,
    keys: OneKey,
    records_left: u32,
    bytes_left: u64,
}

impl Subscriber {
    /// Opens `verification` after `after`; what was ready already is judged and dropped.
    pub fn open(
        session: Session,
        verification: Verification,
        after: Option<FastRecordId>,
        state: FastState,
    ) -> Result<Self, Refusal> {
        Self::open_with_events(session, verification, after, state).map(|(subscriber, _)| subscriber)
    }

    /// Opens `verification` after `after`, with what was ready already.
    pub fn open_with_events(
        mut session: Session,
        verification: Verification,
        after: Option<FastRecordId>,
        state: FastState,
    ) -> Result<(Self, Vec<Event>), Refusal> {
        let (scope, mode) = match &verification {
            Verification::None(scope) => (scope.clone(), VerificationMode::None),
            Verification::ScopedProofs(scope) => (scope.clone(), VerificationMode::ScopedProofs),
            Verification::FullStream => (LaneScope::Any, VerificationMode::FullStream),
        };
        let id = keccak256(b"subscription");
        let frames = session.open_subscription(id, scope, mode, after);
        assert!(matches!(frames.first(), Some(ServerMessage::Response(_))), "{frames:?}");
        let config = FastSubscriptionConfig {
            context: session.stream.context.clone(),
            stream_id: session.stream.stream_id,
            encrypted: false,
            subscription_id: id,
            verification,
        };
        let (verifier, keys) = (FastSubscription::new(config, state), session.stream.keys());
        let mut subscriber = Self { session, id, verifier, keys, records_left: 0, bytes_left: 0 };
        let events = subscriber.apply(frames)?;
        Ok((subscriber, events))
    }

    /// One poll.
    pub fn poll(&mut self, records: u32, bytes: u64) -> Result<Vec<Event>, Refusal> {
        let frames = self.session.credit(self.id, records, bytes);
        match frames.first() {
            Some(ServerMessage::Response(response)) => {
                assert!(matches!(&response.body, ResponseBody::Credit(credit) if credit.records == records));
            }
            other => panic!("{other:?}"),
        }
        self.records_left += records;
        self.bytes_left += bytes;
        self.apply(frames)
    }

    fn apply(&mut self, frames: Vec<ServerMessage>) -> Result<Vec<Event>, Refusal> {
        let mut events = Vec::new();
        for frame in frames.into_iter().skip(1) {
            let judged = match frame {
                ServerMessage::Delivery(delivery) => {
                    let bytes = u64::try_from(delivery.payload.len()).expect("short");
                    self.records_left = self.records_left.checked_sub(1).expect("record credit");
                    self.bytes_left = self.bytes_left.checked_sub(bytes).expect("byte credit");
                    self.verifier.handle_delivery(&delivery.clone(), delivery).map(|()| None)
                }
                ServerMessage::Checkpoint(frame) => {
                    self.verifier.handle_checkpoint(frame, &self.keys).map(|batch| Some(Event::Batch(batch)))
                }
                ServerMessage::BrokerEpochTransition(transition) => self
                    .verifier
                    .handle_transition(transition.clone(), &self.keys)
                    .map(|_| Some(Event::Transition(transition))),
                other => panic!("{other:?}"),
            };
            events.extend(judged?);
        }
        Ok(events)
    }

    /// Polls until `enough` says so.
    pub fn poll_until(&mut self, enough: impl Fn(&[Event]) -> bool) -> Result<Vec<Event>, Refusal> {
        let mut events = Vec::new();
        for _ in 0..200 {
            events.extend(self.poll(256, 1 << 20)?);
            if enough(&events) {
                return Ok(events);
            }
        }
        panic!("never enough: {events:?}");
    }

    /// The id of the boundary that was verified last.
    pub fn boundary(&self) -> FastRecordId {
        let state = self.verifier.state();
        FastRecordId {
            provider_epoch: ProviderEpoch,
            broker_epoch: state.broker_epoch.expect("an epoch"),
            sequence: state.last_durable_sequence.expect("a checkpoint"),
        }
    }
}

pub fn batches(events: &[Event]) -> Vec<&VerifiedBatch<RecordDelivery>> {
    events.iter().filter_map(|event| if let Event::Batch(batch) = event { Some(batch) } else { None }).collect()
}

pub fn records(events: &[Event]) -> usize {
    batches(events).iter().map(|batch| batch.records().len()).sum()
}
