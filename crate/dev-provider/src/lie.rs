//! Every lie that the provider tells on request, and the verdict that must catch it.
//!
//! Lies are told about whole batches, to holders who were served enough honest checkpoints before: a holder that comes
//! back after catching one is lied to again at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;
use remuda_wire::checkpoint::CheckpointReceipt;
use remuda_wire::preimage::keccak256;
use remuda_wire::record::FastRecordId;
use remuda_wire::request::VerificationMode;
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes, Bytes32, ProviderEpoch};

use crate::batch::Batch;
use crate::broker::application_header;
use crate::keys::{sign, DevKeys};
use crate::store::StoredRecord;

/// A lie by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Lie {
    /// One in-scope record of the batch is not delivered. Caught by `verify/lane-count`
    /// (`verify/batch-incomplete` on `FullStream`).
    WithholdRecord,
    /// A record that was never committed is delivered. Caught by `verify/lane-count`. Needs a sequence of the batch that
    /// is outside the scope, so the broker commits a record on the default lane in each batch.
    InjectRecord,
    /// A record is delivered under another lane of the scope. Caught by `verify/lane-count`.
    RelabelLane,
    /// The proof of a lane outside the scope is added. Caught by `protocol/coverage-extraneous`.
    ExtraLane,
    /// A checkpoint names a predecessor that is not the last one, and is validly signed. Caught by
    /// `verify/checkpoint-predecessor`.
    UnlinkedReceipt,
    /// A checkpoint is signed by a key that is not the stream's. Caught by `verify/signature`.
    WrongKey,
    /// Records and checkpoints of the next epoch come without its transition, also after a restart. Caught by
    /// `protocol/epoch-without-transition`.
    VoidWithoutTransition,
}

impl Lie {
    /// The code that a `ScopedProofs` subscription must report.
    pub const fn verdict(self) -> &'static str {
        match self {
            Self::WithholdRecord | Self::InjectRecord | Self::RelabelLane => "verify/lane-count",
            Self::ExtraLane => "protocol/coverage-extraneous",
            Self::UnlinkedReceipt => "verify/checkpoint-predecessor",
            Self::WrongKey => "verify/signature",
            Self::VoidWithoutTransition => "protocol/epoch-without-transition",
        }
    }
}

/// One record as it will be delivered.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its id.
    pub id: FastRecordId,
    /// Header and payload.
    pub record: StoredRecord,
}

/// Which lies are told, and to whom.
#[derive(Debug, Default)]
pub struct Liar {
    lies: Vec<Lie>,
    after: u64,
    honest: Mutex<HashMap<Bytes32, u64>>,
}

impl Liar {
    /// Tells `lies` to each holder after `after` honest checkpoints.
    pub fn new(lies: Vec<Lie>, after: u64) -> Self {
        Self { lies, after, honest: Mutex::default() }
    }

    /// True when `lie` is one of ours.
    pub fn tells(&self, lie: Lie) -> bool {
        self.lies.contains(&lie)
    }

    /// True when `holder` has had its honest checkpoints.
    pub fn is_armed(&self, holder: &Bytes32) -> bool {
        if self.lies.is_empty() {
            return false;
        }
        let honest = self.honest.lock().unwrap_or_else(PoisonError::into_inner);
        honest.get(holder).copied().unwrap_or(0) >= self.after
    }

    /// Counts a checkpoint that `holder` was served.
    pub fn count(&self, holder: &Bytes32) {
        if !self.lies.is_empty() {
            let mut honest = self.honest.lock().unwrap_or_else(PoisonError::into_inner);
            let served = honest.entry(*holder).or_default();
            *served = served.saturating_add(1);
        }
    }

    /// Bends what a subscription of this scope is told of a batch.
    ///
    /// # Errors
    /// Never for the short payloads that it makes.
    pub fn bend_records(&self, batch: &Batch, scope: &LaneScope, told: &mut Vec<Told>) -> anyhow::Result<()> {
        for lie in &self.lies {
            match lie {
                Lie::WithholdRecord if !told.is_empty() => {
                    told.remove(0);
                }
                Lie::InjectRecord => inject(batch, scope, told)?,
                Lie::RelabelLane => relabel(scope, told),
                Lie::VoidWithoutTransition => told.iter_mut().for_each(|told| told.id.broker_epoch += 1),
                _ => {}
            }
        }
        Ok(())
    }

    /// The lanes to prove: those of the scope, and maybe one more.
    pub fn bend_lanes(&self, batch: &Batch, mode: VerificationMode, lanes: &mut Vec<Bytes32>) {
        if mode != VerificationMode::None && self.tells(Lie::ExtraLane) {
            let outside = batch.records.iter().map(|record| record.header.lane_id).find(|lane| !lanes.contains(lane));
            // A lane of the batch if there is one outside; any other key is a genuine absence.
            lanes.push(outside.unwrap_or_else(|| keccak256(&batch.digest.0)));
            lanes.sort_unstable();
        }
    }

    /// Bends a checkpoint, and signs it again.
    pub fn bend_receipt(&self, receipt: &mut CheckpointReceipt, keys: &DevKeys) {
        if self.tells(Lie::UnlinkedReceipt) {
            receipt.previous_checkpoint = keccak256(&receipt.previous_checkpoint.0);
        }
        if self.tells(Lie::VoidWithoutTransition) {
            receipt.broker_epoch += 1;
        }
        let key = if self.tells(Lie::WrongKey) { &keys.stranger } else { &keys.provider };
        receipt.signature = sign(key, receipt);
    }
}

/// A record at a sequence that the subscription does not see.
fn inject(batch: &Batch, scope: &LaneScope, told: &mut Vec<Told>) -> anyhow::Result<()> {
    let receipt = &batch.receipt;
    let mut hidden = (receipt.first_sequence..=receipt.last_sequence)
        .filter(|sequence| told.binary_search_by_key(sequence, |told| told.id.sequence).is_err());
    let lane = scope.lanes().and_then(|lanes| lanes.first().copied());
    let (Some(sequence), Some(lane)) = (hidden.next(), lane) else { return Ok(()) };
    let record = StoredRecord {
        header: application_header(&receipt.stream_id, &lane, &keccak256(&batch.digest.0), receipt.committed_at_ms),
        payload: Bytes::new(b"{\"text\":\"never committed\"}".to_vec())?,
    };
    let id = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: receipt.broker_epoch, sequence };
    told.push(Told { id, record });
    told.sort_unstable_by_key(|told| told.id.sequence);
    Ok(())
}

fn relabel(scope: &LaneScope, told: &mut [Told]) {
    let Some(first) = told.first_mut() else { return };
    let other = scope.lanes().and_then(|lanes| lanes.iter().find(|lane| **lane != first.record.header.lane_id));
    if let Some(other) = other {
        first.record.header.lane_id = *other;
    }
}
