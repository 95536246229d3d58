//! Standard streams (§14.1): receipts in their chains, and the records between two places of them.

mod replay;
mod segment;

pub use replay::{NewLanes, StandardReplay, StandardReplayConfig, StandardState};
pub use segment::{ReceiptChainSegment, StandardSubscription};
