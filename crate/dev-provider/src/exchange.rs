//! One client frame in, the frames that answer it out (§13).

use std::sync::Arc;
use std::time::Duration;

use remuda_wire::frame::{ClientFrame, ClientMessage, ServerMessage};
use remuda_wire::request::{AuthenticatedRequest, Credit, RequestBody};
use remuda_wire::response::{Response, ResponseBody, SubscriptionState};
use remuda_wire::session::{CompleteSession, OpenSession, SessionChallenge, SessionOpened};
use remuda_wire::{Bytes32, ProviderEpoch};
use tokio::sync::watch;

use crate::broker::Broker;
use crate::deliver::fill;
use crate::grant::{admit, check_standing};
use crate::keys::random32;
use crate::lie::Liar;
use crate::outbox::Outbox;
use crate::refusal::{Code, Refusal};
use crate::session::{Session, SessionState, Sessions};

mod append;
mod lanes;
mod open;

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
    /// Answers one frame with the bytes of a frame batch.
    ///
    /// # Errors
    /// When the store fails; no state has moved then.
    pub async fn answer(&self, frame: ClientFrame) -> anyhow::Result<Vec<u8>> {
        match frame.0 {
            ClientMessage::OpenSession(open) => {
                let request_id = open.request_id;
                let message = match self.open_session(open, (random32()?, random32()?)) {
                    Ok(challenge) => ServerMessage::SessionChallenge(challenge),
                    Err(refusal) => refusal.frame(request_id),
                };
                Ok(Outbox::answering(&message).into_bytes())
            }
            ClientMessage::CompleteSession(complete) => {
                let message = match self.complete_session(&complete) {
                    Ok(opened) => ServerMessage::SessionOpened(opened),
                    Err(refusal) => refusal.frame(complete.request_id),
                };
                Ok(Outbox::answering(&message).into_bytes())
            }
            ClientMessage::Request(request) => self.request(request).await,
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

    fn complete_session(&self, complete: &CompleteSession) -> Result<SessionOpened, Refusal> {
        let chain = &self.broker.chain;
        let (served_at, stream_id) = (chain.view(), chain.stream().stream_id);
        let times = (chain.now_ms(), self.session_ms);
        let session = self.sessions.complete(&complete.proof, chain.context(), &stream_id, times)?;
        Ok(SessionOpened {
            request_id: complete.request_id,
            context: chain.context().clone(),
            served_at,
            stream_id,
            grant_id: session.admitted.id,
            provider_epoch: ProviderEpoch,
            session_id: session.id,
            expires_at_ms: session.expires_at_ms,
        })
    }

    async fn request(&self, request: AuthenticatedRequest) -> anyhow::Result<Vec<u8>> {
        let request_id = request.request_id;
        let refused = |refusal: Refusal| Ok(Outbox::answering(&refusal.frame(request_id)).into_bytes());
        let Some(session) = self.sessions.find(&request.proof.session_id, self.broker.chain.now_ms()) else {
            return refused(Refusal::new(Code::InvalidProofOfPossession, "no such session"));
        };
        // The one in flight holds the lock: a second request changes nothing, not even a counter.
        let Ok(mut state) = session.state.try_lock() else {
            return refused(Refusal::new(Code::LongPollBusy, "a request of this session is in flight"));
        };
        if let Err(refusal) = self.admit(&session, &request, &mut state) {
            return refused(refusal);
        }
        match request.body {
            RequestBody::Credit(body)
                if state.subscriptions.iter().any(|it| *it.id() == body.credit.subscription_id) =>
            {
                self.poll(request_id, &body.credit, &session, &mut state).await
            }
            body => {
                let message = match self.perform(body, &session, &mut state).await? {
                    Ok(body) => ServerMessage::Response(Response { request_id, body }),
                    Err(refusal) => refusal.frame(request_id),
                };
                let mut outbox = Outbox::answering(&message);
                fill(&mut state, &mut outbox, &self.broker, &self.liar)?;
                Ok(outbox.into_bytes())
            }
        }
    }

    fn admit(
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

    /// Everything but the poll. The outer error is ours, the inner one the client's.
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
            RequestBody::Credit(body) => {
                Err(Refusal::new(Code::NotCheckpointBoundary, "no such subscription: open it again at a boundary")
                    .ending(body.credit.subscription_id))
            }
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

    /// Credit, then whatever is ready; held while nothing is. Credit and cursors move only with the response: a request
    /// that is given up while it waits has granted nothing.
    async fn poll(
        &self,
        request_id: Bytes32,
        credit: &Credit,
        session: &Session,
        state: &mut SessionState,
    ) -> anyhow::Result<Vec<u8>> {
        let deadline = tokio::time::Instant::now() + self.poll;
        let (mut head, mut closing) = (self.broker.head(), self.closing.clone());
        loop {
            head.borrow_and_update();
            let over = tokio::time::Instant::now() >= deadline || *closing.borrow_and_update();
            let body = ResponseBody::Credit(credit.clone());
            let mut outbox = Outbox::answering(&ServerMessage::Response(Response { request_id, body }));
            let Some(subscription) = state.subscriptions.iter_mut().find(|it| *it.id() == credit.subscription_id)
            else {
                return Ok(outbox.into_bytes());
            };
            let before = subscription.credit();
            subscription.grant_credit(credit);
            let filled = fill(state, &mut outbox, &self.broker, &self.liar);
            if filled.is_ok() && (outbox.has_frames() || over) {
                return Ok(outbox.into_bytes());
            }
            if !outbox.has_frames() {
                if let Some(subscription) = state.subscriptions.iter_mut().find(|it| *it.id() == credit.subscription_id)
                {
                    subscription.restore_credit(before);
                }
            }
            filled?;
            tokio::select! {
                _ = head.changed() => {}
                _ = closing.changed() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
            if session.expires_at_ms < self.broker.chain.now_ms() {
                let refusal = Refusal::new(Code::InvalidProofOfPossession, "the session has ended");
                return Ok(Outbox::answering(&refusal.frame(request_id)).into_bytes());
            }
        }
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
