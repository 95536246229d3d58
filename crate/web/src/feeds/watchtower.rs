//! One Watchtower feed: pulled, verified, stored.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use futures_channel::mpsc::UnboundedSender;
use futures_util::future::{AbortHandle, Abortable};
use remuda_client::Failure;
use remuda_position::feed::{items_after, Ledger, SourceKey};
use remuda_position::StoreError;
use remuda_session::Transport;
use remuda_verify::secret::SecretBytes;
use remuda_watchtower::evidence::Equivocation;
use remuda_watchtower::feed::{Choice, Counters, Feed, FeedConfig, Moment, Output, Start};
use remuda_watchtower::schedule::{KeyEntry, KeySchedule};
use remuda_watchtower::stored::{Standing, StoredItem};
use remuda_watchtower::transport::{CursorTooOld, Request, MAX_ANSWER_BYTES, STATUS_REFUSED};
use remuda_watchtower::{StreamId, StreamMessage, WatchtowerRefusal};
use wasm_bindgen_futures::spawn_local;

use super::failure::{of_store, of_watchtower};
use super::{random, send, FeedStore, Inputs};
use crate::clock::now_ms;
use crate::dial::{Endpoint, PlainLoopback};
use crate::fetch::{self, Answer, ExchangeLimits, HttpFault};

/// A full page of the largest messages, within a minute.
const LIMITS: ExchangeLimits = ExchangeLimits { max_body_bytes: MAX_ANSWER_BYTES, timeout_ms: 60_000 };
/// What bodies are.
const MEDIA_TYPE: &str = "application/cbor";

/// What an application asks of a feed.
#[derive(Debug)]
pub enum FeedCommand {
    /// Take a content key.
    GiveKey(u64, SecretBytes),
    /// Go on after `CURSOR_TOO_OLD`.
    Choose(Choice),
    /// Ask again after a failure.
    Retry,
    /// Take a message that came some other way.
    Push(Vec<u8>),
    /// End.
    Close,
}

#[derive(Debug)]
enum Input {
    Command(FeedCommand),
    Answer(Result<Answer, HttpFault>),
}

/// What a feed is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FeedState {
    /// Not yet begun: another tab follows the feed.
    #[default]
    Idle,
    /// Pulling, or asleep between two pulls.
    Following,
    /// Messages wait for content keys.
    AwaitingKey,
    /// Its position is no longer retained: the application chooses.
    CursorTooOld(CursorTooOld),
    /// An answer was refused: nothing goes on by itself.
    Failed(Failure),
    /// At its end.
    Closed,
}

/// All that can be said about a feed that runs.
#[derive(Clone, Debug, Default)]
pub struct FeedStatus {
    /// What it is doing.
    pub state: FeedState,
    /// The last sequence that was verified, delivered or not.
    pub verified_sequence: u64,
    /// Messages that wait for a content key.
    pub pending: usize,
    /// The epochs whose keys are waited for.
    pub missing_epochs: BTreeSet<u64>,
    /// What needed no action.
    pub counters: Counters,
    /// When the next pull is due, in milliseconds since the Unix epoch.
    pub next_pull_at_ms: Option<u64>,
    /// Why the last request had no answer; `None` once one has.
    pub unreachable: Option<String>,
}

/// What a feed tells.
#[derive(Clone, Debug)]
pub enum FeedEvent {
    /// [`FeedDriver::status`] changed.
    Status,
    /// Items up to this one are durable.
    Stored {
        /// Its number.
        last_item: u64,
    },
    /// Messages wait for the content key of this epoch.
    AccessRequired {
        /// Which epoch.
        key_epoch: u64,
    },
    /// The position is no longer retained.
    CursorTooOld(CursorTooOld),
    /// The publisher signed two messages for one sequence: a file of evidence, where this database has both.
    Equivocation(Option<Vec<u8>>),
    /// An answer was refused.
    Failure(Failure),
}

/// Where a feed is, and what to do by itself.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// The base of `/watchtower/{stream}/…`.
    pub endpoint: String,
    /// Whether this machine may be dialled without TLS.
    pub plain: PlainLoopback,
    /// What to choose whenever the position is no longer retained; `None`: the application is asked.
    pub when_too_old: Option<Choice>,
}

/// Commands to a feed, also before it runs.
#[derive(Clone)]
pub struct FeedCommands(UnboundedSender<Input>);

impl FeedCommands {
    /// Queues a command. Nothing happens once the feed has ended.
    pub fn send(&self, command: FeedCommand) {
        send(&self.0, Input::Command(command));
    }
}

/// Drives one feed.
pub struct FeedDriver {
    options: FeedOptions,
    stream_id: StreamId,
    source: SourceKey,
    store: Rc<FeedStore>,
    inputs: Inputs<Input>,
    request: Option<AbortHandle>,
    status: Rc<RefCell<FeedStatus>>,
}

/// Why a feed ended.
pub type Ended = Result<(), Failure>;

impl FeedDriver {
    /// A feed of `source` in `store`.
    pub fn new(options: FeedOptions, stream_id: StreamId, source: SourceKey, store: Rc<FeedStore>) -> Self {
        let status = Rc::default();
        Self { options, stream_id, source, store, inputs: Inputs::new(), request: None, status }
    }

    /// The way to command it.
    pub fn commands(&self) -> FeedCommands {
        FeedCommands(self.inputs.sender.clone())
    }

    /// Its status, kept up to date while it runs.
    pub fn status(&self) -> Rc<RefCell<FeedStatus>> {
        Rc::clone(&self.status)
    }

    /// Goes on behind what is durable, until closed. `config` says where to begin when nothing is durable, and which keys
    /// are pinned.
    ///
    /// # Errors
    /// A `store/…` when the database fails or another writer was faster; `watchtower/key-schedule` when the pinned schedule
    /// and the stored one contradict each other. Nothing durable is lost.
    pub async fn run(mut self, config: FeedConfig, observe: impl Fn(&FeedEvent)) -> Ended {
        let mut ledger = Ledger::open(Rc::clone(&self.store), self.source).await.map_err(of_store)?;
        let stored =
            ledger.cursor().map(Standing::from_bytes).transpose().map_err(|_| of_store(StoreError::Corrupt))?;
        let config = behind(stored.as_ref(), config).map_err(of_watchtower)?;
        let mut standing = Standing { schedule: config.schedule.clone(), ..stored.unwrap_or_default() };
        let mut feed = Feed::new(config).map_err(of_watchtower)?;
        self.status.borrow_mut().state = FeedState::Following;
        feed.handle_time(now_ms());
        loop {
            while let Some(output) = feed.poll_output() {
                self.perform(&mut feed, &mut ledger, &mut standing, output, &observe).await.map_err(of_store)?;
            }
            self.refresh(&feed);
            observe(&FeedEvent::Status);
            match self.inputs.next(feed.wake_at()).await {
                None => feed.handle_time(now_ms()),
                Some(Input::Command(FeedCommand::Close)) => break,
                Some(input) => self.apply(&mut feed, input),
            }
        }
        if let Some(request) = self.request.take() {
            request.abort();
        }
        self.status.borrow_mut().state = FeedState::Closed;
        observe(&FeedEvent::Status);
        Ok(())
    }

    fn apply(&mut self, feed: &mut Feed, input: Input) {
        let at = moment();
        match input {
            Input::Answer(answer) => {
                self.request = None;
                let mut status = self.status.borrow_mut();
                match answer {
                    Ok(Answer { status: code, body }) => {
                        status.unreachable = None;
                        feed.handle_answer(code, &body, at);
                    }
                    Err(fault) => {
                        status.unreachable = Some(fault.to_string());
                        feed.handle_transport_failure(at);
                    }
                }
            }
            Input::Command(FeedCommand::GiveKey(key_epoch, key)) => {
                self.status.borrow_mut().missing_epochs.remove(&key_epoch);
                feed.give_key(key_epoch, key);
            }
            Input::Command(FeedCommand::Choose(choice)) => {
                self.went_on();
                feed.choose(choice, at);
            }
            Input::Command(FeedCommand::Retry) => {
                self.went_on();
                feed.resume();
            }
            Input::Command(FeedCommand::Push(message)) => feed.handle_push(&message, at),
            // Taken by the loop.
            Input::Command(FeedCommand::Close) => {}
        }
    }

    fn went_on(&self) {
        self.status.borrow_mut().state = FeedState::Following;
    }

    async fn perform(
        &mut self,
        feed: &mut Feed,
        ledger: &mut Ledger<Rc<FeedStore>>,
        standing: &mut Standing,
        output: Output,
        observe: &impl Fn(&FeedEvent),
    ) -> Result<(), StoreError> {
        match output {
            Output::Request(request) => self.ask(request),
            Output::Store(batch) => {
                standing.cursor = batch.cursor;
                let last_item = ledger.advance(StoredItem::rows(&batch), &standing.to_bytes()).await?;
                observe(&FeedEvent::Stored { last_item });
            }
            Output::KeyHistory(schedule) => {
                standing.schedule = schedule;
                // A cursor that nobody has yet is not made up for the sake of a schedule: it comes with the first batch.
                if ledger.cursor().is_some() {
                    ledger.advance(Vec::new(), &standing.to_bytes()).await?;
                }
            }
            Output::StreamAccessRequired { key_epoch } => {
                self.status.borrow_mut().missing_epochs.insert(key_epoch);
                observe(&FeedEvent::AccessRequired { key_epoch });
            }
            Output::CursorTooOld(refused) => match self.options.when_too_old {
                Some(choice) => feed.choose(choice, moment()),
                None => {
                    self.status.borrow_mut().state = FeedState::CursorTooOld(refused);
                    observe(&FeedEvent::CursorTooOld(refused));
                }
            },
            Output::Equivocation { evidence, message } => {
                let evidence = match evidence {
                    Some(evidence) => Some(*evidence),
                    None => self.pair_with_stored(ledger.last_item(), &standing.schedule, *message).await?,
                };
                observe(&FeedEvent::Equivocation(evidence.map(|evidence| evidence.to_file(&standing.schedule))));
            }
            Output::Failed(verdict) => {
                let failure = of_watchtower(verdict);
                self.status.borrow_mut().state = FeedState::Failed(failure.clone());
                observe(&FeedEvent::Failure(failure));
            }
        }
        Ok(())
    }

    /// The pair of a message and the last stored one, where that was for the same sequence.
    async fn pair_with_stored(
        &self,
        last_item: u64,
        schedule: &[KeyEntry],
        message: StreamMessage,
    ) -> Result<Option<Equivocation>, StoreError> {
        let rows = items_after(&*self.store, self.source, last_item.saturating_sub(1), 1).await?;
        let held = rows.first().and_then(|(_, row)| match StoredItem::from_bytes(row) {
            Ok(StoredItem::Message { message, .. }) => Some(message),
            _ => None,
        });
        let (Some(held), Ok(schedule)) = (held, KeySchedule::new(schedule.iter().copied())) else { return Ok(None) };
        Ok(Equivocation::judge(&self.stream_id, &schedule, held, message).ok().flatten())
    }

    fn ask(&mut self, request: Request) {
        let sender = self.inputs.sender.clone();
        let uri = format!(
            "{}/watchtower/{}/{}",
            self.options.endpoint.trim_end_matches('/'),
            path_segment(&self.stream_id),
            request.method()
        );
        let endpoint = Endpoint::admit(&uri, Transport::LongPoll, self.options.plain);
        let (handle, registration) = AbortHandle::new_pair();
        self.request = Some(handle);
        spawn_local(async move {
            let answer = match endpoint {
                Ok(endpoint) => {
                    let body = request.to_bytes();
                    let asking = fetch::ask(&endpoint, MEDIA_TYPE, &body, &[STATUS_REFUSED], LIMITS);
                    Abortable::new(asking, registration).await.unwrap_or(Err(HttpFault::Aborted))
                }
                Err(refused) => Err(HttpFault::Other(refused.to_string())),
            };
            send(&sender, Input::Answer(answer));
        });
    }

    fn refresh(&self, feed: &Feed) {
        let mut status = self.status.borrow_mut();
        status.verified_sequence = feed.verified_cursor().last_sequence;
        status.pending = feed.pending();
        status.counters = feed.counters();
        status.next_pull_at_ms = feed.wake_at();
        status.state = match core::mem::take(&mut status.state) {
            FeedState::Following | FeedState::AwaitingKey if status.pending > 0 => FeedState::AwaitingKey,
            FeedState::AwaitingKey => FeedState::Following,
            other => other,
        };
    }
}

/// What is durable goes before where the application would begin; of two schedules the longer one, if they agree.
fn behind(stored: Option<&Standing>, mut config: FeedConfig) -> Result<FeedConfig, WatchtowerRefusal> {
    let Some(stored) = stored else { return Ok(config) };
    let mut schedule = KeySchedule::new(stored.schedule.iter().copied())?;
    schedule.extend(&config.schedule)?;
    config.schedule = schedule.entries().copied().collect();
    config.start = Start::After(stored.cursor);
    Ok(config)
}

/// A text as one segment of a path, 32 bytes in hexadecimal.
fn path_segment(stream_id: &StreamId) -> String {
    match stream_id {
        StreamId::Text(text) => js_sys::encode_uri_component(text).into(),
        StreamId::Bytes(bytes) => bytes.to_string(),
    }
}

fn moment() -> Moment {
    Moment { now_ms: now_ms(), random: random() }
}
