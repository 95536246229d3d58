//! What a frame may do, whatever carried it (§13): authorisation, order and receipts are the same over both transports.

use std::sync::Arc;
use std::time::Duration;

use remuda_wire::chain::StreamStatus;
use remuda_wire::frame::ServerMessage;
use remuda_wire::request::{AuthenticatedRequest, RequestBody};
use remuda_wire::response::{Response, ResponseBody, SubscriptionState};
use remuda_wire::session::{CompleteSession, OpenSession, SessionChallenge, SessionOpened};
use remuda_wire::{Bytes32, ProviderEpoch};
use tokio::sync::watch;

use crate::broker::Broker;
use crate::grant::{admit, check_context, check_standing};
use crate::keys::random32;
use crate::lane_book::LaneBook;
use crate::lie::Liar;
use crate::log::Log;
use crate::refusal::{Code, Refusal};
use crate::session::{Session, SessionState, Sessions, Transport};
use crate::signal::Signal;

mod append;
mod body;
mod connection;
mod lanes;
mod long_poll;
mod open;
mod wait;

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
    /// Receipts of the stream: all of a standard one, of a fast one those of lane events.
    pub log: Arc<Log>,
    /// Records of the key stream, when there is one.
    pub key_log: Option<Arc<Log>>,
    /// The lanes.
    pub lanes: LaneBook,
    /// Held while a lane is made or closed.
    pub lane_changes: tokio::sync::Mutex<()>,
    /// Raised when something may be ready or may have ended.
    pub signal: Signal,
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
        chain.check()?;
        let (served_at, records) = (chain.view(), chain.records());
        let no_stream = || Refusal::new(Code::StreamNotFound, "no such stream here");
        check_context(&open.grant.context, chain.context())?;
        let stream = records.of(&open.stream_id).ok_or_else(no_stream)?;
        let admitted = admit(open.grant, chain.context(), stream, now)?;
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
        chain.check()?;
        let (served_at, times) = (chain.view(), (chain.now_ms(), self.session_ms));
        let session = self.sessions.complete(&complete.proof, chain.context(), transport, times)?;
        let stream_id = session.admitted.grant.stream_id;
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
        chain.check()?;
        let (now, records, grant) = (chain.now_ms(), chain.records(), &session.admitted.grant);
        let no_stream = || Refusal::new(Code::StreamNotFound, "this session is of another stream");
        let stream = records.of(&grant.stream_id).ok_or_else(no_stream)?;
        check_standing(grant, stream, now).inspect_err(|_| self.sessions.end(&session.id, now))?;
        if *body::stream_id(&request.body) != grant.stream_id {
            return Err(no_stream());
        }
        if stream.status == StreamStatus::Suspended && body::is_refused_while_suspended(&request.body) {
            return Err(Refusal::new(Code::StreamSuspended, "the stream is suspended"));
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
            RequestBody::Append(body) => self.append(body, session, state).await?.map(ResponseBody::Append),
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
            RequestBody::CreateLane(body) => self.create_lane(&body, session).await?.map(ResponseBody::CreateLane),
            RequestBody::CloseLane(body) => self.close_lane(&body, session).await?.map(ResponseBody::CloseLane),
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
