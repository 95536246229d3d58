//! One persistent connection (§13): its sessions, their requests in order, and what is pushed without being asked for.
//!
//! It does no I/O: whoever has the socket hands frames in and sends those that come out, in order.

use std::sync::Arc;
use std::time::Duration;

use super::wait::Wait;
use super::Exchange;
use crate::deliver::fill;
use crate::grant::check_standing;
use crate::outbox::Outbox;
use crate::refusal::{Code, Refusal};
use crate::session::{Session, SessionState, Transport, CHALLENGE_MS};
use remuda_wire::frame::{ClientFrame, ClientMessage};
use remuda_wire::request::AuthenticatedRequest;

/// Sessions of one connection.
const MAX_SESSIONS: usize = 16;

/// A connection. Its sessions end with it.
#[derive(Debug)]
pub struct Connection<'a> {
    exchange: &'a Exchange,
    sessions: Vec<Arc<Session>>,
    /// Whose turn is next.
    turn: usize,
    /// A connection without a session ends then.
    idle_until_ms: u64,
    wait: Wait,
}

impl<'a> Connection<'a> {
    /// A connection that nothing was said on.
    pub fn new(exchange: &'a Exchange) -> Self {
        let idle_until_ms = exchange.broker.chain.now_ms().saturating_add(CHALLENGE_MS);
        Self { exchange, sessions: Vec::new(), turn: 0, idle_until_ms, wait: Wait::new(exchange) }
    }

    /// Takes one frame; answers with the frames to send, in order.
    ///
    /// # Errors
    /// When the store fails: the connection is of no more use.
    pub async fn receive(&mut self, frame: ClientFrame) -> anyhow::Result<Vec<Vec<u8>>> {
        let message = match frame.0 {
            ClientMessage::OpenSession(open) if self.sessions.len() >= MAX_SESSIONS => {
                Refusal::new(Code::Backpressure, "too many sessions on this connection").frame(open.request_id)
            }
            ClientMessage::OpenSession(open) => self.exchange.challenge(open)?,
            ClientMessage::CompleteSession(complete) => {
                let (message, session) = self.exchange.complete(&complete, Transport::WebSocket);
                self.sessions.extend(session);
                message
            }
            ClientMessage::Request(request) => return self.request(request).await,
        };
        Ok(Outbox::round().answering(&message).into_frames())
    }

    async fn request(&mut self, request: AuthenticatedRequest) -> anyhow::Result<Vec<Vec<u8>>> {
        let request_id = request.request_id;
        let refused = |refusal: Refusal| Ok(Outbox::round().answering(&refusal.frame(request_id)).into_frames());
        let Some(session) = self.sessions.iter().find(|session| session.id == request.proof.session_id).cloned() else {
            return refused(Refusal::new(Code::InvalidProofOfPossession, "no such session on this connection"));
        };
        let mut state = session.state.lock().await;
        if let Err(refusal) = self.exchange.admit(&session, &request, &mut state) {
            return refused(refusal);
        }
        let message = self.exchange.respond(request_id, request.body, &session, &mut state).await?;
        let mut outbox = Outbox::round().answering(&message);
        fill(&mut state, &mut outbox, self.exchange)?;
        Ok(outbox.into_frames())
    }

    /// Waits until a subscription is owed something that its credit covers, and takes one round of it. No frames: the
    /// connection is over. Giving up the wait loses nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn ready(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        loop {
            let closing = self.wait.mark();
            let now = self.exchange.broker.chain.now_ms();
            let frames = self.take_round(now)?;
            let idle = self.sessions.is_empty() && now >= self.idle_until_ms;
            if !frames.is_empty() || closing || idle {
                return Ok(frames);
            }
            let until = self.sessions.iter().map(|session| session.expires_at_ms.saturating_add(1)).min();
            let longest = Duration::from_millis(until.unwrap_or(self.idle_until_ms).saturating_sub(now));
            self.wait.change(longest).await;
        }
    }

    /// What the sessions are owed, in turns; those that ended are said to have ended, subscription by subscription.
    fn take_round(&mut self, now: u64) -> anyhow::Result<Vec<Vec<u8>>> {
        let mut outbox = Outbox::round();
        for index in 0..self.sessions.len() {
            let Some(session) = self.sessions.get((self.turn + index) % self.sessions.len()).cloned() else { break };
            // Nobody else has it: this connection is where it lives, and serves one thing at a time.
            let Ok(mut state) = session.state.try_lock() else { continue };
            match self.standing(&session, now) {
                Ok(()) => fill(&mut state, &mut outbox, self.exchange)?,
                Err(refusal) => end(&refusal, &mut state, &mut outbox),
            }
        }
        self.turn = self.turn.wrapping_add(1);
        let ended = |session: &Arc<Session>| self.standing(session, now).is_err();
        let (over, open): (Vec<_>, Vec<_>) = self.sessions.iter().cloned().partition(ended);
        over.iter().for_each(|session| self.exchange.sessions.end(&session.id, now));
        if !over.is_empty() && open.is_empty() {
            self.idle_until_ms = now;
        }
        self.sessions = open;
        Ok(outbox.into_frames())
    }

    fn standing(&self, session: &Session, now: u64) -> Result<(), Refusal> {
        if session.expires_at_ms < now {
            return Err(Refusal::new(Code::InvalidProofOfPossession, "the session has ended"));
        }
        let (grant, records) = (&session.admitted.grant, self.exchange.broker.chain.records());
        let gone = || Refusal::new(Code::StreamNotFound, "no such stream here");
        check_standing(grant, records.of(&grant.stream_id).ok_or_else(gone)?, now)
    }
}

/// Each subscription is told why it ends: an error without a name would be of no use to its client.
fn end(refusal: &Refusal, state: &mut SessionState, outbox: &mut Outbox) {
    for subscription in state.subscriptions.drain(..) {
        outbox.push(&refusal.clone().ending(*subscription.id()).unasked());
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        let now = self.exchange.broker.chain.now_ms();
        self.sessions.iter().for_each(|session| self.exchange.sessions.end(&session.id, now));
    }
}
