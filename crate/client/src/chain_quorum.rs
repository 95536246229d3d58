//! Several chain nodes read as one: an answer counts when enough of them give the same bytes (`RESOLUTIONS.md` §4).
//!
//! ```text
//! latest, of every node --the same bytes often enough-------------------------------------> that answer
//!        | they stand at different heights                                                     ^
//!        +--> the highest block that enough of them have reached, pinned, of every node -------+
//! ```

use alloc::vec::Vec;
use core::cmp::Reverse;

use remuda_wire::chain::BrokerState;
use remuda_wire::context::FinalizedView;
use remuda_wire::Canonical;

use crate::outcome::ChainReadError;

/// What one node answered.
pub type ChainAnswer = Result<Vec<u8>, ChainReadError>;

/// How many of the nodes must agree: more than half, so that no two answers can both count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainQuorum {
    needed: usize,
}

/// What the answers of all nodes come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainConclusion {
    /// This answer counts.
    Settled(ChainAnswer),
    /// The nodes stand at different heights: all are to be asked for this view.
    Pin(FinalizedView),
}

impl ChainQuorum {
    /// A quorum of `needed` of `nodes`; `None` unless it is more than half of them, and no more than all.
    pub const fn new(needed: usize, nodes: usize) -> Option<Self> {
        if needed <= nodes && needed > nodes / 2 {
            Some(Self { needed })
        } else {
            None
        }
    }

    /// More than half.
    pub const fn majority(nodes: usize) -> Self {
        Self { needed: nodes / 2 + 1 }
    }

    /// The answer that enough nodes gave, as soon as they did: a slow node holds nobody up who needs it not.
    pub fn agreed<'a>(&self, answers: &'a [ChainAnswer]) -> Option<&'a ChainAnswer> {
        let gave = |answer: &&ChainAnswer| answers.iter().filter(|other| other == answer).count() >= self.needed;
        answers.iter().find(gave)
    }

    /// What the answers of every node come to, to a read of the latest view or of the `pinned` one.
    pub fn conclude(&self, pinned: Option<&FinalizedView>, answers: &[ChainAnswer]) -> ChainConclusion {
        if let Some(agreed) = self.agreed(answers) {
            return ChainConclusion::Settled(agreed.clone());
        }
        let read: Vec<&Vec<u8>> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
        if read.len() < self.needed {
            // Too few could be read: why the first of the others could not is why there is no answer.
            let fault = answers.iter().find_map(|answer| answer.as_ref().err()).copied();
            return ChainConclusion::Settled(Err(fault.unwrap_or(ChainReadError::Disagreement)));
        }
        match self.common_view(&read).filter(|_| pinned.is_none()) {
            Some(view) => ChainConclusion::Pin(view),
            None => ChainConclusion::Settled(Err(ChainReadError::Disagreement)),
        }
    }

    /// The highest view that enough nodes have reached: a few that lag, or say so, cannot hold it back.
    fn common_view(&self, read: &[&Vec<u8>]) -> Option<FinalizedView> {
        let views = read.iter().filter_map(|bytes| BrokerState::from_bytes(bytes).ok());
        let mut views: Vec<FinalizedView> = views.map(|state| state.view).collect();
        views.sort_by_key(|view| Reverse(view.height));
        views.into_iter().nth(self.needed.checked_sub(1)?)
    }
}
