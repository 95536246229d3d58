//! The publisher of one cohort: an index is durable as used before its frame is sent.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use futures_channel::mpsc::UnboundedSender;
use remuda_bps::publisher::{Publisher, PublisherConfig, PublisherOutput, SignatureId};
use remuda_bps::signature::RecoverableSignature;
use remuda_bps::stored::{index_bytes, index_from_bytes};
use remuda_client::Failure;
use remuda_position::feed::{Ledger, SourceKey};
use remuda_position::StoreError;
use remuda_wire::Bytes32;
use wasm_bindgen_futures::spawn_local;

pub use super::line::BrokerAddress;
use super::line::{close_code, moment, Heard, Line, ABNORMAL};
use super::subscriber::LineState;
use super::{failure, send, FeedStore, Inputs};
use crate::web_socket::SocketEvent;

/// The admin's key: it signs 32 bytes as an Ethereum message, and is never seen.
#[allow(async_fn_in_trait, reason = "a page has one thread: its futures are never sent to another")]
pub trait AdminSigner {
    /// Signs; `None` when the key or its owner refuses.
    async fn sign(&self, message: Bytes32) -> Option<RecoverableSignature>;
}

/// Names an update that was given to a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UpdateId(pub u64);

#[derive(Debug)]
enum Input {
    Heard(Heard),
    Publish(UpdateId, Vec<u8>),
    Signed(SignatureId, Option<RecoverableSignature>),
    Close,
}

impl From<Heard> for Input {
    fn from(heard: Heard) -> Self {
        Self::Heard(heard)
    }
}

/// All that can be said about a publisher that runs.
#[derive(Clone, Debug, Default)]
pub struct PublisherStatus {
    /// The connection.
    pub state: LineState,
    /// Updates that wait to be sent.
    pub queued: usize,
    /// The lowest index that was never used.
    pub next_index: u64,
    /// Why the last connection ended; `None` once something was sent.
    pub last_end: Option<Failure>,
}

/// What a publisher tells.
#[derive(Clone, Debug)]
pub enum PublisherEvent {
    /// Its status changed.
    Status,
    /// An update was sent under this index, or was not taken.
    Settled {
        /// Which update.
        id: UpdateId,
        /// Its index, or why it has none.
        outcome: Result<u64, Failure>,
    },
    /// The connection ended.
    Failure(Failure),
}

/// Commands to a publisher, also before it runs.
#[derive(Clone)]
pub struct PublisherCommands(UnboundedSender<Input>);

impl PublisherCommands {
    /// Queues an update.
    pub fn publish(&self, id: UpdateId, payload: Vec<u8>) {
        send(&self.0, Input::Publish(id, payload));
    }

    /// Closes it. What waits stays unsent.
    pub fn close(&self) {
        send(&self.0, Input::Close);
    }
}

/// Drives one publisher.
pub struct PublisherDriver<K> {
    source: SourceKey,
    store: Rc<FeedStore>,
    signer: Rc<K>,
    inputs: Inputs<Input>,
    line: Line<Input>,
    /// The updates in the machine's queue, by their order.
    queued: BTreeMap<u64, UpdateId>,
    taken: u64,
    status: Rc<RefCell<PublisherStatus>>,
}

impl<K: AdminSigner + 'static> PublisherDriver<K> {
    /// A publisher of `source` in `store`, signing with `signer`.
    pub fn new(address: BrokerAddress, source: SourceKey, store: Rc<FeedStore>, signer: Rc<K>) -> Self {
        let inputs = Inputs::new();
        let line = Line::new(address, inputs.sender.clone());
        let queued = BTreeMap::new();
        Self { source, store, signer, inputs, line, queued, taken: 0, status: Rc::default() }
    }

    /// The way to command it.
    pub fn commands(&self) -> PublisherCommands {
        PublisherCommands(self.inputs.sender.clone())
    }

    /// Its status, kept up to date while it runs.
    pub fn status(&self) -> Rc<RefCell<PublisherStatus>> {
        Rc::clone(&self.status)
    }

    /// Publishes from the lowest index that was never used, until closed. `config.next_index` counts only where it is above
    /// the stored one.
    ///
    /// # Errors
    /// A `store/…` when the database fails or another publisher was faster: nothing was sent under what is not durable.
    pub async fn run(mut self, mut config: PublisherConfig, observe: impl Fn(&PublisherEvent)) -> Result<(), Failure> {
        let mut ledger = Ledger::open(Rc::clone(&self.store), self.source).await.map_err(failure::of_store)?;
        if let Some(stored) = ledger.cursor() {
            let stored = index_from_bytes(stored).map_err(|_| failure::of_store(StoreError::Corrupt))?;
            config.next_index = config.next_index.max(stored);
        }
        self.status.borrow_mut().next_index = config.next_index;
        let mut publisher = Publisher::new(config);
        publisher.handle_time(moment());
        loop {
            self.drain(&mut publisher, &mut ledger, &observe).await?;
            match self.inputs.next(publisher.wake_at()).await {
                None => publisher.handle_time(moment()),
                Some(Input::Close) => break,
                Some(Input::Publish(id, payload)) => match publisher.publish(payload) {
                    Ok(()) => {
                        self.queued.insert(self.taken, id);
                        self.taken = self.taken.wrapping_add(1);
                    }
                    Err(refused) => {
                        observe(&PublisherEvent::Settled { id, outcome: Err(failure::of_publishing(refused)) });
                    }
                },
                Some(Input::Signed(id, Some(signature))) => publisher.handle_signature(id, &signature, moment()),
                // A claim that is not signed in time ends a stream anyway: the next one asks the key again.
                Some(Input::Signed(_, None)) => {
                    observe(&PublisherEvent::Failure(not_signed()));
                    self.line.disconnect();
                    publisher.handle_close(ABNORMAL, moment());
                }
                Some(Input::Heard(heard)) => self.hear(&mut publisher, heard),
            }
        }
        publisher.close(moment());
        self.drain(&mut publisher, &mut ledger, &observe).await?;
        self.status.borrow_mut().state = LineState::Closed;
        for id in core::mem::take(&mut self.queued).into_values() {
            let outcome = Err(failure::of_close(remuda_bps::connection::CloseReason::Requested));
            observe(&PublisherEvent::Settled { id, outcome });
        }
        observe(&PublisherEvent::Status);
        Ok(())
    }

    fn hear(&mut self, publisher: &mut Publisher, heard: Heard) {
        let Some(event) = self.line.current(heard) else { return };
        let at = moment();
        match event {
            SocketEvent::Opened => {
                publisher.handle_connected(at);
                self.status.borrow_mut().state = LineState::Open;
            }
            SocketEvent::Message(bytes) => publisher.handle_message(&bytes, at),
            SocketEvent::Text(text) => publisher.handle_text(&text, at),
            SocketEvent::Ended(error) => publisher.handle_close(close_code(&error), at),
        }
    }

    async fn drain(
        &mut self,
        publisher: &mut Publisher,
        ledger: &mut Ledger<Rc<FeedStore>>,
        observe: &impl Fn(&PublisherEvent),
    ) -> Result<(), Failure> {
        while let Some(output) = publisher.poll_output() {
            match output {
                PublisherOutput::Connect(dial) => {
                    self.status.borrow_mut().state = LineState::Connecting;
                    self.line.connect(&dial);
                }
                PublisherOutput::Send(message) => self.line.send(&message),
                PublisherOutput::Store { next_index } => {
                    ledger.advance(Vec::new(), &index_bytes(next_index)).await.map_err(failure::of_store)?;
                    self.status.borrow_mut().next_index = next_index;
                    publisher.handle_stored(next_index);
                }
                PublisherOutput::Sign { id, message } => {
                    let (signer, sender) = (Rc::clone(&self.signer), self.inputs.sender.clone());
                    spawn_local(async move { send(&sender, Input::Signed(id, signer.sign(message).await)) });
                }
                PublisherOutput::Sent { index } => {
                    self.status.borrow_mut().last_end = None;
                    if let Some((_, id)) = self.queued.pop_first() {
                        observe(&PublisherEvent::Settled { id, outcome: Ok(index) });
                    }
                }
                PublisherOutput::Disconnect => self.line.disconnect(),
                PublisherOutput::Ended { reason, retry_at_ms } => {
                    let ended = failure::of_close(reason);
                    let mut status = self.status.borrow_mut();
                    status.state = LineState::ended(&ended, retry_at_ms);
                    status.last_end = Some(ended.clone());
                    drop(status);
                    observe(&PublisherEvent::Failure(ended));
                }
            }
        }
        self.status.borrow_mut().queued = publisher.queued();
        observe(&PublisherEvent::Status);
        Ok(())
    }
}

fn not_signed() -> Failure {
    Failure {
        code: "close/signer".into(),
        remedy: remuda_wire::Remedy::FixRequest,
        rule: "SWIP-74: bridge".into(),
        meaning: "the admin's key did not sign".into(),
    }
}
