//! The durable log of a standard stream (§11, §14.1): records with their append receipts, in one global chain and one
//! chain for each lane. Of a fast stream it holds the receipts of lane events alone.
//!
//! ```text
//! log          (log, sequence)        -> LogRecord
//! log-lanes    (log, lane, sequence)  -> nothing: the index of one lane
//! log-state    log                    -> LogState: next sequence, global tail, bytes
//! log-tails    (log, lane)            -> the lane's last receipt
//! ```
//! Whatever §14.3 commits together is one transaction here: callers hand it in.

use std::sync::Arc;

use redb::{ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::preimage::{keccak256, lane_receipt_genesis, record_header_hash, stream_receipt_genesis};
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::record::{RecordHeader, RecordId, StandardRecordId};
use remuda_wire::scope::LaneScope;
use remuda_wire::{bound, object, Bytes, Bytes32, Canonical, ProviderEpoch, Signature, Signed};

use crate::chain::Chain;
use crate::keys::{sign, DevKeys};
use crate::signal::Signal;
use crate::store::{Store, StoredRecord};

mod append;

pub use append::appended_record;

pub(crate) const LOG: TableDefinition<'_, (u8, u64), &[u8]> = TableDefinition::new("log");
pub(crate) const LANES: TableDefinition<'_, (u8, &[u8; 32], u64), ()> = TableDefinition::new("log-lanes");
const STATE: TableDefinition<'_, u8, &[u8]> = TableDefinition::new("log-state");
const TAILS: TableDefinition<'_, (u8, &[u8; 32]), &[u8; 32]> = TableDefinition::new("log-tails");

object! {
    /// A record with its receipt.
    pub struct LogRecord {
        header: RecordHeader,
        payload: Bytes<{ bound::MAX_INLINE_MESSAGE_BYTES }>,
        receipt: AppendReceipt,
    }
}

impl LogRecord {
    /// The record as a subscription without leases is sent it.
    pub fn delivery(self, subscription_id: Bytes32) -> RecordDelivery {
        RecordDelivery {
            subscription_id,
            record_id: self.receipt.record_id,
            header: self.header,
            payload: self.payload,
            append_receipt: Some(self.receipt),
            lease: None,
            delivery_state_receipt: None,
            durable_watermark: None,
        }
    }
}

object! {
    /// Where a log stands.
    pub struct LogState {
        /// The sequence of the next record.
        next_sequence: u64,
        /// The last receipt, or the stream's genesis.
        tail: Bytes32,
        /// The first sequence that is still there.
        first_retained: u64,
        /// Payload bytes from there on.
        retained_bytes: u64,
    }
}

/// Which stream a log is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOf {
    /// The main stream.
    Main,
    /// Its key stream.
    Key,
}

impl LogOf {
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Main => 0,
            Self::Key => 1,
        }
    }
}

/// One stream's log.
#[derive(Debug)]
pub struct Log {
    pub(crate) of: LogOf,
    pub(crate) stream_id: Bytes32,
    pub(crate) store: Arc<Store>,
    pub(crate) chain: Arc<Chain>,
    pub(crate) keys: Arc<DevKeys>,
    /// Moved by whatever a subscriber may wait for.
    pub(crate) signal: Signal,
}

impl Log {
    /// The log of `stream_id`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn open(
        of: LogOf,
        stream_id: Bytes32,
        store: Arc<Store>,
        chain: Arc<Chain>,
        keys: Arc<DevKeys>,
        signal: Signal,
    ) -> anyhow::Result<Self> {
        store.write(|transaction| {
            transaction.open_table(LOG)?;
            transaction.open_table(LANES)?;
            transaction.open_table(STATE)?;
            transaction.open_table(TAILS)?;
            append::create_tables(transaction)
        })?;
        Ok(Self { of, stream_id, store, chain, keys, signal })
    }

    /// Where the log stands.
    ///
    /// # Errors
    /// When the store fails.
    pub fn state(&self) -> anyhow::Result<LogState> {
        let table = self.store.database().begin_read()?.open_table(STATE)?;
        let row = table.get(self.of.number())?;
        row.map_or_else(|| Ok(self.genesis()), |row| Ok(LogState::from_bytes(row.value())?))
    }

    pub(crate) fn state_in(&self, transaction: &WriteTransaction) -> anyhow::Result<LogState> {
        let table = transaction.open_table(STATE)?;
        let row = table.get(self.of.number())?;
        row.map_or_else(|| Ok(self.genesis()), |row| Ok(LogState::from_bytes(row.value())?))
    }

    pub(crate) fn put_state_in(&self, transaction: &WriteTransaction, state: &LogState) -> anyhow::Result<()> {
        transaction.open_table(STATE)?.insert(self.of.number(), state.to_bytes().as_slice())?;
        Ok(())
    }

    fn genesis(&self) -> LogState {
        let tail = stream_receipt_genesis(self.chain.context(), &self.stream_id);
        LogState { next_sequence: 0, tail, first_retained: 0, retained_bytes: 0 }
    }

    /// Appends a record: its bytes, its receipt and both tails. The payload counts against the stream's quota.
    pub(crate) fn append_in(
        &self,
        transaction: &WriteTransaction,
        record: StoredRecord,
    ) -> anyhow::Result<AppendReceipt> {
        let sequence = self.state_in(transaction)?.next_sequence;
        let id = RecordId::Standard(StandardRecordId { provider_epoch: ProviderEpoch, sequence });
        let receipt = self.link_in(transaction, &record, id)?;
        let mut state = self.state_in(transaction)?;
        state.next_sequence = sequence.saturating_add(1);
        state.retained_bytes = state.retained_bytes.saturating_add(u64::try_from(record.payload.len())?);
        self.put_state_in(transaction, &state)?;
        let number = self.of.number();
        transaction.open_table(LANES)?.insert((number, &record.header.lane_id.0, sequence), ())?;
        let row = LogRecord { header: record.header, payload: record.payload, receipt: receipt.clone() };
        transaction.open_table(LOG)?.insert((number, sequence), row.to_bytes().as_slice())?;
        Ok(receipt)
    }

    /// Signs the receipt of a record under `id` and moves both tails to it.
    pub(crate) fn link_in(
        &self,
        transaction: &WriteTransaction,
        record: &StoredRecord,
        id: RecordId,
    ) -> anyhow::Result<AppendReceipt> {
        let (header, context) = (&record.header, self.chain.context());
        let mut state = self.state_in(transaction)?;
        let mut tails = transaction.open_table(TAILS)?;
        let key = (self.of.number(), &header.lane_id.0);
        let lane_tail = tails.get(key)?.map(|tail| Bytes32(*tail.value()));
        let mut receipt = AppendReceipt {
            context: context.clone(),
            served_at: self.chain.view(),
            stream_id: self.stream_id,
            lane_id: header.lane_id,
            origin: header.origin,
            kind: header.kind,
            record_id: id,
            client_message_id: header.client_message_id,
            header_hash: record_header_hash(header),
            payload_hash: keccak256(&record.payload),
            visible_after_ms: header.visible_after_ms,
            expires_at_ms: header.expires_at_ms,
            encryption_generation: header.encryption_generation,
            previous_global_receipt: state.tail,
            previous_lane_receipt: lane_tail
                .unwrap_or_else(|| lane_receipt_genesis(context, &self.stream_id, &header.lane_id)),
            committed_at_ms: self.chain.now_ms(),
            signature: Signature::ZERO,
        };
        receipt.signature = sign(&self.keys.provider, &receipt);
        let digest = receipt.digest();
        tails.insert(key, &digest.0)?;
        drop(tails);
        state.tail = digest;
        self.put_state_in(transaction, &state)?;
        Ok(receipt)
    }

    /// The last receipt of a lane.
    pub(crate) fn lane_tail_in(&self, transaction: &WriteTransaction, lane: &Bytes32) -> anyhow::Result<Bytes32> {
        let tails = transaction.open_table(TAILS)?;
        let tail = tails.get((self.of.number(), &lane.0))?.map(|tail| Bytes32(*tail.value()));
        Ok(tail.unwrap_or_else(|| lane_receipt_genesis(self.chain.context(), &self.stream_id, lane)))
    }

    /// One record.
    ///
    /// # Errors
    /// When the store fails.
    pub fn record(&self, sequence: u64) -> anyhow::Result<Option<LogRecord>> {
        let table = self.store.database().begin_read()?.open_table(LOG)?;
        let Some(row) = table.get((self.of.number(), sequence))? else { return Ok(None) };
        Ok(Some(LogRecord::from_bytes(row.value())?))
    }

    /// The first record of `scope` at or after `sequence`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn next_in(&self, scope: &LaneScope, sequence: u64) -> anyhow::Result<Option<(u64, LogRecord)>> {
        let transaction = self.store.database().begin_read()?;
        let number = self.of.number();
        let found = match scope.lanes() {
            None => {
                let log = transaction.open_table(LOG)?;
                let first = log.range((number, sequence)..=(number, u64::MAX))?.next();
                first.transpose()?.map(|(key, _)| key.value().1)
            }
            Some(lanes) => {
                let index = transaction.open_table(LANES)?;
                let mut found = None;
                for lane in lanes {
                    let range = (number, &lane.0, sequence)..=(number, &lane.0, u64::MAX);
                    let first = index.range(range)?.next().transpose()?.map(|(key, _)| key.value().2);
                    found = [found, first].into_iter().flatten().min();
                }
                found
            }
        };
        let Some(sequence) = found else { return Ok(None) };
        Ok(self.record(sequence)?.map(|record| (sequence, record)))
    }
}
