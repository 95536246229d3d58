//! Dependencies outside the transaction: bounded requests, each with a result of its own (STR-073, STR-075, STR-076).

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use remuda_streaming::{SequenceId, Topic};

use super::limits::{IDENTITY_REFERENCE_WAIT_MS, MAX_DEPENDENCY_REQUESTS};
use super::processor::{Block, IdentityReference};

/// Something that a blocked parent needs from the network: a topic, received and processed through a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependency {
    /// Whose rows.
    pub topic: Topic,
    /// Through which place.
    pub through: SequenceId,
}

impl Dependency {
    /// What a block needs; `None` where more rows help nothing.
    pub const fn of(block: &Block) -> Option<Self> {
        match *block {
            Block::Identity(IdentityReference { inbox, at }) => Some(Self { topic: inbox, through: at }),
            Block::GroupPrefix { group, through } => Some(Self { topic: group, through }),
            Block::MissingState | Block::Unsupported | Block::UnresolvedPointer => None,
        }
    }
}

/// How one request ended. It says nothing of its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// What was needed is there: the parent is attempted again.
    Ready,
    /// Not yet: asked again.
    Retry,
    /// Never.
    Failed,
}

/// The requests of one process: at most [`MAX_DEPENDENCY_REQUESTS`] at once, in the order in which they were needed. Nothing
/// of it is durable: after a restart the pending parents say again what they need.
#[derive(Debug, Default)]
pub struct DependencyRequests {
    waiting: VecDeque<Dependency>,
    in_flight: BTreeSet<Dependency>,
    failed: BTreeSet<Dependency>,
}

impl DependencyRequests {
    /// A parent needs it. Needed twice is needed once.
    pub fn require(&mut self, dependency: Dependency) {
        let known = self.in_flight.contains(&dependency) || self.failed.contains(&dependency);
        if !known && !self.waiting.contains(&dependency) {
            self.waiting.push_back(dependency);
        }
    }

    /// The next request to send, while there is room for one.
    pub fn poll_request(&mut self) -> Option<Dependency> {
        if self.in_flight.len() >= MAX_DEPENDENCY_REQUESTS {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.in_flight.insert(next);
        Some(next)
    }

    /// A request has ended; one that was not sent is ignored.
    pub fn handle_resolution(&mut self, dependency: Dependency, resolution: Resolution) {
        if !self.in_flight.remove(&dependency) {
            return;
        }
        match resolution {
            Resolution::Ready => {}
            Resolution::Retry => self.waiting.push_back(dependency),
            Resolution::Failed => {
                self.failed.insert(dependency);
            }
        }
    }

    /// Whether it has failed for good.
    pub fn has_failed(&self, dependency: &Dependency) -> bool {
        self.failed.contains(dependency)
    }

    /// Requests in flight and waiting.
    pub fn open(&self) -> usize {
        self.in_flight.len() + self.waiting.len()
    }
}

/// How long identity updates have been absent while the connection was healthy. What was waited without one does not count
/// (STR-076).
#[derive(Debug, Default)]
pub struct ReferenceWaits {
    waited_ms: BTreeMap<IdentityReference, u64>,
    /// When the connection was last seen healthy; `None` while it is not.
    healthy_since_ms: Option<u64>,
}

impl ReferenceWaits {
    /// A read has shown that an update is absent from the serving replica.
    pub fn require(&mut self, reference: IdentityReference) {
        self.waited_ms.entry(reference).or_default();
    }

    /// It is there after all, or its parent is gone.
    pub fn settle(&mut self, reference: &IdentityReference) {
        self.waited_ms.remove(reference);
    }

    /// The connection is healthy, or not, at `now_ms`. The time since the last call counts when it was healthy in between. A
    /// clock that went back counts nothing.
    pub fn handle_time(&mut self, now_ms: u64, healthy: bool) {
        if let Some(since) = self.healthy_since_ms {
            let passed = now_ms.saturating_sub(since);
            self.waited_ms.values_mut().for_each(|waited| *waited = waited.saturating_add(passed));
        }
        self.healthy_since_ms = healthy.then_some(now_ms);
    }

    /// The references that are permanently invalid now: healthy for [`IDENTITY_REFERENCE_WAIT_MS`], and still absent.
    pub fn invalid(&self) -> BTreeSet<IdentityReference> {
        let over = self.waited_ms.iter().filter(|(_, waited)| **waited >= IDENTITY_REFERENCE_WAIT_MS);
        over.map(|(reference, _)| *reference).collect()
    }
}
