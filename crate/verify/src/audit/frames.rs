//! Server frames: to the subscription that they name, or to all whom they concern.

use alloc::vec::Vec;

use remuda_wire::checkpoint::CheckpointFrame;
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::delivery::{DeliveryOf, RecordDelivery};
use remuda_wire::error_frame::CbqsError;
use remuda_wire::frame::ServerMessage;
use remuda_wire::request::OpenSubscriptionRequest;
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::verdict::{ProtocolViolation, Refusal, VerifyError};
use remuda_wire::Bytes32;

use super::groups::Followed;
use super::judge::Judge;
use super::provenance::Provenance;
use super::subscription::Verifier;
use crate::fast::FastSubscription;
use crate::group::{Applied, GroupChain, GroupSubscriptionConfig};
use crate::record_shape::{check_record, StreamShape};
use crate::retention::{check_refusal, decode_anchor};
use crate::standard::StandardReplay;

/// `CursorTooOld` (§17).
const CURSOR_TOO_OLD: u16 = 3917;

impl Judge {
    /// Judges a decoded server frame.
    pub fn frame(&mut self, item: usize, message: &ServerMessage) {
        match message {
            ServerMessage::SessionChallenge(challenge) => {
                self.session(item, &challenge.context, &challenge.stream_id, &challenge.served_at);
            }
            ServerMessage::SessionOpened(opened) => {
                self.session(item, &opened.context, &opened.stream_id, &opened.served_at);
            }
            ServerMessage::Response(response) => self.response(item, &response.body),
            ServerMessage::Delivery(delivery) => self.delivery(item, delivery),
            ServerMessage::Checkpoint(frame) => self.checkpoint(item, frame),
            ServerMessage::BrokerEpochTransition(transition) => self.transition(item, transition),
            ServerMessage::Error(error) => self.error(item, error),
            ServerMessage::DeliveryState(update) => self.delivery_state(item, update),
            ServerMessage::GroupState(update) => self.group_state(item, update),
        }
    }

    fn session(&mut self, item: usize, context: &SigningContext, stream_id: &Bytes32, served_at: &FinalizedView) {
        if *context != self.provenance.context {
            self.find(item, VerifyError::ContextMismatch);
        } else if *stream_id != self.provenance.stream_id {
            self.find(item, VerifyError::StreamMismatch);
        } else if served_at.chain_instance_id != context.chain_instance_id {
            self.find(item, VerifyError::ServedAtMismatch);
        }
    }

    fn delivery(&mut self, item: usize, delivery: &RecordDelivery) {
        self.records += 1;
        let Some(at) = self.by_id.get(&delivery.subscription_id).copied() else {
            return self.find(item, ProtocolViolation::UnknownSubscription);
        };
        let shape = self.shape();
        let Self { subscriptions, provenance, groups, .. } = self;
        let Some(subscription) = subscriptions.get_mut(at) else { return };
        subscription.delivered += 1;
        let judged = match &mut subscription.verifier {
            None => return,
            // Verified only under its checkpoint.
            Some(Verifier::Fast(fast)) => fast.handle_delivery(delivery, ()).map(|()| 0).map_err(Failure::Subscription),
            Some(Verifier::Replay(replay)) => {
                replay_delivery(item, delivery, replay, provenance).map(|()| 1).map_err(Failure::Subscription)
            }
            Some(Verifier::Group { config, place }) => match groups.find(place) {
                Followed::Chain(chain) => leased_delivery(item, delivery, config, chain, provenance).map(|_| 1),
                Followed::Unknown | Followed::Ended => return,
            },
            Some(Verifier::DeadLetters { place }) => {
                dead_letter(item, delivery, &place.0, shape, provenance).map(|()| 1).map_err(Failure::Subscription)
            }
        };
        match judged {
            Ok(verified) => subscription.verified += verified,
            Err(Failure::Subscription(refusal)) => {
                self.find(item, refusal);
                self.end(at);
            }
            Err(Failure::Group(refusal)) => {
                let place = subscription.group();
                self.find(item, refusal);
                place.iter().for_each(|place| self.end_group(place));
            }
        }
    }

    fn checkpoint(&mut self, item: usize, frame: &CheckpointFrame) {
        let Some(at) = self.by_id.get(&frame.subscription_id).copied() else {
            return self.find(item, ProtocolViolation::UnknownSubscription);
        };
        let Self { subscriptions, provenance, .. } = self;
        let Some(subscription) = subscriptions.get_mut(at) else { return };
        let judged = match &mut subscription.verifier {
            None => return,
            Some(Verifier::Fast(fast)) => close_batch(item, frame, fast, provenance),
            Some(Verifier::Replay(_) | Verifier::Group { .. } | Verifier::DeadLetters { .. }) => {
                Err(ProtocolViolation::UnexpectedCheckpoint.into())
            }
        };
        match judged {
            Ok(records) => subscription.verified += records,
            Err(refusal) => {
                self.find(item, refusal);
                self.end(at);
            }
        }
    }

    /// A transition names no subscription: it is authenticated once, and every open fast one adopts it or fails.
    fn transition(&mut self, item: usize, transition: &BrokerEpochTransition) {
        let open = self.open();
        let Self { subscriptions, provenance, .. } = self;
        let mut authentic = None;
        let mut first_failure = None;
        let mut failed = Vec::new();
        let mut listeners = 0;
        for at in open {
            let verifier = subscriptions.get_mut(at).and_then(|subscription| subscription.verifier.as_mut());
            let Some(Verifier::Fast(fast)) = verifier else { continue };
            listeners += 1;
            let adopted = fast.admit_transition().map_err(Refusal::from).and_then(|()| {
                let object = authentic.get_or_insert_with(|| provenance.authenticate(item, transition)).clone()?;
                Ok(fast.adopt(object)?)
            });
            if let Err(refusal) = adopted {
                first_failure.get_or_insert(refusal);
                failed.push(at);
            }
        }
        if listeners == 0 {
            first_failure = provenance.authenticate(item, transition).err().map(Refusal::from);
        }
        if let Some(refusal) = first_failure {
            self.find(item, refusal);
        }
        failed.into_iter().for_each(|at| self.end(at));
    }

    fn error(&mut self, item: usize, error: &CbqsError) {
        let Some(at) = error.subscription_id.and_then(|id| self.by_id.get(&id).copied()) else { return };
        let Self { subscriptions, provenance, .. } = self;
        let Some(subscription) = subscriptions.get(at).filter(|subscription| subscription.verifier.is_some()) else {
            return;
        };
        let judged = if error.code == CURSOR_TOO_OLD {
            cursor_too_old(item, &subscription.request, &error.details, provenance)
        } else {
            Ok(())
        };
        if let Err(refusal) = judged {
            self.find(item, refusal);
        }
        self.end(at);
    }
}

/// What a failing delivery ends.
enum Failure {
    Subscription(Refusal),
    Group(Refusal),
}

fn replay_delivery(
    item: usize,
    delivery: &RecordDelivery,
    replay: &mut StandardReplay,
    provenance: &mut Provenance,
) -> Result<(), Refusal> {
    let receipt = provenance.authenticate(item, replay.admit(delivery)?)?;
    Ok(replay.link(delivery, &receipt)?)
}

fn leased_delivery(
    item: usize,
    delivery: &RecordDelivery,
    config: &GroupSubscriptionConfig,
    chain: &mut GroupChain,
    provenance: &mut Provenance,
) -> Result<Applied, Failure> {
    let leased = config.admit(chain, delivery).map_err(Failure::Subscription)?;
    // From here on a receipt of the chain would be missing, whoever follows it.
    let group = |error: VerifyError| Failure::Group(error.into());
    provenance.authenticate(item, leased.append_receipt).map_err(group)?;
    let receipt = provenance.authenticate(item, leased.state_receipt).map_err(group)?;
    config.apply(chain, delivery, leased.lease, &receipt).map_err(group)
}

fn dead_letter(
    item: usize,
    delivery: &RecordDelivery,
    lane_id: &Bytes32,
    shape: StreamShape,
    provenance: &mut Provenance,
) -> Result<(), Refusal> {
    let DeliveryOf::Standard { receipt, lease: None, .. } = delivery.class()? else {
        return Err(ProtocolViolation::UnexpectedFrame.into());
    };
    if delivery.header.lane_id != *lane_id {
        return Err(ProtocolViolation::OutOfScopeRecord.into());
    }
    provenance.authenticate(item, receipt)?;
    Ok(check_record(shape, &delivery.header, &delivery.payload)?)
}

fn close_batch(
    item: usize,
    frame: &CheckpointFrame,
    fast: &mut FastSubscription<()>,
    provenance: &mut Provenance,
) -> Result<usize, Refusal> {
    fast.admit_checkpoint(frame)?;
    let receipt = provenance.authenticate(item, &frame.receipt)?;
    Ok(fast.close_batch(receipt, &frame.lanes)?.records().len())
}

fn cursor_too_old(
    item: usize,
    request: &OpenSubscriptionRequest,
    details: &[u8],
    provenance: &mut Provenance,
) -> Result<(), Refusal> {
    let anchor = decode_anchor(&request.source, details)?;
    let anchor = provenance.authenticate_held(item, anchor)?;
    check_refusal(request, &anchor)?;
    Ok(())
}
