//! Builders, a driver over virtual time and a scripted provider. The provider checks what a real one must.
#![allow(dead_code, missing_docs, clippy::missing_panics_doc)]

pub mod frames;
pub mod provider;

use std::collections::VecDeque;

use remuda_session::{LongPollSession, Output, PostId, SessionConfig, Slot};
use remuda_wire::frame::{ClientFrame, ClientMessage, ServerFrame, ServerFrameBatch, ServerMessage};
use remuda_wire::request::AuthenticatedRequest;
use remuda_wire::Signature;

pub const T0: u64 = 1_790_000_000_000;
pub const SIGNATURE: Signature = Signature([7; 64]);

pub fn batch(messages: Vec<ServerMessage>) -> Vec<u8> {
    ServerFrameBatch(messages.into_iter().map(ServerFrame).collect()).to_bytes()
}

/// One session and everything it said that is not yet looked at. Signatures are given as soon as they are asked for.
pub struct Bench {
    pub session: LongPollSession,
    pub now_ms: u64,
    pub posts: VecDeque<(PostId, Vec<u8>)>,
    pub told: VecDeque<Output>,
    /// Every handshake is for a session of its own; the first is [`frames::SESSION`].
    handshakes: u8,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(SessionConfig::new(frames::handshake_config()))
    }

    pub fn with(config: SessionConfig) -> Self {
        let session = LongPollSession::new(config, Slot::Poll);
        let mut bench = Self { session, now_ms: T0, posts: VecDeque::new(), told: VecDeque::new(), handshakes: 0 };
        bench.session.handle_start(T0, [3; 32]).unwrap();
        bench.drain();
        bench
    }

    pub fn opened() -> Self {
        let mut bench = Self::new();
        bench.handshake();
        assert!(matches!(bench.told.pop_front(), Some(Output::Opened { .. })));
        bench
    }

    pub fn drain(&mut self) {
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Post { post, body } => {
                    assert!(self.posts.is_empty(), "two exchanges at once");
                    self.posts.push_back((post, body));
                }
                Output::Abort { post } => {
                    self.posts.retain(|(id, _)| *id != post);
                    self.told.push_back(output);
                }
                Output::Sign { digest } => self.session.handle_signature(&digest, SIGNATURE, self.now_ms),
                other => self.told.push_back(other),
            }
        }
    }

    pub fn take_post(&mut self) -> (PostId, ClientMessage) {
        let (post, body) = self.posts.pop_front().expect("nothing was posted");
        (post, ClientFrame::from_bytes(&body).unwrap().0)
    }

    pub fn take_request(&mut self) -> (PostId, AuthenticatedRequest) {
        match self.take_post() {
            (post, ClientMessage::Request(request)) => (post, request),
            (_, other) => panic!("a request expected, not {other:?}"),
        }
    }

    pub fn body(&mut self, post: PostId, messages: Vec<ServerMessage>) {
        self.bytes(post, &batch(messages));
    }

    pub fn bytes(&mut self, post: PostId, bytes: &[u8]) {
        self.session.handle_body(post, bytes, self.now_ms);
        self.drain();
    }

    pub fn time(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.session.handle_time(now_ms);
        self.drain();
    }

    pub fn submit(&mut self, body: remuda_wire::request::RequestBody) -> remuda_session::RequestHandle {
        let handle = self.session.submit(body, self.now_ms).unwrap();
        self.drain();
        handle
    }

    /// Answers both steps of the handshake that was begun.
    pub fn handshake(&mut self) {
        let (post, message) = self.take_post();
        let ClientMessage::OpenSession(open) = message else { panic!("no OpenSession") };
        let session = frames::id(frames::SESSION.0[0] + self.handshakes);
        self.handshakes += 1;
        self.body(post, vec![frames::challenge_of(session, open.request_id, self.now_ms + 60_000)]);
        let (post, message) = self.take_post();
        let ClientMessage::CompleteSession(complete) = message else { panic!("no CompleteSession") };
        self.body(post, vec![frames::opened_of(session, complete.request_id, self.now_ms + 3_600_000)]);
    }

    /// Opens a subscription and gives it credit.
    pub fn subscribe(&mut self, id: u8, records: u32, bytes: u64) {
        self.submit(frames::open_subscription(id));
        let (post, request) = self.take_request();
        self.body(post, vec![frames::answer(&request)]);
        self.submit(frames::credit(id, records, bytes));
        let (post, request) = self.take_request();
        self.body(post, vec![frames::answer(&request)]);
        self.told.clear();
    }
}
