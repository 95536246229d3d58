//! The one loop: one input, then every output, until the engine says when to wake. Nothing else awaits while outputs
//! remain; what takes time runs beside the loop and comes back as an input.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use futures_channel::mpsc::{unbounded, UnboundedReceiver, UnboundedSender};
use futures_util::future::{select, AbortHandle, Abortable, Either};
use futures_util::StreamExt;
use remuda_client::{
    ChainAnswer, CommandId, Decision, Engine, EngineConfig, Event, Failure, Output, SnapshotGeneration, SnapshotPart,
    SubscriptionSpec, TailKey,
};
use remuda_position::outbox::OutboxEntry;
use remuda_position::{commit, Committed, PositionKey, Store, StoreError, StoredPosition};
use remuda_session::{ApiMisuse, PostId, Slot, SocketId, Transport, TransportError, Transports};
use remuda_wire::chain::EndpointTransport;
use remuda_wire::context::FinalizedView;
use remuda_wire::grant::StreamGrant;
use remuda_wire::request::RequestBody;
use remuda_wire::scope::LaneScope;
use remuda_wire::{bound, Bytes, Bytes32, Remedy, Signature};
use wasm_bindgen_futures::spawn_local;

use crate::chain_nodes::ChainNodes;
use crate::clock::{now_ms, random_bytes, sleep_until, NoRandomness};
use crate::dial::{DialRefused, Endpoint, PlainLoopback};
use crate::fetch::{self, ExchangeLimits, HttpFault};
use crate::web_socket::{Socket, SocketEvent};

/// A poll: 16 MiB (`RESOLUTIONS.md` §9), and longer than the engine's own deadline, so that the engine decides.
const POST_LIMITS: ExchangeLimits = ExchangeLimits { max_body_bytes: 16 * 1024 * 1024, timeout_ms: 120_000 };

/// What is read of an outbox at a time.
const OUTBOX_PAGE_BYTES: usize = 1024 * 1024;

/// Where a driver finds its peers.
#[derive(Clone, Debug)]
pub struct Addresses {
    nodes: ChainNodes,
    endpoints: Vec<String>,
    plain: PlainLoopback,
}

impl Addresses {
    /// The chain nodes, the provider's endpoints by the caller's word (none for those that its record announces), and whether
    /// this machine may be dialled without TLS.
    ///
    /// # Errors
    /// [`DialRefused`], of the first endpoint that can be dialled neither for long-poll nor for a WebSocket.
    pub fn new(nodes: ChainNodes, endpoints: Vec<String>, plain: PlainLoopback) -> Result<Self, DialRefused> {
        for uri in &endpoints {
            let web_socket = Endpoint::admit(uri, Transport::WebSocket, plain);
            Endpoint::admit(uri, Transport::LongPoll, plain).or(web_socket)?;
        }
        Ok(Self { nodes, endpoints, plain })
    }

    /// The transports that the caller named endpoints for; `None` without any.
    fn transports(&self) -> Option<Transports> {
        let dialled = |transport| self.endpoints.iter().any(|uri| Endpoint::admit(uri, transport, self.plain).is_ok());
        Transports::of(dialled(Transport::WebSocket), dialled(Transport::LongPoll))
    }
}

/// The holder: a key that signs 32-byte digests and is never seen, and where its grants come from.
#[allow(async_fn_in_trait, reason = "a page has one thread: its futures are never sent to another")]
pub trait Holder {
    /// Signs; `None` when the key or its owner refuses.
    async fn sign(&self, digest: Bytes32) -> Option<Signature>;

    /// Another grant; `None` when there is none for now. Asked only of one that was configured to renew.
    async fn renew_grant(&self) -> Option<StreamGrant>;
}

/// A snapshot that is stored already, and is to be named by a manifest.
#[derive(Debug)]
pub struct StoredSnapshotPart {
    /// Of one lane; `None` of the whole stream.
    pub lane_id: Option<Bytes32>,
    /// The stored bytes, exactly.
    pub bytes: Vec<u8>,
    /// Where they are stored.
    pub cbfs_reference: Bytes<{ bound::MAX_CBFS_REFERENCE_BYTES }>,
    /// The data-key generation that they are encrypted under; 0 in the clear.
    pub encryption_generation: u64,
}

impl StoredSnapshotPart {
    fn as_part(&self) -> SnapshotPart<'_> {
        SnapshotPart {
            lane_id: self.lane_id,
            bytes: &self.bytes,
            cbfs_reference: self.cbfs_reference.clone(),
            encryption_generation: self.encryption_generation,
        }
    }
}

/// What an application asks a running driver for.
#[derive(Debug)]
pub enum Command {
    /// Subscribe.
    Subscribe(SubscriptionSpec),
    /// Unsubscribe.
    Unsubscribe(PositionKey),
    /// Begin a tail.
    Tail(LaneScope),
    /// End a tail.
    EndTail(TailKey),
    /// Have a position begin anew behind snapshots.
    Hydrate(CommandId, PositionKey, Box<SnapshotGeneration>),
    /// Compose manifests of a replica at this item of a position.
    DraftSnapshots(CommandId, PositionKey, u64, Vec<StoredSnapshotPart>),
    /// Go on from the signed floor of a subscription.
    AcceptGap(PositionKey),
    /// Begin a recording of a subscription, of at most so many bytes.
    StartRecording(PositionKey, usize),
    /// End the recording.
    StopRecording,
    /// Ask for one thing, a record to append excepted.
    Request(CommandId, Box<RequestBody>),
    /// Decide what becomes of a lease of a group.
    Decide(CommandId, PositionKey, Bytes32, Decision),
    /// The outbox of the database has more.
    Enqueued,
    /// A failed append was seen, and may be forgotten.
    Dismiss(u64),
    /// The browser says that the network is back: try now.
    Online,
    /// Read the latest view of the chain.
    ReadChain,
    /// Close for good.
    Close,
}

#[derive(Debug)]
enum Input {
    Body { slot: Slot, post: PostId, answer: Result<Vec<u8>, HttpFault> },
    Socket { socket: SocketId, event: SocketEvent },
    Signed { slot: Slot, digest: Bytes32, signature: Option<Signature> },
    Grant(Option<StreamGrant>),
    Chain { view: Option<FinalizedView>, answer: ChainAnswer },
    Loaded { key: PositionKey, answer: Result<Option<StoredPosition>, StoreError> },
    Committed(Result<Committed, StoreError>),
    Outbox(Result<Vec<OutboxEntry>, StoreError>),
    Settled(Result<(), StoreError>),
    Command(Command),
}

/// Sends commands to a driver, also before it runs.
#[derive(Clone, Debug)]
pub struct Commands(UnboundedSender<Input>);

impl Commands {
    /// Queues a command. Nothing happens once the driver has ended.
    pub fn send(&self, command: Command) {
        // A closed receiver means that the driver has ended: there is nobody to tell.
        drop(self.0.unbounded_send(Input::Command(command)));
    }
}

/// The inputs of a driver that does not run yet.
#[derive(Debug)]
pub struct Inputs(UnboundedReceiver<Input>);

/// A command queue and the inputs that a driver takes it from.
pub fn channel() -> (Commands, Inputs) {
    let (sender, receiver) = unbounded();
    (Commands(sender), Inputs(receiver))
}

/// Drives one engine until it is closed.
pub struct Driver<S, H> {
    store: Rc<S>,
    holder: Rc<H>,
    addresses: Addresses,
    commands: Commands,
    inputs: UnboundedReceiver<Input>,
    exchanges: Rc<RefCell<BTreeMap<(Slot, PostId), AbortHandle>>>,
    /// The connections that are open or being opened: one, nearly always.
    sockets: BTreeMap<SocketId, Socket>,
}

/// Why a driver could not begin.
#[derive(Debug)]
pub enum StartError {
    /// The grant is of another chain or stream.
    Misuse(ApiMisuse),
    /// The platform gives no random bytes.
    NoRandomness(NoRandomness),
}

impl<S: Store + 'static, H: Holder + 'static> Driver<S, H> {
    /// A driver over a store, a key and a command queue.
    pub fn new(store: Rc<S>, holder: Rc<H>, addresses: Addresses, commands: Commands, inputs: Inputs) -> Self {
        Self {
            store,
            holder,
            addresses,
            commands,
            inputs: inputs.0,
            exchanges: Rc::default(),
            sockets: BTreeMap::new(),
        }
    }

    /// Drives until closed, for the owner of the database. `observe` is called with every event, when the engine is in a
    /// consistent state.
    ///
    /// # Errors
    /// [`StartError`]; once it runs, failures are events.
    pub async fn run(
        self,
        configure: impl FnOnce(Option<Transports>) -> EngineConfig,
        observe: impl Fn(&Engine, &Event),
    ) -> Result<(), StartError> {
        let config = configure(self.addresses.transports());
        self.drive(config, &observe).await
    }

    /// The same code for whoever observes.
    async fn drive(mut self, config: EngineConfig, observe: &dyn Fn(&Engine, &Event)) -> Result<(), StartError> {
        let mut engine = Engine::new(config).map_err(StartError::Misuse)?;
        engine.handle_start(random_bytes().map_err(StartError::NoRandomness)?);
        loop {
            self.drain(&mut engine, observe);
            let Some(input) = self.next_input(&engine).await else {
                engine.handle_time(now_ms());
                continue;
            };
            // What has arrived is given before the clock: a timer that fires late is no evidence of a dead peer.
            let mut next = Some(input);
            while let Some(input) = next {
                if matches!(input, Input::Command(Command::Close)) {
                    engine.close(now_ms());
                    self.drain(&mut engine, observe);
                    return Ok(());
                }
                self.apply(&mut engine, input);
                self.drain(&mut engine, observe);
                next = self.inputs.try_recv().ok();
            }
        }
    }

    /// The next input, or `None` when the engine's time has come first.
    async fn next_input(&mut self, engine: &Engine) -> Option<Input> {
        let Some(at_ms) = engine.wake_at() else { return self.inputs.next().await };
        match select(self.inputs.next(), Box::pin(sleep_until(at_ms))).await {
            Either::Left((input, _)) => input,
            Either::Right(_) => None,
        }
    }

    fn apply(&mut self, engine: &mut Engine, input: Input) {
        let now = now_ms();
        match input {
            Input::Body { slot, post, answer } => {
                self.exchanges.borrow_mut().remove(&(slot, post));
                match answer {
                    Ok(bytes) => engine.handle_body(slot, post, &bytes, now),
                    Err(fault) => engine.handle_transport_error(slot, post, transport_error(&fault), now),
                }
            }
            Input::Socket { socket, event: SocketEvent::Opened } => engine.handle_connected(socket, now),
            Input::Socket { socket, event: SocketEvent::Message(bytes) } => engine.handle_message(socket, &bytes, now),
            Input::Socket { socket, event: SocketEvent::Ended(error) } => self.ended(engine, socket, error, now),
            // CBQS has none.
            Input::Socket { socket, event: SocketEvent::Text(_) } => {
                self.ended(engine, socket, TransportError::Message, now);
            }
            Input::Signed { slot, digest, signature: Some(signature) } => {
                engine.handle_signature(slot, &digest, signature, now);
            }
            Input::Signed { slot, digest, signature: None } => engine.handle_signing_failed(slot, &digest, now),
            Input::Grant(grant) => engine.handle_grant(grant, now),
            Input::Chain { view, answer } => {
                engine.handle_chain_read(view.as_ref(), answer.as_deref().map_err(|error| *error), now);
            }
            Input::Loaded { key, answer: Ok(stored) } => engine.handle_loaded(key, stored, now),
            Input::Loaded { key, answer: Err(error) } => engine.handle_load_failed(key, &error, now),
            Input::Committed(Ok(committed)) => engine.handle_committed(committed, now),
            Input::Committed(Err(error)) => engine.handle_store_error(&error, now),
            Input::Outbox(Ok(entries)) => engine.handle_outbox(entries, now),
            Input::Outbox(Err(error)) => engine.handle_outbox_failed(&error, now),
            Input::Settled(Ok(())) => engine.handle_settled(now),
            Input::Settled(Err(error)) => engine.handle_settle_failed(&error, now),
            Input::Command(Command::Subscribe(spec)) => {
                engine.subscribe(spec);
            }
            Input::Command(Command::Unsubscribe(key)) => engine.unsubscribe(key, now),
            Input::Command(Command::Tail(scope)) => {
                engine.tail(scope, now);
            }
            Input::Command(Command::EndTail(key)) => engine.end_tail(key, now),
            Input::Command(Command::Hydrate(id, key, generation)) => engine.hydrate(id, key, *generation, now),
            Input::Command(Command::DraftSnapshots(id, key, last_item, parts)) => {
                let parts: Vec<_> = parts.iter().map(StoredSnapshotPart::as_part).collect();
                engine.draft(id, key, last_item, &parts);
            }
            Input::Command(Command::AcceptGap(key)) => {
                engine.accept_gap(key, now);
            }
            Input::Command(Command::StartRecording(key, max_bytes)) => engine.start_recording(key, max_bytes, now),
            Input::Command(Command::StopRecording) => engine.stop_recording(),
            Input::Command(Command::Request(id, request)) => engine.command(id, *request, now),
            Input::Command(Command::Decide(id, key, lease_id, decision)) => {
                engine.decide(id, key, &lease_id, decision, now);
            }
            Input::Command(Command::Enqueued) => engine.handle_enqueued(),
            Input::Command(Command::Dismiss(number)) => engine.dismiss(number, now),
            Input::Command(Command::Online) => engine.handle_online(now),
            Input::Command(Command::ReadChain) => engine.read_chain(),
            // Taken by the loop.
            Input::Command(Command::Close) => {}
        }
    }

    fn ended(&mut self, engine: &mut Engine, socket: SocketId, error: TransportError, now_ms: u64) {
        self.sockets.remove(&socket);
        engine.handle_disconnected(socket, error, now_ms);
    }

    fn drain(&mut self, engine: &mut Engine, observe: &dyn Fn(&Engine, &Event)) {
        while let Some(output) = engine.poll_output() {
            match output {
                Output::Post { slot, post, body } => self.post(engine, slot, post, body),
                Output::Abort { slot, post } => {
                    if let Some(exchange) = self.exchanges.borrow_mut().remove(&(slot, post)) {
                        exchange.abort();
                    }
                }
                Output::Connect { socket } => self.connect(engine, socket),
                Output::Send { socket, message } => {
                    if let Some(socket) = self.sockets.get(&socket) {
                        socket.send(&message);
                    }
                }
                Output::Disconnect { socket } => {
                    self.sockets.remove(&socket);
                }
                Output::Sign { slot, digest } => {
                    let holder = Rc::clone(&self.holder);
                    self.beside(async move { Input::Signed { slot, digest, signature: holder.sign(digest).await } });
                }
                Output::RenewGrant => {
                    let holder = Rc::clone(&self.holder);
                    self.beside(async move { Input::Grant(holder.renew_grant().await) });
                }
                Output::ReadChain { view } => {
                    let (nodes, stream_id, plain) =
                        (self.addresses.nodes.clone(), engine.stream_id(), self.addresses.plain);
                    self.beside(async move {
                        let answer = nodes.read(stream_id, view.as_ref(), plain).await;
                        Input::Chain { view, answer }
                    });
                }
                Output::Load { key } => {
                    let store = Rc::clone(&self.store);
                    self.beside(async move { Input::Loaded { key, answer: store.load(key).await } });
                }
                Output::Commit(admission) => {
                    let store = Rc::clone(&self.store);
                    self.beside(async move { Input::Committed(commit(&*store, admission).await) });
                }
                Output::ReadOutbox { key, after } => {
                    let store = Rc::clone(&self.store);
                    self.beside(async move { Input::Outbox(store.outbox_after(key, after, OUTBOX_PAGE_BYTES).await) });
                }
                Output::Settle(write) => {
                    let store = Rc::clone(&self.store);
                    self.beside(async move { Input::Settled(store.settle(&write).await) });
                }
                Output::Event(event) => observe(engine, &event),
            }
        }
    }

    fn beside(&self, task: impl Future<Output = Input> + 'static) {
        let sender = self.commands.0.clone();
        spawn_local(async move {
            let input = task.await;
            // A closed receiver means that the driver has ended and wants no more inputs.
            drop(sender.unbounded_send(input));
        });
    }

    fn post(&self, engine: &Engine, slot: Slot, post: PostId, body: Vec<u8>) {
        let Some(endpoint) = self.provider_endpoint(engine, Transport::LongPoll) else {
            let answer = Err(HttpFault::Other("the provider has no endpoint that may be dialled".into()));
            self.beside(async move { Input::Body { slot, post, answer } });
            return;
        };
        let (handle, registration) = AbortHandle::new_pair();
        self.exchanges.borrow_mut().insert((slot, post), handle);
        self.beside(async move {
            // Dropping the exchange aborts its fetch.
            let answer = Abortable::new(fetch::post(&endpoint, &body, POST_LIMITS, None), registration).await;
            Input::Body { slot, post, answer: answer.unwrap_or(Err(HttpFault::Aborted)) }
        });
    }

    fn connect(&mut self, engine: &Engine, socket: SocketId) {
        let sender = self.commands.0.clone();
        // A closed receiver means that the driver has ended and wants no more inputs.
        let told = move |event| drop(sender.unbounded_send(Input::Socket { socket, event }));
        let endpoint = self.provider_endpoint(engine, Transport::WebSocket).ok_or(TransportError::Other);
        match endpoint.and_then(|endpoint| Socket::open(&endpoint, told.clone())) {
            Ok(open) => {
                self.sockets.insert(socket, open);
            }
            Err(error) => told(SocketEvent::Ended(error)),
        }
    }

    /// The first endpoint of the stream's own provider that may be dialled over `transport`, or the caller's.
    fn provider_endpoint(&self, engine: &Engine, transport: Transport) -> Option<Endpoint> {
        let admit = |uri: &str| Endpoint::admit(uri, transport, self.addresses.plain).ok();
        if !self.addresses.endpoints.is_empty() {
            return self.addresses.endpoints.iter().find_map(|uri| admit(uri));
        }
        let registered_for = match transport {
            Transport::LongPoll => EndpointTransport::Https,
            Transport::WebSocket => EndpointTransport::WebSocketTls,
        };
        let mut registered = engine.endpoints().iter().filter(|endpoint| endpoint.transport == registered_for);
        registered.find_map(|endpoint| admit(&endpoint.uri))
    }
}

pub(crate) const fn transport_error(fault: &HttpFault) -> TransportError {
    match fault {
        HttpFault::Offline => TransportError::Offline,
        HttpFault::Timeout => TransportError::Timeout,
        HttpFault::Http { status } => TransportError::Http { status: *status },
        HttpFault::BodyTooLarge => TransportError::BodyTooLarge,
        HttpFault::Redirected => TransportError::Redirected,
        HttpFault::Aborted => TransportError::Aborted,
        HttpFault::Other(_) => TransportError::Other,
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Misuse(misuse) => Self::from(misuse),
            StartError::NoRandomness(_) => Self {
                code: "client/no-randomness".into(),
                remedy: Remedy::Surface,
                rule: String::new(),
                meaning: "this browser gives us no random bytes".into(),
            },
        }
    }
}
