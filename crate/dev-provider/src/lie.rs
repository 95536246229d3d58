//! Every lie that the provider tells on request, and the verdict that must catch it.
//!
//! Lies are told to holders who were served enough honest frames before: a holder that comes back after catching one is
//! lied to again at once. What is durable stays honest: only what is told is bent, and signed again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use remuda_wire::Bytes32;

mod answer;
mod fast;
mod group;
mod standard;

pub use fast::Told;

/// Where a lie is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// On a subscription of a fast stream.
    Fast,
    /// On a replay of a standard stream.
    Replay,
    /// On a subscription of a consumer group.
    Group,
    /// In the anchor of a `CursorTooOld`.
    Floor,
    /// In the answer to a request.
    Answer,
}

macro_rules! lies {
    ($($(#[doc = $doc:literal])+ $name:ident, $part:ident, $verdict:literal;)+) => {
        /// A lie by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
        pub enum Lie { $($(#[doc = $doc])+ $name,)+ }

        impl Lie {
            /// Where it is met.
            pub const fn part(self) -> Part {
                match self { $(Self::$name => Part::$part,)+ }
            }

            /// The code that whoever verifies everything must report.
            pub const fn verdict(self) -> &'static str {
                match self { $(Self::$name => $verdict,)+ }
            }
        }
    };
}

lies! {
    /// One in-scope record of the batch is not delivered; on `FullStream` that is `verify/batch-incomplete`.
    WithholdRecord, Fast, "verify/lane-count";
    /// A record that was never committed is delivered. Needs a sequence of the batch that is outside the scope, so the
    /// broker commits a record on the default lane in each batch.
    InjectRecord, Fast, "verify/lane-count";
    /// A record is delivered under another lane of the scope.
    RelabelLane, Fast, "verify/lane-count";
    /// The proof of a lane outside the scope is added.
    ExtraLane, Fast, "protocol/coverage-extraneous";
    /// A checkpoint names a predecessor that is not the last one, and is validly signed.
    UnlinkedReceipt, Fast, "verify/checkpoint-predecessor";
    /// A checkpoint is signed by a key that is not the stream's.
    WrongKey, Fast, "verify/signature";
    /// Records and checkpoints of the next epoch come without its transition, also after a restart.
    VoidWithoutTransition, Fast, "protocol/epoch-without-transition";
    /// A receipt names a global predecessor that is not the last receipt.
    BreakGlobalChain, Replay, "verify/global-chain";
    /// A receipt names a predecessor in its lane that is not the lane's last receipt.
    BreakLaneChain, Replay, "verify/lane-chain";
    /// A record of the scope is left out of a replay.
    WithholdReceipt, Replay, "verify/global-chain";
    /// An append receipt is signed by a key that is not the stream's.
    ForgeReceiptKey, Replay, "verify/signature";
    /// A lease has an id that does not derive from its cycle.
    ForgeLease, Group, "verify/derived-id";
    /// A group receipt names a predecessor that is not the group's tail.
    ForkGroup, Group, "verify/group-chain";
    /// A lease is for a key that is not the consumer's.
    ForeignHolder, Group, "verify/holder";
    /// A lease counts an attempt that was never made.
    SkipAttempt, Group, "verify/delivery-lifecycle";
    /// A cycle has the queue position of another.
    ReuseQueuePosition, Group, "verify/queue-sequence";
    /// A floor is signed below one that was signed before.
    RegressFloor, Floor, "evidence/floor-regression";
    /// A position is refused although no floor is above it.
    UnjustifiedFloor, Floor, "verify/unjustified-refusal";
    /// A position is refused with the anchor of another lane.
    WrongAnchor, Floor, "verify/anchor-scope";
    /// The receipt of an append is of another payload.
    ForgeAppendReceipt, Answer, "verify/result-binding";
    /// A lane is created under an id that does not derive from its nonce.
    ForgeLaneId, Answer, "verify/derived-id";
    /// The receipt of a key batch commits other envelopes.
    ForgeKeyReceipt, Answer, "verify/envelope-root";
}

/// Which lies are told, and to whom.
#[derive(Debug, Default)]
pub struct Liar(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    lies: Vec<Lie>,
    after: u64,
    honest: HashMap<Bytes32, u64>,
    /// The first floor that was told.
    floor: Option<u64>,
}

impl Liar {
    /// Tells `lies` to each holder after `after` honest frames of the kind that they are about.
    pub fn new(lies: Vec<Lie>, after: u64) -> Self {
        Self(Mutex::new(State { lies, after, ..State::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells these from now on, and no others. Without `after` it stays as it is.
    pub fn tell(&self, lies: Vec<Lie>, after: Option<u64>) {
        let mut state = self.state();
        state.after = after.unwrap_or(state.after);
        (state.lies, state.honest) = (lies, HashMap::new());
    }

    /// What it tells.
    pub fn lies(&self) -> Vec<Lie> {
        self.state().lies.clone()
    }

    /// True when `lie` is one of ours.
    pub fn tells(&self, lie: Lie) -> bool {
        self.state().lies.contains(&lie)
    }

    /// True when `holder` has had its honest frames.
    pub fn is_armed(&self, holder: &Bytes32) -> bool {
        let state = self.state();
        !state.lies.is_empty() && state.honest.get(holder).copied().unwrap_or(0) >= state.after
    }

    /// Counts a frame that `holder` was served.
    pub fn count(&self, holder: &Bytes32) {
        let mut state = self.state();
        if !state.lies.is_empty() {
            let served = state.honest.entry(*holder).or_default();
            *served = served.saturating_add(1);
        }
    }
}
