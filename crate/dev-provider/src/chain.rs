//! A deterministic dev chain (§4): every block that it ever finalized can be read again, byte for byte.
//!
//! ```text
//! block hash = keccak("remuda-dev-block:" || chain instance || height)[..24] || height
//! ```
//! A hash carries its own height, so a pinned read needs no index. Records are kept from the height of each change on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use redb::{ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use remuda_wire::chain::{BrokerState, ProviderRecord, StreamRecord};
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::preimage::{chain_instance_id, keccak256};
use remuda_wire::{object, Bytes32, Canonical, VersionOne};
use tokio::sync::watch;

use crate::keys::{public_key, DevKeys};
use crate::refusal::{Code, Refusal};
use crate::store::Store;
use crate::time::Clock;

mod records;

pub use records::{endpoints, stream_config, Genesis};

/// The numeric chain id of every dev chain.
pub const CHAIN_ID: u64 = 39_039;
/// `cbqs.max_chain_staleness_blocks`, default.
const MAX_STALENESS_BLOCKS: u64 = 30;

/// Records by the height from which on they hold.
const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("chain");
const HEIGHT: &str = "height";

object! {
    /// The records of one height.
    pub struct Records {
        stream: StreamRecord,
        key_stream: Option<StreamRecord>,
        provider: ProviderRecord,
        /// Which of the dev admin keys is in force.
        admin_number: u32,
    }
}

impl Records {
    /// The record of a stream.
    pub fn of(&self, stream_id: &Bytes32) -> Option<&StreamRecord> {
        [Some(&self.stream), self.key_stream.as_ref()].into_iter().flatten().find(|it| it.stream_id == *stream_id)
    }

    /// Changes the stream, and the key stream with it (§4.1).
    pub fn both(&mut self, mut change: impl FnMut(&mut StreamRecord)) {
        change(&mut self.stream);
        self.key_stream.iter_mut().for_each(change);
    }
}

/// What is wrong between the broker and its node (§17). The view that the broker works by stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeFault {
    /// It hears nothing new: 3925 once it is too far behind.
    Behind,
    /// It hears nothing: 3941.
    Unreachable,
    /// What it hears contradicts what it heard: 3942.
    Inconsistent,
}

#[derive(Debug)]
struct Fault {
    fault: NodeFault,
    observed: FinalizedView,
}

/// The chain, its one stream, and the key stream of an encrypted one.
#[derive(Debug)]
pub struct Chain {
    context: SigningContext,
    history: RwLock<Vec<(u64, Arc<Records>)>>,
    /// The latest finalized view, as the node has it.
    view: watch::Sender<FinalizedView>,
    fault: Mutex<Option<Fault>>,
    store: Arc<Store>,
    clock: Clock,
}

impl Chain {
    /// Opens the chain of this store one block after the last that it served. `genesis` counts when the stream is new;
    /// everybody who serves this chain reads the time from `clock`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn open(
        store: Arc<Store>,
        keys: &DevKeys,
        endpoint: &str,
        genesis: &Genesis,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let instance = chain_instance_id(genesis_source(keys).as_bytes());
        let context = SigningContext { version: VersionOne, chain_id: CHAIN_ID, chain_instance_id: instance };
        let height = match store.meta(HEIGHT)? {
            Some(height) => u64::from_bytes(&height)?.saturating_add(1),
            None => 1,
        };
        let mut history = read_history(&store)?;
        let uris = endpoints(endpoint)?;
        let records = match history.last() {
            None => Some(genesis.records(&context, keys, uris)),
            Some((_, last)) if last.provider.endpoints != uris => {
                let mut records = Records::clone(last);
                records.provider.endpoints = uris;
                Some(records)
            }
            Some(_) => None,
        };
        finalize(&store, height, records.as_ref())?;
        history.extend(records.map(|records| (height, Arc::new(records))));
        let view = watch::Sender::new(view_at(&instance, height));
        Ok(Self { context, history: RwLock::new(history), view, fault: Mutex::default(), store, clock })
    }

    pub(crate) fn create_tables(transaction: &WriteTransaction) -> anyhow::Result<()> {
        transaction.open_table(RECORDS)?;
        Ok(())
    }

    /// What every signed object of this chain carries.
    pub const fn context(&self) -> &SigningContext {
        &self.context
    }

    /// The records at the view that the broker works by.
    pub fn records(&self) -> Arc<Records> {
        self.records_at(self.view().height)
    }

    fn records_at(&self, height: u64) -> Arc<Records> {
        let history = self.history.read().unwrap_or_else(PoisonError::into_inner);
        let at = history.partition_point(|(since, _)| *since <= height).saturating_sub(1);
        // There is a first row since `open`, and what is asked for is not before it.
        Arc::clone(&history[at.min(history.len() - 1)].1)
    }

    /// The main stream's id, the same for ever.
    pub fn stream_id(&self) -> Bytes32 {
        self.records().stream.stream_id
    }

    /// The stream as the broker sees it.
    pub fn stream(&self) -> StreamRecord {
        self.records().stream.clone()
    }

    /// What its time is read from.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// The finalized view that the broker works by: the latest, unless it cannot hear of it.
    pub fn view(&self) -> FinalizedView {
        self.fault().as_ref().map_or_else(|| self.view.borrow().clone(), |fault| fault.observed.clone())
    }

    /// Whether the broker may decide anything now (§7).
    ///
    /// # Errors
    /// 3925, 3941, 3942.
    pub fn check(&self) -> Result<(), Refusal> {
        let fault = self.fault();
        let Some(Fault { fault, observed }) = fault.as_ref() else { return Ok(()) };
        match fault {
            NodeFault::Behind => {
                if self.view.borrow().height.saturating_sub(observed.height) <= MAX_STALENESS_BLOCKS {
                    return Ok(());
                }
                Err(Refusal::new(Code::ChainStateStale, "the finalized view is too old"))
            }
            NodeFault::Unreachable => Err(Refusal::new(Code::ChainUnreachable, "finalized state cannot be read")),
            NodeFault::Inconsistent => {
                Err(Refusal::new(Code::ChainViewInconsistent, "the node contradicts what it said before"))
            }
        }
    }

    fn fault(&self) -> MutexGuard<'_, Option<Fault>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Breaks the way to the node, or repairs it.
    pub fn set_fault(&self, fault: Option<NodeFault>) {
        let observed = self.view();
        *self.fault() = fault.map(|fault| Fault { fault, observed });
    }

    /// The fault in force.
    pub fn node_fault(&self) -> Option<NodeFault> {
        self.fault().as_ref().map(|fault| fault.fault)
    }

    /// Finalizes one more block: stored, then served.
    ///
    /// # Errors
    /// When the store fails; the view then stays.
    pub fn advance(&self) -> anyhow::Result<()> {
        self.finalize_next(None)
    }

    /// Finalizes one more block that changes the records.
    ///
    /// # Errors
    /// When the store fails; nothing has changed then.
    pub fn change(&self, change: impl FnOnce(&mut Records)) -> anyhow::Result<()> {
        let mut records = Records::clone(&self.records_at(u64::MAX));
        change(&mut records);
        self.finalize_next(Some(records))
    }

    fn finalize_next(&self, records: Option<Records>) -> anyhow::Result<()> {
        // One block at a time.
        let mut history = self.history.write().unwrap_or_else(PoisonError::into_inner);
        let height = self.view.borrow().height.saturating_add(1);
        finalize(&self.store, height, records.as_ref())?;
        history.extend(records.map(|records| (height, Arc::new(records))));
        drop(history);
        self.view.send_replace(view_at(&self.context.chain_instance_id, height));
        Ok(())
    }

    /// The atomic broker state of a stream at the node's latest view, or at the block called `block`; `None` for a block
    /// never finalized.
    pub fn broker_state_of(&self, stream_id: &Bytes32, block: Option<&Bytes32>) -> Option<BrokerState> {
        let latest = self.view.borrow().clone();
        let mut view = match block {
            None => latest,
            Some(block) => {
                let height = height_of(block);
                let view = view_at(&self.context.chain_instance_id, height);
                ((1..=latest.height).contains(&height) && view.block_hash == *block).then_some(view)?
            }
        };
        if block.is_none() && self.node_fault() == Some(NodeFault::Inconsistent) {
            view.block_hash = keccak256(&view.block_hash.0);
        }
        let records = self.records_at(view.height);
        Some(BrokerState {
            version: VersionOne,
            effective_rent_height: view.height,
            view,
            stream: records.of(stream_id).cloned(),
            provider: Some(records.provider.clone()),
        })
    }

    /// The same of the main stream.
    pub fn broker_state(&self, block: Option<&Bytes32>) -> Option<BrokerState> {
        self.broker_state_of(&self.stream_id(), block)
    }
}

fn read_history(store: &Store) -> anyhow::Result<Vec<(u64, Arc<Records>)>> {
    let table = store.database().begin_read()?.open_table(RECORDS)?;
    let rows = table.iter()?.map(|row| {
        let (height, records) = row?;
        Ok((height.value(), Arc::new(Records::from_bytes(records.value())?)))
    });
    rows.collect()
}

fn finalize(store: &Store, height: u64, records: Option<&Records>) -> anyhow::Result<()> {
    store.write(|transaction| {
        Store::put_meta_in(transaction, HEIGHT, &height.to_bytes())?;
        if let Some(records) = records {
            transaction.open_table(RECORDS)?.insert(height, records.to_bytes().as_slice())?;
        }
        Ok(())
    })
}

fn genesis_source(keys: &DevKeys) -> String {
    let (admin, provider) = (public_key(&keys.admin(0)).0, public_key(&keys.provider).0);
    format!("{{\"chain\":\"remuda-dev\",\"chainId\":{CHAIN_ID},\"admin\":\"{admin}\",\"provider\":\"{provider}\"}}\n")
}

fn view_at(instance: &Bytes32, height: u64) -> FinalizedView {
    let height_bytes = height.to_be_bytes();
    let mut block_hash = keccak256(&[b"remuda-dev-block:", instance.0.as_slice(), &height_bytes].concat());
    block_hash.0[24..].copy_from_slice(&height_bytes);
    FinalizedView { chain_instance_id: *instance, height, block_hash }
}

fn height_of(block: &Bytes32) -> u64 {
    block.0[24..].iter().fold(0, |height, byte| height << 8 | u64::from(*byte))
}
