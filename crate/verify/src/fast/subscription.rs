//! One fast subscription as its verifier, frame by frame.

use remuda_wire::chain::Purpose;
use remuda_wire::checkpoint::{CheckpointFrame, CheckpointReceipt, LaneProof};
use remuda_wire::context::SigningContext;
use remuda_wire::delivery::{DeliveryOf, RecordDelivery};
use remuda_wire::preimage::{checkpoint_genesis, fast_record_digest};
use remuda_wire::response::DurableWatermark;
use remuda_wire::scope::LaneScope;
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::verdict::{ProtocolViolation, Refusal, VerifyError};
use remuda_wire::Bytes32;

use super::batch::{OpenBatch, OpenRecord};
use super::{AdoptedTransition, Assurance, FastState, VerifiedBatch};
use crate::authentic::{Authority, KeySource, Verified};
use crate::record_shape::{check_record, StreamShape};

/// What the provider owes a fast subscription, with the scope that each mode can carry (§13.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Nothing but the records: order, lineage and scope are checked, nothing is verified.
    None(LaneScope),
    /// A proof for each of these lanes: an `Exact` or `Set` scope of at most 512.
    ScopedProofs(LaneScope),
    /// Every record of every lane.
    FullStream,
}

impl Verification {
    /// The lanes that are delivered.
    pub const fn scope(&self) -> &LaneScope {
        match self {
            Self::None(scope) | Self::ScopedProofs(scope) => scope,
            Self::FullStream => &LaneScope::Any,
        }
    }
}

/// What a subscription is about.
#[derive(Clone, Debug)]
pub struct FastSubscriptionConfig {
    /// The chain.
    pub context: SigningContext,
    /// The stream.
    pub stream_id: Bytes32,
    /// Whether the stream is encrypted.
    pub encrypted: bool,
    /// The subscription.
    pub subscription_id: Bytes32,
    /// What was asked for.
    pub verification: Verification,
}

/// One fast subscription as its verifier. `R` is what the caller keeps of each record until its batch closes.
#[derive(Clone, Debug)]
pub struct FastSubscription<R> {
    config: FastSubscriptionConfig,
    checkpoint_genesis: Bytes32,
    state: FastState,
    batch: OpenBatch<R>,
}

impl<R> FastSubscription<R> {
    /// Starts at `state`: all `None` when nothing is known, and the first checkpoint is then taken as the anchor.
    pub fn new(config: FastSubscriptionConfig, state: FastState) -> Self {
        let checkpoint_genesis = checkpoint_genesis(&config.context, &config.stream_id);
        Self { config, checkpoint_genesis, state, batch: OpenBatch::default() }
    }

    /// Where the chain stands.
    pub const fn state(&self) -> &FastState {
        &self.state
    }

    /// How many records wait for their checkpoint.
    pub const fn waiting(&self) -> usize {
        self.batch.len()
    }

    /// Begins anew, as when nothing was known.
    pub fn forget(&mut self) {
        self.state = FastState::default();
        self.batch = OpenBatch::default();
    }

    /// Drops what waits: of a lineage that ended, or before starting again at the last boundary.
    pub fn discard_waiting(&mut self) -> usize {
        self.batch.take_records().len()
    }

    /// Takes one record; it stays unverified until its checkpoint.
    ///
    /// # Errors
    /// In this order: [`ProtocolViolation::UnknownSubscription`], [`ProtocolViolation::UnexpectedFrame`],
    /// [`ProtocolViolation::EpochWithoutTransition`], [`ProtocolViolation::StaleLineage`],
    /// [`ProtocolViolation::RecordOrder`], [`ProtocolViolation::OutOfScopeRecord`],
    /// [`ProtocolViolation::WatermarkAnchor`], [`VerifyError::StreamMismatch`], [`VerifyError::RecordShape`],
    /// [`VerifyError::LaneEvent`], [`remuda_wire::verdict::AdmissionRefused::BatchTooLarge`].
    pub fn handle_delivery(&mut self, delivery: &RecordDelivery, keep: R) -> Result<(), Refusal> {
        self.check_subscription(&delivery.subscription_id)?;
        let DeliveryOf::Fast { id, watermark } = delivery.class()? else {
            return Err(ProtocolViolation::UnexpectedFrame.into());
        };
        let (header, payload) = (&delivery.header, &*delivery.payload);
        self.check_lineage(id.broker_epoch)?;
        self.check_order(id.sequence)?;
        if !self.covers(&header.lane_id) {
            return Err(ProtocolViolation::OutOfScopeRecord.into());
        }
        self.check_watermark(watermark)?;
        if header.stream_id != self.config.stream_id {
            return Err(VerifyError::StreamMismatch.into());
        }
        check_record(StreamShape { purpose: Purpose::Main, encrypted: self.config.encrypted }, header, payload)?;
        if let Verification::None(_) = self.config.verification {
            self.state.broker_epoch = Some(id.broker_epoch);
            self.state.next_sequence = Some(id.sequence.saturating_add(1));
            return Ok(());
        }
        let payload_bytes = u64::try_from(payload.len()).unwrap_or(u64::MAX);
        self.batch.check_budget(payload_bytes)?;
        let record_digest = fast_record_digest(&self.config.context, &id, header, payload);
        let record = OpenRecord {
            broker_epoch: id.broker_epoch,
            sequence: id.sequence,
            lane_id: header.lane_id,
            record_digest,
            payload_bytes,
        };
        self.batch.push(record, keep);
        Ok(())
    }

    /// Takes the checkpoint that closes the batch.
    ///
    /// # Errors
    /// In this order: [`ProtocolViolation::UnknownSubscription`], [`ProtocolViolation::UnexpectedCheckpoint`],
    /// coverage, lineage, authenticity ([`Authority::authenticate`]), [`VerifyError::CheckpointPredecessor`],
    /// [`VerifyError::CheckpointGap`], [`VerifyError::RecordOutsideBatch`], then the contents.
    pub fn handle_checkpoint(
        &mut self,
        frame: CheckpointFrame,
        keys: &impl KeySource,
    ) -> Result<VerifiedBatch<R>, Refusal> {
        self.admit_checkpoint(&frame)?;
        let receipt = self.authority(keys).authenticate(frame.receipt)?;
        self.close_batch(receipt, &frame.lanes)
    }

    /// The conversation's rules: whether this checkpoint is legal now.
    ///
    /// # Errors
    /// The `protocol` part of [`Self::handle_checkpoint`].
    pub(crate) fn admit_checkpoint(&self, frame: &CheckpointFrame) -> Result<(), ProtocolViolation> {
        self.check_subscription(&frame.subscription_id)?;
        self.check_coverage(&frame.lanes)?;
        self.check_lineage(frame.receipt.broker_epoch)
    }

    /// Links an authentic checkpoint and reconciles what it closes.
    ///
    /// # Errors
    /// The `verify` part of [`Self::handle_checkpoint`] after authenticity.
    pub(crate) fn close_batch(
        &mut self,
        receipt: Verified<CheckpointReceipt>,
        lanes: &[LaneProof],
    ) -> Result<VerifiedBatch<R>, Refusal> {
        self.check_link(&receipt)?;
        self.batch.check_inside(&receipt)?;
        let (lane_map_root, assurance) = match &self.config.verification {
            Verification::None(_) => return Err(ProtocolViolation::UnexpectedCheckpoint.into()),
            Verification::ScopedProofs(_) => (self.batch.reconcile_lanes(&receipt, lanes)?, Assurance::LaneSet),
            Verification::FullStream => (self.batch.reconcile_full(&receipt)?, Assurance::FullBatch),
        };
        self.state = FastState {
            broker_epoch: Some(receipt.broker_epoch),
            next_sequence: Some(receipt.last_sequence.saturating_add(1)),
            tail: Some(receipt.digest()),
            last_checkpoint: Some(receipt.digest()),
            last_durable_sequence: Some(receipt.last_sequence),
        };
        let records = self.batch.take_records();
        Ok(VerifiedBatch { receipt, lane_map_root, assurance, records, state: self.state.clone() })
    }

    /// Adopts a transition.
    ///
    /// # Errors
    /// [`ProtocolViolation::TransitionMidBatch`] while records wait (a `None` subscription has none that wait), then
    /// authenticity, then [`AdoptedTransition::link`].
    pub fn handle_transition(
        &mut self,
        transition: BrokerEpochTransition,
        keys: &impl KeySource,
    ) -> Result<AdoptedTransition, Refusal> {
        self.admit_transition()?;
        let transition = self.authority(keys).authenticate(transition)?;
        Ok(self.adopt(transition)?)
    }

    /// Whether a transition is legal now: only between batches.
    ///
    /// # Errors
    /// [`ProtocolViolation::TransitionMidBatch`].
    pub(crate) const fn admit_transition(&self) -> Result<(), ProtocolViolation> {
        if self.batch.is_empty() {
            Ok(())
        } else {
            Err(ProtocolViolation::TransitionMidBatch)
        }
    }

    /// Adopts an authentic transition.
    ///
    /// # Errors
    /// [`AdoptedTransition::link`].
    pub(crate) fn adopt(
        &mut self,
        transition: Verified<BrokerEpochTransition>,
    ) -> Result<AdoptedTransition, VerifyError> {
        let adopted = AdoptedTransition::link(transition, Some(&self.state))?;
        self.state = adopted.state().clone();
        Ok(adopted)
    }

    fn authority<'a, K>(&'a self, keys: &'a K) -> Authority<'a, K> {
        Authority { context: &self.config.context, stream_id: &self.config.stream_id, keys }
    }

    fn check_subscription(&self, subscription_id: &Bytes32) -> Result<(), ProtocolViolation> {
        if *subscription_id == self.config.subscription_id {
            Ok(())
        } else {
            Err(ProtocolViolation::UnknownSubscription)
        }
    }

    /// The lineage in force: the adopted one, or that of what already waits.
    fn lineage(&self) -> Option<u64> {
        self.state.broker_epoch.or(self.batch.broker_epoch())
    }

    fn check_lineage(&self, broker_epoch: u64) -> Result<(), ProtocolViolation> {
        match self.lineage() {
            Some(adopted) if broker_epoch > adopted => Err(ProtocolViolation::EpochWithoutTransition),
            Some(adopted) if broker_epoch < adopted => Err(ProtocolViolation::StaleLineage),
            _ => Ok(()),
        }
    }

    fn check_order(&self, sequence: u64) -> Result<(), ProtocolViolation> {
        let above_waiting = self.batch.last_sequence().is_none_or(|last| sequence > last);
        let above_covered = self.state.next_sequence.is_none_or(|next| sequence >= next);
        if above_waiting && above_covered {
            Ok(())
        } else {
            Err(ProtocolViolation::RecordOrder)
        }
    }

    fn covers(&self, lane_id: &Bytes32) -> bool {
        self.config.verification.scope().contains(lane_id)
    }

    fn check_watermark(&self, watermark: &DurableWatermark) -> Result<(), ProtocolViolation> {
        let is_genesis = watermark.checkpoint_anchor == self.checkpoint_genesis;
        if watermark.last_durable_sequence.is_none() == is_genesis {
            Ok(())
        } else {
            Err(ProtocolViolation::WatermarkAnchor)
        }
    }

    /// Exactly the lanes of the scope, ascending: a missing one is a withheld one, an extra one discloses another lane.
    fn check_coverage(&self, proofs: &[LaneProof]) -> Result<(), ProtocolViolation> {
        let scope = match &self.config.verification {
            Verification::None(_) => return Err(ProtocolViolation::UnexpectedCheckpoint),
            Verification::ScopedProofs(scope) => scope.lanes().unwrap_or_default(),
            Verification::FullStream => &[],
        };
        if !proofs.is_sorted_by(|a, b| a.lane_id < b.lane_id) {
            return Err(ProtocolViolation::CoverageOrder);
        }
        if proofs.iter().any(|proof| scope.binary_search(&proof.lane_id).is_err()) {
            return Err(ProtocolViolation::CoverageExtraneous);
        }
        if proofs.len() == scope.len() {
            Ok(())
        } else {
            Err(ProtocolViolation::CoverageMissing)
        }
    }

    fn check_link(&self, receipt: &Verified<CheckpointReceipt>) -> Result<(), VerifyError> {
        if self.state.tail.is_some_and(|tail| tail != receipt.previous_checkpoint) {
            return Err(VerifyError::CheckpointPredecessor);
        }
        if self.state.next_sequence.is_some_and(|next| next != receipt.first_sequence) {
            return Err(VerifyError::CheckpointGap);
        }
        Ok(())
    }
}
