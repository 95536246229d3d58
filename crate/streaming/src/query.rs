//! Unary reads: ordered pages after F, and the fixed targets of a sync (STR-040, STR-042).

use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::vec::Vec;

use prost::bytes::Bytes;
use prost::Message;

use crate::bound::{MAX_NEWEST_TOPICS, MAX_QUERY_LIMIT, MAX_QUERY_TOPICS};
use crate::prefix::OrderedPrefix;
use crate::proto;
use crate::sequence::{SequenceId, Target};
use crate::static_stream::{decode_rows, Places};
use crate::topic::Topic;
use crate::verdict::StreamRefused;

/// A question for the rows that follow each cursor, and the judge of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedQuery {
    places: Places,
    limit: u32,
}

/// One page: its rows, one prefix per topic that has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryPage {
    /// The rows.
    pub prefixes: Vec<OrderedPrefix>,
    /// The serving database has more behind them.
    pub has_more: bool,
}

impl OrderedQuery {
    /// A question for at most `limit` rows, which is cut to what a backend allows.
    ///
    /// # Errors
    /// As [`crate::static_stream::StaticRequest::new`], with 1 to 1,000 topics.
    pub fn new<T: AsRef<[u8]>>(topics: &[(T, u64)], limit: u32) -> Result<Self, StreamRefused> {
        Ok(Self { places: Places::new(topics, MAX_QUERY_TOPICS)?, limit: limit.clamp(1, MAX_QUERY_LIMIT) })
    }

    /// The `QueryRequest`.
    pub fn to_bytes(&self) -> Vec<u8> {
        proto::QueryRequest { queries: self.places.to_queries(), limit: self.limit }.encode_to_vec()
    }

    /// Judges the `QueryResponse`.
    ///
    /// # Errors
    /// [`StreamRefused::Protobuf`]; then of each row in turn as a stream's rows.
    pub fn answer(mut self, message: Bytes) -> Result<QueryPage, StreamRefused> {
        let response = RawQueryResponse::decode(message).map_err(|_| StreamRefused::Protobuf)?;
        let has_more = response.continuation.is_some_and(|continuation| continuation.has_more);
        let prefixes = self.places.take_rows(decode_rows(&response.envelopes)?)?;
        Ok(QueryPage { prefixes, has_more })
    }
}

/// [`proto::QueryResponse`] with its rows left as bytes.
#[derive(Clone, PartialEq, prost::Message)]
struct RawQueryResponse {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    envelopes: Vec<Bytes>,
    #[prost(message, optional, tag = "2")]
    continuation: Option<proto::query_response::Continuation>,
}

/// A question for the head of each topic, and the judge of its answer. What it answers is a target: it advances nothing
/// (STR-062).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestQuery {
    places: Places,
}

impl NewestQuery {
    /// A question for 1 to 1,000 topics, unique.
    ///
    /// # Errors
    /// [`StreamRefused::TopicCount`], [`StreamRefused::DuplicateTopic`].
    pub fn new(topics: &[Topic]) -> Result<Self, StreamRefused> {
        let topics: Vec<_> = topics.iter().map(|topic| (topic, 0)).collect();
        Ok(Self { places: Places::new(&topics, MAX_NEWEST_TOPICS)? })
    }

    /// The topics, in request order.
    pub fn topics(&self) -> impl Iterator<Item = Topic> + '_ {
        self.places.in_order().iter().map(|(topic, _)| *topic)
    }

    /// The `QueryNewestRequest`, without envelopes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let topic = |(topic, _): &(Topic, SequenceId)| proto::Topic { topic: Bytes::copy_from_slice(topic.as_bytes()) };
        let topics = self.places.in_order().iter().map(topic).collect();
        proto::QueryNewestRequest { topics, include_full_envelope: false }.encode_to_vec()
    }

    /// H of each topic, in request order: 0 for one that the serving database has no row of (STR-040).
    ///
    /// # Errors
    /// [`StreamRefused::Protobuf`]; [`StreamRefused::EnvelopeShape`] of a result without topic or meta;
    /// [`StreamRefused::Targets`] for a topic that was not asked for or is there twice; [`StreamRefused::SequenceRange`].
    pub fn answer(self, message: Bytes) -> Result<Vec<(Topic, Target)>, StreamRefused> {
        let response = proto::QueryNewestResponse::decode(message).map_err(|_| StreamRefused::Protobuf)?;
        let mut heads: BTreeMap<Topic, Option<SequenceId>> =
            self.places.in_order().iter().map(|(topic, _)| (*topic, None)).collect();
        for result in response.results {
            let topic = result.topic.ok_or(StreamRefused::EnvelopeShape)?;
            let topic = Topic::from_bytes(&topic.topic).map_err(|_| StreamRefused::Targets)?;
            let cursor = result.meta.map(|meta| meta.cursor.unwrap_or_default());
            match heads.entry(topic) {
                Entry::Occupied(mut head) if head.get().is_none() => {
                    // A result without meta says the same as no result.
                    head.insert(Some(SequenceId::new(cursor.unwrap_or_default().sequence_id)?));
                }
                _ => return Err(StreamRefused::Targets),
            }
        }
        let head = |(topic, _): &(Topic, SequenceId)| {
            (*topic, Target(heads.get(topic).copied().flatten().unwrap_or_default()))
        };
        Ok(self.places.in_order().iter().map(head).collect())
    }
}
