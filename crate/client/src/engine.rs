//! The engine: one provider, one stream, any number of subscriptions.

mod apply;
mod beginning;
mod commands;
mod grant;
mod group;
mod holder;
mod network;
mod outbox;
mod recording;
mod snapshot_draft;
mod tail;

pub(crate) use beginning::Beginning;
pub use snapshot_draft::{SnapshotDraft, SnapshotPart};
pub use tail::TailKey;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use remuda_position::outbox::{OutboxKey, OutboxWrite};
use remuda_position::{Admission, AdmissionBudget, Fence, PositionKey, StoreError};
use remuda_session::{
    ApiMisuse, Backoff, ChannelConfig, CreditTarget, HandshakeConfig, Link, PostId, RequestHandle, SessionConfig, Slot,
    SocketId, Transports,
};
use remuda_wire::chain::{EndpointTransport, ProviderEndpoint, StreamRecord};
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::grant::StreamGrant;
use remuda_wire::preimage::keccak256;
use remuda_wire::Bytes32;

use self::beginning::Hydration;
use self::grant::GrantRenewal;
use self::holder::Holder;
use self::tail::Tail;
use crate::command::PendingRequest;
use crate::durable_receipts::DurableReceipts;
use crate::event::{Connection, Event};
use crate::failure::Failure;
use crate::key_book::KeyBook;
use crate::outbox::{Outbox, OutboxCounts};
use crate::recorder::Recorder;
use crate::subscription::{Load, Subscription};
use crate::work::{Waiting, Work};

/// What an engine is made of.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The chain.
    pub context: SigningContext,
    /// The stream.
    pub stream_id: Bytes32,
    /// The holder's grant.
    pub grant: StreamGrant,
    /// The generation under which this owner writes.
    pub fence: Fence,
    /// How much one commit may hold.
    pub budget: AdmissionBudget,
    /// How much a subscription may be sent ahead.
    pub credit: CreditTarget,
    /// Whether the application expects an encrypted stream: what it appends is sealed, or goes in the clear.
    pub encrypted: bool,
    /// Whether the application can be asked for another grant.
    pub renews_grant: bool,
    /// The transports to use, by the caller's word; `None` for those that the provider's record announces.
    pub transports: Option<Transports>,
}

/// What the driver does or the application learns, in order.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "each is taken out as it is made")]
pub enum Output {
    /// POST `body` to the provider; answer with [`Engine::handle_body`] or [`Engine::handle_transport_error`].
    Post {
        /// Of which session.
        slot: Slot,
        /// Which exchange.
        post: PostId,
        /// One canonical client frame.
        body: Vec<u8>,
    },
    /// The answer of this exchange is no longer wanted.
    Abort {
        /// Which exchange.
        post: PostId,
        /// Of which session.
        slot: Slot,
    },
    /// Open a WebSocket to the provider; answer with [`Engine::handle_connected`] or [`Engine::handle_disconnected`].
    Connect {
        /// Which connection.
        socket: SocketId,
    },
    /// Send one binary message.
    Send {
        /// Over which connection.
        socket: SocketId,
        /// One canonical client frame.
        message: Vec<u8>,
    },
    /// Close this connection, or give up opening it.
    Disconnect {
        /// Which connection.
        socket: SocketId,
    },
    /// Sign with the holder key; answer with [`Engine::handle_signature`] or [`Engine::handle_signing_failed`].
    Sign {
        /// Of which session.
        slot: Slot,
        /// What is signed.
        digest: Bytes32,
    },
    /// Ask the application for another grant; answer with [`Engine::handle_grant`].
    RenewGrant,
    /// Read the broker state, latest or pinned; answer with [`Engine::handle_chain_read`] and the same view.
    ReadChain {
        /// Which view; `None` for the latest.
        view: Option<FinalizedView>,
    },
    /// Read a position; answer with [`Engine::handle_loaded`].
    Load {
        /// Which.
        key: PositionKey,
    },
    /// Commit; answer with [`Engine::handle_committed`] or [`Engine::handle_store_error`]. One at a time.
    Commit(Admission),
    /// Read a page of the outbox; answer with [`Engine::handle_outbox`] or [`Engine::handle_outbox_failed`].
    ReadOutbox {
        /// Which.
        key: OutboxKey,
        /// Behind which entry.
        after: u64,
    },
    /// Write these changes; answer with [`Engine::handle_settled`] or [`Engine::handle_settle_failed`]. One at a time, beside
    /// a commit.
    Settle(OutboxWrite),
    /// Tell the application.
    Event(Event),
}

/// A read of the latest view beside that which starts a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reread {
    /// None is wanted.
    No,
    /// It was asked for.
    Asked,
    /// It failed, and is asked for again at this time.
    At(u64),
}

/// The engine. See the crate for how to drive it.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    keys: KeyBook,
    channel: Link,
    connection: Connection,
    /// True between a session's opening and its end.
    in_session: bool,
    /// When the latest chain read is tried again; it precedes everything else.
    chain_retry_at_ms: Option<u64>,
    chain_attempts: u32,
    chain_reread: Reread,
    subscriptions: BTreeMap<PositionKey, Subscription>,
    /// Open subscriptions of the session by their id there.
    routes: BTreeMap<Bytes32, PositionKey>,
    /// `OpenSubscription` requests that are not answered yet, each with the id that it opens.
    opening: BTreeMap<RequestHandle, (PositionKey, Bytes32)>,
    work: VecDeque<Work>,
    /// Bytes of the bodies that `work` came in, since it was last empty.
    work_bytes: usize,
    waiting: Waiting,
    /// Where each position stood lately, also while nobody subscribes to it.
    receipts: BTreeMap<PositionKey, DurableReceipts>,
    /// By the position that is to begin with them.
    hydrations: BTreeMap<PositionKey, Hydration>,
    requests: BTreeMap<RequestHandle, PendingRequest>,
    /// Requests that were never sent: told once it is known why.
    unsent: Vec<PendingRequest>,
    outbox: Outbox,
    renewal: GrantRenewal,
    holder: Holder,
    recorder: Option<(PositionKey, Recorder)>,
    tails: BTreeMap<TailKey, Tail>,
    /// `OpenSubscription` requests of tails that are not answered yet.
    opening_tails: BTreeMap<RequestHandle, (TailKey, Bytes32)>,
    /// Sessions so far.
    sessions: u64,
    /// Another owner has taken the database over: this engine can keep nothing any more.
    fenced: bool,
    outputs: VecDeque<Output>,
    seed: Bytes32,
    ids: u64,
    backoff: Backoff,
}

impl Engine {
    /// An engine that has not started.
    ///
    /// # Errors
    /// [`ApiMisuse::GrantMismatch`] when the grant is of another chain or stream.
    pub fn new(config: EngineConfig) -> Result<Self, ApiMisuse> {
        let handshake = HandshakeConfig::new(config.context.clone(), config.stream_id, config.grant.clone())?;
        let channel = Link::new(ChannelConfig { session: SessionConfig::new(handshake), credit: config.credit });
        let outbox = OutboxKey::derive(&config.context, &config.stream_id);
        let mut engine = Self {
            keys: KeyBook::new(config.context.clone(), config.stream_id),
            config,
            channel,
            connection: Connection::Idle,
            in_session: false,
            chain_retry_at_ms: None,
            chain_attempts: 0,
            chain_reread: Reread::No,
            subscriptions: BTreeMap::new(),
            routes: BTreeMap::new(),
            opening: BTreeMap::new(),
            work: VecDeque::new(),
            work_bytes: 0,
            waiting: Waiting::Nothing,
            receipts: BTreeMap::new(),
            hydrations: BTreeMap::new(),
            requests: BTreeMap::new(),
            unsent: Vec::new(),
            outbox: Outbox::new(outbox),
            renewal: GrantRenewal::default(),
            holder: Holder::default(),
            recorder: None,
            tails: BTreeMap::new(),
            opening_tails: BTreeMap::new(),
            sessions: 0,
            fenced: false,
            outputs: VecDeque::new(),
            seed: Bytes32::ZERO,
            ids: 0,
            backoff: Backoff::DEFAULT,
        };
        engine.plan_renewal(0);
        Ok(engine)
    }

    /// Starts, also again after it was closed: reads the chain, then opens a session, and in it every subscription that has
    /// not failed. `random` is fresh. Does nothing while it is started; an engine that another owner has fenced off says so
    /// and stays closed.
    pub fn handle_start(&mut self, random: [u8; 32]) {
        if self.fenced {
            self.fail(None, Failure::from(&StoreError::Fenced));
        } else if matches!(self.connection, Connection::Idle | Connection::Closed) {
            self.seed = keccak256(&random);
            self.chain_attempts = 0;
            self.plan_renewal(0);
            self.outputs.push_back(Output::ReadChain { view: None });
            self.set_connection(Connection::Connecting);
            self.read_outbox();
        }
    }

    /// The next thing to do or to tell, until there is none.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Engine::handle_time`] next has something to do. A subscription that waits for more than its time, for a session
    /// or for a commit, is not waited for here: what ends that wait opens it.
    pub fn wake_at(&self) -> Option<u64> {
        let key_retry = match &self.waiting {
            Waiting::Key { retry_at_ms, .. } => *retry_at_ms,
            Waiting::Nothing | Waiting::Commit { .. } => None,
        };
        // What cannot be opened yet is not woken for: a time that is past would be woken for again and again.
        let re_entries =
            self.subscriptions.iter().filter(|(key, it)| self.can_open(key, it)).filter_map(|(_, it)| it.due_at());
        let tails = self.tails.values().filter(|_| self.in_session).filter_map(Tail::due_at);
        let decisions =
            self.subscriptions.values().filter(|_| self.in_session).filter_map(|it| it.consumer.resends_at());
        let reread = match self.chain_reread {
            Reread::At(at_ms) => Some(at_ms),
            Reread::No | Reread::Asked => None,
        };
        let own = [
            self.channel.wake_at(),
            self.chain_retry_at_ms,
            reread,
            key_retry,
            self.outbox_wake_at(),
            self.renewal.wake_at(),
        ];
        own.into_iter().flatten().chain(re_entries).chain(tails).chain(decisions).min()
    }

    /// The stream.
    pub const fn stream_id(&self) -> Bytes32 {
        self.config.stream_id
    }

    /// Its record on the chain as last read.
    pub fn stream(&self) -> Option<&StreamRecord> {
        self.keys.stream()
    }

    /// How it stands to its provider.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The subscriptions by position.
    pub const fn subscriptions(&self) -> &BTreeMap<PositionKey, Subscription> {
        &self.subscriptions
    }

    /// How much waits to be appended, by how far it has come.
    pub fn outbox(&self) -> OutboxCounts {
        self.outbox.counts()
    }

    /// The endpoints of the stream's own provider as last read: the only ones to dial (§4.3).
    pub fn endpoints(&self) -> &[ProviderEndpoint] {
        self.keys.latest().and_then(|state| state.provider.as_ref()).map_or(&[], |provider| &provider.endpoints)
    }

    /// The transports to use: the caller's word, or what the provider's record announces.
    fn transports(&self) -> Option<Transports> {
        let announced = |transport| self.endpoints().iter().any(|endpoint| endpoint.transport == transport);
        self.config
            .transports
            .or_else(|| Transports::of(announced(EndpointTransport::WebSocketTls), announced(EndpointTransport::Https)))
    }

    /// Whether time is all that a subscription waits for: its position is to be read or there is a session, and no commit
    /// of it is under way that would move its boundary under the verifier.
    fn can_open(&self, key: &PositionKey, subscription: &Subscription) -> bool {
        let possible = match subscription.load {
            Load::Needed => true,
            Load::Asked => false,
            // Before the outbox is known a record of ours would pass unrecognised.
            // What is to begin with snapshots is opened behind them.
            Load::Done => self.in_session && self.outbox.is_known() && !self.hydrations.contains_key(key),
        };
        possible && !self.is_committing(key)
    }

    fn is_committing(&self, key: &PositionKey) -> bool {
        matches!(&self.waiting, Waiting::Commit { key: committing, .. } if committing == key)
    }

    fn tell(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn fail(&mut self, key: Option<PositionKey>, failure: Failure) {
        self.tell(Event::Failure { key, failure });
    }

    fn set_connection(&mut self, connection: Connection) {
        if self.connection != connection {
            self.connection = connection;
            if self.connection == Connection::Closed {
                self.abandon_all_decisions();
            }
            self.tell(Event::StatusChanged);
        }
    }

    /// An id that this engine has not used before, unpredictable to others.
    fn fresh_id(&mut self) -> Bytes32 {
        self.ids = self.ids.wrapping_add(1);
        keccak256(&[&self.seed.0[..], &self.ids.to_be_bytes()].concat())
    }

    /// A number for jitter.
    fn jitter(&mut self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.fresh_id().0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}
