//! `Subscriber` and `Publisher`: the two sides of a cohort, each with its place in the database.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use js_sys::{Array, Function, Promise, Uint8Array};
use remuda_bps::connection::Transport;
use remuda_bps::publisher::PublisherConfig;
use remuda_bps::signature::{LocalSigner, RecoverableSignature};
use remuda_bps::stored::{index_from_bytes, source_name, Side};
use remuda_bps::subscriber::SubscriberConfig;
use remuda_bps::Cohort;
use remuda_client::Failure;
use remuda_position::feed::SourceKey;
use remuda_position::StoreError;
use remuda_session::ApiMisuse;
use remuda_wasm_js::object::{Builder, ToJs};
use remuda_wasm_js::options::{address, bytes, digest, function, optional, optional_text, text, unsigned};
use remuda_wasm_js::thrown::{bad_argument, store_error, thrown};
use remuda_web::clock::random_bytes;
use remuda_web::feeds::publisher::{
    AdminSigner, BrokerAddress, PublisherCommands, PublisherDriver, PublisherEvent, PublisherStatus, UpdateId,
};
use remuda_web::feeds::subscriber::{SubscriberDriver, SubscriberEnd, SubscriberEvent, SubscriberStatus};
use remuda_web::feeds::{source_key, FeedStore};
use remuda_wire::{Address, Bytes32};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::bps_to_js::{self, status_event};
use crate::chunk::local_signer;
use crate::source::{durable, failure_event, plain, read, store, stored_event, tell};

/// `{ topic, owner }` in hexadecimal.
pub fn cohort(options: &JsValue) -> Result<Cohort, JsValue> {
    Ok(Cohort { topic: digest(&text(options, "topic")?, "topic")?, admin: address(&text(options, "owner")?, "owner")? })
}

/// Through the bridge of a node to `broker`, or directly where none is named.
fn transport(options: &JsValue) -> Result<Transport, JsValue> {
    Ok(match optional_text(options, "broker")? {
        Some(broker) => Transport::Bridge { broker: digest(&broker, "broker")? },
        None => Transport::Direct,
    })
}

fn broker_address(options: &JsValue) -> Result<BrokerAddress, JsValue> {
    Ok(BrokerAddress { endpoint: text(options, "endpoint")?, plain: plain(options) })
}

fn already_started() -> JsValue {
    thrown(&Failure::from(ApiMisuse::AlreadyStarted))
}

/// Where a side durably stands: `{ lastItem, index }`, the latter null before the first.
async fn standing(store: &FeedStore, source: SourceKey) -> Result<JsValue, JsValue> {
    let durable = durable(store, source).await?;
    let index = durable.cursor.as_deref().map(index_from_bytes).transpose();
    let index = index.map_err(|_| store_error(&StoreError::Corrupt))?;
    Ok(Builder::new().with("lastItem", &durable.last_item).with("index", &index).build())
}

/// The subscriber of one cohort. Methods take `&self`, so that calls may overlap.
#[wasm_bindgen]
pub struct Subscriber {
    store: Rc<FeedStore>,
    source: SourceKey,
    end: SubscriberEnd,
    status: Rc<RefCell<SubscriberStatus>>,
    on_event: Function,
    driver: RefCell<Option<(SubscriberDriver, SubscriberConfig)>>,
}

#[wasm_bindgen]
impl Subscriber {
    /// Opens the database; does not touch the network.
    ///
    /// # Errors
    /// Throws by code: `misuse/argument`, a `store/…`.
    pub async fn open(options: JsValue) -> Result<Subscriber, JsValue> {
        let cohort = cohort(&options)?;
        let identity = match optional_text(&options, "identity")? {
            Some(identity) => address(&identity, "identity")?,
            None => Address(random_bytes().map_err(|_| bad_argument("without randomness an `identity` is needed"))?),
        };
        if identity == cohort.admin {
            return Err(bad_argument("`identity` is not the owner's: that would be the publisher's stream"));
        }
        let cursor = optional(&options, "cursor").map(|_| unsigned(&options, "cursor")).transpose()?;
        let config = SubscriberConfig { cohort, identity, transport: transport(&options)?, cursor };
        let (on_event, broker) = (function(&options, "onEvent")?, broker_address(&options)?);
        let store = store(&options).await?;
        let source = source_key(&source_name(Side::Subscriber, &cohort));
        let driver = SubscriberDriver::new(broker, source, Rc::clone(&store));
        let (end, status) = (driver.end(), driver.status());
        Ok(Self { store, source, end, status, on_event, driver: RefCell::new(Some((driver, config))) })
    }

    /// Names its place in the database, the same in every tab.
    #[wasm_bindgen(getter)]
    pub fn key(&self) -> String {
        self.source.0.to_string()
    }

    /// Receives until [`Subscriber::close`]. Once per subscriber.
    ///
    /// # Errors
    /// Throws `misuse/already-started`; a `store/…` when the database fails.
    pub async fn run(&self) -> Result<(), JsValue> {
        let (driver, config) = self.driver.borrow_mut().take().ok_or_else(already_started)?;
        let observe = |event: &SubscriberEvent| {
            let event = match event {
                SubscriberEvent::Status => status_event(&self.status()),
                SubscriberEvent::Stored { last_item } => stored_event(*last_item),
                SubscriberEvent::Failure(failure) => failure_event(failure),
            };
            tell(&self.on_event, &event);
        };
        driver.run(config, observe).await.map_err(|failure| thrown(&failure))
    }

    /// Its status.
    pub fn status(&self) -> JsValue {
        bps_to_js::subscriber_status(&self.status.borrow(), self.store.health())
    }

    /// Stored updates above `after`, ascending; about `max_bytes` of them, at least one where there is one.
    ///
    /// # Errors
    /// Throws a `store/…`.
    pub async fn read(&self, after: u64, max_bytes: u32) -> Result<Array, JsValue> {
        read(&self.store, self.source, after, max_bytes, bps_to_js::item).await
    }

    /// Where it durably stands: `{ lastItem, index }`, the index of the last update.
    ///
    /// # Errors
    /// Throws a `store/…`.
    pub async fn standing(&self) -> Result<JsValue, JsValue> {
        standing(&self.store, self.source).await
    }

    /// Closes for good; [`Subscriber::run`] resolves.
    pub fn close(&self) {
        self.end.close();
    }
}

/// The key of a cohort's admin: here, or behind a function of the application, for instance a wallet's.
pub enum AdminKey {
    Local(LocalSigner),
    Function(Function),
}

impl AdminSigner for AdminKey {
    async fn sign(&self, message: Bytes32) -> Option<RecoverableSignature> {
        match self {
            Self::Local(signer) => signer.sign(&message),
            Self::Function(sign) => {
                let promised = sign.call1(&JsValue::UNDEFINED, &message.0.as_slice().to_js()).ok()?;
                let signed = JsFuture::from(Promise::resolve(&promised)).await.ok()?;
                signed.dyn_into::<Uint8Array>().ok()?.to_vec().try_into().ok()
            }
        }
    }
}

/// The promises of updates that are not settled.
type Pending = RefCell<BTreeMap<UpdateId, (Function, Function)>>;

/// The publisher of one cohort. Methods take `&self`, so that calls may overlap.
#[wasm_bindgen]
pub struct Publisher {
    store: Rc<FeedStore>,
    source: SourceKey,
    owner: Address,
    commands: PublisherCommands,
    status: Rc<RefCell<PublisherStatus>>,
    on_event: Function,
    pending: Pending,
    next_update: Cell<u64>,
    driver: RefCell<Option<(PublisherDriver<AdminKey>, PublisherConfig)>>,
}

#[wasm_bindgen]
impl Publisher {
    /// Opens the database; does not touch the network.
    ///
    /// # Errors
    /// Throws by code: `misuse/argument`, a `store/…`.
    pub async fn open(options: JsValue) -> Result<Publisher, JsValue> {
        let topic = digest(&text(&options, "topic")?, "topic")?;
        let (key, admin) = match optional(&options, "secretKey") {
            Some(_) => {
                let signer = local_signer(&bytes(&options, "secretKey")?)?;
                let admin = signer.address();
                (AdminKey::Local(signer), admin)
            }
            None => (AdminKey::Function(function(&options, "sign")?), address(&text(&options, "owner")?, "owner")?),
        };
        let cohort = Cohort { topic, admin };
        let next_index = optional(&options, "nextIndex").map(|_| unsigned(&options, "nextIndex")).transpose()?;
        let transport = transport(&options)?;
        let config = PublisherConfig { cohort, transport, next_index: next_index.unwrap_or_default() };
        let (on_event, broker) = (function(&options, "onEvent")?, broker_address(&options)?);
        let store = store(&options).await?;
        let source = source_key(&source_name(Side::Publisher, &cohort));
        let driver = PublisherDriver::new(broker, source, Rc::clone(&store), Rc::new(key));
        let (commands, status) = (driver.commands(), driver.status());
        let (pending, next_update) = (Pending::default(), Cell::new(0));
        let driver = RefCell::new(Some((driver, config)));
        Ok(Self { store, source, owner: admin, commands, status, on_event, pending, next_update, driver })
    }

    /// Names its place in the database, the same in every tab.
    #[wasm_bindgen(getter)]
    pub fn key(&self) -> String {
        self.source.0.to_string()
    }

    /// The address that it signs as.
    #[wasm_bindgen(getter)]
    pub fn owner(&self) -> String {
        self.owner.to_string()
    }

    /// Publishes until [`Publisher::close`]. Once per publisher.
    ///
    /// # Errors
    /// Throws `misuse/already-started`; a `store/…` when the database fails.
    pub async fn run(&self) -> Result<(), JsValue> {
        let (driver, config) = self.driver.borrow_mut().take().ok_or_else(already_started)?;
        let ran = driver.run(config, |event| self.observe(event)).await;
        if let Err(failure) = &ran {
            for (_, reject) in core::mem::take(&mut *self.pending.borrow_mut()).into_values() {
                // The settling functions of a promise do not throw.
                drop(reject.call1(&JsValue::UNDEFINED, &thrown(failure)));
            }
        }
        ran.map_err(|failure| thrown(&failure))
    }

    fn observe(&self, event: &PublisherEvent) {
        match event {
            PublisherEvent::Status => tell(&self.on_event, &status_event(&self.status())),
            PublisherEvent::Failure(failure) => tell(&self.on_event, &failure_event(failure)),
            PublisherEvent::Settled { id, outcome } => {
                let Some((resolve, reject)) = self.pending.borrow_mut().remove(id) else { return };
                let settled = match outcome {
                    Ok(index) => resolve.call1(&JsValue::UNDEFINED, &index.to_js()),
                    Err(failure) => reject.call1(&JsValue::UNDEFINED, &thrown(failure)),
                };
                // The settling functions of a promise do not throw.
                drop(settled);
            }
        }
    }

    /// Publishes an update of at most 4,096 bytes; resolves with its index once it is sent. Nothing tells whether it arrived.
    ///
    /// # Errors
    /// Throws a `publish/…` when it is not taken, `close/requested` when the publisher is closed before, a `store/…`.
    pub async fn publish(&self, payload: Vec<u8>) -> Result<JsValue, JsValue> {
        let id = UpdateId(self.next_update.get());
        self.next_update.set(id.0.wrapping_add(1));
        let settled = Promise::new(&mut |resolve, reject| {
            self.pending.borrow_mut().insert(id, (resolve, reject));
        });
        self.commands.publish(id, payload);
        JsFuture::from(settled).await
    }

    /// Its status.
    pub fn status(&self) -> JsValue {
        bps_to_js::publisher_status(&self.status.borrow(), self.store.health())
    }

    /// Where it durably stands: `index` is the lowest that was never used.
    ///
    /// # Errors
    /// Throws a `store/…`.
    pub async fn standing(&self) -> Result<JsValue, JsValue> {
        standing(&self.store, self.source).await
    }

    /// Closes for good; [`Publisher::run`] resolves.
    pub fn close(&self) {
        self.commands.close();
    }
}
