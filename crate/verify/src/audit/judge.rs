//! Judging one item after the other.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use remuda_wire::audit::HeldObject;
use remuda_wire::chain::{BrokerState, Purpose};
use remuda_wire::checkpoint::CheckpointFrame;
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::delivery::{DeliveryOf, RecordDelivery};
use remuda_wire::error_frame::CbqsError;
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::group::{DeliveryStateReceipt, DeliveryStateUpdate, GroupStateUpdate};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::preimage::checkpoint_genesis;
use remuda_wire::request::OpenSubscriptionRequest;
use remuda_wire::response::{AppendResult, ResponseBody};
use remuda_wire::snapshot::SnapshotManifest;
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::verdict::{ProtocolViolation, Refusal, VerifyError};
use remuda_wire::Bytes32;

use super::feed::Item;
use super::groups::{Followed, Groups};
use super::provenance::Provenance;
use super::report::{AuditReport, AuditVerdict, Finding};
use super::subscription::{GroupPlace, Subscription, Verifier};
use crate::evidence::AuthenticatedObject;
use crate::fast::{FastState, FastSubscription, FastSubscriptionConfig};
use crate::group::{Applied, GroupChain, GroupSubscriptionConfig};
use crate::record_shape::{check_record, StreamShape};
use crate::retention::{check_refusal, decode_anchor};
use crate::snapshot::{SnapshotAnchor, SnapshotBundle, SnapshotExpectation};
use crate::standard::{StandardReplay, StandardReplayConfig, StandardState};
use crate::subscription::LegalSubscription;

/// `CursorTooOld` (§17).
const CURSOR_TOO_OLD: u16 = 3917;

/// Everything an audit remembers.
#[derive(Debug)]
pub(super) struct Judge {
    provenance: Provenance,
    /// From the first usable chain read with a stream.
    shape: Option<StreamShape>,
    subscriptions: Vec<Subscription>,
    /// The latest subscription of each id.
    by_id: BTreeMap<Bytes32, usize>,
    groups: Groups,
    findings: Vec<Finding>,
    items: usize,
    records: usize,
}

impl Judge {
    pub fn new(context: SigningContext, stream_id: Bytes32) -> Self {
        Self {
            provenance: Provenance::new(context, stream_id),
            shape: None,
            subscriptions: Vec::new(),
            by_id: BTreeMap::new(),
            groups: Groups::default(),
            findings: Vec::new(),
            items: 0,
            records: 0,
        }
    }

    pub const fn items(&self) -> usize {
        self.items
    }

    pub fn report(self) -> AuditReport {
        let consistent = self.findings.is_empty() && self.provenance.evidence.is_empty();
        AuditReport {
            verdict: if consistent { AuditVerdict::Consistent } else { AuditVerdict::Violations },
            items: self.items,
            records: self.records,
            signatures: self.provenance.signatures,
            findings: self.findings,
            evidence: self.provenance.evidence,
            assurance: self.subscriptions.iter().map(Subscription::assurance).collect(),
            not_checked: alloc::vec![
                "what the provider signed and showed to nobody whose items are in this file",
                "request proofs, grants and credit: the file has no client frames",
                "that a snapshot's bytes are what its records make",
                "that payloads open under their keys",
                "that the chain reads are finalized: they are taken as the file gives them",
            ],
        }
    }

    /// A chain read that contradicts what is known is a finding, and not used.
    pub fn chain_read(&mut self, read: BrokerState) {
        let shape = read.stream.as_ref().map(|stream| StreamShape { purpose: stream.purpose, encrypted: stream.encrypted });
        match self.provenance.chain.add(read) {
            Ok(()) => self.shape = self.shape.or(shape),
            Err(error) => self.findings.push(Finding { item: None, refusal: error.into() }),
        }
    }

    pub fn item(&mut self, item: usize, content: Item<'_>) {
        self.items = self.items.saturating_add(1);
        match content {
            Item::Subscription(request) => self.open(item, request),
            Item::ServerFrame(bytes) => match ServerFrame::from_bytes(bytes) {
                Ok(frame) => self.frame(item, frame.0),
                Err(error) => {
                    self.find(item, error);
                    // A client would close the session.
                    (0..self.subscriptions.len()).for_each(|at| self.end(at));
                }
            },
            Item::Snapshot { manifest, receipt, bytes, application_key } => {
                if let Err(refusal) = self.snapshot(item, &manifest, &receipt, bytes, application_key) {
                    self.find(item, refusal);
                }
            }
            Item::Held(object) => {
                if let Err(error) = self.provenance.authenticate_held(item, object) {
                    self.find(item, error);
                }
            }
        }
    }

    fn find(&mut self, item: usize, refusal: impl Into<Refusal>) {
        self.findings.push(Finding { item: Some(item), refusal: refusal.into() });
    }

    fn shape(&self) -> StreamShape {
        self.shape.unwrap_or(StreamShape { purpose: Purpose::Main, encrypted: true })
    }

    fn end(&mut self, at: usize) {
        let Some(subscription) = self.subscriptions.get_mut(at) else { return };
        let place = subscription.group();
        subscription.verifier = None;
        // A later subscription may name an older cursor: a chain that nobody follows any more is judged no further.
        if let Some(place) = place.filter(|place| self.followers(place).next().is_none()) {
            self.groups.end(&place);
        }
    }

    fn end_group(&mut self, place: &GroupPlace) {
        self.groups.end(place);
        for subscription in &mut self.subscriptions {
            if subscription.group() == Some(*place) {
                subscription.verifier = None;
            }
        }
    }

    fn followers<'a>(&'a self, place: &'a GroupPlace) -> impl Iterator<Item = &'a Subscription> + 'a {
        self.subscriptions.iter().filter(|subscription| subscription.group() == Some(*place))
    }

    fn open(&mut self, item: usize, request: OpenSubscriptionRequest) {
        let id = request.subscription_id;
        if let Some(replaced) = self.by_id.get(&id).copied() {
            self.end(replaced);
        }
        let verifier = match self.verifier(&request) {
            Ok(verifier) => Some(verifier),
            Err(refusal) => {
                self.find(item, refusal);
                None
            }
        };
        self.by_id.insert(id, self.subscriptions.len());
        self.subscriptions.push(Subscription::new(request, verifier));
    }

    fn verifier(&mut self, request: &OpenSubscriptionRequest) -> Result<Verifier, Refusal> {
        let (context, stream_id, shape) = (&self.provenance.context, self.provenance.stream_id, self.shape());
        if request.stream_id != stream_id {
            return Err(VerifyError::StreamMismatch.into());
        }
        let subscription_id = request.subscription_id;
        Ok(match LegalSubscription::of(request)? {
            LegalSubscription::Fast { verification, after } => {
                let (context, encrypted) = (context.clone(), shape.encrypted);
                let config = FastSubscriptionConfig { context, stream_id, encrypted, subscription_id, verification };
                let state = after.map_or_else(FastState::default, |id| {
                    let boundary = self.provenance.pool.checkpoint_ending_at(id.broker_epoch, id.sequence);
                    FastState {
                        broker_epoch: Some(id.broker_epoch),
                        next_sequence: Some(id.sequence.saturating_add(1)),
                        tail: boundary,
                        last_checkpoint: boundary,
                        last_durable_sequence: boundary.map(|_| id.sequence),
                    }
                });
                Verifier::Fast(FastSubscription::new(config, state))
            }
            LegalSubscription::StandardReplay { scope, after } => {
                let context = context.clone();
                let config = StandardReplayConfig { context, stream_id, shape, subscription_id, scope };
                let state = StandardState::after(after.map(|id| id.sequence));
                Verifier::Replay(StandardReplay::new(config, state))
            }
            LegalSubscription::StandardGroup { lane_id, group_id, after_group_receipt } => {
                let place = (lane_id, group_id);
                self.groups.follow(context, stream_id, place, after_group_receipt);
                let config = GroupSubscriptionConfig { shape, subscription_id, holder_signing_key_id: None };
                Verifier::Group { config, place }
            }
            LegalSubscription::DeadLetters { lane_id, group_id, after_group_receipt, .. } => {
                let place = (lane_id, group_id);
                self.groups.follow(context, stream_id, place, after_group_receipt);
                Verifier::DeadLetters { place }
            }
        })
    }

    fn frame(&mut self, item: usize, message: ServerMessage) {
        match message {
            ServerMessage::SessionChallenge(challenge) => {
                self.session(item, &challenge.context, &challenge.stream_id, &challenge.served_at);
            }
            ServerMessage::SessionOpened(opened) => {
                self.session(item, &opened.context, &opened.stream_id, &opened.served_at);
            }
            ServerMessage::Response(response) => self.response(item, &response.body),
            ServerMessage::Delivery(delivery) => self.delivery(item, &delivery),
            ServerMessage::Checkpoint(frame) => self.checkpoint(item, &frame),
            ServerMessage::BrokerEpochTransition(transition) => self.transition(item, &transition),
            ServerMessage::Error(error) => self.error(item, &error),
            ServerMessage::DeliveryState(update) => self.delivery_state(item, &update),
            ServerMessage::GroupState(update) => self.group_state(item, &update),
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
        let Self { subscriptions, provenance, groups, shape, .. } = self;
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
                let shape = shape.unwrap_or(StreamShape { purpose: Purpose::Main, encrypted: true });
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
        let Self { subscriptions, provenance, .. } = self;
        let mut authentic = None;
        let mut first_failure = None;
        let mut listeners = 0;
        for subscription in subscriptions.iter_mut() {
            let Some(Verifier::Fast(fast)) = &mut subscription.verifier else { continue };
            listeners += 1;
            let adopted = fast.admit_transition().map_err(Refusal::from).and_then(|()| {
                let object = authentic.get_or_insert_with(|| provenance.authenticate(item, transition)).clone()?;
                Ok(fast.adopt(object)?)
            });
            if let Err(refusal) = adopted {
                first_failure.get_or_insert(refusal);
                subscription.verifier = None;
            }
        }
        if listeners == 0 {
            first_failure = provenance.authenticate(item, transition).err().map(Refusal::from);
        }
        if let Some(refusal) = first_failure {
            self.find(item, refusal);
        }
    }

    fn error(&mut self, item: usize, error: &CbqsError) {
        let Some(at) = error.subscription_id.and_then(|id| self.by_id.get(&id).copied()) else { return };
        let Self { subscriptions, provenance, .. } = self;
        let Some(subscription) = subscriptions.get(at).filter(|subscription| subscription.verifier.is_some()) else { return };
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

    fn delivery_state(&mut self, item: usize, update: &DeliveryStateUpdate) {
        self.group_receipt(item, &update.receipt, |groups, provenance| {
            apply_update(item, &update.receipt, groups, provenance, |chain, receipt| {
                chain.apply_record(receipt, &update.state)
            })
        });
    }

    fn group_state(&mut self, item: usize, update: &GroupStateUpdate) {
        self.group_receipt(item, &update.receipt, |groups, provenance| {
            apply_update(item, &update.receipt, groups, provenance, |chain, receipt| {
                chain.apply_mutation(receipt, update.config.as_ref())
            })
        });
    }

    /// A frame of a group: of nobody's it is a finding, of a group whose judgement ended it says nothing.
    fn group_receipt(
        &mut self,
        item: usize,
        receipt: &DeliveryStateReceipt,
        apply: impl FnOnce(&mut Groups, &mut Provenance) -> Result<(), Refusal>,
    ) {
        let place = (receipt.lane_id, receipt.group_id);
        match self.groups.find(&place) {
            Followed::Unknown => self.find(item, ProtocolViolation::UnknownGroup),
            Followed::Ended => {}
            Followed::Chain(_) => {
                if let Err(refusal) = apply(&mut self.groups, &mut self.provenance) {
                    self.find(item, refusal);
                    self.end_group(&place);
                }
            }
        }
    }

    /// Results are authenticated; those of a followed group also take their place in its chain.
    fn response(&mut self, item: usize, body: &ResponseBody) {
        let judged: Result<(), Refusal> = match body {
            ResponseBody::Append(result) => self.append_result(item, result),
            ResponseBody::CommitKeyBatch(receipt) => {
                self.provenance.authenticate_key_batch(item, receipt).map_err(Refusal::from)
            }
            ResponseBody::CreateLane(lane) | ResponseBody::CloseLane(lane) => {
                self.provenance.authenticate(item, &lane.receipt).map(|_| ()).map_err(Refusal::from)
            }
            ResponseBody::CreateGroup(update) | ResponseBody::UpdateGroup(update) | ResponseBody::DeleteGroup(update) => {
                match self.is_followed(&update.receipt) {
                    true => return self.group_state(item, update),
                    false => self.provenance.authenticate(item, &update.receipt).map(|_| ()).map_err(Refusal::from),
                }
            }
            ResponseBody::Ack(update)
            | ResponseBody::Nack(update)
            | ResponseBody::Extend(update)
            | ResponseBody::Reject(update)
            | ResponseBody::Redrive(update) => match self.is_followed(&update.receipt) {
                true => return self.delivery_state(item, update),
                false => self.provenance.authenticate(item, &update.receipt).map(|_| ()).map_err(Refusal::from),
            },
            ResponseBody::BeginKeyBatch(_)
            | ResponseBody::PutKeyBatchChunk(_)
            | ResponseBody::ListLanes(_)
            | ResponseBody::OpenSubscription(_)
            | ResponseBody::CloseSubscription(_)
            | ResponseBody::Credit(_) => Ok(()),
        };
        if let Err(refusal) = judged {
            self.find(item, refusal);
        }
    }

    fn is_followed(&mut self, receipt: &DeliveryStateReceipt) -> bool {
        matches!(self.groups.find(&(receipt.lane_id, receipt.group_id)), Followed::Chain(_))
    }

    fn append_result(&mut self, item: usize, result: &AppendResult) -> Result<(), Refusal> {
        if let Some(watermark) = &result.durable_watermark {
            let genesis = checkpoint_genesis(&self.provenance.context, &self.provenance.stream_id);
            if watermark.last_durable_sequence.is_none() != (watermark.checkpoint_anchor == genesis) {
                return Err(ProtocolViolation::WatermarkAnchor.into());
            }
        }
        if let Some(receipt) = &result.append_receipt {
            self.provenance.authenticate(item, receipt)?;
        }
        Ok(())
    }

    /// Scope, reference and generation are the manifest's own: an audit knows no application's expectations.
    fn snapshot(
        &mut self,
        item: usize,
        manifest: &SnapshotManifest,
        receipt: &HeldObject,
        bytes: &[u8],
        application_key: SigningPublicKey,
    ) -> Result<(), Refusal> {
        let expectation = SnapshotExpectation {
            context: &self.provenance.context,
            stream_id: &self.provenance.stream_id,
            authorized_keys: &[application_key],
            scope: &manifest.scope,
            cbfs_reference: &manifest.cbfs_reference,
            encryption_generation: manifest.encryption_generation,
        };
        let bundle = SnapshotBundle { manifest, receipt, bytes, application_key: &application_key };
        let snapshot = expectation.verify(&bundle, &self.provenance.chain)?;
        let anchor = match snapshot.anchor().clone() {
            SnapshotAnchor::Checkpoint(receipt) => AuthenticatedObject::CheckpointReceipt(receipt),
            SnapshotAnchor::Append(receipt) => AuthenticatedObject::AppendReceipt(receipt),
        };
        self.provenance.keep(item, &anchor);
        Ok(())
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

fn apply_update(
    item: usize,
    receipt: &DeliveryStateReceipt,
    groups: &mut Groups,
    provenance: &mut Provenance,
    apply: impl FnOnce(&mut GroupChain, &crate::authentic::Verified<DeliveryStateReceipt>) -> Result<Applied, VerifyError>,
) -> Result<(), Refusal> {
    let receipt = provenance.authenticate(item, receipt)?;
    if let Followed::Chain(chain) = groups.find(&(receipt.lane_id, receipt.group_id)) {
        apply(chain, &receipt)?;
    }
    Ok(())
}
