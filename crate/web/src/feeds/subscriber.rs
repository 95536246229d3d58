//! The subscriber of one cohort: received, verified, stored.

use std::cell::RefCell;
use std::rc::Rc;

use futures_channel::mpsc::UnboundedSender;
use remuda_bps::stored::{index_bytes, index_from_bytes, StoredUpdate};
use remuda_bps::subscriber::{DropCounters, Subscriber, SubscriberConfig, SubscriberOutput};
use remuda_client::Failure;
use remuda_position::feed::{Ledger, SourceKey};
use remuda_position::StoreError;

pub use super::line::BrokerAddress;
use super::line::{close_code, moment, Heard, Line};
use super::{failure, send, FeedStore, Inputs};
use crate::web_socket::SocketEvent;

#[derive(Debug)]
enum Input {
    Heard(Heard),
    Close,
}

impl From<Heard> for Input {
    fn from(heard: Heard) -> Self {
        Self::Heard(heard)
    }
}

/// How a connection to a broker is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LineState {
    /// Not yet begun: another tab has it.
    #[default]
    Idle,
    /// Being opened, or opened and not joined yet.
    Connecting,
    /// Open.
    Open,
    /// Ended; made again at this time.
    Waiting {
        /// When, in milliseconds since the Unix epoch.
        retry_at_ms: u64,
    },
    /// Ended, and not made again by itself.
    Failed(Failure),
    /// Closed by the application.
    Closed,
}

impl LineState {
    /// After the end of a connection.
    pub(super) fn ended(why: &Failure, retry_at_ms: Option<u64>) -> Self {
        retry_at_ms.map_or_else(|| Self::Failed(why.clone()), |retry_at_ms| Self::Waiting { retry_at_ms })
    }
}

/// All that can be said about a subscriber that runs.
#[derive(Clone, Debug, Default)]
pub struct SubscriberStatus {
    /// The connection.
    pub state: LineState,
    /// The last index that was delivered.
    pub cursor: Option<u64>,
    /// Updates verified since it runs.
    pub verified: u64,
    /// What was dropped without being a violation.
    pub dropped: DropCounters,
    /// Why the last connection ended; `None` once one has lasted to its first message.
    pub last_end: Option<Failure>,
}

/// What a subscriber tells.
#[derive(Clone, Debug)]
pub enum SubscriberEvent {
    /// Its status changed.
    Status,
    /// Items up to this one are durable.
    Stored {
        /// Its number.
        last_item: u64,
    },
    /// The connection ended.
    Failure(Failure),
}

/// Ends a subscriber.
#[derive(Clone)]
pub struct SubscriberEnd(UnboundedSender<Input>);

impl SubscriberEnd {
    /// Closes it.
    pub fn close(&self) {
        send(&self.0, Input::Close);
    }
}

/// Drives one subscriber.
pub struct SubscriberDriver {
    source: SourceKey,
    store: Rc<FeedStore>,
    inputs: Inputs<Input>,
    line: Line<Input>,
    status: Rc<RefCell<SubscriberStatus>>,
}

impl SubscriberDriver {
    /// A subscriber of `source` in `store`.
    pub fn new(address: BrokerAddress, source: SourceKey, store: Rc<FeedStore>) -> Self {
        let inputs = Inputs::new();
        let line = Line::new(address, inputs.sender.clone());
        Self { source, store, inputs, line, status: Rc::default() }
    }

    /// The way to end it.
    pub fn end(&self) -> SubscriberEnd {
        SubscriberEnd(self.inputs.sender.clone())
    }

    /// Its status, kept up to date while it runs.
    pub fn status(&self) -> Rc<RefCell<SubscriberStatus>> {
        Rc::clone(&self.status)
    }

    /// Goes on behind what is durable, until closed. `config.cursor` is where to begin when nothing is.
    ///
    /// # Errors
    /// A `store/…` when the database fails or another writer was faster. Nothing durable is lost.
    pub async fn run(
        mut self,
        mut config: SubscriberConfig,
        observe: impl Fn(&SubscriberEvent),
    ) -> Result<(), Failure> {
        let mut ledger = Ledger::open(Rc::clone(&self.store), self.source).await.map_err(failure::of_store)?;
        if let Some(stored) = ledger.cursor() {
            config.cursor = Some(index_from_bytes(stored).map_err(|_| failure::of_store(StoreError::Corrupt))?);
        }
        let mut subscriber = Subscriber::new(config);
        subscriber.handle_time(moment());
        loop {
            self.drain(&mut subscriber, &mut ledger, &observe).await?;
            let Some(input) = self.inputs.next(subscriber.wake_at()).await else {
                subscriber.handle_time(moment());
                continue;
            };
            // What has arrived together is stored together.
            let mut next = Some(input);
            while let Some(input) = next {
                match input {
                    Input::Close => {
                        subscriber.close(moment());
                        self.drain(&mut subscriber, &mut ledger, &observe).await?;
                        self.status.borrow_mut().state = LineState::Closed;
                        observe(&SubscriberEvent::Status);
                        return Ok(());
                    }
                    Input::Heard(heard) => self.hear(&mut subscriber, heard),
                }
                next = self.inputs.receiver.try_recv().ok();
            }
        }
    }

    fn hear(&mut self, subscriber: &mut Subscriber, heard: Heard) {
        let Some(event) = self.line.current(heard) else { return };
        let at = moment();
        match event {
            SocketEvent::Opened => {
                subscriber.handle_connected(at);
                self.status.borrow_mut().state = LineState::Open;
            }
            SocketEvent::Message(bytes) => {
                self.status.borrow_mut().last_end = None;
                subscriber.handle_message(&bytes, at);
            }
            SocketEvent::Text(_) => subscriber.handle_text(at),
            SocketEvent::Ended(error) => subscriber.handle_close(close_code(&error), at),
        }
    }

    async fn drain(
        &mut self,
        subscriber: &mut Subscriber,
        ledger: &mut Ledger<Rc<FeedStore>>,
        observe: &impl Fn(&SubscriberEvent),
    ) -> Result<(), Failure> {
        let (mut rows, mut cursor) = (Vec::new(), None);
        while let Some(output) = subscriber.poll_output() {
            match output {
                SubscriberOutput::Connect(dial) => {
                    self.status.borrow_mut().state = LineState::Connecting;
                    self.line.connect(&dial);
                }
                SubscriberOutput::Send(message) => self.line.send(&message),
                SubscriberOutput::Deliver(delivery) => {
                    rows.push(StoredUpdate::row(&delivery).map_err(failure::of_bps)?);
                    cursor = Some(delivery.broadcast.index);
                }
                SubscriberOutput::Disconnect => self.line.disconnect(),
                SubscriberOutput::Ended { reason, retry_at_ms } => {
                    let ended = failure::of_close(reason);
                    let mut status = self.status.borrow_mut();
                    status.state = LineState::ended(&ended, retry_at_ms);
                    status.last_end = Some(ended.clone());
                    drop(status);
                    observe(&SubscriberEvent::Failure(ended));
                }
            }
        }
        if let Some(index) = cursor {
            let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
            let last_item = ledger.advance(rows, &index_bytes(index)).await.map_err(failure::of_store)?;
            let mut status = self.status.borrow_mut();
            status.verified = status.verified.saturating_add(count);
            drop(status);
            observe(&SubscriberEvent::Stored { last_item });
        }
        let mut status = self.status.borrow_mut();
        (status.cursor, status.dropped) = (subscriber.cursor(), subscriber.dropped());
        drop(status);
        observe(&SubscriberEvent::Status);
        Ok(())
    }
}
