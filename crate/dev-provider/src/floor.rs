//! Retention of a fast stream (§15): whole batches that are old enough go, whoever reads; the floor of each epoch is
//! signed with them.

use redb::{ReadableDatabase, TableDefinition, WriteTransaction};
use remuda_wire::retention::FastRetentionAnchor;
use remuda_wire::{Canonical, ProviderEpoch, Signature, Signed};

use crate::broker::Broker;
use crate::keys::sign;
use crate::refusal::{Code, Refusal};
use crate::store::Store;

/// epoch -> FastRetentionAnchor
const FLOORS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("fast-floors");

pub(crate) fn create_tables(transaction: &WriteTransaction) -> anyhow::Result<()> {
    transaction.open_table(FLOORS)?;
    Ok(())
}

impl Broker {
    /// Prunes the batches that were committed before the stream's retention. The checkpoint that ends just before the
    /// floor is kept: it is a boundary that a reader may stand at. Answers whether anything went.
    ///
    /// # Errors
    /// When the store fails.
    pub fn collect(&self) -> anyhow::Result<bool> {
        let before_ms = self.chain.now_ms().saturating_sub(self.chain.records().stream.config.retention_ms);
        let head = self.head().borrow().clone();
        let mut has_pruned = false;
        for epoch in 0..=head.epoch {
            has_pruned |= self.collect_epoch(epoch, before_ms)?;
        }
        Ok(has_pruned)
    }

    fn collect_epoch(&self, epoch: u64, before_ms: u64) -> anyhow::Result<bool> {
        let floor = self.floor_of(epoch)?.map_or(0, |anchor| anchor.first_retained_sequence);
        let mut last = None;
        let mut next = floor;
        while let Some(receipt) = self.store().checkpoint_covering(epoch, next)? {
            if receipt.committed_at_ms >= before_ms {
                break;
            }
            next = receipt.last_sequence.saturating_add(1);
            last = Some(receipt);
        }
        let Some(last) = last else { return Ok(false) };
        let mut anchor = FastRetentionAnchor {
            context: self.chain.context().clone(),
            served_at: self.chain.view(),
            stream_id: self.chain.stream_id(),
            provider_epoch: ProviderEpoch,
            broker_epoch: epoch,
            first_retained_sequence: next,
            previous_checkpoint: last.digest(),
            committed_at_ms: self.chain.now_ms(),
            signature: Signature::ZERO,
        };
        anchor.signature = sign(&self.keys.provider, &anchor);
        self.store().write(|transaction| {
            Store::prune_batches_in(transaction, epoch, &last)?;
            transaction.open_table(FLOORS)?.insert(epoch, anchor.to_bytes().as_slice())?;
            Ok(())
        })?;
        self.forget(epoch, next);
        Ok(true)
    }

    /// The signed floor of an epoch, when it has one.
    ///
    /// # Errors
    /// When the store fails.
    pub fn floor_of(&self, epoch: u64) -> anyhow::Result<Option<FastRetentionAnchor>> {
        let table = self.store().database().begin_read()?.open_table(FLOORS)?;
        let row = table.get(epoch)?;
        Ok(row.map(|row| FastRetentionAnchor::from_bytes(row.value())).transpose()?)
    }

    /// The refusal of a position that lies behind its epoch's floor, when it does.
    ///
    /// # Errors
    /// When the store fails.
    pub fn floor_above(&self, epoch: u64, next_sequence: u64) -> anyhow::Result<Option<Refusal>> {
        let anchor = self.floor_of(epoch)?.filter(|anchor| anchor.first_retained_sequence > next_sequence);
        Ok(anchor.map(|anchor| {
            let message = "the position is behind the retention floor";
            Refusal::new(Code::CursorTooOld, message).with_details(anchor.to_bytes())
        }))
    }
}
