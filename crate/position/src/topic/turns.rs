//! Whose head is attempted next (STR-072): every ready topic in turn, and none that waits in front of one that does not.

use alloc::collections::{BTreeMap, VecDeque};

use remuda_streaming::Topic;

use super::limits::ACTIVE_DATABASE_POLL_INTERVAL_MS;
use super::processing::Step;

/// The topics of one processor. One turn is one attempt: a topic that has more goes to the back.
#[derive(Debug, Default)]
pub struct ProcessingTurns {
    ready: VecDeque<Topic>,
    /// Topics whose head waits, with the time of the next fresh check (STR-078).
    waiting: BTreeMap<Topic, u64>,
}

impl ProcessingTurns {
    /// A topic has, or may have, something to process: rows came, a dependency is there, another tab wrote. What waited for
    /// a check waits no longer; what is ready keeps its place.
    pub fn wake(&mut self, topic: Topic) {
        self.waiting.remove(&topic);
        if !self.ready.contains(&topic) {
            self.ready.push_back(topic);
        }
    }

    /// The topic to attempt now. Its step is to be handed back.
    pub fn poll(&mut self, now_ms: u64) -> Option<Topic> {
        let due: VecDeque<_> = self.waiting.iter().filter(|(_, at)| **at <= now_ms).map(|(topic, _)| *topic).collect();
        for topic in due {
            self.waiting.remove(&topic);
            self.ready.push_back(topic);
        }
        self.ready.pop_front()
    }

    /// What the attempt came to; `None` when the store failed.
    pub fn handle_step(&mut self, topic: Topic, step: Option<&Step>, now_ms: u64) {
        match step {
            Some(Step::Applied { .. } | Step::Rejected { .. }) => self.wake(topic),
            Some(Step::Blocked { .. } | Step::Retry { .. }) | None => {
                self.waiting.insert(topic, now_ms.saturating_add(ACTIVE_DATABASE_POLL_INTERVAL_MS));
            }
            Some(Step::Idle | Step::Inactive) => {}
        }
    }

    /// When a waiting head is due; `None` while nothing waits. While something is ready it is due at once.
    pub fn wake_at(&self) -> Option<u64> {
        if self.ready.is_empty() {
            self.waiting.values().min().copied()
        } else {
            Some(0)
        }
    }
}
