//! Ordered queries after durable F: for a sync's targets, for a missing prefix, for a push (STR-042, STR-062, STR-065).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use remuda_position::topic::limits::{ACTIVE_DATABASE_POLL_INTERVAL_MS, MAX_DEPENDENCY_REQUESTS};
use remuda_position::topic::place::Received;
use remuda_streaming::bound::{MAX_QUERY_LIMIT, MAX_QUERY_TOPICS};
use remuda_streaming::query::{OrderedQuery, QueryPage};
use remuda_streaming::{Bytes, SequenceId, StreamRefused, Topic};

use super::inbox::Inbox;

/// Names a question that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(u64);

#[derive(Clone, Copy, Debug)]
struct Wanted {
    through: SequenceId,
    in_flight: bool,
    /// Not before then: the last page had nothing for it.
    not_before_ms: u64,
}

#[derive(Debug)]
struct InFlight {
    query: OrderedQuery,
    topics: Vec<Topic>,
}

/// The topics that have to be fetched up to a place, and the questions that are in flight.
#[derive(Debug, Default)]
pub struct Fetches {
    wanted: BTreeMap<Topic, Wanted>,
    in_flight: BTreeMap<QueryId, InFlight>,
    last_id: u64,
}

impl Fetches {
    /// Fetches a topic through a place; one that is received through it already is not asked for.
    pub fn want(&mut self, topic: Topic, through: SequenceId, received: Received) {
        if received.sequence_id() >= through {
            return;
        }
        let wanted = self.wanted.entry(topic).or_insert(Wanted { through, in_flight: false, not_before_ms: 0 });
        wanted.through = wanted.through.max(through);
        wanted.not_before_ms = 0;
    }

    /// The next question: topics with neither a page in flight nor rows that wait for their commit, each behind its F.
    pub fn poll_query(
        &mut self,
        received: &BTreeMap<Topic, Received>,
        inbox: &Inbox,
        now_ms: u64,
    ) -> Option<(QueryId, Vec<u8>)> {
        if self.in_flight.len() >= MAX_DEPENDENCY_REQUESTS || !inbox.has_room() {
            return None;
        }
        let due = self
            .wanted
            .iter_mut()
            .filter(|(topic, wanted)| !wanted.in_flight && wanted.not_before_ms <= now_ms && !inbox.holds(topic));
        let mut topics = Vec::new();
        for (topic, wanted) in due.take(MAX_QUERY_TOPICS) {
            wanted.in_flight = true;
            topics.push((*topic, received.get(topic).copied().unwrap_or_default().sequence_id().get()));
        }
        // Topics of ours are unique and in range: only their absence refuses.
        let query = OrderedQuery::new(&topics, MAX_QUERY_LIMIT).ok()?;
        self.last_id = self.last_id.saturating_add(1);
        let (id, message) = (QueryId(self.last_id), query.to_bytes());
        self.in_flight.insert(id, InFlight { query, topics: topics.into_iter().map(|(topic, _)| topic).collect() });
        Some((id, message))
    }

    /// Judges an answer. A topic without a row in it, or whose question failed, is asked for again after a while: the serving
    /// replica may lag.
    ///
    /// # Errors
    /// Those of [`OrderedQuery::answer`]; [`StreamRefused::NoStatus`] when there is none.
    pub fn handle_answer(
        &mut self,
        id: QueryId,
        message: Option<Bytes>,
        now_ms: u64,
    ) -> Result<QueryPage, StreamRefused> {
        let Some(InFlight { query, topics }) = self.in_flight.remove(&id) else {
            return Ok(QueryPage { prefixes: Vec::new(), has_more: false });
        };
        let page = message.ok_or(StreamRefused::NoStatus).and_then(|message| query.answer(message));
        for topic in topics {
            let Some(wanted) = self.wanted.get_mut(&topic) else { continue };
            wanted.in_flight = false;
            // A full page may have had no place left for this topic: then it is asked for again at once.
            let served = page
                .as_ref()
                .is_ok_and(|page| page.has_more || page.prefixes.iter().any(|prefix| prefix.topic() == topic));
            if !served {
                wanted.not_before_ms = now_ms.saturating_add(ACTIVE_DATABASE_POLL_INTERVAL_MS);
            }
        }
        page
    }

    /// F moved, whoever moved it: what is received is not fetched again.
    pub fn handle_received(&mut self, topic: Topic, received: Received) {
        if self.wanted.get(&topic).is_some_and(|wanted| received.sequence_id() >= wanted.through) {
            self.wanted.remove(&topic);
        }
    }

    /// When a topic is due again.
    pub fn wake_at(&self) -> Option<u64> {
        self.wanted
            .values()
            .filter(|wanted| !wanted.in_flight)
            .map(|wanted| wanted.not_before_ms)
            .filter(|due| *due > 0)
            .min()
    }
}
