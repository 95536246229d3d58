//! A model backend: rows with gaps in one sequence, streams that go wrong, a replica that lags.

use std::collections::{BTreeMap, VecDeque};

use prost::Message;
use remuda_client::receiver::StreamId;
use remuda_streaming::grpc_web::{request_body, CONTENT_TYPE};
use remuda_streaming::{proto, Bytes, Topic};
use remuda_testkit::builder::rows;

/// Between keepalives.
pub const INTERVAL_MS: u64 = 1_000;

/// What goes wrong with a stream, after its first messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    Silence,
    NoHead,
    Cut,
    Duplicate,
    WrongTargets,
    UnsetOneof,
    NoTrailers,
    Unavailable,
}

pub const FAULTS: [Fault; 9] = [
    Fault::None,
    Fault::Silence,
    Fault::NoHead,
    Fault::Cut,
    Fault::Duplicate,
    Fault::WrongTargets,
    Fault::UnsetOneof,
    Fault::NoTrailers,
    Fault::Unavailable,
];

/// What a stream does next.
#[derive(Clone, Debug)]
pub enum Sent {
    Head,
    Bytes(Vec<u8>),
    End,
}

#[derive(Debug)]
struct Stream {
    floors: Vec<(Topic, u64)>,
    started: bool,
    fault: Fault,
    /// Messages until the fault.
    honest: u32,
    last_sent_ms: u64,
    dead: bool,
}

#[derive(Debug, Default)]
pub struct Backend {
    pub rows: BTreeMap<Topic, Vec<(u64, Vec<u8>, u64)>>,
    streams: BTreeMap<StreamId, Stream>,
    sequence: u64,
    lag_ms: u64,
    pub opened: usize,
}

/// The topics and cursors of a request, as the wire has them.
pub fn topics_of(queries: &[proto::TopicQuery]) -> Vec<(Topic, u64)> {
    let topic = |query: &proto::TopicQuery| {
        let topic = Topic::from_bytes(&query.topic.as_ref().expect("a topic").topic).expect("a topic of ours");
        (topic, query.cursor.unwrap_or_default().sequence_id)
    };
    queries.iter().map(topic).collect()
}

impl Backend {
    pub fn with_lag(lag_ms: u64) -> Self {
        Self { lag_ms, ..Self::default() }
    }

    pub fn publish(&mut self, topic: Topic, payload: &[u8], gap: u64, now_ms: u64) {
        self.sequence += 1 + gap;
        self.rows.entry(topic).or_default().push((self.sequence, payload.to_vec(), now_ms));
    }

    pub fn head(&self, topic: &Topic) -> u64 {
        self.rows.get(topic).and_then(|rows| rows.last()).map_or(0, |(place, ..)| *place)
    }

    fn visible(&self, topic: &Topic, after: u64, now_ms: u64, count: usize) -> Vec<(u64, Vec<u8>)> {
        let rows = self.rows.get(topic).map(Vec::as_slice).unwrap_or_default();
        let seen = rows.iter().filter(|(place, _, at)| *place > after && at + self.lag_ms <= now_ms);
        seen.take(count).map(|(place, payload, _)| (*place, payload.clone())).collect()
    }

    pub fn open(&mut self, id: StreamId, floors: Vec<(Topic, u64)>, fault: Fault, honest: u32, now_ms: u64) {
        self.opened += 1;
        let stream = Stream { floors, started: false, fault, honest, last_sent_ms: now_ms, dead: false };
        self.streams.insert(id, stream);
    }

    pub fn cancel(&mut self, id: StreamId) {
        self.streams.remove(&id);
    }

    pub fn open_streams(&self) -> Vec<StreamId> {
        self.streams.keys().copied().collect()
    }

    pub fn query(&self, request: &[u8], now_ms: u64) -> Bytes {
        let request = proto::QueryRequest::decode(request).expect("protobuf");
        let (mut envelopes, mut has_more) = (Vec::new(), false);
        let limit = usize::try_from(request.limit).expect("small").min(7);
        for (topic, after) in topics_of(&request.queries) {
            let room = limit - envelopes.len();
            let visible = self.visible(&topic, after, now_ms, room + 1);
            has_more |= visible.len() > room;
            envelopes.extend(visible.iter().take(room).map(|(place, payload)| rows::row(&topic, *place, payload)));
        }
        let continuation = Some(proto::query_response::Continuation { has_more });
        proto::QueryResponse { envelopes, continuation }.encode_to_vec().into()
    }

    pub fn newest(&self, request: &[u8], now_ms: u64) -> Bytes {
        let request = proto::QueryNewestRequest::decode(request).expect("protobuf");
        let newest = |topic: &proto::Topic| {
            let topic = Topic::from_bytes(&topic.topic).expect("a topic");
            let (place, payload) = self.visible(&topic, 0, now_ms, usize::MAX).pop()?;
            let meta = rows::row(&topic, place, &payload).meta;
            Some(proto::query_newest_response::Result { topic: Some(rows::wire_topic(&topic)), meta, envelope: None })
        };
        let results = request.topics.iter().filter_map(newest).collect();
        proto::QueryNewestResponse { results }.encode_to_vec().into()
    }

    /// What a stream sends now.
    pub fn send(&mut self, id: StreamId, now_ms: u64) -> VecDeque<Sent> {
        let Some(mut stream) = self.streams.remove(&id) else { return VecDeque::new() };
        let mut sent = VecDeque::new();
        if !stream.dead && stream.fault != Fault::NoHead {
            self.serve(&mut stream, now_ms, &mut sent);
        }
        self.streams.insert(id, stream);
        sent
    }

    fn serve(&self, stream: &mut Stream, now_ms: u64, sent: &mut VecDeque<Sent>) {
        let faulty = stream.honest == 0;
        stream.honest = stream.honest.saturating_sub(1);
        let frame = |message: &[u8]| Sent::Bytes(request_body(message).expect("short"));
        if !stream.started {
            sent.push_back(Sent::Head);
            let mut targets: Vec<_> = stream.floors.iter().map(|(topic, _)| (*topic, self.head(topic))).collect();
            if stream.fault == Fault::WrongTargets {
                targets.reverse();
                targets.pop();
            }
            stream.started = true;
            stream.last_sent_ms = now_ms;
            sent.push_back(frame(&rows::started(u32::try_from(INTERVAL_MS).expect("small"), &targets)));
            return;
        }
        if faulty {
            match stream.fault {
                Fault::Silence => {
                    stream.dead = true;
                    return;
                }
                Fault::Cut => {
                    sent.extend([Sent::Bytes(vec![0, 0, 0, 0, 9, 1]), Sent::End]);
                    stream.dead = true;
                    return;
                }
                Fault::UnsetOneof => {
                    sent.push_back(frame(&[]));
                    return;
                }
                Fault::NoTrailers => {
                    sent.push_back(Sent::End);
                    stream.dead = true;
                    return;
                }
                Fault::Unavailable => {
                    let mut trailers = request_body(b"grpc-status: 14\r\n").expect("short");
                    trailers[0] = 0x80;
                    sent.extend([Sent::Bytes(trailers), Sent::End]);
                    stream.dead = true;
                    return;
                }
                _ => {}
            }
        }
        let mut envelopes = Vec::new();
        for (topic, floor) in &mut stream.floors {
            for (place, payload) in self.visible(topic, *floor, now_ms, 3) {
                *floor = place;
                envelopes.push(rows::row(topic, place, &payload));
            }
        }
        if faulty && stream.fault == Fault::Duplicate {
            envelopes.extend(envelopes.last().cloned());
        }
        if !envelopes.is_empty() {
            stream.last_sent_ms = now_ms;
            sent.push_back(frame(&rows::messages(envelopes)));
        } else if now_ms >= stream.last_sent_ms + INTERVAL_MS {
            stream.last_sent_ms = now_ms;
            sent.push_back(frame(&rows::keepalive()));
        }
    }
}

/// The headers of every answer.
pub const HEADERS: [(&str, &str); 1] = [("content-type", CONTENT_TYPE)];
