//! One explicit sync: fixed targets, and an end that says what is left (STR-040 to STR-044).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use remuda_position::topic::limits::BARRIER_TIMEOUT_MS;
use remuda_position::topic::obligation::Obligation;
use remuda_position::topic::processor::Block;
use remuda_streaming::bound::MAX_NEWEST_TOPICS;
use remuda_streaming::query::NewestQuery;
use remuda_streaming::{Bytes, StreamRefused, Target, Topic};

/// Why an obligation was not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Time ran out, with work that could have gone on.
    Deadline,
    /// It was cancelled.
    Cancelled,
    /// Its head waits for something.
    Blocked(Block),
    /// Its target was never learned.
    NoTarget,
}

/// One obligation that was not met. What is pending of it stays pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Whose.
    pub topic: Topic,
    /// H, F, and P or the unresolved welcomes; `None` when not even H is known.
    pub obligation: Option<Obligation>,
    /// Why.
    pub cause: Cause,
}

/// How a run ended. Only [`SyncOutcome::Complete`] is a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncOutcome {
    /// Everything that was enrolled is processed through its target.
    Complete,
    /// Some of it is not, topic by topic.
    Incomplete(Vec<Unfinished>),
}

#[derive(Clone, Debug)]
struct Enrolled {
    target: Option<Target>,
    obligation: Option<Obligation>,
    blocked: Option<Block>,
}

/// One run. Its targets are asked for when it starts, or when a group is discovered, and do not move after that: traffic
/// beyond them extends nothing.
#[derive(Debug)]
pub struct SyncRun {
    enrolled: BTreeMap<Topic, Enrolled>,
    asked: BTreeSet<Topic>,
    deadline_ms: u64,
}

impl SyncRun {
    /// Starts a run over these topics, with the usual deadline or another.
    pub fn start(topics: impl IntoIterator<Item = Topic>, now_ms: u64, timeout_ms: Option<u64>) -> Self {
        let deadline_ms = now_ms.saturating_add(timeout_ms.unwrap_or(BARRIER_TIMEOUT_MS));
        let mut run = Self { enrolled: BTreeMap::new(), asked: BTreeSet::new(), deadline_ms };
        topics.into_iter().for_each(|topic| run.enroll(topic));
        run
    }

    /// Enrolls a group that a welcome at or below the starting target has discovered, or a dependency. It shares the run's
    /// deadline, and nothing that is enrolled gets another target.
    pub fn enroll(&mut self, topic: Topic) {
        self.enrolled.entry(topic).or_insert(Enrolled { target: None, obligation: None, blocked: None });
    }

    /// The next question for targets: up to 1,000 topics that have none.
    pub fn poll_newest(&mut self) -> Option<NewestQuery> {
        let without =
            |(topic, enrolled): &(&Topic, &Enrolled)| enrolled.target.is_none() && !self.asked.contains(*topic);
        let topics: Vec<_> =
            self.enrolled.iter().filter(without).map(|(topic, _)| *topic).take(MAX_NEWEST_TOPICS).collect();
        let query = NewestQuery::new(&topics).ok()?;
        self.asked.extend(topics);
        Some(query)
    }

    /// The answer; `None` when it failed. Returns the topics that are to be fetched, each through its target.
    ///
    /// # Errors
    /// Those of [`NewestQuery::answer`]: its topics are asked for again.
    pub fn handle_newest(
        &mut self,
        query: NewestQuery,
        message: Option<Bytes>,
    ) -> Result<Vec<(Topic, Target)>, StreamRefused> {
        for topic in query.topics() {
            self.asked.remove(&topic);
        }
        let targets = message.ok_or(StreamRefused::NoStatus).and_then(|message| query.answer(message))?;
        for (topic, target) in &targets {
            if let Some(enrolled) = self.enrolled.get_mut(topic) {
                enrolled.target.get_or_insert(*target);
            }
        }
        Ok(targets)
    }

    /// The topics whose target is known and not reached, with it: what is to be measured.
    pub fn open(&self) -> Vec<(Topic, Target)> {
        let open = self.enrolled.iter().filter(|(_, enrolled)| enrolled.obligation != Some(Obligation::Complete));
        open.filter_map(|(topic, enrolled)| Some((*topic, enrolled.target?))).collect()
    }

    /// What a topic owes now ([`remuda_position::topic::obligation::measure`]), and what blocks its head.
    pub fn handle_measured(&mut self, topic: &Topic, obligation: Obligation, blocked: Option<Block>) {
        if let Some(enrolled) = self.enrolled.get_mut(topic) {
            (enrolled.obligation, enrolled.blocked) = (Some(obligation), blocked);
        }
    }

    /// The end, when there is one: everything complete; or everything that is left blocked; or the deadline. What is blocked
    /// does not end a run in which something else still goes on.
    pub fn poll_outcome(&self, now_ms: u64) -> Option<SyncOutcome> {
        let left = self.unfinished(Cause::Deadline);
        if left.is_empty() {
            return Some(SyncOutcome::Complete);
        }
        let all_blocked = left.iter().all(|unfinished| matches!(unfinished.cause, Cause::Blocked(_)));
        (all_blocked || now_ms >= self.deadline_ms).then_some(SyncOutcome::Incomplete(left))
    }

    /// Ends the run at once. What was committed stays committed.
    pub fn cancel(self) -> SyncOutcome {
        match self.unfinished(Cause::Cancelled) {
            left if left.is_empty() => SyncOutcome::Complete,
            left => SyncOutcome::Incomplete(left),
        }
    }

    /// When the run ends at the latest.
    pub const fn deadline_ms(&self) -> u64 {
        self.deadline_ms
    }

    fn unfinished(&self, otherwise: Cause) -> Vec<Unfinished> {
        let left = self.enrolled.iter().filter(|(_, enrolled)| enrolled.obligation != Some(Obligation::Complete));
        left.map(|(topic, enrolled)| Unfinished {
            topic: *topic,
            obligation: enrolled.obligation.clone(),
            cause: match (enrolled.target, enrolled.blocked) {
                (None, _) if otherwise == Cause::Deadline => Cause::NoTarget,
                (_, Some(block)) => Cause::Blocked(block),
                _ => otherwise,
            },
        })
        .collect()
    }
}
