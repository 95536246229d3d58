//! HTTPS long-poll (§13.2): one client frame in, the batch of frames that answers it out.

use remuda_wire::frame::{ClientFrame, ClientMessage, ServerMessage};
use remuda_wire::request::{AuthenticatedRequest, Credit, RequestBody};
use remuda_wire::response::{Response, ResponseBody};
use remuda_wire::Bytes32;

use super::wait::Wait;
use super::Exchange;
use crate::deliver::fill;
use crate::outbox::Outbox;
use crate::refusal::{Code, Refusal};
use crate::session::{Session, SessionState, Transport};

impl Exchange {
    /// Answers one frame with the bytes of a frame batch.
    ///
    /// # Errors
    /// When the store fails; no state has moved then.
    pub async fn answer(&self, frame: ClientFrame) -> anyhow::Result<Vec<u8>> {
        let message = match frame.0 {
            ClientMessage::OpenSession(open) => self.challenge(open)?,
            ClientMessage::CompleteSession(complete) => self.complete(&complete, Transport::LongPoll).0,
            ClientMessage::Request(request) => return self.answer_request(request).await,
        };
        Ok(Outbox::batch(&message).into_bytes())
    }

    async fn answer_request(&self, request: AuthenticatedRequest) -> anyhow::Result<Vec<u8>> {
        let request_id = request.request_id;
        let refused = |refusal: Refusal| Ok(Outbox::batch(&refusal.frame(request_id)).into_bytes());
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
            RequestBody::Credit(body) if state.subscription(&body.credit.subscription_id).is_some() => {
                self.poll(request_id, &body.credit, &session, &mut state).await
            }
            body => {
                let message = self.respond(request_id, body, &session, &mut state).await?;
                let mut outbox = Outbox::batch(&message);
                fill(&mut state, &mut outbox, self)?;
                Ok(outbox.into_bytes())
            }
        }
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
        let mut wait = Wait::new(self);
        loop {
            let closing = wait.mark();
            let over = closing || tokio::time::Instant::now() >= deadline;
            let body = ResponseBody::Credit(credit.clone());
            let mut outbox = Outbox::batch(&ServerMessage::Response(Response { request_id, body }));
            let Some(subscription) = state.subscription(&credit.subscription_id) else {
                return Ok(outbox.into_bytes());
            };
            let before = subscription.credit();
            subscription.grant_credit(credit);
            let filled = fill(state, &mut outbox, self);
            if filled.is_ok() && (outbox.has_frames() || over) {
                return Ok(outbox.into_bytes());
            }
            if !outbox.has_frames() {
                if let Some(subscription) = state.subscription(&credit.subscription_id) {
                    subscription.restore_credit(before);
                }
            }
            filled?;
            wait.change(deadline.saturating_duration_since(tokio::time::Instant::now())).await;
            if session.expires_at_ms < self.broker.chain.now_ms() {
                let refusal = Refusal::new(Code::InvalidProofOfPossession, "the session has ended");
                return Ok(Outbox::batch(&refusal.frame(request_id)).into_bytes());
            }
        }
    }
}
