//! What survives a crash: one redb file. Here are the tables of a fast stream; others are beside what they are of. Every write here is one transaction, durable when it returns.
//!
//! ```text
//! meta         name                    -> bytes    seed, height, epoch, clean
//! records      (epoch, sequence)       -> header || payload, canonical
//! checkpoints  (epoch, last_sequence)  -> CheckpointReceipt
//! transitions  replacement epoch       -> BrokerEpochTransition
//! ```
//! Only durable records are here: what a crash loses was never written, so a void lineage needs no cleaning.

use std::path::Path;

use anyhow::Context;
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use remuda_wire::checkpoint::CheckpointReceipt;
use remuda_wire::record::RecordHeader;
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::{bound, Bytes, Canonical, Reader, Writer};

use crate::chain::Chain;
use crate::refusal::Refusal;

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const RECORDS: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("records");
const CHECKPOINTS: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("checkpoints");
const TRANSITIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("transitions");

const EPOCH: &str = "epoch";
const CLEAN: &str = "clean";

/// A record without its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// What the broker sees of it.
    pub header: RecordHeader,
    /// The rest.
    pub payload: Bytes<{ bound::MAX_INLINE_MESSAGE_BYTES }>,
}

impl StoredRecord {
    fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.header.encode(&mut writer);
        self.payload.encode(&mut writer);
        writer.into_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> anyhow::Result<Self> {
        let mut reader = Reader::new(bytes);
        let record = Self { header: Canonical::decode(&mut reader)?, payload: Canonical::decode(&mut reader)? };
        reader.finish()?;
        Ok(record)
    }
}

/// How the last run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// Its broker epoch.
    pub epoch: u64,
    /// Whether it durably said that nothing provisional was left.
    pub clean: bool,
}

/// The open database.
#[derive(Debug)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens or creates the database in `directory`. A second process on one directory is refused.
    ///
    /// # Errors
    /// When the directory or file cannot be used.
    pub fn open(directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let path = directory.join("provider.redb");
        Self::create(Database::create(&path).with_context(|| format!("cannot open {}", path.display()))?)
    }

    /// A database that lasts as long as this value, whatever becomes of the brokers that write to it.
    ///
    /// # Errors
    /// When memory cannot be used.
    pub fn in_memory() -> anyhow::Result<Self> {
        Self::create(Database::builder().create_with_backend(InMemoryBackend::new())?)
    }

    fn create(database: Database) -> anyhow::Result<Self> {
        let transaction = database.begin_write()?;
        transaction.open_table(META)?;
        transaction.open_table(RECORDS)?;
        transaction.open_table(CHECKPOINTS)?;
        transaction.open_table(TRANSITIONS)?;
        Chain::create_tables(&transaction)?;
        transaction.commit()?;
        Ok(Self { database })
    }

    /// The database, for reads.
    pub(crate) const fn database(&self) -> &Database {
        &self.database
    }

    /// Everything that `work` does, together or not at all.
    ///
    /// # Errors
    /// When the database cannot be written, or `work` fails.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&WriteTransaction) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let transaction = self.database.begin_write()?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// The same; a refusal leaves everything as it was.
    ///
    /// # Errors
    /// The outer when the database cannot be written, or `work` fails.
    pub(crate) fn decide<T>(
        &self,
        work: impl FnOnce(&WriteTransaction) -> anyhow::Result<Result<T, Refusal>>,
    ) -> anyhow::Result<Result<T, Refusal>> {
        let transaction = self.database.begin_write()?;
        let decided = work(&transaction)?;
        match &decided {
            Ok(_) => transaction.commit()?,
            Err(_) => transaction.abort()?,
        }
        Ok(decided)
    }

    /// Keeps a named value within a transaction.
    pub(crate) fn put_meta_in(transaction: &WriteTransaction, name: &str, value: &[u8]) -> anyhow::Result<()> {
        transaction.open_table(META)?.insert(name, value)?;
        Ok(())
    }

    /// A named value.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn meta(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let table = self.database.begin_read()?.open_table(META)?;
        Ok(table.get(name)?.map(|value| value.value().to_vec()))
    }

    /// Keeps a named value.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn put_meta(&self, name: &str, value: &[u8]) -> anyhow::Result<()> {
        self.write(|transaction| Self::put_meta_in(transaction, name, value))
    }

    /// A named value, made and kept when there is none.
    ///
    /// # Errors
    /// When the database fails, or `make` does.
    pub fn meta_or(&self, name: &str, make: impl FnOnce() -> anyhow::Result<Vec<u8>>) -> anyhow::Result<Vec<u8>> {
        if let Some(value) = self.meta(name)? {
            return Ok(value);
        }
        let value = make()?;
        self.put_meta(name, &value)?;
        Ok(value)
    }

    /// How the last run ended; `None` for a new stream.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn last_run(&self) -> anyhow::Result<Option<LastRun>> {
        let Some(epoch) = self.meta(EPOCH)? else { return Ok(None) };
        Ok(Some(LastRun { epoch: u64::from_bytes(&epoch)?, clean: self.meta(CLEAN)?.is_some() }))
    }

    /// Begins an epoch: its number and its transition, and no clean marker any more.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn begin_epoch(&self, transition: &BrokerEpochTransition) -> anyhow::Result<()> {
        let epoch = transition.replacement_broker_epoch;
        let transaction = self.database.begin_write()?;
        {
            let mut meta = transaction.open_table(META)?;
            meta.insert(EPOCH, epoch.to_bytes().as_slice())?;
            meta.remove(CLEAN)?;
            transaction.open_table(TRANSITIONS)?.insert(epoch, transition.to_bytes().as_slice())?;
        }
        Ok(transaction.commit()?)
    }

    /// Says durably that the epoch in force has nothing provisional.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn mark_clean(&self) -> anyhow::Result<()> {
        self.put_meta(CLEAN, &[1])
    }

    /// Makes a batch durable: its records, its checkpoint and what `with` adds, together or not at all.
    ///
    /// # Errors
    /// When the database cannot be written, or `with` fails.
    pub(crate) fn commit_batch<T>(
        &self,
        receipt: &CheckpointReceipt,
        records: &[StoredRecord],
        with: impl FnOnce(&WriteTransaction) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.write(|transaction| {
            let mut table = transaction.open_table(RECORDS)?;
            for (sequence, record) in (receipt.first_sequence..).zip(records) {
                table.insert((receipt.broker_epoch, sequence), record.to_bytes().as_slice())?;
            }
            let key = (receipt.broker_epoch, receipt.last_sequence);
            transaction.open_table(CHECKPOINTS)?.insert(key, receipt.to_bytes().as_slice())?;
            with(transaction)
        })
    }

    /// The transition into `epoch`.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn transition(&self, epoch: u64) -> anyhow::Result<Option<BrokerEpochTransition>> {
        let table = self.database.begin_read()?.open_table(TRANSITIONS)?;
        let Some(value) = table.get(epoch)? else { return Ok(None) };
        Ok(Some(BrokerEpochTransition::from_bytes(value.value())?))
    }

    /// The last checkpoint of any epoch.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn last_checkpoint(&self) -> anyhow::Result<Option<CheckpointReceipt>> {
        let table = self.database.begin_read()?.open_table(CHECKPOINTS)?;
        let Some((_, value)) = table.last()? else { return Ok(None) };
        Ok(Some(CheckpointReceipt::from_bytes(value.value())?))
    }

    /// The checkpoint of `epoch` that ends at exactly `last_sequence`.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn checkpoint_at(&self, epoch: u64, last_sequence: u64) -> anyhow::Result<Option<CheckpointReceipt>> {
        let table = self.database.begin_read()?.open_table(CHECKPOINTS)?;
        let Some(value) = table.get((epoch, last_sequence))? else { return Ok(None) };
        Ok(Some(CheckpointReceipt::from_bytes(value.value())?))
    }

    /// The first checkpoint of `epoch` that ends at or after `sequence`: the one that covers it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn checkpoint_covering(&self, epoch: u64, sequence: u64) -> anyhow::Result<Option<CheckpointReceipt>> {
        let table = self.database.begin_read()?.open_table(CHECKPOINTS)?;
        let Some(entry) = table.range((epoch, sequence)..=(epoch, u64::MAX))?.next() else { return Ok(None) };
        Ok(Some(CheckpointReceipt::from_bytes(entry?.1.value())?))
    }

    /// The records of one checkpoint, ascending.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn records(&self, receipt: &CheckpointReceipt) -> anyhow::Result<Vec<StoredRecord>> {
        let table = self.database.begin_read()?.open_table(RECORDS)?;
        let (epoch, first, last) = (receipt.broker_epoch, receipt.first_sequence, receipt.last_sequence);
        table.range((epoch, first)..=(epoch, last))?.map(|entry| StoredRecord::from_bytes(entry?.1.value())).collect()
    }
}
