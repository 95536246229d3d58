//! Engines, a link, a disk and a provider under one virtual clock.
//!
//! ```text
//!  Engine ─outputs─▶ link, disk, key: each answers after its latency, or fails, or never
//!         ◀─inputs── one queue, in the order of virtual time; a frozen client leaves them lying
//! ```
//! The loop is that of the browser's driver: one input, then every output, then sleep until the engine says when.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ed25519_dalek::{Signer, SigningKey};
use remuda_client::{
    ChainReadError, CommandId, CommandOutcome, Engine, EngineConfig, Event, Keyring, Output, SubscriptionSpec,
};
use remuda_dev_provider::settings::Settings;
use remuda_dev_provider::time::Clock;
use remuda_position::memory::MemoryStore;
use remuda_position::outbox::{OutboxKey, OutboxWrite};
use remuda_position::{commit, Admission, AdmissionBudget, Committed, Fence, PositionKey, Store, StoreError};
use remuda_session::{CreditTarget, PostId, Slot, SocketId, TransportError, Transports};
use remuda_verify::response::AnsweredResult;
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::frame::{ClientFrame, ClientMessage};
use remuda_wire::grant::StreamGrant;
use remuda_wire::preimage::{keccak256, key_stream_id};
use remuda_wire::request::{AppendRequest, OpenSubscriptionRequest, RequestBody};
use remuda_wire::{Bytes32, Signature};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use crate::provider::Provider;
use crate::random::Random;
use crate::sockets::{Socket, SocketEvent};
use crate::weather::Weather;

/// When the simulation begins, in milliseconds since 1970.
const BEGIN_MS: u64 = 1_800_000_000_000;
/// How often an engine may ask to be woken without time or anything else going on.
const MAX_IDLE_WAKES: u32 = 3;

pub enum Input {
    Body { slot: Slot, post: PostId, answer: Result<Vec<u8>, TransportError> },
    Socket { socket: SocketId, event: SocketEvent },
    Signed { slot: Slot, digest: Bytes32 },
    Grant(Option<Box<StreamGrant>>),
    Chain { view: Option<FinalizedView>, answer: Result<Vec<u8>, ChainReadError> },
    Load(PositionKey),
    Apply(Box<Admission>),
    Committed(Box<Result<Committed, StoreError>>),
    ReadOutbox { key: OutboxKey, after: u64 },
    Settle(OutboxWrite),
    Settled(Result<(), StoreError>),
}

/// An input of one life of one client.
struct Arrived {
    client: usize,
    life: u64,
    input: Input,
}

/// Which of the two streams an engine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The main stream.
    Main,
    /// Its key stream, followed in the same process.
    Keys,
}

/// One tab: an engine, and what it has told.
pub struct Client {
    pub engine: Engine,
    stream: Stream,
    pub events: Vec<(u64, Event)>,
    /// How each command was settled.
    pub settled: BTreeMap<u64, Vec<CommandOutcome>>,
    specs: Vec<SubscriptionSpec>,
    life: u64,
    exchanges: HashMap<(Slot, PostId), tokio::task::AbortHandle>,
    sockets: HashMap<SocketId, Socket>,
    /// What arrives waits to be read until this time.
    pub frozen_until_ms: u64,
    lying: VecDeque<Input>,
    last_wake_ms: u64,
    idle_wakes: u32,
    /// Outstanding commits, of which an honest engine has one.
    commits: u32,
    /// Outstanding writes of the outbox, of which it has one beside.
    settlements: u32,
    /// Frames that it sent.
    pub posts: u64,
    /// The subscriptions that it asked for, in order.
    pub asked: Vec<OpenSubscriptionRequest>,
    /// Bytes of the bodies that it was given.
    pub received: usize,
}

impl Client {
    fn count_sent(&mut self, frame: &[u8]) {
        self.posts += 1;
        if let ClientMessage::Request(request) = ClientFrame::from_bytes(frame).expect("we send canonical frames").0 {
            if let RequestBody::OpenSubscription(open) = request.body {
                self.asked.push(open);
            }
        }
    }
}

/// Where a crash happens: at the nth storage step. Each write has two: before it is kept, and after.
#[derive(Clone, Copy, Debug)]
pub struct CrashAt(pub u64);

/// Everything.
pub struct World {
    pub provider: Provider,
    pub store: MemoryStore,
    /// The demo lanes, also while no provider runs.
    pub lanes: Vec<Bytes32>,
    pub context: SigningContext,
    pub stream_id: Bytes32,
    grant: Option<StreamGrant>,
    key_grant: Option<StreamGrant>,
    fence: Option<Fence>,
    pub outbox: OutboxKey,
    /// Every entry of the outbox that there ever was, as it was enqueued.
    pub appended: BTreeMap<u64, AppendRequest>,
    pub clients: Vec<Client>,
    pub weather: Weather,
    pub random: Random,
    pub crash_at: Option<CrashAt>,
    pub storage_steps: u64,
    pub credit: CreditTarget,
    /// What appends are sealed with, where the stream is encrypted.
    pub keyring: Option<Keyring>,
    /// What every client is offered.
    pub transports: Transports,
    /// How long grants are good, and whether tabs are given new ones.
    pub grant_ttl_ms: u64,
    pub renews_grant: bool,
    /// How often a tab asked for a new grant, and how often it is to get none.
    pub renewals: u32,
    pub fail_renewals: u32,
    /// Has the signer hold another key than the one that grants are for.
    pub another_signer: bool,
    /// Has new grants be for another key than the one that signs.
    pub another_holder: bool,
    /// Changes the body of an answer.
    pub bend: Option<fn(&mut Vec<u8>)>,
    began: Instant,
    seed: u64,
    numbers: u64,
    key: SigningKey,
    sender: UnboundedSender<Arrived>,
    arrived: UnboundedReceiver<Arrived>,
}

/// A key that no grant was made for.
fn another_key() -> SigningKey {
    SigningKey::from_bytes(&[99; 32])
}

/// Runs a simulation.
pub fn simulate<T>(settings: Settings, seed: u64, script: impl AsyncFnOnce(&mut World) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let mut world = World::new(settings, seed);
        script(&mut world).await
    })
}

impl World {
    fn new(settings: Settings, seed: u64) -> Self {
        let began = Instant::now();
        let clock = Clock::Virtual(Arc::new(move || now_since(began)));
        let (sender, arrived) = unbounded_channel();
        let provider = Provider::start(settings, clock, seed);
        Self {
            lanes: provider.lanes(),
            context: provider.context(),
            stream_id: provider.stream_id(),
            grant: None,
            key_grant: None,
            fence: None,
            outbox: OutboxKey::derive(&provider.context(), &provider.stream_id()),
            provider,
            store: MemoryStore::default(),
            appended: BTreeMap::new(),
            clients: Vec::new(),
            weather: Weather::FAIR,
            random: Random::new(seed),
            crash_at: None,
            storage_steps: 0,
            credit: CreditTarget { records: 256, bytes: 1 << 20 },
            keyring: None,
            transports: Transports::LongPoll,
            grant_ttl_ms: 86_400_000,
            renews_grant: false,
            renewals: 0,
            fail_renewals: 0,
            another_signer: false,
            another_holder: false,
            bend: None,
            began,
            seed,
            numbers: 0,
            key: SigningKey::from_bytes(&[7; 32]),
            sender,
            arrived,
        }
    }

    pub fn now_ms(&self) -> u64 {
        now_since(self.began)
    }

    /// Opens a tab that takes the database over. Gives its number.
    pub fn open_client(&mut self, specs: Vec<SubscriptionSpec>) -> usize {
        self.open_engine(Stream::Main, specs)
    }

    /// Opens an engine of a tab. That of the key stream shares the ownership of the database.
    pub fn open_engine(&mut self, stream: Stream, specs: Vec<SubscriptionSpec>) -> usize {
        let engine = self.engine(stream);
        self.clients.push(Client {
            engine,
            stream,
            events: Vec::new(),
            settled: BTreeMap::new(),
            specs,
            life: 0,
            exchanges: HashMap::new(),
            sockets: HashMap::new(),
            frozen_until_ms: 0,
            lying: VecDeque::new(),
            last_wake_ms: 0,
            idle_wakes: 0,
            commits: 0,
            settlements: 0,
            posts: 0,
            asked: Vec::new(),
            received: 0,
        });
        let client = self.clients.len() - 1;
        self.begin(client);
        client
    }

    fn engine(&mut self, stream: Stream) -> Engine {
        let (holder, ttl_ms) = (Bytes32(self.key.verifying_key().to_bytes()), self.grant_ttl_ms);
        if stream == Stream::Main {
            self.fence = Some(now(self.store.take_fence()).expect("a store in memory"));
        }
        if self.provider.is_running() {
            match stream {
                Stream::Main => self.grant = Some(self.provider.grant(&holder, ttl_ms)),
                Stream::Keys => self.key_grant = Some(self.provider.key_grant(&holder, ttl_ms)),
            }
        }
        // While nobody gives a new one, the last is remembered.
        let (stream_id, grant) = match stream {
            Stream::Main => (self.stream_id, &self.grant),
            Stream::Keys => (key_stream_id(&self.stream_id), &self.key_grant),
        };
        let grant = grant.clone().expect("a provider ran at first");
        let config = EngineConfig {
            context: self.context.clone(),
            stream_id,
            grant,
            fence: self.fence.expect("the main stream is opened first"),
            budget: AdmissionBudget::default(),
            credit: self.credit,
            encrypted: stream == Stream::Main && self.keyring.is_some(),
            renews_grant: self.renews_grant,
            transports: Some(self.transports),
        };
        Engine::new(config).expect("a grant for this stream")
    }

    fn begin(&mut self, client: usize) {
        let life = self.clients[client].life;
        let seed = [self.seed, u64::try_from(client).expect("few"), life].map(u64::to_be_bytes).concat();
        let engine = &mut self.clients[client].engine;
        engine.handle_start(keccak256(&seed).0);
        for spec in self.clients[client].specs.clone() {
            self.clients[client].engine.subscribe(spec);
        }
        self.drain(client);
    }

    /// The process of a tab dies, with its engine of the key stream; another begins on the same database.
    pub fn crash(&mut self, client: usize) {
        self.replace(client);
        for other in 0..self.clients.len() {
            if other != client && self.clients[other].stream == Stream::Keys {
                self.replace(other);
            }
        }
    }

    fn replace(&mut self, client: usize) {
        let engine = self.engine(self.clients[client].stream);
        let tab = &mut self.clients[client];
        tab.exchanges.drain().for_each(|(_, exchange)| exchange.abort());
        tab.sockets.clear();
        tab.lying.clear();
        tab.life += 1;
        (tab.commits, tab.settlements) = (0, 0);
        tab.engine = engine;
        self.begin(client);
    }

    /// Asks for a subscription.
    pub fn subscribe(&mut self, client: usize, spec: SubscriptionSpec) -> PositionKey {
        self.clients[client].specs.push(spec.clone());
        let key = self.clients[client].engine.subscribe(spec);
        self.drain(client);
        key
    }

    /// Gives one call to an engine, then takes what comes of it.
    pub fn with_engine<T>(&mut self, client: usize, call: impl FnOnce(&mut Engine, u64) -> T) -> T {
        let now_ms = self.now_ms();
        let result = call(&mut self.clients[client].engine, now_ms);
        self.drain(client);
        result
    }

    /// Asks for one thing in fair weather.
    pub async fn ask(&mut self, client: usize, request: RequestBody) -> AnsweredResult {
        let number = self.next_number();
        self.with_engine(client, |engine, now_ms| engine.command(CommandId(number), request, now_ms));
        self.run_until(30_000, |world| world.clients[client].settled.contains_key(&number)).await;
        match self.clients[client].settled.remove(&number).as_deref() {
            Some([CommandOutcome::Accepted(answered)]) => answered.clone(),
            other => panic!("{other:?} {:?}", self.failures(client)),
        }
    }

    /// Appends by somebody else.
    pub async fn write(&mut self, lane_id: Bytes32) {
        let number = self.next_number();
        self.provider.write(lane_id, number).await;
    }

    /// `count` records of 256 KiB each.
    pub async fn write_large(&mut self, count: u64) {
        let lane = self.provider.lanes()[0];
        for _ in 0..count {
            let number = self.next_number();
            self.provider.write_sized(lane, number, 256 << 10).await;
        }
    }

    /// `count` records of somebody else, on random lanes.
    pub async fn write_some(&mut self, count: u64) {
        let lanes = self.provider.lanes();
        for _ in 0..count {
            let lane = lanes[usize::try_from(self.random.below(6)).expect("few")];
            self.write(lane).await;
        }
    }

    pub fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Lets time pass.
    pub async fn run_for(&mut self, ms: u64) {
        let until_ms = self.now_ms() + ms;
        self.run_until(ms, |world| world.now_ms() >= until_ms).await;
    }

    /// Lets time pass until `done`, at most for `limit_ms`. False when it never was.
    pub async fn run_until(&mut self, limit_ms: u64, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let limit_ms = self.now_ms() + limit_ms;
        loop {
            if done(self) {
                return true;
            }
            if self.now_ms() >= limit_ms {
                return false;
            }
            let wake_ms = (0..self.clients.len()).filter_map(|client| self.wake_at(client)).min();
            let until_ms = wake_ms.unwrap_or(limit_ms).min(limit_ms).max(self.now_ms());
            let until = self.began + Duration::from_millis(until_ms - BEGIN_MS);
            tokio::select! {
                biased;
                Some(arrived) = self.arrived.recv() => self.take(arrived),
                () = tokio::time::sleep_until(until) => self.wake(),
            }
        }
    }

    fn wake_at(&self, client: usize) -> Option<u64> {
        let client = &self.clients[client];
        let thaws = (!client.lying.is_empty()).then_some(client.frozen_until_ms);
        thaws.or_else(|| client.engine.wake_at().map(|at_ms| at_ms.max(client.frozen_until_ms)))
    }

    fn wake(&mut self) {
        let now_ms = self.now_ms();
        for client in 0..self.clients.len() {
            if self.wake_at(client).is_none_or(|at_ms| at_ms > now_ms) {
                continue;
            }
            // What has arrived meanwhile comes before the clock.
            while let Some(input) = self.clients[client].lying.pop_front() {
                self.give(client, input);
            }
            let tab = &mut self.clients[client];
            tab.idle_wakes = if tab.last_wake_ms == now_ms { tab.idle_wakes + 1 } else { 0 };
            tab.last_wake_ms = now_ms;
            assert!(tab.idle_wakes < MAX_IDLE_WAKES, "client {client} spins: {:?}", tab.engine.wake_at());
            tab.engine.handle_time(now_ms);
            self.drain(client);
        }
    }

    fn take(&mut self, arrived: Arrived) {
        let Arrived { client, life, input } = arrived;
        let now_ms = self.now_ms();
        let tab = &mut self.clients[client];
        if tab.life != life {
            // Of a process that is dead: even its transaction finds another owner.
            return;
        }
        if tab.frozen_until_ms > now_ms || !tab.lying.is_empty() {
            tab.lying.push_back(input);
            return;
        }
        self.give(client, input);
    }

    fn give(&mut self, client: usize, input: Input) {
        let now_ms = self.now_ms();
        let tab = &mut self.clients[client];
        tab.idle_wakes = 0;
        let engine = &mut tab.engine;
        match input {
            Input::Body { slot, post, answer } => {
                tab.exchanges.remove(&(slot, post));
                match answer {
                    Ok(mut bytes) => {
                        if let Some(bend) = self.bend {
                            bend(&mut bytes);
                        }
                        tab.received += bytes.len();
                        engine.handle_body(slot, post, &bytes, now_ms);
                    }
                    Err(error) => engine.handle_transport_error(slot, post, error, now_ms),
                }
            }
            Input::Socket { socket, event } => match event {
                SocketEvent::Opened => engine.handle_connected(socket, now_ms),
                SocketEvent::Message(mut bytes) => {
                    if let Some(bend) = self.bend {
                        bend(&mut bytes);
                    }
                    tab.received += bytes.len();
                    engine.handle_message(socket, &bytes, now_ms);
                }
                SocketEvent::Ended(error) => {
                    tab.sockets.remove(&socket);
                    engine.handle_disconnected(socket, error, now_ms);
                }
            },
            Input::Signed { slot, digest } => {
                let signer = if self.another_signer { &another_key() } else { &self.key };
                let signature = Signature(signer.sign(&digest.0).to_bytes());
                engine.handle_signature(slot, &digest, signature, now_ms);
            }
            Input::Chain { view, answer } => {
                let answer = answer.as_deref().map_err(|error| *error);
                engine.handle_chain_read(view.as_ref(), answer, now_ms);
            }
            Input::Load(key) if self.random.chance(self.weather.unreadable) => {
                engine.handle_load_failed(key, &StoreError::Aborted, now_ms);
            }
            Input::Grant(grant) => engine.handle_grant(grant.map(|grant| *grant), now_ms),
            Input::Load(key) => {
                let stored = now(self.store.load(key)).expect("a store in memory");
                engine.handle_loaded(key, stored, now_ms);
            }
            Input::Apply(admission) => {
                self.apply(client, *admission);
                return;
            }
            Input::ReadOutbox { .. } if self.random.chance(self.weather.unreadable) => {
                engine.handle_outbox_failed(&StoreError::Aborted, now_ms);
            }
            Input::ReadOutbox { key, after } => {
                let page = now(self.store.outbox_after(key, after, 4_096)).expect("a store in memory");
                engine.handle_outbox(page, now_ms);
            }
            Input::Settle(write) => {
                self.settle(client, &write);
                return;
            }
            Input::Settled(result) => {
                tab.settlements -= 1;
                match result {
                    Ok(()) => engine.handle_settled(now_ms),
                    Err(error) => engine.handle_settle_failed(&error, now_ms),
                }
            }
            Input::Committed(result) => {
                tab.commits -= 1;
                match *result {
                    Ok(committed) => engine.handle_committed(committed, now_ms),
                    Err(error) => engine.handle_store_error(&error, now_ms),
                }
            }
        }
        self.drain(client);
    }

    /// The transaction of a commit.
    fn apply(&mut self, client: usize, admission: Admission) {
        if self.crash_here() {
            self.crash(client);
            return;
        }
        if self.random.chance(self.weather.abort) {
            self.later(client, Input::Committed(Box::new(Err(StoreError::Aborted))));
            return;
        }
        let mut result = now(commit(&self.store, admission));
        if self.crash_here() {
            self.crash(client);
            return;
        }
        if self.random.chance(self.weather.ambiguous) {
            result = Err(StoreError::Aborted);
        }
        self.later(client, Input::Committed(Box::new(result)));
    }

    pub fn crash_here(&mut self) -> bool {
        self.storage_steps += 1;
        self.crash_at.is_some_and(|at| at.0 == self.storage_steps)
    }

    fn drain(&mut self, client: usize) {
        let now_ms = self.now_ms();
        while let Some(output) = self.clients[client].engine.poll_output() {
            match output {
                Output::Post { slot, post, body } => self.post(client, slot, post, body),
                Output::Abort { slot, post } => {
                    if let Some(exchange) = self.clients[client].exchanges.remove(&(slot, post)) {
                        exchange.abort();
                    }
                }
                Output::Connect { socket } => self.connect(client, socket),
                Output::Send { socket, message } => {
                    let tab = &mut self.clients[client];
                    tab.count_sent(&message);
                    if let Some(socket) = tab.sockets.get(&socket) {
                        socket.send(message);
                    }
                }
                Output::Disconnect { socket } => drop(self.clients[client].sockets.remove(&socket)),
                Output::Sign { slot, digest } => self.later(client, Input::Signed { slot, digest }),
                Output::RenewGrant => {
                    self.renewals += 1;
                    let fails = core::mem::take(&mut self.fail_renewals);
                    self.fail_renewals = fails.saturating_sub(1);
                    let signer = if self.another_holder { &another_key() } else { &self.key };
                    let (holder, ttl_ms) = (Bytes32(signer.verifying_key().to_bytes()), self.grant_ttl_ms);
                    let grant = (fails == 0 && self.provider.is_running()).then(|| match self.clients[client].stream {
                        Stream::Main => self.provider.grant(&holder, ttl_ms).into(),
                        Stream::Keys => self.provider.key_grant(&holder, ttl_ms).into(),
                    });
                    self.later(client, Input::Grant(grant));
                }
                Output::ReadChain { view } => {
                    let answer = if self.random.chance(self.weather.lose_read) {
                        Err(ChainReadError::Transport(TransportError::Aborted))
                    } else if view.is_some() && self.random.chance(self.weather.gone) {
                        Err(ChainReadError::Gone)
                    } else {
                        self.provider.read_chain(&self.clients[client].engine.stream_id(), view.as_ref())
                    };
                    let wait = self.latency() + Duration::from_millis(self.weather.slow_read_ms);
                    self.later_exactly(client, wait, Input::Chain { view, answer });
                }
                Output::Load { key } => self.later(client, Input::Load(key)),
                Output::Commit(admission) => {
                    self.clients[client].commits += 1;
                    assert_eq!(self.clients[client].commits, 1, "one commit at a time");
                    let wait = Duration::from_millis(1 + self.weather.slow_disk_ms);
                    self.later_exactly(client, wait, Input::Apply(Box::new(admission)));
                }
                Output::ReadOutbox { key, after } => self.later(client, Input::ReadOutbox { key, after }),
                Output::Settle(write) => {
                    self.clients[client].settlements += 1;
                    assert_eq!(self.clients[client].settlements, 1, "one write of the outbox at a time");
                    let wait = Duration::from_millis(1 + self.weather.slow_disk_ms);
                    self.later_exactly(client, wait, Input::Settle(write));
                }
                Output::Event(event) => {
                    if let Event::Settled { id, outcome } = &event {
                        self.clients[client].settled.entry(id.0).or_default().push(outcome.clone());
                    }
                    self.clients[client].events.push((now_ms, event));
                }
            }
        }
    }

    fn post(&mut self, client: usize, slot: Slot, post: PostId, body: Vec<u8>) {
        let weather = self.weather;
        let (there, back) = (self.latency(), self.latency());
        let lost = self.random.chance(weather.lose_request);
        let answer_lost = self.random.chance(weather.lose_answer);
        if self.random.chance(weather.hang) {
            return;
        }
        let tab = &mut self.clients[client];
        tab.count_sent(&body);
        let (sender, life) = (self.sender.clone(), tab.life);
        // The connection is made now; what it reaches is whatever runs then.
        let answer = (!lost).then(|| self.provider.answer_after(there, body));
        let task = tokio::spawn(async move {
            let answer = match answer {
                None => {
                    tokio::time::sleep(there).await;
                    Err(TransportError::Other)
                }
                Some(answer) => answer.await,
            };
            tokio::time::sleep(back).await;
            let answer = if answer_lost { Err(TransportError::Aborted) } else { answer };
            drop(sender.send(Arrived { client, life, input: Input::Body { slot, post, answer } }));
        });
        self.clients[client].exchanges.insert((slot, post), task.abort_handle());
    }

    fn connect(&mut self, client: usize, socket: SocketId) {
        let (sender, life) = (self.sender.clone(), self.clients[client].life);
        let tell = move |event| drop(sender.send(Arrived { client, life, input: Input::Socket { socket, event } }));
        let random = self.random.fork();
        let open = Socket::open(&mut self.provider, self.weather, random, tell);
        self.clients[client].sockets.insert(socket, open);
    }

    fn latency(&mut self) -> Duration {
        Duration::from_millis(1 + self.random.below(self.weather.latency_ms))
    }

    pub fn later(&mut self, client: usize, input: Input) {
        let wait = self.latency();
        self.later_exactly(client, wait, input);
    }

    fn later_exactly(&self, client: usize, wait: Duration, input: Input) {
        let (sender, life) = (self.sender.clone(), self.clients[client].life);
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            drop(sender.send(Arrived { client, life, input }));
        });
    }
}

fn now_since(began: Instant) -> u64 {
    BEGIN_MS + u64::try_from((Instant::now() - began).as_millis()).expect("a short simulation")
}

/// A store in memory never waits: one poll is the whole future.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory has nothing to wait for"),
    }
}
