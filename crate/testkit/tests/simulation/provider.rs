//! The development provider inside the simulation: its store outlives it, its clock is the simulation's.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ed25519_dalek::Signer;
use remuda_client::{ChainReadError, GroupId};
use remuda_dev_provider::broker::application_header;
use remuda_dev_provider::chain::Operation;
use remuda_dev_provider::demo;
use remuda_dev_provider::exchange::Connection;
use remuda_dev_provider::groups::{self, Attempt, Consumer, Settlement};
use remuda_dev_provider::http::Site;
use remuda_dev_provider::lie::Lie;
use remuda_dev_provider::outbox::Outbox;
use remuda_dev_provider::refusal::Code;
use remuda_dev_provider::server::site;
use remuda_dev_provider::settings::{Class, Settings};
use remuda_dev_provider::store::{Store, StoredRecord};
use remuda_dev_provider::subscription::Window;
use remuda_dev_provider::time::Clock;
use remuda_position::StreamPoint;
use remuda_session::TransportError;
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::frame::ClientFrame;
use remuda_wire::grant::StreamGrant;
use remuda_wire::group::DeliveryLeaseRef;
use remuda_wire::preimage::{keccak256, key_stream_id};
use remuda_wire::record::FastRecordId;
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::{Bytes, Bytes32, Canonical, ProviderEpoch, Signature};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::sockets::Peer;

/// A provider that can be killed, stopped and started again on the same store.
pub struct Provider {
    settings: Settings,
    store: Arc<Store>,
    clock: Clock,
    seed: u64,
    running: Option<Running>,
}

struct Running {
    site: Arc<Site>,
    run: JoinHandle<()>,
    stop: watch::Sender<bool>,
    requests: Vec<tokio::task::AbortHandle>,
}

fn new_store(seed: u64) -> Arc<Store> {
    let store = Arc::new(Store::in_memory().expect("memory"));
    store.put_meta("seed", &keccak256(&seed.to_be_bytes()).to_bytes()).expect("a new store");
    store
}

/// Settings of a provider that tells the truth, without a writer of its own.
pub fn settings() -> Settings {
    Settings { lanes: 6, block_ms: 0, ..Settings::default() }
}

impl Provider {
    /// A running provider; `seed` makes its keys.
    pub fn start(settings: Settings, clock: Clock, seed: u64) -> Self {
        let mut provider = Self { settings, store: new_store(seed), clock, seed, running: None };
        provider.restart();
        provider
    }

    /// Starts the next epoch.
    pub fn restart(&mut self) {
        assert!(self.running.is_none(), "it runs");
        let (stop, closing) = watch::channel(false);
        let site = site(&self.settings, Arc::clone(&self.store), self.clock.clone(), "127.0.0.1:1", closing);
        let site = Arc::new(site.expect("a site"));
        let run = tokio::spawn(Arc::clone(&site.exchange.broker).run());
        self.running = Some(Running { site, run, stop, requests: Vec::new() });
    }

    /// `kill -9`.
    pub async fn kill(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.site.exchange.broker.crash().await;
        running.end();
    }

    /// SIGTERM.
    pub async fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.site.exchange.broker.close().await.expect("a clean end");
        running.stop.send_replace(true);
        running.end();
    }

    /// Loses everything that it ever acknowledged, and begins again as the same provider of the same stream.
    pub async fn begin_again(&mut self) {
        self.kill().await;
        self.store = new_store(self.seed);
        self.restart();
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Answers one body that arrives after `there`. The future ends with the connection when the provider is killed.
    pub fn answer_after(
        &mut self,
        there: Duration,
        body: Vec<u8>,
    ) -> impl Future<Output = Result<Vec<u8>, TransportError>> + Send + 'static {
        let task = self.running.as_mut().map(|running| {
            let site = Arc::clone(&running.site);
            let task = tokio::spawn(async move {
                tokio::time::sleep(there).await;
                let frame = ClientFrame::from_bytes(&body).expect("we send canonical frames");
                site.exchange.answer(frame).await.expect("the provider's store works")
            });
            running.requests.retain(|request| !request.is_finished());
            running.requests.push(task.abort_handle());
            AbortOnDrop(task)
        });
        async move {
            match task {
                None => Err(TransportError::Offline),
                Some(mut task) => (&mut task.0).await.map_err(|_| TransportError::Aborted),
            }
        }
    }

    /// Accepts a WebSocket; `None` while nothing runs. It ends when the provider is killed.
    pub fn connect(&mut self) -> Option<Peer> {
        let running = self.running.as_mut()?;
        let site = Arc::clone(&running.site);
        let (sent, mut messages) = unbounded_channel::<Vec<u8>>();
        let (answers, received) = unbounded_channel();
        let task = tokio::spawn(async move {
            let mut connection = Connection::new(&site.exchange);
            loop {
                let frames = tokio::select! {
                    biased;
                    message = messages.recv() => {
                        let Some(message) = message else { return };
                        let frame = ClientFrame::from_bytes(&message).expect("we send canonical frames");
                        connection.receive(frame).await
                    }
                    frames = connection.ready() => frames,
                };
                let frames = frames.expect("the provider's store works");
                if frames.is_empty() || frames.into_iter().any(|frame| answers.send(frame).is_err()) {
                    return;
                }
            }
        });
        running.requests.retain(|request| !request.is_finished());
        running.requests.push(task.abort_handle());
        Some(Peer { sent, received })
    }

    /// A chain read of one of its streams.
    pub fn read_chain(&self, stream_id: &Bytes32, view: Option<&FinalizedView>) -> Result<Vec<u8>, ChainReadError> {
        let running = self.running.as_ref().ok_or(ChainReadError::Transport(TransportError::Offline))?;
        let state = running.site.exchange.broker.chain.broker_state_of(stream_id, view.map(|view| &view.block_hash));
        Ok(state.ok_or(ChainReadError::Gone)?.to_bytes())
    }

    /// Finalizes one more block.
    pub fn advance(&self) {
        if let Some(running) = &self.running {
            running.site.exchange.broker.chain.advance().expect("the provider's store works");
        }
    }

    /// Finalizes one more block with this change.
    pub fn operate(&self, operation: Operation) {
        let broker = &self.site().exchange.broker;
        broker.chain.perform(operation, &broker.keys).expect("the provider's store works");
    }

    /// Takes one record of another writer.
    pub async fn write(&self, lane: Bytes32, number: u64) {
        self.write_sized(lane, number, 0).await;
    }

    /// Takes one record of at least `bytes`.
    pub async fn write_sized(&self, lane: Bytes32, number: u64, bytes: usize) {
        let Some(running) = &self.running else { return };
        let broker = &running.site.exchange.broker;
        let id = keccak256(&number.to_be_bytes());
        let mut payload = format!("record {number}").into_bytes();
        payload.resize(payload.len().max(bytes), b' ');
        let record = StoredRecord {
            header: application_header(&self.stream_id(), &lane, &id, self.clock.now_ms()),
            payload: Bytes::new(payload).expect("short"),
        };
        broker.append(record).await.expect("an open broker");
    }

    pub fn context(&self) -> SigningContext {
        self.site().exchange.broker.chain.context().clone()
    }

    pub fn stream_id(&self) -> Bytes32 {
        self.site().exchange.broker.chain.stream().stream_id
    }

    /// The stream's rotation key signs: the owner's rotation workload does.
    pub fn sign_rotation(&self, digest: &Bytes32) -> Signature {
        Signature(self.site().exchange.broker.keys.rotation.sign(&digest.0).to_bytes())
    }

    /// What it tells from now on.
    pub fn tell(&self, lies: Vec<Lie>, after: u64) {
        self.site().exchange.tell(lies, Some(after));
    }

    /// The generation that appends are sealed under.
    pub fn encryption_generation(&self) -> u64 {
        self.site().exchange.broker.chain.stream().encryption_generation
    }

    /// The demo lanes.
    pub fn lanes(&self) -> Vec<Bytes32> {
        self.site().lanes.iter().map(|lane| lane.id).collect()
    }

    /// The first `count` demo lanes.
    pub fn scope(&self, count: usize) -> LaneScope {
        LaneScope::Set(LaneSet::new(self.lanes()[..count].to_vec()).expect("few").expect("some"))
    }

    /// A grant of everything for `holder`.
    pub fn grant(&self, holder: &Bytes32, ttl_ms: u64) -> StreamGrant {
        self.grant_of(
            &self.stream_id(),
            &["APPEND", "CONSUME", "REPLAY", "LANE_ADMIN", "ACKNOWLEDGE", "GROUP_ADMIN", "REDRIVE"],
            holder,
            ttl_ms,
        )
    }

    /// A grant to read the key stream, and to publish batches there.
    pub fn key_grant(&self, holder: &Bytes32, ttl_ms: u64) -> StreamGrant {
        self.grant_of(&key_stream_id(&self.stream_id()), &["APPEND", "REPLAY"], holder, ttl_ms)
    }

    fn grant_of(&self, stream_id: &Bytes32, verbs: &[&str], holder: &Bytes32, ttl_ms: u64) -> StreamGrant {
        let broker = &self.site().exchange.broker;
        let request = serde_json::json!({
            "holderKey": holder.to_string(),
            "stream": stream_id.to_string(),
            "ttlMs": ttl_ms,
            "verbs": verbs,
            // Envelopes are not opened here, so any other key will do.
            "hpkeKey": broker.chain.stream().encrypted.then(|| keccak256(&holder.0).to_string()),
        });
        let request = serde_json::from_value(request).expect("a request");
        let answer = demo::grant(&request, &broker.chain, &broker.keys).expect("a grant");
        let answer = serde_json::to_value(answer).expect("JSON");
        let bytes = hex::decode(answer["grant"].as_str().expect("text")).expect("hexadecimal");
        StreamGrant::from_bytes(&bytes).expect("a canonical grant")
    }

    /// Where a reader that has everything stands.
    pub fn head(&self) -> StreamPoint {
        let head = self.site().exchange.broker.head().borrow().clone();
        StreamPoint { broker_epoch: head.epoch, next_sequence: head.next_sequence }
    }

    /// Every durable record of `scope`, in order.
    pub fn durable(&self, scope: &LaneScope) -> Vec<(FastRecordId, StoredRecord)> {
        let last_epoch = self.store.last_run().expect("a store").map_or(0, |run| run.epoch);
        let mut records = Vec::new();
        for broker_epoch in 0..=last_epoch {
            let mut next = 0;
            while let Some(receipt) = self.store.checkpoint_covering(broker_epoch, next).expect("a store") {
                let all = (receipt.first_sequence..).zip(self.store.records(&receipt).expect("a store"));
                records.extend(all.filter(|(_, record)| scope.contains(&record.header.lane_id)).map(
                    |(sequence, record)| {
                        (FastRecordId { provider_epoch: ProviderEpoch, broker_epoch, sequence }, record)
                    },
                ));
                next = receipt.last_sequence + 1;
            }
        }
        records
    }

    /// The message ids of all durable records, of either class, in order.
    pub fn messages(&self) -> Vec<Bytes32> {
        let log = &self.site().exchange.log;
        let standard = (0..).map_while(|sequence| log.record(sequence).expect("a store"));
        let standard = standard.map(|logged| logged.header.client_message_id);
        let fast = self.durable(&LaneScope::Any).into_iter().map(|(_, record)| record.header.client_message_id);
        fast.chain(standard).collect()
    }

    /// Prunes what is older than the retention of the stream. Whether anything was.
    pub fn collect(&self) -> bool {
        self.site().exchange.collect().expect("a store")
    }

    pub const fn is_fast(&self) -> bool {
        matches!(self.settings.class, Class::Fast)
    }

    /// The last receipt of a group, and whether every record that entered its queue is over.
    pub fn group(&self, group: GroupId) -> (Bytes32, bool) {
        let row = self.site().exchange.groups.row(&named(group)).expect("a store").expect("a group");
        (row.tail, row.first_live == row.next_queue)
    }

    /// Whether a receipt is of the chain of a group.
    pub fn has_receipt(&self, group: GroupId, receipt: &Bytes32) -> bool {
        self.site().exchange.groups.after(&named(group), Some(receipt)).expect("a store").is_some()
    }

    /// Leases the next record to another holder.
    pub fn lease_to(&self, holder: &Bytes32, group: GroupId) -> Option<DeliveryLeaseRef> {
        let groups = &self.site().exchange.groups;
        let window = Window { records: 1, bytes: 1 << 20 };
        let consumer = Consumer { subscription_id: holder, holder, max_in_flight: 64, window };
        for _ in 0..3 {
            let seen = groups.row(&named(group)).expect("a store").expect("a group").updates;
            match groups.lease(&named(group), seen, &consumer, &Outbox::round()).expect("a store") {
                Attempt::Leased(delivery) => return delivery.lease.map(|lease| lease.reference),
                Attempt::Nothing => return None,
                Attempt::Moved => {}
            }
        }
        None
    }

    /// Acknowledges what another holder was leased.
    pub fn ack_for(&self, holder: &Bytes32, lease: &DeliveryLeaseRef) {
        let settled = self.site().exchange.groups.settle(lease, holder, Settlement::Ack).expect("a store");
        assert!(settled.is_ok(), "its lease is live");
    }

    /// The next requests are refused with this code.
    pub fn refuse(&self, code: Code, times: usize) {
        self.site().exchange.faults.refuse(code, times);
    }

    fn site(&self) -> &Site {
        &self.running.as_ref().expect("a running provider").site
    }
}

const fn named(group: GroupId) -> groups::GroupId {
    groups::GroupId { lane_id: group.lane_id, group_id: group.group_id }
}

impl Running {
    fn end(self) {
        self.run.abort();
        self.requests.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

/// A request ends with its connection.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
