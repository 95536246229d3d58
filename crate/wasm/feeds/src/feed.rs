//! `Feed`: one Watchtower feed, with its place in the database.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Function};
use remuda_client::Failure;
use remuda_position::feed::SourceKey;
use remuda_position::StoreError;
use remuda_session::ApiMisuse;
use remuda_wasm_js::object::{Builder, ToJs};
use remuda_wasm_js::options::{function, optional_text, text};
use remuda_wasm_js::thrown::{store_error, thrown};
use remuda_watchtower::feed::FeedConfig;
use remuda_watchtower::stored::{source_name, Standing};
use remuda_web::feeds::watchtower::{FeedCommand, FeedCommands, FeedDriver, FeedEvent, FeedOptions, FeedStatus};
use remuda_web::feeds::{source_key, FeedStore};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use crate::feed_options::{choice, config, content_key};
use crate::feed_to_js;
use crate::source::{durable, plain, read, store, tell};

/// One feed. Methods take `&self`, so that calls may overlap.
#[wasm_bindgen]
pub struct Feed {
    store: Rc<FeedStore>,
    source: SourceKey,
    commands: FeedCommands,
    status: Rc<RefCell<FeedStatus>>,
    on_event: Function,
    driver: RefCell<Option<(FeedDriver, FeedConfig)>>,
}

#[wasm_bindgen]
impl Feed {
    /// Opens the database; does not touch the network.
    ///
    /// # Errors
    /// Throws by code: `misuse/argument`, `watchtower/filter`, a `store/…`.
    pub async fn open(options: JsValue) -> Result<Feed, JsValue> {
        let (config, filter) = config(&options)?;
        let feed_options = FeedOptions {
            endpoint: text(&options, "endpoint")?,
            plain: plain(&options),
            when_too_old: optional_text(&options, "whenTooOld")?.as_deref().map(choice).transpose()?,
        };
        let on_event = function(&options, "onEvent")?;
        let store = store(&options).await?;
        let source = source_key(&source_name(&config.stream_id, filter.as_deref()));
        let driver = FeedDriver::new(feed_options, config.stream_id.clone(), source, Rc::clone(&store));
        let (commands, status) = (driver.commands(), driver.status());
        Ok(Self { store, source, commands, status, on_event, driver: RefCell::new(Some((driver, config))) })
    }

    /// Names its place in the database, the same in every tab.
    #[wasm_bindgen(getter)]
    pub fn key(&self) -> String {
        self.source.0.to_string()
    }

    /// Follows the feed until [`Feed::close`]. Once per feed.
    ///
    /// # Errors
    /// Throws `misuse/already-started`; a `store/…` when the database fails; `watchtower/key-schedule` when the pinned
    /// schedule and the stored one contradict each other.
    pub async fn run(&self) -> Result<(), JsValue> {
        let started = || thrown(&Failure::from(ApiMisuse::AlreadyStarted));
        let (driver, config) = self.driver.borrow_mut().take().ok_or_else(started)?;
        let ran = driver.run(config, |event| self.observe(event)).await;
        ran.map_err(|failure| thrown(&failure))
    }

    fn observe(&self, event: &FeedEvent) {
        let event = feed_to_js::event(event)
            .unwrap_or_else(|| Builder::new().with("type", "status").with_value("status", &self.status()).build());
        tell(&self.on_event, &event);
    }

    /// Its status.
    pub fn status(&self) -> JsValue {
        feed_to_js::status(&self.status.borrow(), self.store.health())
    }

    /// Stored items above `after`, ascending; about `max_bytes` of them, at least one where there is one.
    ///
    /// # Errors
    /// Throws a `store/…`.
    pub async fn read(&self, after: u64, max_bytes: u32) -> Result<Array, JsValue> {
        read(&self.store, self.source, after, max_bytes, feed_to_js::item).await
    }

    /// Where it durably stands: `{ lastItem, lastSequence }`, the latter null before the first.
    ///
    /// # Errors
    /// Throws a `store/…`.
    pub async fn standing(&self) -> Result<JsValue, JsValue> {
        let durable = durable(&self.store, self.source).await?;
        let standing = durable.cursor.as_deref().map(Standing::from_bytes).transpose();
        let standing = standing.map_err(|_| store_error(&StoreError::Corrupt))?;
        Ok(Builder::new()
            .with("lastItem", &durable.last_item)
            .with_value("lastSequence", &standing.map(|standing| standing.cursor.last_sequence).to_js())
            .build())
    }

    /// Takes the content key of an epoch.
    ///
    /// # Errors
    /// Throws `misuse/argument`.
    #[wasm_bindgen(js_name = giveKey)]
    pub fn give_key(&self, key_epoch: u64, key: &[u8]) -> Result<(), JsValue> {
        self.commands.send(FeedCommand::GiveKey(key_epoch, content_key(key)?));
        Ok(())
    }

    /// Goes on after `cursor-too-old`: `"resume"` or `"reattach"`.
    ///
    /// # Errors
    /// Throws `misuse/argument`.
    pub fn choose(&self, name: &str) -> Result<(), JsValue> {
        self.commands.send(FeedCommand::Choose(choice(name)?));
        Ok(())
    }

    /// Asks again after a failure, from where it stands.
    pub fn retry(&self) {
        self.commands.send(FeedCommand::Retry);
    }

    /// Takes a message that came some other way: one encoded `StreamMessage`.
    pub fn push(&self, message: Vec<u8>) {
        self.commands.send(FeedCommand::Push(message));
    }

    /// Closes for good; [`Feed::run`] resolves.
    pub fn close(&self) {
        self.commands.send(FeedCommand::Close);
    }
}
