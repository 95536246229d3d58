//! `StandardGroup` and `DeadLetters` subscriptions (§13.1).
//!
//! The updates of a group have no subscription in them, so a session is sent each once, whichever of its subscriptions
//! follow the group: they share one cursor. A lease's delivery stands for its update.

use std::collections::HashMap;
use std::sync::Arc;

use remuda_wire::frame::ServerMessage;
use remuda_wire::Bytes32;

use super::{Owed, Window};
use crate::groups::{Attempt, Consumer, GroupId, Groups};
use crate::outbox::Outbox;

/// Which update of each group a session is sent next.
pub type GroupCursors = HashMap<GroupId, u64>;

/// What is read of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// Records under leases.
    Leases,
    /// What died, from this update on, of records above a sequence.
    DeadLetters { next_update: u64, above: Option<u64> },
}

/// A subscription that follows a group.
#[derive(Debug)]
pub struct Group {
    groups: Arc<Groups>,
    group: GroupId,
    holder: Bytes32,
    max_in_flight: u32,
    /// How many updates there were when it was opened: what opening it owes (§13.2).
    follow_ons: u64,
    reads: Reads,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    Update,
    Leased { bytes: u64 },
    DeadLetter { at: u64, bytes: u64 },
}

impl Group {
    /// Leased deliveries to this holder key id.
    pub const fn leases(
        groups: Arc<Groups>,
        group: GroupId,
        follow_ons: u64,
        holder: Bytes32,
        max_in_flight: u32,
    ) -> Self {
        Self { groups, group, holder, max_in_flight, follow_ons, reads: Reads::Leases }
    }

    /// The dead letters of records above a sequence.
    pub const fn dead_letters(groups: Arc<Groups>, group: GroupId, follow_ons: u64, above: Option<u64>) -> Self {
        let reads = Reads::DeadLetters { next_update: 0, above };
        Self { groups, group, holder: Bytes32::ZERO, max_in_flight: 0, follow_ons, reads }
    }

    /// The group.
    pub const fn group(&self) -> &GroupId {
        &self.group
    }

    /// True while updates that opening it owes are still to be sent.
    pub fn has_follow_ons(&self, cursors: &GroupCursors) -> bool {
        cursors.get(&self.group).copied().unwrap_or(0) < self.follow_ons
    }

    pub(super) fn owed(
        &mut self,
        id: &Bytes32,
        window: Window,
        cursors: &GroupCursors,
        outbox: &Outbox,
    ) -> anyhow::Result<Option<Owed>> {
        let owed = |message, then| Ok(Some(Owed { message, then: super::Then::Group(then) }));
        loop {
            let cursor = cursors.get(&self.group).copied().unwrap_or(0);
            if let Some(update) = self.groups.update(&self.group, cursor)? {
                return owed(update, Then::Update);
            }
            match &mut self.reads {
                Reads::Leases => {
                    let consumer = Consumer {
                        subscription_id: id,
                        holder: &self.holder,
                        max_in_flight: self.max_in_flight,
                        window,
                    };
                    match self.groups.lease(&self.group, cursor, &consumer, outbox)? {
                        Attempt::Moved => {}
                        Attempt::Leased(delivery) => {
                            let bytes = u64::try_from(delivery.payload.len())?;
                            return owed(ServerMessage::Delivery(*delivery), Then::Leased { bytes });
                        }
                        Attempt::Nothing => return Ok(None),
                    }
                }
                Reads::DeadLetters { next_update, above } => {
                    let Some((at, sequence)) = self.groups.dead_letter(&self.group, *next_update)? else {
                        return Ok(None);
                    };
                    let message = self.groups.dead_delivery(sequence, id)?;
                    let Some(message) = message.filter(|_| above.is_none_or(|above| sequence > above)) else {
                        *next_update = at.saturating_add(1);
                        continue;
                    };
                    let ServerMessage::Delivery(delivery) = &message else { return Ok(None) };
                    let bytes = u64::try_from(delivery.payload.len())?;
                    return if window.covers(bytes) { owed(message, Then::DeadLetter { at, bytes }) } else { Ok(None) };
                }
            }
        }
    }

    pub(super) fn sent(&mut self, then: Then, window: &mut Window, cursors: &mut GroupCursors) {
        match then {
            Then::Update => advance(cursors, &self.group),
            Then::Leased { bytes } => {
                window.spend(bytes);
                advance(cursors, &self.group);
            }
            Then::DeadLetter { at, bytes } => {
                window.spend(bytes);
                if let Reads::DeadLetters { next_update, .. } = &mut self.reads {
                    *next_update = at.saturating_add(1);
                }
            }
        }
    }
}

fn advance(cursors: &mut GroupCursors, group: &GroupId) {
    let cursor = cursors.entry(*group).or_default();
    *cursor = cursor.saturating_add(1);
}
