//! When a fixed target is reached (STR-013, STR-043).

use alloc::vec::Vec;

use remuda_streaming::{SequenceId, Target, Topic, TopicKind};

use super::place::{Processed, Received};
use super::processing::progress;
use super::store::TopicStore;
use super::welcome::unresolved;
use crate::store::StoreError;

/// What a topic owes its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obligation {
    /// Nothing any more.
    Complete,
    /// Something, and what is there of it.
    Unfinished {
        /// H.
        target: Target,
        /// F.
        received: Received,
        /// P of a group or identity.
        processed: Option<Processed>,
        /// Welcomes at or below H that are not resolved.
        unresolved: Vec<SequenceId>,
    },
}

/// Measures one topic: P has reached H; or F has, and no welcome at or below H is unresolved; or the group was left, which
/// completes what its removal position can (STR-086). Receipt alone completes nothing that is processed.
///
/// # Errors
/// [`StoreError`].
pub async fn measure(store: &impl TopicStore, topic: &Topic, target: Target) -> Result<Obligation, StoreError> {
    let progress = progress(store, topic).await?;
    let open = match topic.kind() {
        TopicKind::Welcome => unresolved(store, topic, target.through()).await?,
        _ => Vec::new(),
    };
    let reached = match progress.processed {
        Some(processed) => target.is_reached_by(processed.sequence_id()) || progress.inactive,
        None => target.is_reached_by(progress.received.sequence_id()) && open.is_empty(),
    };
    if reached {
        return Ok(Obligation::Complete);
    }
    let (received, processed) = (progress.received, progress.processed);
    Ok(Obligation::Unfinished { target, received, processed, unresolved: open })
}
