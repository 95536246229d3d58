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
use remuda_wire::request::VerificationMode;
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes32, List, ProviderEpoch};

use super::{Owed, Window};
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

/// Where a subscription of a fast stream stands.
#[derive(Debug)]
pub struct Fast {
    scope: LaneScope,
    mode: VerificationMode,
    cursor: Cursor,
    opened: Option<Opened>,
}

/// What sending a frame will change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    NextRecord { bytes: u64 },
    CloseBatch,
    AdoptEpoch,
}

const fn owed(message: ServerMessage, then: Then) -> Owed {
    Owed { message, then: super::Then::Fast(then) }
}

impl Fast {
    /// The records of `scope` from `cursor` on.
    pub const fn new(scope: LaneScope, mode: VerificationMode, cursor: Cursor) -> Self {
        Self { scope, mode, cursor, opened: None }
    }

    pub(super) fn owed(
        &mut self,
        names: (&Bytes32, &Bytes32),
        window: Window,
        broker: &Broker,
        liar: &Liar,
    ) -> anyhow::Result<Option<Owed>> {
        let (id, holder) = names;
        loop {
            let opened = match self.opened.take() {
                Some(opened) => opened,
                None => match broker.batch_covering(self.cursor.epoch, self.cursor.next_sequence)? {
                    Some(batch) => self.open(batch, holder, liar)?,
                    None => return self.owed_transition(names, window, broker, liar),
                },
            };
            let opened = self.opened.insert(opened);
            if let Some(told) = opened.told.get(opened.next) {
                let bytes = u64::try_from(told.record.payload.len())?;
                if !window.covers(bytes) {
                    return Ok(None);
                }
                let message = delivery(broker, id, opened, told)?;
                return Ok(Some(owed(message, Then::NextRecord { bytes })));
            }
            if self.mode == VerificationMode::None {
                self.close_batch();
                continue;
            }
            let message = checkpoint(broker, liar, *id, self.mode, &self.scope, opened)?;
            return Ok(Some(owed(message, Then::CloseBatch)));
        }
    }

    pub(super) fn sent(&mut self, then: Then, holder: &Bytes32, window: &mut Window, liar: &Liar) {
        match then {
            Then::NextRecord { bytes } => {
                window.spend(bytes);
                if let Some(opened) = &mut self.opened {
                    opened.next += 1;
                }
            }
            Then::CloseBatch => {
                liar.count(holder);
                self.close_batch();
            }
            Then::AdoptEpoch => self.adopt_epoch(),
        }
    }

    fn open(&self, batch: Arc<Batch>, holder: &Bytes32, liar: &Liar) -> anyhow::Result<Opened> {
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
        let lying = liar.is_armed(holder);
        if lying {
            liar.bend_records(&batch, &self.scope, &mut told)?;
        }
        Ok(Opened { batch, told, next: 0, lying })
    }

    fn owed_transition(
        &mut self,
        names: (&Bytes32, &Bytes32),
        window: Window,
        broker: &Broker,
        liar: &Liar,
    ) -> anyhow::Result<Option<Owed>> {
        if self.cursor.epoch >= broker.head().borrow().epoch {
            return Ok(None);
        }
        if liar.tells(Lie::VoidWithoutTransition) {
            self.adopt_epoch();
            return self.owed(names, window, broker, liar);
        }
        let transition = broker.transition(self.cursor.epoch.saturating_add(1))?;
        Ok(Some(owed(ServerMessage::BrokerEpochTransition(transition), Then::AdoptEpoch)))
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
