//! Sessions (§7.1): a challenge answered by the grant's holder, then requests with rising counters, one at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use remuda_wire::context::SigningContext;
use remuda_wire::session::{RequestProof, SessionProof};
use remuda_wire::{Bytes32, Signed};

use crate::grant::{check_context, AdmittedGrant, MAX_CLOCK_SKEW_MS};
use crate::refusal::{Code, Refusal};
use crate::subscription::Subscription;

/// How long a challenge can be answered.
pub const CHALLENGE_MS: u64 = 30_000;
/// Challenges and sessions held at once.
const MAX_SESSIONS: usize = 4_096;

/// A challenge that nobody answered yet.
#[derive(Clone, Debug)]
struct Pending {
    admitted: AdmittedGrant,
    challenge: Bytes32,
    expires_at_ms: u64,
}

/// What carries a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One connection, with which it ends.
    WebSocket,
    /// Any number of HTTPS requests, one at a time.
    LongPoll,
}

/// An open session.
#[derive(Debug)]
pub struct Session {
    /// Its id.
    pub id: Bytes32,
    /// The grant that it was opened with.
    pub admitted: AdmittedGrant,
    /// When it ends.
    pub expires_at_ms: u64,
    /// What carries it: requests over another transport are none of its own.
    pub transport: Transport,
    /// Held by the one request in flight.
    pub state: tokio::sync::Mutex<SessionState>,
}

/// What requests change.
#[derive(Debug, Default)]
pub struct SessionState {
    /// The last counter that was used.
    pub counter: u64,
    /// Open subscriptions, in the order of their opening.
    pub subscriptions: Vec<Subscription>,
    /// Whose turn is next.
    pub turn: usize,
    /// A second, and the payload bytes appended in it.
    pub append_window: (u64, u64),
}

impl SessionState {
    /// The open subscription of this id.
    pub fn subscription(&mut self, id: &Bytes32) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|it| it.id() == id)
    }
}

impl Session {
    /// Checks a proof of this session and spends its counter.
    ///
    /// # Errors
    /// 3938, 3910 for a wrong signature, 3911 for a counter that does not rise.
    pub fn admit(
        &self,
        proof: &RequestProof,
        context: &SigningContext,
        state: &mut SessionState,
    ) -> Result<(), Refusal> {
        check_context(&proof.context, context)?;
        if proof.session_id != self.id || self.admitted.holder.verify_digest(proof, &proof.digest()).is_err() {
            return Err(Refusal::new(Code::InvalidProofOfPossession, "the holder did not sign this request"));
        }
        if proof.counter <= state.counter {
            return Err(Refusal::new(Code::RequestReplay, "the request counter does not rise"));
        }
        state.counter = proof.counter;
        Ok(())
    }
}

/// Every challenge and session.
#[derive(Debug, Default)]
pub struct Sessions {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    pending: HashMap<Bytes32, Pending>,
    open: HashMap<Bytes32, Arc<Session>>,
}

impl Sessions {
    fn tables(&self, now_ms: u64) -> MutexGuard<'_, Tables> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.pending.retain(|_, pending| now_ms <= pending.expires_at_ms);
        tables.open.retain(|_, session| now_ms <= session.expires_at_ms);
        tables
    }

    /// Remembers a challenge under a fresh session id.
    ///
    /// # Errors
    /// 3914 when too many are held.
    pub fn challenge(
        &self,
        admitted: AdmittedGrant,
        (session_id, challenge): (Bytes32, Bytes32),
        now_ms: u64,
    ) -> Result<u64, Refusal> {
        let mut tables = self.tables(now_ms);
        if tables.pending.len() + tables.open.len() >= MAX_SESSIONS {
            return Err(Refusal::new(Code::Backpressure, "too many sessions"));
        }
        let expires_at_ms = now_ms.saturating_add(CHALLENGE_MS);
        tables.pending.insert(session_id, Pending { admitted, challenge, expires_at_ms });
        Ok(expires_at_ms)
    }

    /// Opens the session whose challenge this answers. A challenge can be answered once.
    ///
    /// # Errors
    /// 3938; 3910 for an unknown, expired or wrongly answered challenge.
    pub fn complete(
        &self,
        proof: &SessionProof,
        context: &SigningContext,
        transport: Transport,
        (now_ms, life_ms): (u64, u64),
    ) -> Result<Arc<Session>, Refusal> {
        check_context(&proof.context, context)?;
        let refused =
            || Refusal::new(Code::InvalidProofOfPossession, "no such challenge, or not the holder's answer to it");
        let mut tables = self.tables(now_ms);
        let pending = tables.pending.remove(&proof.session_id).ok_or_else(refused)?;
        let answers = proof.challenge == pending.challenge
            && proof.grant_id == pending.admitted.id
            && proof.stream_id == pending.admitted.grant.stream_id
            && pending.admitted.holder.verify_digest(proof, &proof.digest()).is_ok();
        if !answers {
            return Err(refused());
        }
        let expires_at_ms =
            now_ms.saturating_add(life_ms).min(pending.admitted.grant.expires_at_ms.saturating_add(MAX_CLOCK_SKEW_MS));
        let session = Arc::new(Session {
            id: proof.session_id,
            admitted: pending.admitted,
            expires_at_ms,
            transport,
            state: Default::default(),
        });
        tables.open.insert(session.id, Arc::clone(&session));
        Ok(session)
    }

    /// The open long-poll session of this id.
    pub fn find(&self, session_id: &Bytes32, now_ms: u64) -> Option<Arc<Session>> {
        let tables = self.tables(now_ms);
        tables.open.get(session_id).filter(|session| session.transport == Transport::LongPoll).cloned()
    }

    /// Ends a session.
    pub fn end(&self, session_id: &Bytes32, now_ms: u64) {
        self.tables(now_ms).open.remove(session_id);
    }
}
