//! The key stream (§9.3): batches are staged in chunks and become records in one transaction, or not at all.
//!
//! ```text
//! key-stages   batch digest            -> the signed batch and how many chunks it has
//! key-chunks   (batch digest, index)   -> envelopes
//! key-batches  batch digest            -> KeyBatchReceipt
//! key-members  (generation, order key) -> the recipient's HPKE key
//! ```

use std::sync::Arc;

use redb::{ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use remuda_verify::signature::PublicKey;
use remuda_wire::bound::MAX_KEY_ENVELOPES_PER_CHUNK;
use remuda_wire::key::HpkePublicKey;
use remuda_wire::key_batch::{KeyBatchReceipt, KeyEnvelope, KeyRotationBatch};
use remuda_wire::preimage::{
    envelope_digest, envelope_root, key_batch_genesis, membership_set_digest, recipient_order_key,
};
use remuda_wire::record::{RecordHeader, RecordKind, RecordOrigin};
use remuda_wire::request::{BeginKeyBatchRequest, PutKeyBatchChunkRequest};
use remuda_wire::response::KeyBatchStageResult;
use remuda_wire::{object, Bytes, Bytes24, Bytes32, Canonical, List, ProviderEpoch, Signature, Signed};

use crate::keys::sign;
use crate::log::Log;
use crate::refusal::{Code, Refusal};
use crate::store::{Store, StoredRecord};

const STAGES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("key-stages");
const CHUNKS: TableDefinition<'_, (&[u8; 32], u32), &[u8]> = TableDefinition::new("key-chunks");
const BATCHES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("key-batches");
const MEMBERS: TableDefinition<'_, (u64, &[u8; 32]), &[u8]> = TableDefinition::new("key-members");
const TAIL: &str = "key-batch-tail";

object! {
    /// A batch whose chunks are awaited.
    pub struct Stage { batch: KeyRotationBatch, total_chunks: u32, }
}

object! {
    /// The envelopes of one chunk.
    pub struct Chunk { envelopes: List<KeyEnvelope, MAX_KEY_ENVELOPES_PER_CHUNK>, }
}

/// Staging and committing batches of one key stream.
#[derive(Debug)]
pub struct KeyStream {
    log: Arc<Log>,
    main_stream_id: Bytes32,
}

fn invalid(message: &str) -> Refusal {
    Refusal::new(Code::InvalidKeyBatch, message)
}

impl KeyStream {
    /// The key stream of this log.
    ///
    /// # Errors
    /// When the store fails.
    pub fn open(log: Arc<Log>, main_stream_id: Bytes32) -> anyhow::Result<Self> {
        log.store.write(|transaction| {
            transaction.open_table(STAGES)?;
            transaction.open_table(CHUNKS)?;
            transaction.open_table(BATCHES)?;
            transaction.open_table(MEMBERS)?;
            Ok(())
        })?;
        Ok(Self { log, main_stream_id })
    }

    /// Its records.
    pub const fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Takes a signed batch whose envelopes will follow.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3938, 3924.
    pub fn begin(&self, body: BeginKeyBatchRequest) -> anyhow::Result<Result<KeyBatchStageResult, Refusal>> {
        let digest = body.batch.digest();
        self.log.store.decide(|transaction| {
            let staged = Self::stage_in(transaction, &digest)?;
            if staged.as_ref().is_some_and(|stage| stage.total_chunks != body.total_chunks) {
                return Ok(Err(invalid("this batch was begun with another number of chunks")));
            }
            if staged.is_none() {
                if let Err(refusal) = self.check_in(transaction, &body.batch)? {
                    return Ok(Err(refusal));
                }
                let stage = Stage { batch: body.batch, total_chunks: body.total_chunks };
                transaction.open_table(STAGES)?.insert(&digest.0, stage.to_bytes().as_slice())?;
            }
            self.progress_in(transaction, digest, body.total_chunks).map(Ok)
        })
    }

    /// Takes one chunk; the same again changes nothing.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3924.
    pub fn put(&self, body: PutKeyBatchChunkRequest) -> anyhow::Result<Result<KeyBatchStageResult, Refusal>> {
        self.log.store.decide(|transaction| {
            let Some(stage) = Self::stage_in(transaction, &body.batch_digest)? else {
                return Ok(Err(invalid("no such batch was begun")));
            };
            if body.chunk_index >= stage.total_chunks {
                return Ok(Err(invalid("there is no chunk of this index")));
            }
            let chunk = Chunk { envelopes: body.envelopes }.to_bytes();
            {
                let mut chunks = transaction.open_table(CHUNKS)?;
                let key = (&body.batch_digest.0, body.chunk_index);
                let differs = chunks.get(key)?.is_some_and(|before| before.value() != chunk.as_slice());
                if differs {
                    return Ok(Err(invalid("this chunk was sent with other bytes")));
                }
                chunks.insert(key, chunk.as_slice())?;
            }
            self.progress_in(transaction, body.batch_digest, stage.total_chunks).map(Ok)
        })
    }

    /// Makes a complete batch durable: header, envelopes, their receipts, both tails and the batch receipt. The same
    /// again is answered as before.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3924.
    pub fn commit(&self, digest: &Bytes32) -> anyhow::Result<Result<KeyBatchReceipt, Refusal>> {
        let committed = self.log.store.decide(|transaction| {
            if let Some(receipt) = transaction.open_table(BATCHES)?.get(&digest.0)? {
                return Ok(Ok(KeyBatchReceipt::from_bytes(receipt.value())?));
            }
            let Some(stage) = Self::stage_in(transaction, digest)? else {
                return Ok(Err(invalid("no such batch was begun")));
            };
            // The chain may have moved since it was begun.
            if let Err(refusal) = self.check_in(transaction, &stage.batch)? {
                return Ok(Err(refusal));
            }
            let mut envelopes = Vec::new();
            {
                let chunks = transaction.open_table(CHUNKS)?;
                for index in 0..stage.total_chunks {
                    let Some(chunk) = chunks.get((&digest.0, index))? else {
                        return Ok(Err(invalid("a chunk is missing")));
                    };
                    envelopes.extend(Chunk::from_bytes(chunk.value())?.envelopes.into_vec());
                }
            }
            if let Err(refusal) = self.check_envelopes_in(transaction, &stage.batch, &envelopes)? {
                return Ok(Err(refusal));
            }
            self.materialize_in(transaction, &stage.batch, &envelopes).map(Ok)
        })?;
        if committed.is_ok() {
            self.log.signal.raise();
        }
        Ok(committed)
    }

    /// True when a batch of the generation after the active one is committed: only then may the chain activate it.
    ///
    /// # Errors
    /// When the store fails.
    pub fn has_next_generation(&self) -> anyhow::Result<bool> {
        let next = self.log.chain.records().stream.encryption_generation.saturating_add(1);
        let table = self.log.store.database().begin_read()?.open_table(MEMBERS)?;
        let has_members = table.range((next, &[0; 32])..=(next, &[0xff; 32]))?.next().is_some();
        Ok(has_members)
    }

    fn stage_in(transaction: &WriteTransaction, digest: &Bytes32) -> anyhow::Result<Option<Stage>> {
        let table = transaction.open_table(STAGES)?;
        let row = table.get(&digest.0)?;
        Ok(row.map(|row| Stage::from_bytes(row.value())).transpose()?)
    }

    fn progress_in(
        &self,
        transaction: &WriteTransaction,
        batch_digest: Bytes32,
        total_chunks: u32,
    ) -> anyhow::Result<KeyBatchStageResult> {
        let chunks = transaction.open_table(CHUNKS)?;
        let accepted = chunks.range((&batch_digest.0, 0)..=(&batch_digest.0, u32::MAX))?.count();
        let accepted_chunks = u32::try_from(accepted)?;
        Ok(KeyBatchStageResult { key_stream_id: self.log.stream_id, batch_digest, total_chunks, accepted_chunks })
    }

    fn tail_in(&self, transaction: &WriteTransaction) -> anyhow::Result<Bytes32> {
        let tail = Store::meta_in(transaction, TAIL)?;
        let genesis = || key_batch_genesis(self.log.chain.context(), &self.log.stream_id);
        Ok(tail.map(|tail| Bytes32::from_bytes(&tail)).transpose()?.unwrap_or_else(genesis))
    }

    fn check_in(
        &self,
        transaction: &WriteTransaction,
        batch: &KeyRotationBatch,
    ) -> anyhow::Result<Result<(), Refusal>> {
        let records = self.log.chain.records();
        let active = records.stream.encryption_generation;
        if batch.context != *self.log.chain.context() {
            return Ok(Err(Refusal::new(Code::ChainInstanceMismatch, "signed for another chain")));
        }
        if batch.stream_id != self.main_stream_id {
            return Ok(Err(invalid("a batch names its main stream")));
        }
        let rotation = records.stream.rotation_key.as_ref().and_then(PublicKey::from_signing_key);
        if rotation.is_none_or(|key| key.verify_digest(batch, &batch.digest()).is_err()) {
            return Ok(Err(invalid("the rotation key did not sign this batch")));
        }
        if !(active..=active.saturating_add(1)).contains(&batch.encryption_generation) {
            return Ok(Err(invalid("a batch is for the active generation or the next")));
        }
        if batch.previous_batch_digest != self.tail_in(transaction)? {
            return Ok(Err(invalid("another batch was committed last")));
        }
        Ok(Ok(()))
    }

    fn check_envelopes_in(
        &self,
        transaction: &WriteTransaction,
        batch: &KeyRotationBatch,
        envelopes: &[KeyEnvelope],
    ) -> anyhow::Result<Result<(), Refusal>> {
        let generation = batch.encryption_generation;
        let digests: Vec<_> = envelopes.iter().map(envelope_digest).collect();
        let order_keys: Vec<_> = envelopes.iter().map(|it| recipient_order_key(&it.recipient_hpke_key)).collect();
        let ours = |it: &KeyEnvelope| it.stream_id == batch.stream_id && it.encryption_generation == generation;
        if digests != *batch.sorted_envelope_digests
            || !order_keys.is_sorted_by(|a, b| a < b)
            || !envelopes.iter().all(ours)
        {
            return Ok(Err(invalid("the envelopes are not those that the batch lists")));
        }
        let mut members: Vec<HpkePublicKey> = envelopes.iter().map(|it| it.recipient_hpke_key).collect();
        let table = transaction.open_table(MEMBERS)?;
        for row in table.range((generation, &[0; 32])..=(generation, &[0xff; 32]))? {
            members.push(HpkePublicKey::from_bytes(row?.1.value())?);
        }
        if membership_set_digest(&members) == batch.membership_set_digest {
            Ok(Ok(()))
        } else {
            Ok(Err(invalid("membership_set_digest is not that of the generation's members")))
        }
    }

    fn materialize_in(
        &self,
        transaction: &WriteTransaction,
        batch: &KeyRotationBatch,
        envelopes: &[KeyEnvelope],
    ) -> anyhow::Result<KeyBatchReceipt> {
        let (digest, before) = (batch.digest(), self.log.state_in(transaction)?);
        let header = self.record(RecordKind::KeyBatchHeader, &digest, batch.encryption_generation, batch)?;
        let mut last = self.log.append_in(transaction, header)?;
        for envelope in envelopes {
            let (name, generation) = (envelope_digest(envelope), batch.encryption_generation);
            let record = self.record(RecordKind::KeyEnvelope, &name, generation, envelope)?;
            last = self.log.append_in(transaction, record)?;
            let key = &envelope.recipient_hpke_key;
            let place = (generation, &recipient_order_key(key).0);
            transaction.open_table(MEMBERS)?.insert(place, key.to_bytes().as_slice())?;
        }
        let context = self.log.chain.context();
        let (count, generation) = (u32::try_from(envelopes.len())?, batch.encryption_generation);
        let mut receipt = KeyBatchReceipt {
            context: context.clone(),
            served_at: self.log.chain.view(),
            key_stream_id: self.log.stream_id,
            main_stream_id: self.main_stream_id,
            provider_epoch: ProviderEpoch,
            encryption_generation: generation,
            batch_digest: digest,
            envelope_count: count,
            envelope_root: envelope_root(
                context,
                &self.log.stream_id,
                generation,
                &digest,
                &batch.sorted_envelope_digests,
            ),
            first_sequence: before.next_sequence,
            last_sequence: before.next_sequence.saturating_add(u64::from(count)),
            previous_global_receipt: before.tail,
            final_append_receipt: last.digest(),
            signature: Signature::ZERO,
        };
        receipt.signature = sign(&self.log.keys.provider, &receipt);
        Store::put_meta_in(transaction, TAIL, &digest.to_bytes())?;
        transaction.open_table(BATCHES)?.insert(&digest.0, receipt.to_bytes().as_slice())?;
        transaction.open_table(STAGES)?.remove(&digest.0)?;
        transaction.open_table(CHUNKS)?.retain_in((&digest.0, 0)..=(&digest.0, u32::MAX), |_, _| false)?;
        Ok(receipt)
    }

    /// A record as §9.3 frames it.
    fn record(
        &self,
        kind: RecordKind,
        message_id: &Bytes32,
        encryption_generation: u64,
        content: &impl Canonical,
    ) -> anyhow::Result<StoredRecord> {
        Ok(StoredRecord {
            header: RecordHeader {
                stream_id: self.log.stream_id,
                lane_id: Bytes32::ZERO,
                origin: RecordOrigin::ProviderEvent,
                kind,
                client_message_id: *message_id,
                created_at_ms: self.log.chain.now_ms(),
                visible_after_ms: 0,
                expires_at_ms: 0,
                encryption_generation,
                nonce: Bytes24::ZERO,
            },
            payload: Bytes::new(content.to_bytes())?,
        })
    }
}
