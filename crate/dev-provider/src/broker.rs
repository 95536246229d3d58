//! The durable fast broker of one stream (§12).
//!
//! ```text
//! append -> open batch -(fast_batch_max_ms or fast_batch_max_records)-> one transaction -> head moves, readers wake
//! ```
//! The open batch stays locked while it commits: no provisional answer is given past a threshold that was reached.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use redb::WriteTransaction;
use remuda_wire::chain::DeliveryClass;
use remuda_wire::checkpoint::CheckpointReceipt;
use remuda_wire::record::{FastRecordId, RecordHeader, RecordKind, RecordOrigin};
use remuda_wire::response::DurableWatermark;
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::{Bytes, Bytes24, Bytes32, ProviderEpoch, Signature, Signed};
use tokio::sync::{watch, Notify};
use tokio::time::Instant;

use crate::batch::{range_root, Batch, LaneMap};
use crate::chain::Chain;
use crate::epoch::{self, Head};
use crate::keys::{sign, DevKeys};
use crate::store::{Store, StoredRecord};

/// Batches kept in memory: a live subscriber never reads the store.
const CACHED_BATCHES: usize = 64;

/// Records that were answered and are not durable yet.
#[derive(Debug, Default)]
struct OpenBatch {
    records: Vec<StoredRecord>,
    opened_at: Option<Instant>,
    /// Shut down, or a commit failed: nothing more is accepted.
    closed: bool,
}

/// No more appends: the broker is closing, or its store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// The broker.
#[derive(Debug)]
pub struct Broker {
    /// The chain that it serves by.
    pub chain: Arc<Chain>,
    /// Its keys.
    pub keys: Arc<DevKeys>,
    store: Arc<Store>,
    open: tokio::sync::Mutex<OpenBatch>,
    changed: Notify,
    head: watch::Sender<Head>,
    recent: Mutex<VecDeque<Arc<Batch>>>,
    /// Adds a record on the default lane to each batch, so that a lie finds a sequence outside every demo scope.
    decoys: AtomicBool,
}

impl Broker {
    /// Begins the next epoch of the stream.
    ///
    /// # Errors
    /// When the store fails.
    pub fn open(store: Arc<Store>, chain: Arc<Chain>, keys: Arc<DevKeys>, decoys: bool) -> anyhow::Result<Arc<Self>> {
        let head = watch::Sender::new(epoch::begin(&store, &chain, &keys.provider)?);
        let (open, changed, recent) = Default::default();
        let decoys = AtomicBool::new(decoys);
        Ok(Arc::new(Self { chain, keys, store, open, changed, head, recent, decoys }))
    }

    /// What is durable now, and a way to wait for more.
    pub fn head(&self) -> watch::Receiver<Head> {
        self.head.subscribe()
    }

    /// Takes one record; its id is provisional until a checkpoint covers it. Waits while a full batch commits.
    ///
    /// # Errors
    /// [`Closed`].
    pub async fn append(&self, record: StoredRecord) -> Result<(FastRecordId, DurableWatermark), Closed> {
        let mut head = self.head.subscribe();
        let limit = self.batch_limit();
        loop {
            let mut open = self.open.lock().await;
            if open.closed {
                return Err(Closed);
            }
            let current = head.borrow_and_update().clone();
            if open.records.len() < limit {
                let offset = u64::try_from(open.records.len()).unwrap_or(u64::MAX);
                let sequence = current.next_sequence.saturating_add(offset);
                open.records.push(record);
                open.opened_at.get_or_insert_with(Instant::now);
                self.changed.notify_one();
                let id = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: current.epoch, sequence };
                return Ok((id, self.watermark(&current)));
            }
            drop(open);
            if head.changed().await.is_err() {
                return Err(Closed);
            }
        }
    }

    fn batch_limit(&self) -> usize {
        usize::try_from(self.chain.records().stream.config.fast_batch_max_records).unwrap_or(usize::MAX)
    }

    /// Commits batches as they fall due, for ever. A standard stream has none.
    pub async fn run(self: Arc<Self>) {
        if self.chain.stream().delivery_class == DeliveryClass::Standard {
            return;
        }
        let longest = Duration::from_millis(u64::from(self.chain.records().stream.config.fast_batch_max_ms));
        let limit = self.batch_limit();
        loop {
            let due = {
                let mut open = self.open.lock().await;
                let due = open.opened_at.map(|opened_at| opened_at + longest);
                if open.records.len() >= limit || due.is_some_and(|due| due <= Instant::now()) {
                    if let Err(error) = self.commit(&mut open).await {
                        tracing::error!(%error, "a commit failed: no more records are accepted");
                        open.closed = true;
                        // Appends that wait for room must see it.
                        self.head.send_modify(|_| {});
                    }
                    continue;
                }
                due
            };
            match due {
                None => self.changed.notified().await,
                Some(due) => tokio::select! {
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(due) => {}
                },
            }
        }
    }

    /// Appends a provider event and makes it durable at once, with the receipt and whatever else `with` writes of it.
    ///
    /// # Errors
    /// When the broker is closed or the store fails.
    pub(crate) async fn append_event<T: Send + 'static>(
        &self,
        record: StoredRecord,
        with: impl FnOnce(&WriteTransaction, FastRecordId) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let mut open = self.open.lock().await;
        anyhow::ensure!(!open.closed, "the provider is closing");
        if open.records.len() >= self.batch_limit() {
            self.commit(&mut open).await?;
        }
        let head = self.head.borrow().clone();
        let sequence = head.next_sequence.saturating_add(u64::try_from(open.records.len())?);
        let id = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: head.epoch, sequence };
        open.records.push(record);
        let committed = self.commit_with(&mut open, move |transaction| with(transaction, id)).await;
        if committed.is_err() {
            open.closed = true;
            self.head.send_modify(|_| {});
        }
        committed
    }

    async fn commit(&self, open: &mut OpenBatch) -> anyhow::Result<()> {
        if open.records.is_empty() {
            return Ok(());
        }
        self.commit_with(open, |_| Ok(())).await
    }

    async fn commit_with<T: Send + 'static>(
        &self,
        open: &mut OpenBatch,
        with: impl FnOnce(&WriteTransaction) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        open.opened_at = None;
        let mut records = std::mem::take(&mut open.records);
        if self.decoys.load(Ordering::Relaxed) && records.len() < self.batch_limit() {
            records.push(self.decoy()?);
        }
        let head = self.head.borrow().clone();
        let batch = Arc::new(self.seal(&head, records)?);
        let (store, writing) = (Arc::clone(&self.store), Arc::clone(&batch));
        let commit = move || store.commit_batch(&writing.receipt, &writing.records, with);
        let done = self.chain.clock().write(commit).await?;
        let (digest, last) = (batch.digest, batch.receipt.last_sequence);
        self.keep(batch);
        self.head.send_replace(Head {
            epoch: head.epoch,
            next_sequence: last.saturating_add(1),
            tail: digest,
            checkpoint: digest,
            last_durable_sequence: Some(last),
        });
        Ok(done)
    }

    fn seal(&self, head: &Head, records: Vec<StoredRecord>) -> anyhow::Result<Batch> {
        let context = self.chain.context().clone();
        let lanes = LaneMap::build(&context, head.epoch, head.next_sequence, &records)?;
        let last_sequence = head.next_sequence + u64::try_from(records.len())? - 1;
        let mut receipt = CheckpointReceipt {
            context,
            served_at: self.chain.view(),
            stream_id: self.chain.stream_id(),
            provider_epoch: ProviderEpoch,
            broker_epoch: head.epoch,
            first_sequence: head.next_sequence,
            last_sequence,
            ordered_range_root: Bytes32::ZERO,
            previous_checkpoint: head.tail,
            durable_high_water: last_sequence,
            committed_at_ms: self.chain.now_ms(),
            signature: Signature::ZERO,
        };
        receipt.ordered_range_root = range_root(&receipt, &lanes);
        receipt.signature = sign(&self.keys.provider, &receipt);
        Ok(Batch { digest: receipt.digest(), receipt, records, lanes })
    }

    fn decoy(&self) -> anyhow::Result<StoredRecord> {
        Ok(StoredRecord {
            header: application_header(
                &self.chain.stream_id(),
                &Bytes32::ZERO,
                &crate::keys::random32()?,
                self.chain.now_ms(),
            ),
            payload: Bytes::new(b"{\"decoy\":true}".to_vec())?,
        })
    }

    fn keep(&self, batch: Arc<Batch>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back(batch);
        if recent.len() > CACHED_BATCHES {
            recent.pop_front();
        }
    }

    /// The durable batch of `epoch` that covers `sequence`, or `None` when none does yet.
    ///
    /// # Errors
    /// When the store fails.
    pub fn batch_covering(&self, epoch: u64, sequence: u64) -> anyhow::Result<Option<Arc<Batch>>> {
        let head = self.head.borrow().clone();
        if epoch == head.epoch && sequence >= head.next_sequence {
            return Ok(None);
        }
        let found = {
            let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            recent.iter().rev().find(|batch| batch.covers(epoch, sequence)).cloned()
        };
        if found.is_some() {
            return Ok(found);
        }
        let Some(receipt) = self.store.checkpoint_covering(epoch, sequence)? else { return Ok(None) };
        let records = self.store.records(&receipt)?;
        let batch = Arc::new(Batch::restore(receipt, records)?);
        self.keep(Arc::clone(&batch));
        Ok(Some(batch))
    }

    /// Whether each batch has a record on the default lane.
    pub(crate) fn set_decoys(&self, decoys: bool) {
        self.decoys.store(decoys, Ordering::Relaxed);
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Forgets the batches of `epoch` that end before `floor`.
    pub(crate) fn forget(&self, epoch: u64, floor: u64) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|batch| batch.receipt.broker_epoch != epoch || batch.receipt.last_sequence >= floor);
    }

    /// True when a checkpoint of `epoch` ends at exactly `sequence`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn is_boundary(&self, epoch: u64, sequence: u64) -> anyhow::Result<bool> {
        Ok(self.store.checkpoint_at(epoch, sequence)?.is_some())
    }

    /// The transition into `epoch`.
    ///
    /// # Errors
    /// When the store fails, or has none.
    pub fn transition(&self, epoch: u64) -> anyhow::Result<BrokerEpochTransition> {
        self.store.transition(epoch)?.with_context(|| format!("no transition into epoch {epoch}"))
    }

    /// The watermark of the epoch in force.
    pub fn watermark(&self, head: &Head) -> DurableWatermark {
        DurableWatermark {
            stream_id: self.chain.stream_id(),
            provider_epoch: ProviderEpoch,
            broker_epoch: head.epoch,
            last_durable_sequence: head.last_durable_sequence,
            checkpoint_anchor: head.checkpoint,
        }
    }

    /// The watermark of a record of `epoch`: a lineage that ended has the one that its transition names.
    ///
    /// # Errors
    /// When the store fails.
    pub fn watermark_of(&self, epoch: u64) -> anyhow::Result<DurableWatermark> {
        let head = self.head.borrow().clone();
        let watermark = self.watermark(&head);
        if epoch == head.epoch {
            return Ok(watermark);
        }
        let transition = self.transition(epoch.saturating_add(1))?;
        Ok(DurableWatermark {
            broker_epoch: epoch,
            last_durable_sequence: transition.last_durable_sequence,
            checkpoint_anchor: transition.last_durable_checkpoint,
            ..watermark
        })
    }

    /// Ends as a killed process does: what is provisional is lost, and nothing says that the end was clean. A commit that
    /// is under way is waited for; its like may or may not be in the store of one that is killed.
    pub async fn crash(&self) {
        let mut open = self.open.lock().await;
        open.closed = true;
        open.records.clear();
    }

    /// Stops accepting, makes everything durable and then says so durably: the next epoch begins `Clean`.
    ///
    /// # Errors
    /// When the store fails: the next epoch then begins `Void`.
    pub async fn close(&self) -> anyhow::Result<()> {
        let mut open = self.open.lock().await;
        anyhow::ensure!(!open.closed, "an earlier commit failed");
        open.closed = true;
        self.commit(&mut open).await?;
        let store = Arc::clone(&self.store);
        self.chain.clock().write(move || store.mark_clean()).await
    }
}

/// The header of a client's application record.
pub fn application_header(
    stream_id: &Bytes32,
    lane_id: &Bytes32,
    client_message_id: &Bytes32,
    created_at_ms: u64,
) -> RecordHeader {
    RecordHeader {
        stream_id: *stream_id,
        lane_id: *lane_id,
        origin: RecordOrigin::Client,
        kind: RecordKind::Application,
        client_message_id: *client_message_id,
        created_at_ms,
        visible_after_ms: 0,
        expires_at_ms: 0,
        encryption_generation: 0,
        nonce: Bytes24::ZERO,
    }
}
