//! A static stream: one request, then `Started`, then rows and keepalives until it ends (STR-050 to STR-053).
//!
//! ```text
//! StaticRequest ──open──▶ not started ──Started──▶ started ─┬─ Messages  (one OrderedPrefix per topic)
//!                                                           └─ Keepalive
//! ```
//! Any refusal ends the stream: what it said in that message is dropped whole, and nothing after it is read.

use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::vec::Vec;

use prost::bytes::Bytes;
use prost::Message;

use crate::bound::MAX_STATIC_TOPICS;
use crate::envelope::DecodedEnvelope;
use crate::prefix::{Gathered, OrderedPrefix};
use crate::proto;
use crate::sequence::{SequenceId, Target};
use crate::topic::Topic;
use crate::verdict::StreamRefused;

/// Unique topics, each with the place that its rows are asked for behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    in_order: Vec<(Topic, SequenceId)>,
    by_topic: BTreeMap<Topic, usize>,
}

impl Places {
    /// Judges count, then each topic in turn: topic, uniqueness, cursor.
    pub(crate) fn new<T: AsRef<[u8]>>(topics: &[(T, u64)], max_topics: usize) -> Result<Self, StreamRefused> {
        if topics.is_empty() || topics.len() > max_topics {
            return Err(StreamRefused::TopicCount);
        }
        let mut places = Self::default();
        for (topic, cursor) in topics {
            let topic = Topic::from_bytes(topic.as_ref())?;
            match places.by_topic.entry(topic) {
                Entry::Occupied(_) => return Err(StreamRefused::DuplicateTopic),
                Entry::Vacant(vacant) => vacant.insert(places.in_order.len()),
            };
            places.in_order.push((topic, SequenceId::new(*cursor)?));
        }
        Ok(places)
    }

    pub(crate) fn in_order(&self) -> &[(Topic, SequenceId)] {
        &self.in_order
    }

    /// As the wire asks: a cursor of 0 is left out.
    pub(crate) fn to_queries(&self) -> Vec<proto::TopicQuery> {
        let query = |(topic, after): &(Topic, SequenceId)| proto::TopicQuery {
            topic: Some(proto::Topic { topic: Bytes::copy_from_slice(topic.as_bytes()) }),
            cursor: Some(proto::Cursor { sequence_id: after.get() }).filter(|cursor| cursor.sequence_id > 0),
        };
        self.in_order.iter().map(query).collect()
    }

    /// Judges the rows of one message and moves the places behind them, or refuses all of them.
    pub(crate) fn take_rows(&mut self, rows: Vec<DecodedEnvelope>) -> Result<Vec<OrderedPrefix>, StreamRefused> {
        let mut gathered = Gathered::default();
        let mut moved: BTreeMap<usize, (usize, SequenceId)> = BTreeMap::new();
        for row in rows {
            let ((topic, place, after), row) = row.judge(|topic| {
                let place = *self.by_topic.get(topic)?;
                let (_, asked) = *self.in_order.get(place)?;
                let last = moved.get(&place).map_or(asked, |(_, last)| *last);
                Some(((*topic, place, asked), last))
            })?;
            let (slot, last) = moved.entry(place).or_insert_with(|| (gathered.open(topic, after), after));
            *last = row.sequence_id();
            gathered.push(*slot, row);
        }
        for (place, (_, last)) in moved {
            if let Some((_, received)) = self.in_order.get_mut(place) {
                *received = last;
            }
        }
        Ok(gathered.into_prefixes())
    }
}

/// What one static stream asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticRequest {
    places: Places,
}

impl StaticRequest {
    /// A request for what follows each cursor: 1 to 10,000 topics, unique.
    ///
    /// # Errors
    /// [`StreamRefused::TopicCount`]; per topic [`StreamRefused::Topic`], [`StreamRefused::DuplicateTopic`],
    /// [`StreamRefused::SequenceRange`].
    pub fn new<T: AsRef<[u8]>>(topics: &[(T, u64)]) -> Result<Self, StreamRefused> {
        Ok(Self { places: Places::new(topics, MAX_STATIC_TOPICS)? })
    }

    /// The topics and cursors, in request order.
    pub fn topics(&self) -> &[(Topic, SequenceId)] {
        self.places.in_order()
    }

    /// The `SubscribeStaticRequest`.
    pub fn to_bytes(&self) -> Vec<u8> {
        proto::SubscribeStaticRequest { topics: self.places.to_queries() }.encode_to_vec()
    }

    /// The machine that judges the answer.
    pub fn open(self) -> StaticStream {
        StaticStream { places: self.places, started: false }
    }
}

/// `Started`: what the backend promises of this registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// As sent, in milliseconds; 0 leaves it to the client.
    pub keepalive_interval_ms: u32,
    /// H of each topic, in request order.
    pub targets: Vec<(Topic, Target)>,
}

/// What one message of a stream means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaticEvent {
    /// The stream is open.
    Started(Started),
    /// Rows, one prefix per topic that has some.
    Rows(Vec<OrderedPrefix>),
    /// It is alive.
    Keepalive,
}

/// A stream's side of the conversation, judged message by message.
#[derive(Clone, Debug)]
pub struct StaticStream {
    places: Places,
    started: bool,
}

impl StaticStream {
    /// Judges one `SubscribeStaticResponse`.
    ///
    /// # Errors
    /// In this order: [`StreamRefused::Protobuf`] of any part, [`StreamRefused::Oneof`], [`StreamRefused::StartedTwice`] or
    /// [`StreamRefused::NotStarted`]; of `Started`, [`StreamRefused::Targets`] and [`StreamRefused::SequenceRange`]; of each
    /// row in turn [`StreamRefused::EnvelopeShape`], [`StreamRefused::Oneof`], [`StreamRefused::UnrequestedTopic`],
    /// [`StreamRefused::SequenceRange`], [`StreamRefused::HashLength`], [`StreamRefused::Order`].
    pub fn handle(&mut self, message: Bytes) -> Result<StaticEvent, StreamRefused> {
        let response = raw::Response::decode(message).map_err(|_| StreamRefused::Protobuf)?.response;
        // Every part is protobuf before any part is judged.
        let rows = match &response {
            Some(raw::Member::Messages(messages)) => decode_rows(&messages.envelopes)?,
            _ => Vec::new(),
        };
        match (response.ok_or(StreamRefused::Oneof)?, self.started) {
            (raw::Member::Started(_), true) => Err(StreamRefused::StartedTwice),
            (raw::Member::Started(started), false) => self.start(started),
            (_, false) => Err(StreamRefused::NotStarted),
            (raw::Member::Messages(_), true) => self.places.take_rows(rows).map(StaticEvent::Rows),
            (raw::Member::Keepalive(_), true) => Ok(StaticEvent::Keepalive),
        }
    }

    /// The body has ended, whatever its status.
    ///
    /// # Errors
    /// [`StreamRefused::NotStarted`].
    pub const fn end(&self) -> Result<(), StreamRefused> {
        if self.started {
            Ok(())
        } else {
            Err(StreamRefused::NotStarted)
        }
    }

    /// The topics with the last place received of each, or what it was asked for behind; in request order. What is
    /// received here is not durable.
    pub fn received(&self) -> &[(Topic, SequenceId)] {
        self.places.in_order()
    }

    fn start(&mut self, started: proto::Started) -> Result<StaticEvent, StreamRefused> {
        let requested = self.places.in_order();
        let named = |target: &proto::CatchupTarget, topic: &Topic| {
            target.topic.as_ref().is_some_and(|named| *named.topic == *topic.as_bytes())
        };
        let in_order = started.targets.len() == requested.len()
            && started.targets.iter().zip(requested).all(|(target, (topic, _))| named(target, topic));
        if !in_order {
            return Err(StreamRefused::Targets);
        }
        let through = |(target, (topic, _)): (&proto::CatchupTarget, &(Topic, SequenceId))| {
            Ok((*topic, Target(SequenceId::new(target.through_sequence_id)?)))
        };
        let targets = started.targets.iter().zip(requested).map(through).collect::<Result<_, StreamRefused>>()?;
        self.started = true;
        Ok(StaticEvent::Started(Started { keepalive_interval_ms: started.keepalive_interval_ms, targets }))
    }
}

pub(crate) fn decode_rows(rows: &[Bytes]) -> Result<Vec<DecodedEnvelope>, StreamRefused> {
    rows.iter().cloned().map(DecodedEnvelope::decode).collect()
}

/// The response with its rows left as bytes, so that a row is kept exactly as it came.
mod raw {
    use alloc::vec::Vec;

    use prost::bytes::Bytes;

    use crate::proto;

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Response {
        #[prost(oneof = "Member", tags = "1, 2, 3")]
        pub response: Option<Member>,
    }

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Member {
        #[prost(message, tag = "1")]
        Started(proto::Started),
        #[prost(message, tag = "2")]
        Messages(Messages),
        #[prost(message, tag = "3")]
        Keepalive(proto::Keepalive),
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Messages {
        #[prost(bytes = "bytes", repeated, tag = "1")]
        pub envelopes: Vec<Bytes>,
    }
}
