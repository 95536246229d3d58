//! What a frame may do, whatever carried it (§13): authorisation, order and receipts are the same over both transports.

use std::sync::Arc;
use std::time::Duration;

use remuda_wire::frame::ServerMessage;
use remuda_wire::request::{AuthenticatedRequest, RequestBody};
use remuda_wire::response::{Response, ResponseBody, SubscriptionState};
use remuda_wire::session::{CompleteSession, OpenSession, SessionChallenge, SessionOpened};
use remuda_wire::{Bytes32, ProviderEpoch};
use tokio::sync::watch;

use crate::broker::Broker;
use crate::grant::{admit, check_standing};
use crate::keys::random32;
use crate::lie::Liar;
use crate::refusal::{Code, Refusal};
use crate::session::{Session, SessionState, Sessions, Transport};

mod append;
mod connection;
mod lanes;
mod long_poll;
mod open;

pub use connection::Connection;

/// Everything that a request may touch.
#[derive(Debug)]
pub struct Exchange {
    /// The broker of the one stream.
    pub broker: Arc<Broker>,
    /// What it lies about.
    pub liar: Liar,
    /// Challenges and sessions.
    pub sessions: Sessions,
    /// Every lane that can be appended to, ascending.
    pub lanes: Vec<Bytes32>,
    /// Longest time that a poll is held.
    pub poll: Duration,
    /// Longest life of a session, in milliseconds.
    pub session_ms: u64,
    /// Becomes true when the provider shuts down.
    pub closing: watch::Receiver<bool>,
}

impl Exchange {
    /// Challenges the holder of a grant.
    ///
    /// # Errors
    /// When there is no randomness.
    pub(crate) fn challenge(&self, open: OpenSession) -> anyhow::Result<ServerMessage> {
        let request_id = open.request_id;
        Ok(match self.open_session(open, (random32()?, random32()?)) {
            Ok(challenge) => ServerMessage::SessionChallenge(challenge),
            Err(refusal) => refusal.frame(request_id),
        })
    }

    /// Opens the session whose challenge is answered.
    pub(crate) fn complete(
        &self,
        complete: &CompleteSession,
        transport: Transport,
    ) -> (ServerMessage, Option<Arc<Session>>) {
        match self.complete_session(complete, transport) {
            Ok((opened, session)) => (ServerMessage::SessionOpened(opened), Some(session)),
            Err(refusal) => (refusal.frame(complete.request_id), None),
        }
    }

    fn open_session(&self, open: OpenSession, ids: (Bytes32, Bytes32)) -> Result<SessionChallenge, Refusal> {
        let chain = &self.broker.chain;
        let now = chain.now_ms();
        let served_at = chain.view();
        let admitted = admit(open.grant, chain.context(), chain.stream(), now)?;
        let grant_id = admitted.id;
        let expires_at_ms = self.sessions.challenge(admitted, ids, now)?;
        Ok(SessionChallenge {
            request_id: open.request_id,
            context: chain.context().clone(),
            served_at,
            stream_id: open.stream_id,
            grant_id,
            provider_epoch: ProviderEpoch,
            session_id: ids.0,
            challenge: ids.1,
            expires_at_ms,
        })
    }

    fn complete_session(
        &self,
        complete: &CompleteSession,
        transport: Transport,
    ) -> Result<(SessionOpened, Arc<Session>), Refusal> {
        let chain = &self.broker.chain;
        let (served_at, stream_id) = (chain.view(), chain.stream().stream_id);
        let times = (chain.now_ms(), self.session_ms);
        let session = self.sessions.complete(&complete.proof, chain.context(), &stream_id, transport, times)?;
        let opened = SessionOpened {
            request_id: complete.request_id,
            context: chain.context().clone(),
            served_at,
            stream_id,
            grant_id: session.admitted.id,
            provider_epoch: ProviderEpoch,
            session_id: session.id,
            expires_at_ms: session.expires_at_ms,
        };
        Ok((opened, session))
    }

    /// Proof, counter, standing and stream of a request; a refused proof spends nothing.
    pub(crate) fn admit(
        &self,
        session: &Session,
        request: &AuthenticatedRequest,
        state: &mut SessionState,
    ) -> Result<(), Refusal> {
        let chain = &self.broker.chain;
        session.admit(&request.proof, chain.context(), state)?;
        let now = chain.now_ms();
        check_standing(&session.admitted.grant, chain.stream(), now)
            .inspect_err(|_| self.sessions.end(&session.id, now))?;
        if stream_of(&request.body).is_some_and(|stream_id| *stream_id != chain.stream().stream_id) {
            return Err(Refusal::new(Code::StreamNotFound, "no such stream here"));
        }
        Ok(())
    }

    /// Performs an admitted request and answers it. Over a persistent connection credit is granted here and waits for
    /// nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn respond(
        &self,
        request_id: Bytes32,
        body: RequestBody,
        session: &Session,
        state: &mut SessionState,
    ) -> anyhow::Result<ServerMessage> {
        Ok(match self.perform(body, session, state).await? {
            Ok(body) => ServerMessage::Response(Response { request_id, body }),
            Err(refusal) => refusal.frame(request_id),
        })
    }

    /// The outer error is ours, the inner one the client's.
    async fn perform(
        &self,
        body: RequestBody,
        session: &Session,
        state: &mut SessionState,
    ) -> anyhow::Result<Result<ResponseBody, Refusal>> {
        Ok(match body {
            RequestBody::Append(body) => self.append(body, session, state).await.map(ResponseBody::Append),
            RequestBody::OpenSubscription(body) => {
                self.open_subscription(&body, session, state)?.map(ResponseBody::OpenSubscription)
            }
            RequestBody::CloseSubscription(body) => {
                state.subscriptions.retain(|it| *it.id() != body.subscription_id);
                let (stream_id, subscription_id) = (body.stream_id, body.subscription_id);
                Ok(ResponseBody::CloseSubscription(SubscriptionState { stream_id, subscription_id }))
            }
            RequestBody::Credit(body) => match state.subscription(&body.credit.subscription_id) {
                Some(subscription) => {
                    subscription.grant_credit(&body.credit);
                    Ok(ResponseBody::Credit(body.credit))
                }
                None => {
                    Err(Refusal::new(Code::NotCheckpointBoundary, "no such subscription: open it again at a boundary")
                        .ending(body.credit.subscription_id))
                }
            },
            RequestBody::CreateLane(_) => {
                Err(Refusal::new(Code::LaneLimitExceeded, "the lanes of a demo stream are fixed"))
            }
            RequestBody::CloseLane(_) => Err(Refusal::new(Code::VerbDenied, "the lanes of a demo stream are fixed")),
            RequestBody::ListLanes(body) => self.list_lanes(&body, session)?.map(ResponseBody::ListLanes),
            RequestBody::BeginKeyBatch(_) | RequestBody::PutKeyBatchChunk(_) | RequestBody::CommitKeyBatch(_) => {
                Err(Refusal::new(Code::InvalidKeyBatch, "an unencrypted stream has no key batches"))
            }
            RequestBody::CreateGroup(_)
            | RequestBody::UpdateGroup(_)
            | RequestBody::DeleteGroup(_)
            | RequestBody::Ack(_)
            | RequestBody::Nack(_)
            | RequestBody::Extend(_)
            | RequestBody::Reject(_)
            | RequestBody::Redrive(_) => {
                Err(Refusal::new(Code::FastModeHasNoLeases, "a fast stream has no groups and no leases"))
            }
        })
    }
}

/// The stream that a body names; leases name theirs inside.
const fn stream_of(body: &RequestBody) -> Option<&Bytes32> {
    match body {
        RequestBody::Append(body) => Some(&body.stream_id),
        RequestBody::CreateLane(body) => Some(&body.stream_id),
        RequestBody::CloseLane(body) => Some(&body.stream_id),
        RequestBody::ListLanes(body) => Some(&body.stream_id),
        RequestBody::OpenSubscription(body) => Some(&body.stream_id),
        RequestBody::CloseSubscription(body) => Some(&body.stream_id),
        RequestBody::Credit(body) => Some(&body.stream_id),
        _ => None,
    }
}
