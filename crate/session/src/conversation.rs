//! What an open session has asked and has open, and what each frame from the peer makes of it. The same on both transports.

use alloc::vec::Vec;

use remuda_wire::frame::ServerMessage;
use remuda_wire::request::{RequestBody, RequestMethod};
use remuda_wire::response::{Response, ResponseBody, SubscriptionState};
use remuda_wire::verdict::{ProtocolViolation, VerifyError};
use remuda_wire::{Bytes32, Refusal};

use crate::output::{Output, RequestHandle};
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
pub(crate) struct Pending {
    handle: RequestHandle,
    request_id: Bytes32,
    method: RequestMethod,
    effect: Effect,
}

impl Pending {
    pub(crate) fn new(handle: RequestHandle, request: &UnsignedRequest) -> Self {
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

    pub(crate) const fn handle(&self) -> RequestHandle {
        self.handle
    }

    /// The subscription that this request opens.
    pub(crate) const fn opens(&self) -> Option<Bytes32> {
        match self.effect {
            Effect::Open { subscription_id, .. } => Some(subscription_id),
            Effect::Close { .. } | Effect::Credit { .. } | Effect::Nothing => None,
        }
    }
}

/// The requests of one session that await their answer, its live subscriptions, and what was told of both.
///
/// A frame that is refused may have changed something already: a transport that applies several frames as one judges them
/// on a copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) pending: Vec<Pending>,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) outputs: Vec<Output>,
    /// A request took effect.
    pub(crate) succeeded: bool,
    /// An error that ends the session once everything that came with it is told.
    pub(crate) session_error: Option<ProviderError>,
}

impl Conversation {
    /// Applies one frame.
    ///
    /// # Errors
    /// Of a response: `unexpected-frame`, `request-id-mismatch`, `response-method`, `verify/result-binding`. Of the others:
    /// `unknown-subscription`, `unexpected-frame`, `unexpected-checkpoint`, `unknown-group`, `credit-exceeded`.
    pub(crate) fn apply(&mut self, message: ServerMessage) -> Result<(), Refusal> {
        let subscriptions = &mut self.subscriptions;
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
        self.outputs.push(Output::Frame(routed));
        Ok(())
    }

    /// Takes the request that a response or an error names.
    fn take(&mut self, request_id: &Bytes32) -> Result<Pending, ProtocolViolation> {
        let place = self.pending.iter().position(|pending| pending.request_id == *request_id);
        place.map(|place| self.pending.remove(place)).ok_or(ProtocolViolation::RequestIdMismatch)
    }

    fn response(&mut self, response: Response) -> Result<(), Refusal> {
        let pending = self.take(&response.request_id)?;
        if response.body.method() != pending.method {
            return Err(ProtocolViolation::ResponseMethod.into());
        }
        self.take_effect(pending.effect, &response.body)?;
        self.succeeded = true;
        self.outputs.push(Output::Answer { handle: pending.handle, result: Ok(response.body) });
        Ok(())
    }

    fn take_effect(&mut self, effect: Effect, body: &ResponseBody) -> Result<(), VerifyError> {
        let subscriptions = &mut self.subscriptions;
        let names = |state: &SubscriptionState, stream_id, subscription_id| {
            let same = state.stream_id == stream_id && state.subscription_id == subscription_id;
            if same {
                Ok(())
            } else {
                Err(VerifyError::ResultBinding)
            }
        };
        match (effect, body) {
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
        let answered = error.request_id.as_ref().map(|request_id| self.take(request_id)).transpose()?;
        let ended = error.subscription_id.filter(|id| self.subscriptions.end(id));
        if let Some(subscription_id) = ended {
            self.outputs.push(Output::SubscriptionEnded { subscription_id, error: error.clone() });
        }
        if let Some(pending) = answered {
            if error.kind().invalidates_session() {
                self.session_error = Some(error.clone());
            }
            self.outputs.push(Output::Answer { handle: pending.handle, result: Err(error) });
        } else if ended.is_none() && error.subscription_id.is_none() {
            // One that names a subscription may be deferred past its end (§13.2), and changes nothing then.
            self.session_error = Some(error);
        }
        Ok(())
    }
}
