//! A `StandardReplay` subscription: the records of its scope in order, each with its receipt.

use std::sync::Arc;

use remuda_wire::frame::ServerMessage;
use remuda_wire::scope::LaneScope;
use remuda_wire::Bytes32;

use super::{Owed, Window};
use crate::log::{cursor_too_old, Log};

/// Where a replay stands.
#[derive(Debug)]
pub struct Replay {
    log: Arc<Log>,
    scope: LaneScope,
    next_sequence: u64,
    /// A lie that is told once.
    has_withheld: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Then {
    sequence: u64,
    bytes: u64,
}

impl Replay {
    /// The records of `scope` from `next_sequence` on.
    pub const fn new(log: Arc<Log>, scope: LaneScope, next_sequence: u64) -> Self {
        Self { log, scope, next_sequence, has_withheld: false }
    }

    pub(super) fn owed(&mut self, id: &Bytes32, window: Window, withhold: bool) -> anyhow::Result<Option<Owed>> {
        if let Some(anchor) = self.log.floor_above(&self.scope, self.next_sequence)? {
            // Retention overtook a reader that took nothing for so long.
            let message = cursor_too_old(&anchor).ending(*id).unasked();
            return Ok(Some(Owed { message, then: super::Then::End }));
        }
        let Some((sequence, record)) = self.log.next_in(&self.scope, self.next_sequence)? else { return Ok(None) };
        if withhold && !self.has_withheld {
            (self.has_withheld, self.next_sequence) = (true, sequence.saturating_add(1));
            return self.owed(id, window, withhold);
        }
        let bytes = u64::try_from(record.payload.len())?;
        if !window.covers(bytes) {
            return Ok(None);
        }
        let message = ServerMessage::Delivery(record.delivery(*id));
        Ok(Some(Owed { message, then: super::Then::Replay(Then { sequence, bytes }) }))
    }

    pub(super) const fn sent(&mut self, then: Then, window: &mut Window) {
        window.spend(then.bytes);
        self.next_sequence = then.sequence.saturating_add(1);
    }
}
