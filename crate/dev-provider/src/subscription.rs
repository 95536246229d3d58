//! One fast subscription (§12.2.1): what it is owed next, computed before anything moves.
//!
//! ```text
//! per batch:    in-scope records ascending, then its checkpoint (a verifying mode only), then the next batch
//! per lineage:  its owed batches, then the transition, then the next lineage from sequence zero
//! ```

use std::sync::Arc;

use remuda_wire::checkpoint::CheckpointFrame;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::frame::ServerMessage;
use remuda_wire::record::{FastRecordId, RecordId};
use remuda_wire::request::{Credit, VerificationMode};
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes32, List, ProviderEpoch};

use crate::batch::Batch;
use crate::broker::Broker;
use crate::lie::{Liar, Lie, Told};

/// A place in the stream: everything of `epoch` below `next_sequence` is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The broker epoch.
    pub epoch: u64,
    /// The first sequence that is still owed.
    pub next_sequence: u64,
}

/// A batch on its way.
#[derive(Debug)]
struct Opened {
    batch: Arc<Batch>,
    told: Vec<Told>,
    next: usize,
    lying: bool,
}

/// One open subscription.
#[derive(Debug)]
pub struct Subscription {
    id: Bytes32,
    holder: Bytes32,
    scope: LaneScope,
    mode: VerificationMode,
    cursor: Cursor,
    opened: Option<Opened>,
    records: u32,
    bytes: u64,
}

/// What sending a frame will change.
#[derive(Clone, Copy, Debug)]
enum Then {
    NextRecord { bytes: u64 },
    CloseBatch,
    AdoptEpoch,
}

/// A frame that is owed now, not yet sent.
#[derive(Debug)]
pub struct Owed {
    /// The frame.
    pub message: ServerMessage,
    then: Then,
}

impl Subscription {
    /// A subscription without credit.
    pub const fn new(id: Bytes32, holder: Bytes32, scope: LaneScope, mode: VerificationMode, cursor: Cursor) -> Self {
        Self { id, holder, scope, mode, cursor, opened: None, records: 0, bytes: 0 }
    }

    /// Its id.
    pub const fn id(&self) -> &Bytes32 {
        &self.id
    }

    /// Adds credit.
    pub const fn grant_credit(&mut self, credit: &Credit) {
        self.records = self.records.saturating_add(credit.records);
        self.bytes = self.bytes.saturating_add(credit.bytes);
    }

    /// The credit in force, to be put back by [`Self::restore_credit`].
    pub const fn credit(&self) -> (u32, u64) {
        (self.records, self.bytes)
    }

    /// Puts a credit back.
    pub const fn restore_credit(&mut self, (records, bytes): (u32, u64)) {
        self.records = records;
        self.bytes = bytes;
    }

    /// The next frame, or `None` when nothing is ready or credit does not cover it. Nothing moves before
    /// [`Self::sent`].
    ///
    /// # Errors
    /// When the store fails.
    pub fn owed(&mut self, broker: &Broker, liar: &Liar) -> anyhow::Result<Option<Owed>> {
        loop {
            let opened = match self.opened.take() {
                Some(opened) => opened,
                None => match broker.batch_covering(self.cursor.epoch, self.cursor.next_sequence)? {
                    Some(batch) => self.open(batch, liar)?,
                    None => return self.owed_transition(broker, liar),
                },
            };
            let opened = self.opened.insert(opened);
            if let Some(told) = opened.told.get(opened.next) {
                let bytes = u64::try_from(told.record.payload.len())?;
                if self.records == 0 || self.bytes < bytes {
                    return Ok(None);
                }
                let message = delivery(broker, &self.id, opened, told)?;
                return Ok(Some(Owed { message, then: Then::NextRecord { bytes } }));
            }
            if self.mode == VerificationMode::None {
                self.close_batch();
                continue;
            }
            let message = checkpoint(broker, liar, self.id, self.mode, &self.scope, opened)?;
            return Ok(Some(Owed { message, then: Then::CloseBatch }));
        }
    }

    /// Moves past a frame that is in a response.
    pub fn sent(&mut self, owed: &Owed, liar: &Liar) {
        match owed.then {
            Then::NextRecord { bytes } => {
                self.records = self.records.saturating_sub(1);
                self.bytes = self.bytes.saturating_sub(bytes);
                if let Some(opened) = &mut self.opened {
                    opened.next += 1;
                }
            }
            Then::CloseBatch => {
                liar.count(&self.holder);
                self.close_batch();
            }
            Then::AdoptEpoch => self.adopt_epoch(),
        }
    }

    fn open(&self, batch: Arc<Batch>, liar: &Liar) -> anyhow::Result<Opened> {
        let broker_epoch = batch.receipt.broker_epoch;
        let mut told: Vec<Told> = (batch.receipt.first_sequence..)
            .zip(&batch.records)
            .filter(|(sequence, record)| {
                *sequence >= self.cursor.next_sequence && self.scope.contains(&record.header.lane_id)
            })
            .map(|(sequence, record)| Told {
                id: FastRecordId { provider_epoch: ProviderEpoch, broker_epoch, sequence },
                record: record.clone(),
            })
            .collect();
        let lying = liar.is_armed(&self.holder);
        if lying {
            liar.bend_records(&batch, &self.scope, &mut told)?;
        }
        Ok(Opened { batch, told, next: 0, lying })
    }

    fn owed_transition(&mut self, broker: &Broker, liar: &Liar) -> anyhow::Result<Option<Owed>> {
        if self.cursor.epoch >= broker.head().borrow().epoch {
            return Ok(None);
        }
        if liar.tells(Lie::VoidWithoutTransition) {
            self.adopt_epoch();
            return self.owed(broker, liar);
        }
        let transition = broker.transition(self.cursor.epoch.saturating_add(1))?;
        Ok(Some(Owed { message: ServerMessage::BrokerEpochTransition(transition), then: Then::AdoptEpoch }))
    }

    fn close_batch(&mut self) {
        if let Some(opened) = self.opened.take() {
            self.cursor.next_sequence = opened.batch.receipt.last_sequence.saturating_add(1);
        }
    }

    const fn adopt_epoch(&mut self) {
        self.cursor = Cursor { epoch: self.cursor.epoch.saturating_add(1), next_sequence: 0 };
    }
}

fn delivery(broker: &Broker, subscription_id: &Bytes32, opened: &Opened, told: &Told) -> anyhow::Result<ServerMessage> {
    let mut watermark = broker.watermark_of(opened.batch.receipt.broker_epoch)?;
    watermark.broker_epoch = told.id.broker_epoch;
    Ok(ServerMessage::Delivery(RecordDelivery {
        subscription_id: *subscription_id,
        record_id: RecordId::Fast(told.id),
        header: told.record.header.clone(),
        payload: told.record.payload.clone(),
        append_receipt: None,
        lease: None,
        delivery_state_receipt: None,
        durable_watermark: Some(watermark),
    }))
}

fn checkpoint(
    broker: &Broker,
    liar: &Liar,
    subscription_id: Bytes32,
    mode: VerificationMode,
    scope: &LaneScope,
    opened: &Opened,
) -> anyhow::Result<ServerMessage> {
    let batch = &opened.batch;
    let mut receipt = batch.receipt.clone();
    let mut lanes = match mode {
        VerificationMode::ScopedProofs => scope.lanes().unwrap_or_default().to_vec(),
        VerificationMode::None | VerificationMode::FullStream => Vec::new(),
    };
    if opened.lying {
        liar.bend_lanes(batch, mode, &mut lanes);
        liar.bend_receipt(&mut receipt, &broker.keys);
    }
    let proofs = lanes.iter().map(|lane| batch.lanes.prove(lane)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(ServerMessage::Checkpoint(CheckpointFrame { subscription_id, receipt, lanes: List::new(proofs)? }))
}
