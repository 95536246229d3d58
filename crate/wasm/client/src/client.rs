//! `Client`: one stream of one provider, with its database.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use js_sys::{Array, Function, Uint8Array};
use remuda_client::{
    Append, CommandId, Decision, EngineConfig, Event, Failure, GroupId, GroupNews, Keyring, SubscriptionSpec, TailKey,
};
use remuda_position::memory::MemoryStore;
use remuda_position::outbox::OutboxKey;
use remuda_position::{AdmissionBudget, Boundary, PositionKey, Store, StoredRow};
use remuda_session::CreditTarget;
use remuda_web::chain_nodes::ChainNodes;
use remuda_web::clock::{now_ms, random_bytes};
use remuda_web::dial::PlainLoopback;
use remuda_web::driver::{channel, Addresses, Command, Commands, Driver, Inputs};

use remuda_web::store::AnyStore;
use remuda_web::IdbStore;
use remuda_wire::context::SigningContext;
use remuda_wire::grant::StreamGrant;
use remuda_wire::request::{
    AppendRequest, CloseLaneRequest, CreateGroupRequest, CreateLaneRequest, DeleteGroupRequest, ListLanesRequest,
    RedriveRequest, RequestBody, UpdateGroupRequest,
};
use remuda_wire::{Bytes, Bytes24, Bytes32, Canonical};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use crate::holder::JsHolder;
use crate::members::Members;
use crate::object::Builder;
use crate::options::{
    asked_for, bytes, data_key, digest, flag, function, keyring, member, object, optional, optional_count,
    optional_function, optional_text, text, texts, AskedFor,
};
use crate::thrown::{bad_argument, store_error, thrown};
use crate::{group, options, snapshots, to_js};

/// How far a subscription may be sent ahead: some batches of the default size.
pub(crate) const CREDIT: CreditTarget = CreditTarget { records: 4_096, bytes: 8 * 1024 * 1024 };

pub(crate) struct Inner {
    pub(crate) store: Rc<AnyStore>,
    context: SigningContext,
    stream_id: Bytes32,
    grant: StreamGrant,
    pub(crate) addresses: Addresses,
    holder: Rc<JsHolder>,
    /// The data keys, of a stream that the application expects to be encrypted.
    pub(crate) keyring: Option<RefCell<Keyring>>,
    /// Where data keys come from by themselves.
    pub(crate) members: Option<Rc<Members>>,
    on_event: Function,
    pub(crate) commands: Commands,
    inputs: RefCell<Option<Inputs>>,
    /// The promises of commands that are not settled.
    pending: RefCell<BTreeMap<CommandId, (Function, Function)>>,
    next_command: Cell<u64>,
    tails: RefCell<BTreeSet<TailKey>>,
    /// Who waits for the end of a recording.
    recordings: RefCell<VecDeque<Function>>,
}

/// One stream of one provider, with its database. Methods take `&self`, so that calls may overlap.
#[wasm_bindgen]
pub struct Client(Rc<Inner>);

#[wasm_bindgen]
impl Client {
    /// Opens the database; does not touch the network.
    ///
    /// # Errors
    /// Throws by code: `misuse/argument`, a `decode/…` of context or grant, a `store/…`.
    pub async fn open(options: JsValue) -> Result<Client, JsValue> {
        let context: SigningContext =
            object(&hex::decode(text(&options, "context")?).map_err(|_| bad_argument("`context` is hexadecimal"))?)?;
        let stream_id = digest(&text(&options, "streamId")?, "streamId")?;
        let grant: StreamGrant = object(&bytes(&options, "grant")?)?;
        let plain = if flag(&options, "allowLoopback") { PlainLoopback::Allow } else { PlainLoopback::Refuse };
        let nodes = ChainNodes::new(texts(&options, "nodes")?, optional_count(&options, "quorum")?)
            .ok_or_else(|| bad_argument("`quorum` is more than half of the nodes, and not more than all"))?;
        let addresses = Addresses::new(nodes, texts(&options, "endpoints")?, plain)
            .map_err(|refused| bad_argument(&refused.to_string()))?;
        let store = match text(&options, "storage")?.as_str() {
            "durable" => {
                AnyStore::Idb(IdbStore::open(&text(&options, "database")?).await.map_err(|error| store_error(&error))?)
            }
            "memory" => AnyStore::Memory(MemoryStore::default()),
            _ => return Err(bad_argument("`storage` is \"durable\" or \"memory\"")),
        };
        let sign = function(&options, "sign")?;
        let members = optional(&options, "members").map(|it| Members::open(&it, &grant, sign.clone())).transpose()?;
        let mut keyring = keyring(&member(&options, "dataKeys"))?;
        if members.is_some() {
            keyring.get_or_insert_default();
        }
        let (commands, inputs) = channel();
        let client = Self(Rc::new(Inner {
            store: Rc::new(store),
            context,
            stream_id,
            grant,
            addresses,
            holder: Rc::new(JsHolder { sign, renew_grant: optional_function(&options, "renewGrant")? }),
            keyring: keyring.map(RefCell::new),
            members: members.map(Rc::new),
            on_event: function(&options, "onEvent")?,
            commands,
            inputs: RefCell::new(Some(inputs)),
            pending: RefCell::default(),
            next_command: Cell::new(0),
            tails: RefCell::default(),
            recordings: RefCell::default(),
        }));
        client.restore_keys().await?;
        Ok(client)
    }

    /// Takes the data keys that were kept, by this database's owner or by another life of this tab.
    ///
    /// # Errors
    /// Throws a `store/…`.
    #[wasm_bindgen(js_name = restoreKeys)]
    pub async fn restore_keys(&self) -> Result<(), JsValue> {
        match (&self.0.members, &self.0.keyring) {
            (Some(members), Some(keyring)) => members.restore(&self.0, keyring).await,
            _ => Ok(()),
        }
    }

    /// Drives the network until [`Client::close`]. Once per client.
    ///
    /// # Errors
    /// Throws `misuse/already-started`; a `store/…` when the database gives no ownership.
    pub async fn run(&self) -> Result<(), JsValue> {
        let inner = Rc::clone(&self.0);
        let started = || thrown(&Failure::from(remuda_session::ApiMisuse::AlreadyStarted));
        let inputs = inner.inputs.borrow_mut().take().ok_or_else(started)?;
        let driver = Driver::new(
            Rc::clone(&inner.store),
            Rc::clone(&inner.holder),
            inner.addresses.clone(),
            inner.commands.clone(),
            inputs,
        );
        let fence = inner.store.take_fence().await.map_err(|error| store_error(&error))?;
        Members::run(&inner, fence);
        let configure = |transports| EngineConfig {
            context: inner.context.clone(),
            stream_id: inner.stream_id,
            grant: inner.grant.clone(),
            fence,
            budget: AdmissionBudget::default(),
            credit: CREDIT,
            encrypted: inner.keyring.is_some(),
            renews_grant: inner.holder.renew_grant.is_some(),
            transports,
        };
        let ran = driver.run(configure, |engine, event| inner.observe(engine, event)).await;
        ran.map_err(|error| thrown(&Failure::from(error)))
    }

    /// Subscribes and returns the key of its position, or begins a tail and returns its key. The owner opens it once connected.
    ///
    /// # Errors
    /// Throws `misuse/argument`, `admission/verification-mode`, `admission/proof-scope-too-wide`.
    pub fn subscribe(&self, spec: &JsValue) -> Result<String, JsValue> {
        let (context, stream_id) = (&self.0.context, &self.0.stream_id);
        let (key, command) = match asked_for(spec)? {
            AskedFor::Subscription(spec) => (spec.key(context, stream_id).0, Command::Subscribe(spec)),
            AskedFor::Tail(scope) => {
                let key = TailKey::derive(context, stream_id, &scope);
                self.0.tails.borrow_mut().insert(key);
                (key.0, Command::Tail(scope))
            }
        };
        self.0.commands.send(command);
        Ok(key.to_string())
    }

    /// Ends a subscription or a tail. What is durable stays.
    ///
    /// # Errors
    /// Throws `misuse/argument`.
    pub fn unsubscribe(&self, key: &str) -> Result<(), JsValue> {
        let key = digest(key, "key")?;
        let is_tail = self.0.tails.borrow_mut().remove(&TailKey(key));
        let command = if is_tail { Command::EndTail(TailKey(key)) } else { Command::Unsubscribe(PositionKey(key)) };
        self.0.commands.send(command);
        Ok(())
    }

    /// Begins a recording of what a subscription is sent, of at most `max_bytes`; one that is under way is dropped.
    ///
    /// # Errors
    /// Throws `misuse/argument`.
    #[wasm_bindgen(js_name = startRecording)]
    pub fn start_recording(&self, key: &str, max_bytes: u32) -> Result<(), JsValue> {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        self.0.commands.send(Command::StartRecording(PositionKey(digest(key, "key")?), max_bytes));
        Ok(())
    }

    /// Ends the recording: `{ file, items, isComplete }`, or null when there is none.
    ///
    /// # Errors
    /// Never: a client that was closed answers no more.
    #[wasm_bindgen(js_name = stopRecording)]
    pub async fn stop_recording(&self) -> Result<JsValue, JsValue> {
        let ended = js_sys::Promise::new(&mut |resolve, _| self.0.recordings.borrow_mut().push_back(resolve));
        self.0.commands.send(Command::StopRecording);
        wasm_bindgen_futures::JsFuture::from(ended).await
    }

    /// Committed items above `after_item`, ascending; about `max_bytes` of them, at least one where there is one.
    ///
    /// # Errors
    /// Throws `misuse/argument`, a `store/…`.
    pub async fn read(&self, key: String, after_item: u64, max_bytes: u32) -> Result<Array, JsValue> {
        let key = PositionKey(digest(&key, "key")?);
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let rows = self.0.store.rows_after(key, after_item, max_bytes).await.map_err(|error| store_error(&error))?;
        let items = Array::new();
        let keyring = self.0.keyring.as_ref().map(RefCell::borrow);
        for row in rows {
            let row = StoredRow::from_bytes(&row).map_err(|_| store_error(&remuda_position::StoreError::Corrupt))?;
            for (number, item) in row.numbered().filter(|(number, _)| *number > after_item) {
                items.push(&to_js::item(number, &item, keyring.as_deref()));
            }
        }
        Ok(items)
    }

    /// The durable boundary of a position; null before there is one.
    ///
    /// # Errors
    /// Throws `misuse/argument`, a `store/…`.
    pub async fn boundary(&self, key: String) -> Result<JsValue, JsValue> {
        let key = PositionKey(digest(&key, "key")?);
        let stored = self.0.store.load(key).await.map_err(|error| store_error(&error))?;
        Ok(stored.map_or(JsValue::NULL, |stored| to_js::boundary(&Boundary::stored(key, stored))))
    }

    /// Puts a record into the outbox; resolves with `{ entry, messageId }` when the database holds it, sealed. The owner is to
    /// be told by [`Client::enqueued`].
    ///
    /// # Errors
    /// Throws `misuse/argument`; an `encryption/…`; a `store/…`, `store/outbox-full` among them.
    pub async fn enqueue(&self, record: JsValue) -> Result<JsValue, JsValue> {
        let append = Append {
            lane_id: digest(&text(&record, "lane")?, "lane")?,
            client_message_id: match optional_text(&record, "messageId")? {
                Some(id) => digest(&id, "messageId")?,
                None => {
                    Bytes32(random_bytes().map_err(|_| bad_argument("without randomness a `messageId` is needed"))?)
                }
            },
            client_created_at_ms: now_ms(),
            expires_at_ms: match member(&record, "expiresAtMs") {
                value if value.is_undefined() || value.is_null() => 0,
                value => u64::try_from(value).map_err(|_| bad_argument("`expiresAtMs` is a bigint"))?,
            },
            payload: Bytes::new(bytes(&record, "payload")?).map_err(|error| bad_argument(&error.to_string()))?,
        };
        let message_id = append.client_message_id;
        let request = self.0.seal(append.into_request(self.0.stream_id))?;
        let entry = self.0.store.enqueue(self.0.outbox_key(), &request).await.map_err(|error| store_error(&error))?;
        Ok(Builder::new().with("entry", &entry).with("messageId", &message_id).build())
    }

    /// Tells the owner that the outbox has more.
    pub fn enqueued(&self) {
        self.0.commands.send(Command::Enqueued);
    }

    /// Entries of the outbox above `after`, ascending; about `max_bytes` of them, at least one where there is one.
    ///
    /// # Errors
    /// Throws a `store/…`.
    pub async fn outbox(&self, after: u64, max_bytes: u32) -> Result<Array, JsValue> {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let entries = self.0.store.outbox_after(self.0.outbox_key(), after, max_bytes).await;
        let keyring = self.0.keyring.as_ref().map(RefCell::borrow);
        let entries = entries.map_err(|error| store_error(&error))?;
        Ok(entries.iter().map(|entry| to_js::outbox_entry(entry, keyring.as_deref())).collect())
    }

    /// Forgets a failed entry that was seen. By the owner.
    pub fn dismiss(&self, entry: u64) {
        self.0.commands.send(Command::Dismiss(entry));
    }

    /// Creates a lane. Its id derives from `laneNonce`, random when absent: the same nonce is the same lane.
    ///
    /// # Errors
    /// Throws `misuse/argument`; a `provider/…`; `command/outcome-unknown`.
    #[wasm_bindgen(js_name = createLane)]
    pub async fn create_lane(&self, lane: JsValue) -> Result<JsValue, JsValue> {
        let lane_nonce = match optional_text(&lane, "laneNonce")? {
            Some(nonce) => digest(&nonce, "laneNonce")?,
            None => Bytes32(random_bytes().map_err(|_| bad_argument("without randomness a `laneNonce` is needed"))?),
        };
        let metadata_hash = match optional_text(&lane, "metadataHash")? {
            Some(hash) => digest(&hash, "metadataHash")?,
            None => Bytes32::ZERO,
        };
        let request = CreateLaneRequest { stream_id: self.0.stream_id, lane_nonce, metadata_hash };
        self.0.ask(RequestBody::CreateLane(request)).await
    }

    /// Closes a lane for good.
    ///
    /// # Errors
    /// Throws `misuse/argument`; a `provider/…`; `command/outcome-unknown`.
    #[wasm_bindgen(js_name = closeLane)]
    pub async fn close_lane(&self, lane: String) -> Result<JsValue, JsValue> {
        let lane_id = digest(&lane, "lane")?;
        self.0.ask(RequestBody::CloseLane(CloseLaneRequest { stream_id: self.0.stream_id, lane_id })).await
    }

    /// One page of lanes above `after`, at most `limit`.
    ///
    /// # Errors
    /// Throws `misuse/argument`; a `provider/…`; `command/outcome-unknown`.
    #[wasm_bindgen(js_name = listLanes)]
    pub async fn list_lanes(&self, after: Option<String>, limit: u32) -> Result<JsValue, JsValue> {
        let after_lane_id = after.map(|after| digest(&after, "after")).transpose()?;
        let request = ListLanesRequest { stream_id: self.0.stream_id, after_lane_id, limit };
        self.0.ask(RequestBody::ListLanes(request)).await
    }

    /// Decides what becomes of a lease; resolves with the state that it led to, once the group's chain shows it.
    ///
    /// # Errors
    /// Throws `misuse/argument`; `group/lease-over`, `group/decision-outstanding`; a `provider/…`; `command/outcome-unknown`.
    pub async fn decide(&self, key: String, lease: String, decision: JsValue) -> Result<JsValue, JsValue> {
        let (key, lease_id) = (PositionKey(digest(&key, "key")?), digest(&lease, "lease")?);
        let decision = options::decision(&decision)?;
        self.0.settled(|id| Command::Decide(id, key, lease_id, decision)).await
    }

    /// Creates a group. The same configuration again is the same group; a group that was deleted is never created again.
    ///
    /// # Errors
    /// Throws `misuse/argument`; a `provider/…`; `command/outcome-unknown`.
    #[wasm_bindgen(js_name = createGroup)]
    pub async fn create_group(&self, config: JsValue) -> Result<JsValue, JsValue> {
        let config = group::config(&config)?;
        self.0.ask(RequestBody::CreateGroup(CreateGroupRequest { stream_id: self.0.stream_id, config })).await
    }

    /// Replaces what can change of a group.
    ///
    /// # Errors
    /// Throws `misuse/argument`; a `provider/…`; `command/outcome-unknown`.
    #[wasm_bindgen(js_name = updateGroup)]
    pub async fn update_group(&self, config: JsValue) -> Result<JsValue, JsValue> {
        let GroupId { lane_id, group_id } = options::group(&config)?;
        let config = group::mutable_config(&config)?;
        let request = UpdateGroupRequest { stream_id: self.0.stream_id, lane_id, group_id, config };
        self.0.ask(RequestBody::UpdateGroup(request)).await
    }

    /// Deletes a group for good.
    ///
    /// # Errors
    /// Throws `misuse/argument`; a `provider/…`; `command/outcome-unknown`.
    #[wasm_bindgen(js_name = deleteGroup)]
    pub async fn delete_group(&self, named: JsValue) -> Result<JsValue, JsValue> {
        let GroupId { lane_id, group_id } = options::group(&named)?;
        let request = DeleteGroupRequest { stream_id: self.0.stream_id, lane_id, group_id };
        self.0.ask(RequestBody::DeleteGroup(request)).await
    }

    /// Brings a record back whose cycle is over: `{ lane, group, sequence, cycle }`.
    ///
    /// # Errors
    /// Throws `misuse/argument`; a `provider/…`; `command/outcome-unknown`.
    pub async fn redrive(&self, over: JsValue) -> Result<JsValue, JsValue> {
        let GroupId { lane_id, group_id } = options::group(&over)?;
        let record_id = group::record_id(options::unsigned(&over, "sequence")?);
        let terminal_cycle_id = digest(&text(&over, "cycle")?, "cycle")?;
        let stream_id = self.0.stream_id;
        let request = RedriveRequest { stream_id, lane_id, group_id, record_id, terminal_cycle_id };
        self.0.ask(RequestBody::Redrive(request)).await
    }

    /// Keeps the data key of a generation: records of it that are stored already can be read from now on.
    ///
    /// # Errors
    /// Throws `misuse/argument` for a key of another length, or of a stream that is not expected to be encrypted;
    /// `encryption/generation-conflict` when the generation has another key.
    #[wasm_bindgen(js_name = addDataKey)]
    pub fn add_data_key(&self, generation: u64, key: &Uint8Array) -> Result<(), JsValue> {
        let keyring = self.0.keyring.as_ref().ok_or_else(|| bad_argument("`dataKeys` was not given on opening"))?;
        keyring.borrow_mut().insert(generation, data_key(key)?).map_err(|failure| thrown(&failure))
    }

    /// Publishes a key batch `{ generation, recipients, dataKey, sign }` on the key stream, however long it takes, and gives its receipt: what
    /// the owner activates a next generation with. By the owner of the connection.
    ///
    /// # Errors
    /// Throws `misuse/argument`; `encryption/membership-unknown`, another `encryption/…`; a `provider/…`; a `verify/…` of what it answered.
    #[wasm_bindgen(js_name = publishKeyBatch)]
    pub async fn publish_key_batch(&self, batch: JsValue) -> Result<JsValue, JsValue> {
        let members = self.0.members.clone().ok_or_else(|| bad_argument("`keyStream` was not given on opening"))?;
        members.publish(&batch).await
    }

    /// The browser's word on the network: `true` tries again at once.
    pub fn online(&self, is_online: bool) {
        if is_online {
            self.0.commands.send(Command::Online);
            self.0.members.iter().for_each(|members| members.online());
        }
    }

    /// Closes for good; [`Client::run`] resolves.
    pub fn close(&self) {
        self.0.members.iter().for_each(|members| members.close());
        self.0.commands.send(Command::Close);
    }
}

impl Client {
    pub(crate) fn key_of(&self, spec: &SubscriptionSpec) -> PositionKey {
        spec.key(&self.0.context, &self.0.stream_id)
    }

    pub(crate) fn send(&self, command: Command) {
        self.0.commands.send(command);
    }

    /// Sends a command under an id of its own, and waits until that is settled.
    pub(crate) async fn settled(&self, command: impl FnOnce(CommandId) -> Command) -> Result<JsValue, JsValue> {
        self.0.settled(command).await
    }
}

impl Inner {
    fn outbox_key(&self) -> OutboxKey {
        OutboxKey::derive(&self.context, &self.stream_id)
    }

    /// Seals where the stream is encrypted.
    fn seal(&self, request: AppendRequest) -> Result<AppendRequest, JsValue> {
        let Some(keyring) = &self.keyring else { return Ok(request) };
        let nonce = random_bytes().map_err(|_| bad_argument("without randomness nothing is sealed"))?;
        keyring.borrow().seal(request, Bytes24(nonce)).map_err(|failure| thrown(&failure))
    }

    /// Asks the provider for one thing, and waits until that is settled.
    async fn ask(&self, request: RequestBody) -> Result<JsValue, JsValue> {
        self.settled(|id| Command::Request(id, Box::new(request))).await
    }

    fn next_command(&self) -> CommandId {
        let id = CommandId(self.next_command.get());
        self.next_command.set(id.0 + 1);
        id
    }

    /// Gives a command, and waits until it is settled.
    async fn settled(&self, command: impl FnOnce(CommandId) -> Command) -> Result<JsValue, JsValue> {
        let id = self.next_command();
        let settled = js_sys::Promise::new(&mut |resolve, reject| {
            self.pending.borrow_mut().insert(id, (resolve, reject));
        });
        self.commands.send(command(id));
        wasm_bindgen_futures::JsFuture::from(settled).await
    }

    fn settle(&self, id: CommandId, outcome: Result<JsValue, JsValue>) {
        let Some((resolve, reject)) = self.pending.borrow_mut().remove(&id) else { return };
        // The settling functions of a promise do not throw.
        drop(match outcome {
            Ok(result) => resolve.call1(&JsValue::UNDEFINED, &result),
            Err(error) => reject.call1(&JsValue::UNDEFINED, &error),
        });
    }

    fn observe(self: &Rc<Self>, engine: &remuda_client::Engine, event: &Event) {
        match event {
            Event::StatusChanged => {
                let status = to_js::status(engine, self.store.health());
                self.tell(&Builder::new().with("type", "status").with_value("status", &status).build());
            }
            Event::ChainRead => {
                if let (Some(keyring), Some(stream)) = (&self.keyring, engine.stream()) {
                    keyring.borrow_mut().set_active(stream.encryption_generation);
                    Members::chain_read(self, stream);
                }
            }
            Event::Settled { id, outcome } => self.settle(*id, to_js::command_outcome(outcome)),
            Event::Hydrated { id, outcome } => {
                if let Ok(hydrated) = outcome {
                    self.tell_committed(hydrated.key, hydrated.last_item);
                }
                self.settle(*id, snapshots::hydrated(outcome));
            }
            Event::Drafted { id, outcome } => self.settle(*id, snapshots::drafted(outcome)),
            Event::Group { key, news } => news.iter().for_each(|news| self.tell_group(*key, news)),
            Event::Batch { key, last_item, .. }
            | Event::Segment { key, last_item, .. }
            | Event::Transition { key, last_item, .. }
            | Event::Gap { key, last_item } => self.tell_committed(*key, *last_item),
            Event::Painted { key, record } => {
                let keyring = self.keyring.as_ref().map(RefCell::borrow);
                self.tell(&to_js::painted(*key, record, keyring.as_deref()));
            }
            Event::Recorded(recording) => {
                if let Some(resolve) = self.recordings.borrow_mut().pop_front() {
                    let ended = recording.as_ref().map_or(JsValue::NULL, to_js::recording);
                    // The settling functions of a promise do not throw.
                    drop(resolve.call1(&JsValue::UNDEFINED, &ended));
                }
            }
            Event::Append(_) | Event::Failure { .. } | Event::TailFailed { .. } => {}
        }
        if let Some(event) = to_js::event(event) {
            self.tell(&event);
        }
    }

    fn tell_group(&self, key: PositionKey, news: &GroupNews) {
        match news {
            GroupNews::Leased(record) => {
                let Some(lease) = &record.lease else { return };
                let keyring = self.keyring.as_ref().map(RefCell::borrow);
                let opened = keyring.as_ref().map(|keyring| keyring.open(&record.header, &record.payload));
                // Never acknowledged by anyone: it is decided before the application hears of it.
                let decided = opened.as_ref().and_then(Decision::of_payload);
                if let Some(decision) = decided {
                    let id = self.next_command();
                    self.commands.send(Command::Decide(id, key, lease.reference.lease_id, decision));
                }
                self.tell(&group::delivery(key, record, lease, decided, keyring.as_deref()));
            }
            GroupNews::State(state) => {
                let object = Builder::new().with("type", "delivery-state").with("key", &key.0);
                self.tell(&group::state_members(object, state).build());
            }
            GroupNews::Config(config) => {
                let config = config.as_ref().map(|config| group::config_members(Builder::new(), config).build());
                self.tell(&Builder::new().with("type", "group").with("key", &key.0).with("config", &config).build());
            }
            GroupNews::Decided { id, outcome } => self.settle(
                *id,
                match outcome {
                    Ok(state) => Ok(group::state_members(Builder::new(), state).build()),
                    Err(failure) => Err(thrown(failure)),
                },
            ),
        }
    }

    fn tell_committed(&self, key: PositionKey, last_item: u64) {
        let wake = Builder::new().with("type", "committed").with("key", &key.0).with("lastItem", &last_item);
        self.tell(&wake.build());
    }

    pub(crate) fn tell(&self, event: &JsValue) {
        // An observer that throws is its own fault: the engine goes on.
        drop(self.on_event.call1(&JsValue::UNDEFINED, event));
    }
}
