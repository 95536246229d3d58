//! `QueryService`: ordered pages and heads, both as the replica sees them.

use std::collections::HashSet;

use remuda_streaming::bound::{MAX_MESSAGE_BYTES, MAX_NEWEST_ENVELOPE_TOPICS, MAX_NEWEST_TOPICS, MAX_QUERY_TOPICS};
use remuda_streaming::proto::query_newest_response::Result as Newest;
use remuda_streaming::proto::query_response::Continuation;
use remuda_streaming::{proto, SequenceId, Topic};
use tonic::{Request, Response, Status};

use super::generated::query_service_server::QueryService;
use super::rows::{wire_topic, Budget};
use super::Backend;

/// Rows of a page whose request names no limit.
const DEFAULT_LIMIT: usize = 100;
/// Rows of any page.
const MAX_LIMIT: usize = 1_000;
/// Bytes of rows on one page: what a message may have, less its framing.
const PAGE_BYTES: usize = MAX_MESSAGE_BYTES - 64 * 1024;

/// Judges the topics of a request: as many as allowed, each once, each with a cursor in range.
pub(super) fn judge_topics(queries: &[proto::TopicQuery], max: usize) -> Result<Vec<(Topic, u64)>, Status> {
    if queries.is_empty() || queries.len() > max {
        return Err(Status::invalid_argument(format!("1 to {max} topics, not {}", queries.len())));
    }
    let mut seen = HashSet::new();
    let judge = |query: &proto::TopicQuery| {
        let bytes = query.topic.as_ref().map(|topic| topic.topic.as_ref()).unwrap_or_default();
        let topic = Topic::from_bytes(bytes).map_err(|_| Status::invalid_argument("not a topic"))?;
        let cursor = query.cursor.unwrap_or_default().sequence_id;
        if cursor > SequenceId::MAX.get() {
            return Err(Status::invalid_argument("a cursor above i64::MAX"));
        }
        if !seen.insert(topic) {
            return Err(Status::invalid_argument("a topic is there twice"));
        }
        Ok((topic, cursor))
    };
    queries.iter().map(judge).collect()
}

#[tonic::async_trait]
impl QueryService for Backend {
    async fn query(&self, request: Request<proto::QueryRequest>) -> Result<Response<proto::QueryResponse>, Status> {
        let request = request.into_inner();
        let topics = judge_topics(&request.queries, MAX_QUERY_TOPICS)?;
        let mut budget = match usize::try_from(request.limit).unwrap_or(usize::MAX) {
            0 => Budget { rows: DEFAULT_LIMIT, bytes: PAGE_BYTES },
            limit if limit > MAX_LIMIT => return Err(Status::invalid_argument("a limit above 1,000")),
            limit => Budget { rows: limit, bytes: PAGE_BYTES },
        };
        let (mut envelopes, mut has_more) = (Vec::new(), false);
        for (topic, cursor) in topics {
            let read = self.rows.after(&topic, cursor, budget);
            budget.rows -= read.rows.len();
            budget.bytes -= read.rows.iter().map(|row| row.bytes).sum::<usize>();
            has_more |= read.more;
            envelopes.extend(read.rows.iter().map(|row| row.envelope.clone()));
        }
        Ok(Response::new(proto::QueryResponse { envelopes, continuation: Some(Continuation { has_more }) }))
    }

    async fn query_newest(
        &self,
        request: Request<proto::QueryNewestRequest>,
    ) -> Result<Response<proto::QueryNewestResponse>, Status> {
        let request = request.into_inner();
        let full = request.include_full_envelope;
        let max = if full { MAX_NEWEST_ENVELOPE_TOPICS } else { MAX_NEWEST_TOPICS };
        let query = |topic| proto::TopicQuery { topic: Some(topic), cursor: None };
        let topics = judge_topics(&request.topics.into_iter().map(query).collect::<Vec<_>>(), max)?;
        let newest = |(topic, _): (Topic, u64)| {
            let row = self.rows.newest(&topic)?;
            let proto::ServerEnvelope { meta, envelope } = row.envelope.clone();
            Some(Newest { topic: Some(wire_topic(&topic)), meta, envelope: envelope.filter(|_| full) })
        };
        let results = topics.into_iter().filter_map(newest).collect();
        Ok(Response::new(proto::QueryNewestResponse { results }))
    }
}
