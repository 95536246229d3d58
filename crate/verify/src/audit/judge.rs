//! Judging one item after the other.

use alloc::vec::Vec;

use remuda_wire::audit::HeldObject;
use remuda_wire::chain::{BrokerState, Purpose};
use remuda_wire::context::SigningContext;
use remuda_wire::frame::ServerFrame;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::request::OpenSubscriptionRequest;
use remuda_wire::snapshot::SnapshotManifest;
use remuda_wire::verdict::{Refusal, VerifyError};
use remuda_wire::Bytes32;

use super::feed::Item;
use super::groups::Groups;
use super::provenance::Provenance;
use super::report::{AuditReport, AuditVerdict, Finding};
use super::subscription::{GroupPlace, Subscription, Verifier};
use crate::evidence::{evident, GENERATION_OBJECTS};
use crate::fast::{FastState, FastSubscription, FastSubscriptionConfig};
use crate::group::{GroupName, GroupSubscriptionConfig};
use crate::record_shape::StreamShape;
use crate::snapshot::{SnapshotBundle, SnapshotExpectation};
use crate::sorted::SortedMap;
use crate::standard::{StandardReplay, StandardReplayConfig, StandardState};
use crate::subscription::LegalSubscription;

/// What no audit of a file checks; the first only when the file has more objects than are remembered.
const NOT_CHECKED: [&str; 6] = [
    "contradictions of objects more than 262,144 objects apart",
    "what the provider signed and showed to nobody whose items are in this file",
    "request proofs, grants and credit: the file has no client frames",
    "that a snapshot's bytes are what its records make",
    "that payloads open under their keys",
    "that the chain reads are finalized: they are taken as the file gives them",
];

const _: () = assert!(GENERATION_OBJECTS == 262_144, "the words above name it");

/// Everything an audit remembers.
#[derive(Debug)]
pub(super) struct Judge {
    pub provenance: Provenance,
    /// From the first usable chain read with a stream.
    shape: Option<StreamShape>,
    pub subscriptions: Vec<Subscription>,
    /// Those whose verifier may still be there: that one ended is noticed when they are gone through.
    open: Vec<usize>,
    /// The latest subscription of each id.
    pub by_id: SortedMap<Bytes32, usize>,
    pub groups: Groups,
    findings: Vec<Finding>,
    items: usize,
    pub records: usize,
}

impl Judge {
    pub fn new(context: SigningContext, stream_id: Bytes32) -> Self {
        Self {
            provenance: Provenance::new(context, stream_id),
            shape: None,
            subscriptions: Vec::new(),
            open: Vec::new(),
            by_id: SortedMap::new(),
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
        let [_, of_every_audit @ ..] = &NOT_CHECKED;
        AuditReport {
            verdict: if consistent { AuditVerdict::Consistent } else { AuditVerdict::Violations },
            items: self.items,
            records: self.records,
            signatures: self.provenance.signatures,
            findings: self.findings,
            evidence: self.provenance.evidence,
            assurance: self.subscriptions.iter().map(Subscription::assurance).collect(),
            not_checked: if self.provenance.pool.forgot() { &NOT_CHECKED } else { of_every_audit },
        }
    }

    /// A chain read that contradicts what is known is a finding, and not used.
    pub fn chain_read(&mut self, read: BrokerState) {
        let shape =
            read.stream.as_ref().map(|stream| StreamShape { purpose: stream.purpose, encrypted: stream.encrypted });
        match self.provenance.chain.add(read) {
            Ok(()) => self.shape = self.shape.or(shape),
            Err(error) => self.findings.push(Finding { item: None, refusal: error.into() }),
        }
    }

    pub fn item(&mut self, item: usize, content: Item<'_>) {
        self.items = self.items.saturating_add(1);
        match content {
            Item::Subscription(request) => self.subscribe(item, request),
            Item::ServerFrame(bytes) => match ServerFrame::from_bytes(bytes) {
                Ok(frame) => self.frame(item, &frame.0),
                Err(error) => {
                    self.find(item, error);
                    // A client would close the session.
                    self.open().into_iter().for_each(|at| self.end(at));
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

    /// Notes why an item failed.
    pub fn find(&mut self, item: usize, refusal: impl Into<Refusal>) {
        self.findings.push(Finding { item: Some(item), refusal: refusal.into() });
    }

    /// What records of the stream look like.
    pub fn shape(&self) -> StreamShape {
        self.shape.unwrap_or(StreamShape { purpose: Purpose::Main, encrypted: true })
    }

    /// The subscriptions whose verifier is still there.
    pub fn open(&mut self) -> Vec<usize> {
        let Self { open, subscriptions, .. } = self;
        open.retain(|at| subscriptions.get(*at).is_some_and(|subscription| subscription.verifier.is_some()));
        open.clone()
    }

    /// Ends a subscription's judgement.
    pub fn end(&mut self, at: usize) {
        let ended = self.subscriptions.get_mut(at).and_then(|subscription| subscription.verifier.take());
        if let Some(place) = ended.and_then(|verifier| verifier.group()) {
            self.groups.leave(&place);
        }
    }

    /// Ends every subscription of a group.
    pub fn end_group(&mut self, place: &GroupPlace) {
        for at in self.groups.followers(place) {
            self.end(at);
        }
    }

    fn subscribe(&mut self, item: usize, request: OpenSubscriptionRequest) {
        let at = self.subscriptions.len();
        // The same id again is a new judgement.
        if let Some(replaced) = self.by_id.insert(request.subscription_id, at) {
            self.end(replaced);
        }
        let verifier = match self.verifier(at, &request) {
            Ok(verifier) => {
                self.open.push(at);
                Some(verifier)
            }
            Err(refusal) => {
                self.find(item, refusal);
                None
            }
        };
        self.subscriptions.push(Subscription::new(request, verifier));
    }

    fn verifier(&mut self, at: usize, request: &OpenSubscriptionRequest) -> Result<Verifier, Refusal> {
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
                let name = GroupName { context: context.clone(), stream_id, lane_id, group_id };
                self.groups.follow(at, name, after_group_receipt);
                let config = GroupSubscriptionConfig { shape, subscription_id, holder_signing_key_id: None };
                Verifier::Group { config, place }
            }
            LegalSubscription::DeadLetters { lane_id, group_id, after_group_receipt, .. } => {
                let place = (lane_id, group_id);
                let name = GroupName { context: context.clone(), stream_id, lane_id, group_id };
                self.groups.follow(at, name, after_group_receipt);
                Verifier::DeadLetters { place }
            }
        })
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
        self.provenance.keep(item, evident(snapshot.anchor()), snapshot.provider_anchor());
        Ok(())
    }
}
