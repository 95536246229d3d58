//! Static streams for a set of topics that changes (STR-036, STR-050 to STR-054).
//!
//! ```text
//! wanted and uncovered ──open──▶ opening ──Started──▶ active ──end, silence, refusal──▶ gone ──delay──▶ open again
//!                                                       └── replaced: cancelled when all that replace it have started
//! ```
//! One replacement is under way at a time: changes that come meanwhile are part of the next one.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use remuda_position::topic::place::Received;
use remuda_session::entropy::Entropy;
use remuda_session::Backoff;
use remuda_streaming::bound::{DEFAULT_KEEPALIVE_INTERVAL_MS, MAX_MESSAGE_BYTES, MAX_STATIC_TOPICS, SILENT_INTERVALS};
use remuda_streaming::grpc_web::GrpcWebBody;
use remuda_streaming::static_stream::{StaticEvent, StaticRequest, StaticStream};
use remuda_streaming::{GrpcStatus, OrderedPrefix, StreamRefused, Target, Topic};

/// Longest silence that a timer can count, in milliseconds.
const MAX_SILENCE_MS: u64 = 0x7fff_ffff;

/// Names a stream that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

/// What these streams are made with.
#[derive(Clone, Debug)]
pub struct StreamsConfig {
    /// Delays between openings after a failure.
    pub backoff: Backoff,
    /// Jitter.
    pub entropy: Entropy,
}

/// Why a stream is over that is opened again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// It said something that is refused, or broke off.
    Refused(StreamRefused),
    /// It ended with a status.
    Status(GrpcStatus),
    /// Nothing came for three intervals. Before `Started` this may be a proxy that buffers (STR-055).
    Silent {
        /// Whether it had started.
        started: bool,
    },
}

/// What streams say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// A registration is active.
    Started(Vec<(Topic, Target)>),
    /// Rows of active or replaced registrations: overlap is for receipt to drop.
    Rows(Vec<OrderedPrefix>),
    /// Nothing more of this stream is wanted.
    Cancelled(StreamId),
    /// A stream is over; its topics are opened again.
    Ended(StreamEnd),
    /// The backend blames the request.
    Failed(GrpcStatus),
}

#[derive(Debug)]
struct Stream {
    topics: BTreeSet<Topic>,
    machine: StaticStream,
    body: Option<GrpcWebBody>,
    started: bool,
    interval_ms: u32,
    /// When its request was sent or its last message came: the timer starts at the request.
    last_activity_ms: u64,
}

impl Stream {
    fn silent_at(&self) -> u64 {
        let interval_ms = match self.interval_ms {
            0 => DEFAULT_KEEPALIVE_INTERVAL_MS,
            interval_ms => interval_ms,
        };
        let silence = u64::from(interval_ms).saturating_mul(SILENT_INTERVALS).min(MAX_SILENCE_MS);
        self.last_activity_ms.saturating_add(silence)
    }
}

/// The streams of one backend.
#[derive(Debug)]
pub struct StaticStreams {
    config: StreamsConfig,
    wanted: BTreeSet<Topic>,
    streams: BTreeMap<StreamId, Stream>,
    /// Active streams that are cancelled when everything that is opening has started.
    replaced: BTreeSet<StreamId>,
    /// Openings that failed since the last start.
    failures: u32,
    open_at_ms: u64,
    /// The backend blamed the request: nothing is opened until the interests change.
    failed: bool,
    /// Since the last plan nothing has changed that another one would answer.
    settled: bool,
    paused: bool,
    last_id: u64,
    /// Topics to open next, in requests of at most 10,000.
    to_open: VecDeque<Vec<Topic>>,
    events: VecDeque<StreamEvent>,
}

impl StaticStreams {
    /// No stream: without a topic nothing is opened (STR-054).
    pub fn new(config: StreamsConfig) -> Self {
        Self {
            config,
            wanted: BTreeSet::new(),
            streams: BTreeMap::new(),
            replaced: BTreeSet::new(),
            failures: 0,
            open_at_ms: 0,
            failed: false,
            settled: true,
            paused: false,
            last_id: 0,
            to_open: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Replaces the topics that are wanted.
    pub fn set_interests(&mut self, topics: BTreeSet<Topic>) {
        if self.wanted != topics {
            (self.wanted, self.failed, self.settled) = (topics, false, false);
        }
    }

    /// The head of an answer.
    pub fn handle_head(&mut self, id: StreamId, http_status: u16, headers: &[(&str, &str)], now_ms: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        match GrpcWebBody::new(http_status, headers.iter().copied(), MAX_MESSAGE_BYTES) {
            Ok(body) => stream.body = Some(body),
            Err(refused) => self.end(id, StreamEnd::Refused(refused), now_ms),
        }
    }

    /// Bytes of a body.
    pub fn handle_chunk(&mut self, id: StreamId, chunk: &[u8], now_ms: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(body) = stream.body.as_mut() else { return };
        let read = body.handle_chunk(chunk);
        let mut told = Ok(());
        while let (Ok(()), Some(message)) = (told, body.poll_message()) {
            stream.last_activity_ms = now_ms;
            told = match stream.machine.handle(message) {
                Ok(StaticEvent::Started(started)) => {
                    (stream.started, stream.interval_ms) = (true, started.keepalive_interval_ms);
                    self.failures = 0;
                    self.events.push_back(StreamEvent::Started(started.targets));
                    Ok(())
                }
                Ok(StaticEvent::Rows(prefixes)) => {
                    self.events.push_back(StreamEvent::Rows(prefixes));
                    Ok(())
                }
                Ok(StaticEvent::Keepalive) => Ok(()),
                Err(refused) => Err(refused),
            };
        }
        if let Err(refused) = told.and(read) {
            self.end(id, StreamEnd::Refused(refused), now_ms);
        }
    }

    /// A body has ended, or its connection broke.
    pub fn handle_end(&mut self, id: StreamId, now_ms: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let end = match stream.body.take().map_or(Err(StreamRefused::NoStatus), GrpcWebBody::end) {
            Ok(status) => StreamEnd::Status(status),
            Err(refused) => StreamEnd::Refused(refused),
        };
        self.end(id, end, now_ms);
    }

    /// Judges silence from timestamps, and decides what is opened. While reading is paused on our side nobody is silent.
    pub fn handle_time(&mut self, now_ms: u64, reading: bool) {
        if !reading || self.paused {
            self.streams.values_mut().for_each(|stream| stream.last_activity_ms = now_ms);
        }
        self.paused = !reading;
        let silent: Vec<_> = self
            .streams
            .iter()
            .filter(|(_, stream)| stream.silent_at() <= now_ms)
            .map(|(id, stream)| (*id, stream.started))
            .collect();
        for (id, started) in silent {
            self.events.push_back(StreamEvent::Cancelled(id));
            self.end(id, StreamEnd::Silent { started }, now_ms);
        }
        self.finish_replacement();
        self.plan(now_ms);
    }

    /// The next request to send, behind durable F.
    pub fn poll_open(&mut self, received: &BTreeMap<Topic, Received>, now_ms: u64) -> Option<(StreamId, Vec<u8>)> {
        let topics = self.to_open.pop_front()?;
        let behind = |topic: &Topic| (*topic, received.get(topic).copied().unwrap_or_default().sequence_id().get());
        let cursors: Vec<_> = topics.iter().map(behind).collect();
        // At least one and at most 10,000 topics of ours, unique and in range.
        let request = StaticRequest::new(&cursors).ok()?;
        let message = request.to_bytes();
        self.last_id = self.last_id.saturating_add(1);
        let id = StreamId(self.last_id);
        let stream = Stream {
            topics: topics.into_iter().collect(),
            machine: request.open(),
            body: None,
            started: false,
            interval_ms: 0,
            last_activity_ms: now_ms,
        };
        self.streams.insert(id, stream);
        Some((id, message))
    }

    /// What happened.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// When silence has to be judged, or something may be opened again.
    pub fn wake_at(&self) -> Option<u64> {
        let silence = self.streams.values().map(Stream::silent_at).min();
        let opening = (!self.settled && !self.failed && !self.is_opening()).then_some(self.open_at_ms);
        silence.into_iter().chain(opening).min()
    }

    /// The topics of started streams.
    pub fn active_topics(&self) -> BTreeSet<Topic> {
        let started = self.streams.values().filter(|stream| stream.started);
        started.flat_map(|stream| &stream.topics).copied().filter(|topic| self.wanted.contains(topic)).collect()
    }

    fn is_opening(&self) -> bool {
        !self.to_open.is_empty() || self.streams.values().any(|stream| !stream.started)
    }

    fn end(&mut self, id: StreamId, end: StreamEnd, now_ms: u64) {
        let Some(gone) = self.streams.remove(&id) else { return };
        self.replaced.remove(&id);
        self.settled = false;
        if matches!(end, StreamEnd::Refused(_)) {
            self.events.push_back(StreamEvent::Cancelled(id));
        }
        if !gone.started {
            // A replacement that is not ready replaces nothing: what it was for goes on.
            self.replaced.clear();
        }
        if let StreamEnd::Status(status) = &end {
            if !status.code().reopens() {
                self.failed = true;
                self.events.push_back(StreamEvent::Failed(status.clone()));
                return;
            }
        }
        let delay = self.config.backoff.delay_ms(self.failures, self.config.entropy.jitter());
        self.failures = self.failures.saturating_add(1);
        self.open_at_ms = self.open_at_ms.max(now_ms.saturating_add(delay));
        self.events.push_back(StreamEvent::Ended(end));
    }

    /// Cancels what is replaced, once everything that replaces it has started.
    fn finish_replacement(&mut self) {
        if !self.is_opening() {
            for id in core::mem::take(&mut self.replaced) {
                self.streams.remove(&id);
                self.events.push_back(StreamEvent::Cancelled(id));
            }
        }
    }

    /// Plans the next openings, unless some are under way.
    fn plan(&mut self, now_ms: u64) {
        if self.settled || self.failed || self.is_opening() {
            return;
        }
        // Of these nothing is wanted any more: there is nothing to replace them with.
        let useless = self.streams.iter().filter(|(_, stream)| stream.topics.is_disjoint(&self.wanted));
        let useless: Vec<_> = useless.map(|(id, _)| *id).collect();
        for id in useless {
            self.streams.remove(&id);
            self.events.push_back(StreamEvent::Cancelled(id));
        }
        if now_ms < self.open_at_ms {
            return;
        }
        let covered: BTreeSet<_> = self.streams.values().flat_map(|stream| &stream.topics).copied().collect();
        let mut topics: BTreeSet<_> = self.wanted.difference(&covered).copied().collect();
        let stale = self.streams.iter().filter(|(_, stream)| !stream.topics.is_subset(&self.wanted));
        let mut replaced: BTreeSet<_> = stale.map(|(id, _)| *id).collect();
        if !topics.is_empty() {
            // New topics share a stream with the smallest one that has room for them.
            let smallest = self.streams.iter().min_by_key(|(_, stream)| stream.topics.len());
            replaced.extend(
                smallest
                    .filter(|(_, stream)| stream.topics.len() + topics.len() <= MAX_STATIC_TOPICS)
                    .map(|(id, _)| *id),
            );
        }
        for stream in replaced.iter().filter_map(|id| self.streams.get(id)) {
            topics.extend(stream.topics.intersection(&self.wanted));
        }
        let topics: Vec<_> = topics.into_iter().collect();
        self.to_open = topics.chunks(MAX_STATIC_TOPICS).map(<[_]>::to_vec).collect();
        self.replaced = replaced;
        self.settled = true;
    }
}
