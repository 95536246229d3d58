//! Verified fast subscriptions (§12.1, §12.2, §12.2.1).
//!
//! ```text
//!  record ──▶ OpenBatch ──checkpoint──▶ VerifiedBatch      records of one lineage, ascending, then their checkpoint
//!                 │
//!           transition: only while nothing waits            predecessor batches, transition, new lineage from zero
//! ```
//! A refusal changes nothing: the state after it is the state before it.

mod batch;
mod state;
mod subscription;
mod transition;

pub use batch::{Assurance, VerifiedBatch};
pub use state::FastState;
pub use subscription::{FastSubscription, FastSubscriptionConfig, Verification};
pub use transition::AdoptedTransition;
