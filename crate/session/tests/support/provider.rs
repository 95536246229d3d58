//! A provider in memory: it checks sessions, counters and credit as §7.1 and §13.2 ask, and delivers what it has.

use std::collections::BTreeMap;

use remuda_session::CreditWindow;
use remuda_wire::frame::{ClientFrame, ClientMessage, ServerMessage};
use remuda_wire::request::{AuthenticatedRequest, RequestBody};
use remuda_wire::Bytes32;

use super::frames;

#[derive(Default)]
struct Session {
    counter: u64,
    subscriptions: BTreeMap<Bytes32, (CreditWindow, u64)>,
}

/// Serves records `0..available` of `payload_bytes` each to every subscription.
pub struct Provider {
    pub available: u64,
    pub payload_bytes: usize,
    pub appends: u64,
    pub polls: Vec<(Bytes32, u32, u64)>,
    /// Answers the next request with this error instead.
    pub fail_next: Option<u16>,
    sessions: BTreeMap<Bytes32, Session>,
    opened: u8,
}

impl Provider {
    pub fn new(available: u64, payload_bytes: usize) -> Self {
        Self {
            available,
            payload_bytes,
            appends: 0,
            polls: Vec::new(),
            fail_next: None,
            sessions: BTreeMap::new(),
            opened: 0,
        }
    }

    /// Forgets every session, as a restart does.
    pub fn restart(&mut self) {
        self.sessions.clear();
    }

    pub fn answer(&mut self, body: &[u8], now_ms: u64) -> Vec<u8> {
        super::batch(self.frames(body, now_ms))
    }

    pub fn frames(&mut self, body: &[u8], now_ms: u64) -> Vec<ServerMessage> {
        match ClientFrame::from_bytes(body).unwrap().0 {
            ClientMessage::OpenSession(open) => {
                self.opened += 1;
                vec![frames::challenge_of(frames::id(100 + self.opened), open.request_id, now_ms + 60_000)]
            }
            ClientMessage::CompleteSession(complete) => {
                let session_id = complete.proof.session_id;
                self.sessions.insert(session_id, Session::default());
                vec![frames::opened_of(session_id, complete.request_id, now_ms + 3_600_000)]
            }
            ClientMessage::Request(request) => self.request(&request),
        }
    }

    fn request(&mut self, request: &AuthenticatedRequest) -> Vec<ServerMessage> {
        let refuse = |code| vec![frames::error(code, Some(request.request_id), None)];
        if let Some(code) = self.fail_next.take() {
            return refuse(code);
        }
        let Some(session) = self.sessions.get_mut(&request.proof.session_id) else { return refuse(3910) };
        assert!(request.proof.counter > session.counter, "counters increase strictly");
        session.counter = request.proof.counter;
        let mut out = vec![frames::answer(request)];
        match &request.body {
            RequestBody::Append(_) => self.appends += 1,
            RequestBody::OpenSubscription(open) => {
                session.subscriptions.insert(open.subscription_id, (CreditWindow::default(), 0));
            }
            RequestBody::CloseSubscription(close) => {
                session.subscriptions.remove(&close.subscription_id);
            }
            RequestBody::Credit(body) => {
                let credit = &body.credit;
                self.polls.push((credit.subscription_id, credit.records, credit.bytes));
                if let Some((window, _)) = session.subscriptions.get_mut(&credit.subscription_id) {
                    window.grant(credit.records, credit.bytes);
                }
                for (id, (window, next)) in &mut session.subscriptions {
                    while *next < self.available && out.len() < 32 && window.spend(self.payload_bytes).is_ok() {
                        out.push(frames::delivery(id.0[0], *next, self.payload_bytes));
                        *next += 1;
                    }
                }
            }
            other => panic!("not served: {other:?}"),
        }
        out
    }
}
