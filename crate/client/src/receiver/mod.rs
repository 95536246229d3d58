//! The receiver of the streaming document: from interests to received rows, without a socket, a disk or a clock.
//!
//! ```text
//!  interests ──▶ StaticStreams ──rows──▶ Inbox ──batches──▶ receive (position) ──receipts──▶ F
//!  targets, gaps, hints ──▶ Fetches ──pages──▶   ▲                                            │
//!                              ▲─────────────────┴──────────── what is durable ───────────────┘
//! ```
//! Every cursor that is sent is a durable F: the type [`Received`] comes from a commit or a load and from nothing else
//! (STR-036, STR-054). A target says how far to ask; it moves nothing.
//!
//! The driver gives one input, drains [`Receiver::poll_output`] until it is empty, then sleeps until [`Receiver::wake_at`].

mod fetches;
mod inbox;
mod streams;
mod sync;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use remuda_position::topic::limits::ACTIVE_DATABASE_POLL_INTERVAL_MS;
use remuda_position::topic::place::Received;
use remuda_position::topic::receipt::{Receipt, ReceiptRefused};
use remuda_streaming::query::QueryPage;
use remuda_streaming::{Bytes, GrpcStatus, OrderedPrefix, SequenceId, StreamRefused, Target, Topic};

pub use fetches::{Fetches, QueryId};
pub use inbox::Inbox;
pub use streams::{StaticStreams, StreamEnd, StreamEvent, StreamId, StreamsConfig};
pub use sync::{Cause, SyncOutcome, SyncRun, Unfinished};

/// What the driver does next.
#[derive(Debug)]
pub enum Output {
    /// Post this `SubscribeStaticRequest` and hand over what comes.
    Open {
        /// Names the stream.
        stream: StreamId,
        /// The message.
        message: Vec<u8>,
    },
    /// Abort this stream: nothing more of it is read.
    Cancel {
        /// Which.
        stream: StreamId,
    },
    /// Post this `QueryRequest` and hand over its one message, or that there is none.
    Query {
        /// Names the question.
        query: QueryId,
        /// The message.
        message: Vec<u8>,
    },
    /// Commit these prefixes ([`remuda_position::topic::receipt::receive`]) and hand over the receipts.
    Receive(Vec<OrderedPrefix>),
    /// For whoever watches.
    Event(ReceiverEvent),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// A registration is active, with its fixed targets.
    Started(Vec<(Topic, Target)>),
    /// F moved.
    Received(Topic, Received),
    /// A stream is opened again after a delay: it broke, was silent, or said something that is refused.
    Reconnecting(StreamEnd),
    /// Nothing is opened until the interests change: the backend blames the request.
    Failed(GrpcStatus),
    /// An answer to a query was refused.
    QueryRefused(StreamRefused),
    /// Rows wait, or can never be taken: why.
    Capacity(Topic, ReceiptRefused),
}

/// Static streams, queries and the rows between them and the store.
#[derive(Debug)]
pub struct Receiver {
    streams: StaticStreams,
    fetches: Fetches,
    inbox: Inbox,
    received: BTreeMap<Topic, Received>,
    receiving: Option<Vec<OrderedPrefix>>,
    /// Not before then: the last commit failed.
    receive_at_ms: u64,
    outputs: VecDeque<Output>,
    now_ms: u64,
}

impl Receiver {
    /// One that wants nothing yet.
    pub fn new(config: StreamsConfig, now_ms: u64) -> Self {
        Self {
            streams: StaticStreams::new(config),
            fetches: Fetches::default(),
            inbox: Inbox::default(),
            received: BTreeMap::new(),
            receiving: None,
            receive_at_ms: 0,
            outputs: VecDeque::new(),
            now_ms,
        }
    }

    /// Replaces what is streamed. Each topic comes with the F that was loaded for it; one that is known has a later one.
    pub fn set_interests(&mut self, topics: &[(Topic, Received)], now_ms: u64) {
        self.learn(topics);
        self.streams.set_interests(topics.iter().map(|(topic, _)| *topic).collect());
        self.run(now_ms);
    }

    /// Fetches a topic up to a place, at once and whatever the streams do: a sync's target, or a push that says that there is
    /// something (STR-042, STR-065).
    pub fn fetch(&mut self, topic: (Topic, Received), through: SequenceId, now_ms: u64) {
        self.learn(&[topic]);
        let received = self.received.get(&topic.0).copied().unwrap_or_default();
        self.fetches.want(topic.0, through, received);
        self.run(now_ms);
    }

    /// The head of a stream's answer.
    pub fn handle_head(&mut self, stream: StreamId, http_status: u16, headers: &[(&str, &str)], now_ms: u64) {
        self.streams.handle_head(stream, http_status, headers, now_ms);
        self.run(now_ms);
    }

    /// Bytes of a stream's body.
    pub fn handle_chunk(&mut self, stream: StreamId, chunk: &[u8], now_ms: u64) {
        self.streams.handle_chunk(stream, chunk, now_ms);
        self.run(now_ms);
    }

    /// A stream's body has ended, or its connection broke.
    pub fn handle_end(&mut self, stream: StreamId, now_ms: u64) {
        self.streams.handle_end(stream, now_ms);
        self.run(now_ms);
    }

    /// A query's answer; `None` when it failed.
    pub fn handle_page(&mut self, query: QueryId, message: Option<Bytes>, now_ms: u64) {
        match self.fetches.handle_answer(query, message, now_ms) {
            Ok(QueryPage { prefixes, .. }) => self.inbox.offer(prefixes),
            Err(refused) => self.tell(ReceiverEvent::QueryRefused(refused)),
        }
        self.run(now_ms);
    }

    /// What became of [`Output::Receive`]: `None` when the commit failed, and everything is offered again after a while.
    pub fn handle_receipts(&mut self, receipts: Option<Vec<Receipt>>, now_ms: u64) {
        let batch = self.receiving.take().unwrap_or_default();
        match receipts {
            None => {
                self.inbox.give_back(batch);
                self.receive_at_ms = now_ms.saturating_add(ACTIVE_DATABASE_POLL_INTERVAL_MS);
            }
            Some(receipts) => receipts.into_iter().for_each(|receipt| self.settle(receipt)),
        }
        self.run(now_ms);
    }

    /// Processing has freed capacity: what waited for some is offered again.
    pub fn handle_capacity(&mut self, now_ms: u64) {
        self.inbox.resume();
        self.run(now_ms);
    }

    /// Time has passed. What has arrived is handed over before (STR-053).
    pub fn handle_time(&mut self, now_ms: u64) {
        self.run(now_ms);
    }

    /// Whether bytes of streams may be read: what was fetched has a bound (STR-063).
    pub fn has_room(&self) -> bool {
        self.inbox.has_room()
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Receiver::handle_time`] is due; `None`: never by itself.
    pub fn wake_at(&self) -> Option<u64> {
        let receive = (self.receiving.is_none() && self.inbox.is_ready()).then_some(self.receive_at_ms);
        [self.streams.wake_at(), self.fetches.wake_at(), receive].into_iter().flatten().min()
    }

    /// The topics whose registration is active, for a status (STR-025).
    pub fn active_topics(&self) -> BTreeSet<Topic> {
        self.streams.active_topics()
    }

    fn learn(&mut self, topics: &[(Topic, Received)]) {
        for (topic, received) in topics {
            let known = self.received.entry(*topic).or_default();
            *known = (*known).max(*received);
        }
    }

    fn settle(&mut self, receipt: Receipt) {
        let topic = receipt.topic;
        let moved = self.received.insert(topic, receipt.received) != Some(receipt.received);
        self.fetches.handle_received(topic, receipt.received);
        if moved {
            self.tell(ReceiverEvent::Received(topic, receipt.received));
        }
        match receipt.refused {
            None => self.inbox.give_back(receipt.rest),
            // The missing prefix, after F: whatever waits behind it will follow it or be fetched with it.
            Some(ReceiptRefused::Gap) => {
                let through = self.inbox.drop_topic(&topic).unwrap_or(SequenceId::MAX);
                self.fetches.want(topic, through, receipt.received);
            }
            Some(refused) => {
                self.tell(ReceiverEvent::Capacity(topic, refused));
                self.inbox.pause(topic, receipt.rest);
            }
        }
    }

    fn tell(&mut self, event: ReceiverEvent) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Everything that follows from an input.
    fn run(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        let now_ms = self.now_ms;
        self.streams.handle_time(now_ms, self.inbox.has_room());
        while let Some(event) = self.streams.poll_event() {
            match event {
                StreamEvent::Started(targets) => self.tell(ReceiverEvent::Started(targets)),
                StreamEvent::Rows(prefixes) => self.inbox.offer(prefixes),
                StreamEvent::Cancelled(stream) => self.outputs.push_back(Output::Cancel { stream }),
                StreamEvent::Ended(end) => self.tell(ReceiverEvent::Reconnecting(end)),
                StreamEvent::Failed(status) => self.tell(ReceiverEvent::Failed(status)),
            }
        }
        while let Some((stream, message)) = self.streams.poll_open(&self.received, now_ms) {
            self.outputs.push_back(Output::Open { stream, message });
        }
        while let Some((query, message)) = self.fetches.poll_query(&self.received, &self.inbox, now_ms) {
            self.outputs.push_back(Output::Query { query, message });
        }
        if self.receiving.is_none() && now_ms >= self.receive_at_ms {
            let batch = self.inbox.take_batch();
            if !batch.is_empty() {
                self.receiving = Some(batch.clone());
                self.outputs.push_back(Output::Receive(batch));
            }
        }
    }
}
