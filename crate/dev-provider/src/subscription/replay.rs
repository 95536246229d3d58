//! A `StandardReplay` subscription: the records of its scope in order, each with its receipt.

use std::sync::Arc;

use remuda_wire::frame::ServerMessage;
use remuda_wire::scope::LaneScope;
use remuda_wire::Bytes32;

use super::{Owed, Window};
use crate::log::Log;

/// Where a replay stands.
#[derive(Debug)]
pub struct Replay {
    log: Arc<Log>,
    scope: LaneScope,
    next_sequence: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Then {
    sequence: u64,
    bytes: u64,
}

impl Replay {
    /// The records of `scope` from `next_sequence` on.
    pub const fn new(log: Arc<Log>, scope: LaneScope, next_sequence: u64) -> Self {
        Self { log, scope, next_sequence }
    }

    pub(super) fn owed(&self, id: &Bytes32, window: Window) -> anyhow::Result<Option<Owed>> {
        let Some((sequence, record)) = self.log.next_in(&self.scope, self.next_sequence)? else { return Ok(None) };
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
