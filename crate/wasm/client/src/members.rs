//! The keys of a member: an engine of its own follows the key stream, in the same worker and over the same database.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Function, Promise};
use remuda_client::member_keys::{MemberKeyConfig, MemberKeyOutput, MemberKeys, StreamKeyFacts};
use remuda_client::{Engine, EngineConfig, Event, Keyring, SubscriptionSpec};
use remuda_position::{AdmissionBudget, Fence, PositionKey, Store, StoreError, StoredRow};
use remuda_web::clock::{now_ms, sleep_until};
use remuda_web::driver::{channel, Command, Commands, Driver, Inputs};
use remuda_wire::chain::StreamRecord;
use remuda_wire::grant::StreamGrant;
use remuda_wire::key::HpkePublicKey;
use remuda_wire::preimage::key_stream_id;
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes32, Canonical};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{spawn_local, JsFuture};

use crate::client::{Inner, CREDIT};
use crate::holder::JsHolder;
use crate::object::ToJs;
use crate::options::{bytes, fixed, function, object, optional_function};
use crate::publication::Uploads;
use crate::secret::{promised_secret, promised_secrets};
use crate::thrown::store_error;
use crate::to_js;

/// What is read of the key stream's rows at a time.
const PAGE_BYTES: usize = 1024 * 1024;
/// How long the key stream rests after its disk failed.
const RESUBSCRIBE_MS: u64 = 30_000;
/// Every record of the key stream, with its receipt.
const EVERYTHING: SubscriptionSpec = SubscriptionSpec::StandardReplay(LaneScope::Any);

/// The key stream of one client, and the member who follows it.
pub struct Members {
    config: MemberKeyConfig,
    keys: RefCell<MemberKeys>,
    position: PositionKey,
    grant: StreamGrant,
    holder: Rc<JsHolder>,
    /// `(publicKey: Uint8Array) => Promise<Uint8Array>`: X25519 with the member's key.
    agree: Function,
    /// `() => Promise<Uint8Array | null>`: what was kept.
    load: Function,
    /// `(kept: Uint8Array) => Promise<void>`.
    keep: Function,
    commands: Commands,
    inputs: RefCell<Option<Inputs>>,
    uploads: Uploads,
    is_following: Cell<bool>,
    /// Something has changed since the rows were read last.
    has_changed: Cell<bool>,
}

impl Members {
    /// `{ publicKey, agree, load, keep, grant, renewGrant }`; `main` is the grant of the main stream, and `sign` its holder's.
    ///
    /// # Errors
    /// Throws `misuse/argument`, a `decode/…` of the grant.
    pub fn open(options: &JsValue, main: &StreamGrant, sign: Function) -> Result<Self, JsValue> {
        let member = HpkePublicKey(Bytes32(fixed(&bytes(options, "publicKey")?, "publicKey")?));
        let config = MemberKeyConfig { context: main.context.clone(), main_stream_id: main.stream_id, member };
        let (commands, inputs) = channel();
        Ok(Self {
            keys: RefCell::new(MemberKeys::new(config.clone())),
            position: EVERYTHING.key(&config.context, &key_stream_id(&config.main_stream_id)),
            config,
            grant: object(&bytes(options, "grant")?)?,
            holder: Rc::new(JsHolder { sign, renew_grant: optional_function(options, "renewGrant")? }),
            agree: function(options, "agree")?,
            load: function(options, "load")?,
            keep: function(options, "keep")?,
            commands,
            inputs: RefCell::new(Some(inputs)),
            uploads: Uploads::default(),
            is_following: Cell::new(false),
            has_changed: Cell::new(false),
        })
    }

    /// Takes what was kept, by this database's owner or by another life of this tab. The owner itself is ahead of it.
    ///
    /// # Errors
    /// Throws a `store/…`.
    pub async fn restore(&self, inner: &Inner, keyring: &RefCell<Keyring>) -> Result<(), JsValue> {
        let kept = promised_secrets(&self.load).await.unwrap_or_default();
        let stored = inner.store.load(self.position).await.map_err(|error| store_error(&error))?;
        let last_item = stored.map_or(0, |stored| stored.last_item());
        if self.inputs.borrow().is_some() {
            let restored = MemberKeys::restore(self.config.clone(), &kept, last_item, &mut keyring.borrow_mut());
            self.keys.replace(restored);
        }
        Ok(())
    }

    /// Drives the engine of the key stream beside that of the main stream, for the owner of the database, until it is closed.
    pub fn run(inner: &Rc<Inner>, fence: Fence) {
        let Some(members) = &inner.members else { return };
        let Some(inputs) = members.inputs.borrow_mut().take() else { return };
        let driver = Driver::new(
            Rc::clone(&inner.store),
            Rc::clone(&members.holder),
            inner.addresses.clone(),
            members.commands.clone(),
            inputs,
        );
        members.commands.send(Command::Subscribe(EVERYTHING));
        let members = Rc::clone(members);
        let inner = Rc::clone(inner);
        spawn_local(async move {
            let configure = |transports| EngineConfig {
                context: members.config.context.clone(),
                stream_id: key_stream_id(&members.config.main_stream_id),
                grant: members.grant.clone(),
                fence,
                budget: AdmissionBudget::default(),
                credit: CREDIT,
                encrypted: false,
                renews_grant: members.holder.renew_grant.is_some(),
                transports,
            };
            let observe = |engine: &Engine, event: &Event| members.observe(&inner, engine, event);
            if let Err(error) = driver.run(configure, observe).await {
                inner.tell(&to_js::failure(Some(members.position), &error.into()));
            }
        });
    }

    /// An event of the key stream's engine. Its status is none of the page's: what matters of it are its failures and its rows.
    fn observe(&self, inner: &Rc<Inner>, engine: &Engine, event: &Event) {
        match event {
            Event::StatusChanged => self.uploads.connected(engine.connection()),
            Event::Settled { id, outcome } => self.uploads.settled(*id, outcome.clone()),
            Event::Segment { .. } => Self::follow(inner),
            Event::Failure { key, failure } => {
                inner.tell(&to_js::failure(*key, failure));
                if failure.code.starts_with("store/") {
                    self.subscribe_later();
                }
            }
            _ => {}
        }
    }

    /// A disk that fails again and again ends a subscription, and may be well later. While it has not ended this changes nothing.
    fn subscribe_later(&self) {
        let commands = self.commands.clone();
        spawn_local(async move {
            sleep_until(now_ms().saturating_add(RESUBSCRIBE_MS)).await;
            commands.send(Command::Subscribe(EVERYTHING));
        });
    }

    /// The main stream's record was read.
    pub fn chain_read(inner: &Rc<Inner>, stream: &StreamRecord) {
        let (Some(members), Some(keyring)) = (&inner.members, &inner.keyring) else { return };
        let Some(facts) = StreamKeyFacts::of(stream) else { return };
        members.keys.borrow_mut().handle_chain(facts, &mut keyring.borrow_mut());
        Self::follow(inner);
    }

    /// Publishes a batch, as [`Uploads::publish`].
    ///
    /// # Errors
    /// Its own.
    pub async fn publish(&self, options: &JsValue) -> Result<JsValue, JsValue> {
        self.uploads.publish(&self.keys, &self.commands, options).await
    }

    /// Closes the engine of the key stream.
    pub fn close(&self) {
        self.commands.send(Command::Close);
    }

    /// The browser's word on the network.
    pub fn online(&self) {
        self.commands.send(Command::Online);
    }

    /// Takes the rows that there are; one after the other, however often it is called.
    fn follow(inner: &Rc<Inner>) {
        let Some(members) = &inner.members else { return };
        members.has_changed.set(true);
        if members.is_following.replace(true) {
            return;
        }
        let (inner, members) = (Rc::clone(inner), Rc::clone(members));
        spawn_local(async move {
            while members.has_changed.replace(false) {
                if let Err(error) = members.follow_rows(&inner).await {
                    inner.tell(&to_js::failure(Some(members.position), &(&error).into()));
                }
            }
            members.is_following.set(false);
        });
    }

    async fn follow_rows(&self, inner: &Inner) -> Result<(), StoreError> {
        let Some(keyring) = &inner.keyring else { return Ok(()) };
        loop {
            self.do_outputs(inner, keyring).await;
            let Some(after) = self.keys.borrow().wants_after() else { return Ok(()) };
            let rows = inner.store.rows_after(self.position, after, PAGE_BYTES).await?;
            if !self.take_rows(after, rows, keyring)? {
                return Ok(());
            }
        }
    }

    /// Takes as many items as are wanted. False when there was none.
    fn take_rows(&self, after: u64, rows: Vec<Vec<u8>>, keyring: &RefCell<Keyring>) -> Result<bool, StoreError> {
        let mut has_taken = false;
        for row in rows {
            let row = StoredRow::from_bytes(&row).map_err(|_| StoreError::Corrupt)?;
            for (number, item) in row.numbered().filter(|(number, _)| *number > after) {
                has_taken = true;
                if !self.keys.borrow_mut().handle_item(number, item, &mut keyring.borrow_mut()) {
                    return Ok(true);
                }
            }
        }
        Ok(has_taken)
    }

    async fn do_outputs(&self, inner: &Inner, keyring: &RefCell<Keyring>) {
        loop {
            let output = self.keys.borrow_mut().poll_output();
            match output {
                None => return,
                Some(MemberKeyOutput::Agree { public_key }) => {
                    let agreed = promised_secret(&self.agree, &public_key.0[..].to_js()).await;
                    self.keys.borrow_mut().handle_agreed(agreed, &mut keyring.borrow_mut());
                }
                Some(MemberKeyOutput::ReadChain) => inner.commands.send(Command::ReadChain),
                Some(MemberKeyOutput::Keep(kept)) => {
                    // What cannot be kept is followed again from the rows: whoever keeps tells why.
                    if let Ok(promise) = self.keep.call1(&JsValue::UNDEFINED, &kept[..].to_js()) {
                        drop(JsFuture::from(Promise::resolve(&promise)).await);
                    }
                }
                Some(MemberKeyOutput::Event(event)) => inner.tell(&to_js::member_key(&event)),
            }
        }
    }
}
