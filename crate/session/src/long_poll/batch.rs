//! One response body of an open session, judged whole: either every frame of it is legal, or none is applied.

use alloc::vec::Vec;

use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::request::{RequestBody, RequestMethod};
use remuda_wire::response::{Response, ResponseBody, SubscriptionState};
use remuda_wire::verdict::{ProtocolViolation, VerifyError};
use remuda_wire::{Bytes32, Refusal};

use super::output::{Output, RequestHandle};
use crate::provider_error::ProviderError;
use crate::request::UnsignedRequest;
use crate::routed::{Routed, RoutedFrame};
use crate::subscription::{SubscriptionKind, Subscriptions};

/// What a request changes here once it is answered.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Open { stream_id: Bytes32, subscription_id: Bytes32, kind: SubscriptionKind },
    Close { stream_id: Bytes32, subscription_id: Bytes32 },
    Credit { subscription_id: Bytes32 },
    Nothing,
}

/// A request whose answer is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    handle: RequestHandle,
    request_id: Bytes32,
    method: RequestMethod,
    effect: Effect,
}

impl Pending {
    pub(super) fn new(handle: RequestHandle, request: &UnsignedRequest) -> Self {
        let effect = match request.body() {
            RequestBody::OpenSubscription(body) => Effect::Open {
                stream_id: body.stream_id,
                subscription_id: body.subscription_id,
                kind: SubscriptionKind::of(body),
            },
            RequestBody::CloseSubscription(body) => {
                Effect::Close { stream_id: body.stream_id, subscription_id: body.subscription_id }
            }
            RequestBody::Credit(body) => Effect::Credit { subscription_id: body.credit.subscription_id },
            _ => Effect::Nothing,
        };
        Self { handle, request_id: request.request_id(), method: request.body().method(), effect }
    }

    pub(super) const fn handle(&self) -> RequestHandle {
        self.handle
    }

    /// The subscription that this request opens.
    pub(super) const fn opens(&self) -> Option<Bytes32> {
        match self.effect {
            Effect::Open { subscription_id, .. } => Some(subscription_id),
            Effect::Close { .. } | Effect::Credit { .. } | Effect::Nothing => None,
        }
    }
}

/// A body without fault: what the session becomes by it, and what is told of it.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) subscriptions: Subscriptions,
    pub(super) outputs: Vec<Output>,
    /// The request took effect, or was held to its poll timeout: the exchange was a success.
    pub(super) succeeded: bool,
    /// An `OpenSubscription` was left without an answer: whether the provider opened it is unknown.
    pub(super) opening_unknown: bool,
    /// An error that ends the session once the rest of the body is told.
    pub(super) session_error: Option<ProviderError>,
}

/// Judges the frames of the answer to `pending`. `subscriptions` is not touched: a fault anywhere applies nothing.
///
/// # Errors
/// The first failing frame decides. Of a response: `unexpected-frame`, `request-id-mismatch`, `response-method`,
/// `verify/result-binding`. Of the others: `unknown-subscription`, `unexpected-frame`, `unexpected-checkpoint`,
/// `unknown-group`, `credit-exceeded`.
pub(super) fn judge(
    pending: &Pending,
    subscriptions: &Subscriptions,
    frames: Vec<ServerFrame>,
) -> Result<Judged, Refusal> {
    let mut batch = Batch {
        pending,
        answered: false,
        judged: Judged {
            subscriptions: subscriptions.clone(),
            outputs: Vec::with_capacity(frames.len()),
            succeeded: frames.is_empty(),
            opening_unknown: false,
            session_error: None,
        },
    };
    if frames.is_empty() {
        batch.judged.opening_unknown = pending.opens().is_some();
        batch.judged.outputs.push(Output::PollTimeout { handle: pending.handle });
        return Ok(batch.judged);
    }
    for frame in frames {
        batch.apply(frame.0)?;
    }
    if !batch.answered {
        batch.judged.opening_unknown = pending.opens().is_some();
        batch.judged.outputs.push(Output::Unanswered { handle: pending.handle });
    }
    Ok(batch.judged)
}

struct Batch<'a> {
    pending: &'a Pending,
    answered: bool,
    judged: Judged,
}

impl Batch<'_> {
    fn apply(&mut self, message: ServerMessage) -> Result<(), Refusal> {
        let subscriptions = &mut self.judged.subscriptions;
        let routed = match message {
            ServerMessage::SessionChallenge(_) | ServerMessage::SessionOpened(_) => {
                return Err(ProtocolViolation::UnexpectedFrame.into());
            }
            ServerMessage::Response(response) => return self.response(response),
            ServerMessage::Error(error) => return self.error(error.into()),
            ServerMessage::Delivery(delivery) => {
                subscriptions.deliver(&delivery)?;
                RoutedFrame::Delivery(Routed::new(delivery))
            }
            ServerMessage::Checkpoint(checkpoint) => {
                subscriptions.checkpoint(&checkpoint)?;
                RoutedFrame::Checkpoint(Routed::new(checkpoint))
            }
            // It names the stream and no subscription: it may reach a session whose fast subscription just ended.
            ServerMessage::BrokerEpochTransition(transition) => RoutedFrame::Transition(Routed::new(transition)),
            ServerMessage::DeliveryState(update) => {
                subscriptions.group(&update.receipt.lane_id, &update.receipt.group_id)?;
                RoutedFrame::DeliveryState(Routed::new(update))
            }
            ServerMessage::GroupState(update) => {
                subscriptions.group(&update.receipt.lane_id, &update.receipt.group_id)?;
                RoutedFrame::GroupState(Routed::new(update))
            }
        };
        self.judged.outputs.push(Output::Frame(routed));
        Ok(())
    }

    fn response(&mut self, response: Response) -> Result<(), Refusal> {
        if self.answered {
            return Err(ProtocolViolation::UnexpectedFrame.into());
        }
        if response.request_id != self.pending.request_id {
            return Err(ProtocolViolation::RequestIdMismatch.into());
        }
        if response.body.method() != self.pending.method {
            return Err(ProtocolViolation::ResponseMethod.into());
        }
        self.take_effect(&response.body)?;
        self.answered = true;
        self.judged.succeeded = true;
        self.judged.outputs.push(Output::Answer { handle: self.pending.handle, result: Ok(response.body) });
        Ok(())
    }

    fn take_effect(&mut self, body: &ResponseBody) -> Result<(), VerifyError> {
        let subscriptions = &mut self.judged.subscriptions;
        let names = |state: &SubscriptionState, stream_id, subscription_id| {
            let same = state.stream_id == stream_id && state.subscription_id == subscription_id;
            if same {
                Ok(())
            } else {
                Err(VerifyError::ResultBinding)
            }
        };
        match (self.pending.effect, body) {
            (Effect::Open { stream_id, subscription_id, kind }, ResponseBody::OpenSubscription(state)) => {
                names(state, stream_id, subscription_id)?;
                subscriptions.open(subscription_id, kind);
            }
            (Effect::Close { stream_id, subscription_id }, ResponseBody::CloseSubscription(state)) => {
                names(state, stream_id, subscription_id)?;
                subscriptions.end(&subscription_id);
            }
            (Effect::Credit { subscription_id }, ResponseBody::Credit(credit)) => {
                if credit.subscription_id != subscription_id {
                    return Err(VerifyError::ResultBinding);
                }
                // The echo is what was granted, and nothing else is.
                subscriptions.grant(&subscription_id, credit.records, credit.bytes);
            }
            // The method was compared, so what is left has no effect here.
            _ => {}
        }
        Ok(())
    }

    fn error(&mut self, error: ProviderError) -> Result<(), Refusal> {
        if error.request_id.is_some_and(|request_id| request_id != self.pending.request_id) {
            return Err(ProtocolViolation::RequestIdMismatch.into());
        }
        let ended = error.subscription_id.filter(|id| self.judged.subscriptions.end(id));
        let answers = error.request_id.is_some() && !self.answered;
        if ended.is_none() && !answers {
            match (error.request_id, error.subscription_id) {
                // A second answer.
                (Some(_), _) => return Err(ProtocolViolation::UnexpectedFrame.into()),
                // A terminal error may be deferred past the end of its subscription (§13.2): it changes nothing then.
                (None, Some(_)) => return Ok(()),
                (None, None) => self.judged.session_error = Some(error),
            }
            return Ok(());
        }
        if let Some(subscription_id) = ended {
            self.judged.outputs.push(Output::SubscriptionEnded { subscription_id, error: error.clone() });
        }
        if answers {
            self.answered = true;
            if error.kind().invalidates_session() {
                self.judged.session_error = Some(error.clone());
            }
            self.judged.outputs.push(Output::Answer { handle: self.pending.handle, result: Err(error) });
        }
        Ok(())
    }
}
