//! Lies about batches of a fast stream.

use remuda_wire::checkpoint::CheckpointReceipt;
use remuda_wire::preimage::keccak256;
use remuda_wire::record::FastRecordId;
use remuda_wire::request::VerificationMode;
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes, Bytes32, ProviderEpoch};

use super::{Liar, Lie};
use crate::batch::Batch;
use crate::broker::application_header;
use crate::keys::{sign, DevKeys};
use crate::store::StoredRecord;

/// One record as it will be delivered.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its id.
    pub id: FastRecordId,
    /// Header and payload.
    pub record: StoredRecord,
}

impl Liar {
    /// Bends what a subscription of this scope is told of a batch.
    ///
    /// # Errors
    /// Never for the short payloads that it makes.
    pub fn bend_records(&self, batch: &Batch, scope: &LaneScope, told: &mut Vec<Told>) -> anyhow::Result<()> {
        for lie in self.lies() {
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
