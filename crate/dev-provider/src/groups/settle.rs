//! What a consumer says of its lease, and bringing back what is over (§11.2, §13.1).

use redb::WriteTransaction;
use remuda_verify::group_config::mutable_part;
use remuda_wire::frame::ServerMessage;
use remuda_wire::group::{DeliveryLeaseRef, DeliveryStateAction, DeliveryStateUpdate};
use remuda_wire::preimage::redrive_delivery_cycle_id;
use remuda_wire::request::RedriveRequest;
use remuda_wire::Bytes32;

use super::rows::{CycleRow, End, Ended, GroupId, GroupRow, Leased, Phase, Settled, Waiting};
use super::Groups;
use crate::refusal::{Code, Refusal};

/// What is said of a lease.
#[derive(Clone, Copy, Debug)]
pub enum Settlement {
    /// Done.
    Ack,
    /// Not now.
    Nack {
        /// Not before so long from now.
        retry_after_ms: u64,
    },
    /// Still at it.
    Extend {
        /// For so long from now.
        extend_by_ms: u64,
    },
    /// Never.
    Reject {
        /// The application's reason.
        reason_hash: Bytes32,
    },
}

impl Settlement {
    const fn action(&self) -> DeliveryStateAction {
        match self {
            Self::Ack => DeliveryStateAction::Ack,
            Self::Nack { .. } => DeliveryStateAction::Nack,
            Self::Extend { .. } => DeliveryStateAction::Extend,
            Self::Reject { .. } => DeliveryStateAction::Reject,
        }
    }
}

type Decided = anyhow::Result<Result<DeliveryStateUpdate, Refusal>>;

impl Groups {
    /// Settles a lease of `holder`. What ends a lease and is said again is answered as before.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3918, 3919, 3920.
    pub fn settle(&self, reference: &DeliveryLeaseRef, holder: &Bytes32, settlement: Settlement) -> Decided {
        let group = GroupId { lane_id: reference.lane_id, group_id: reference.group_id };
        let mut refused = None;
        let settled = self.log.store.write(|transaction| {
            let mut row = match self.live_row_in(transaction, &group)? {
                Ok(row) => row,
                Err(refusal) => return Ok(Err(refusal)),
            };
            self.sweep_in(transaction, &group, &mut row)?;
            let Some((queue, mut cycle)) = Self::cycle_in(transaction, &group, &reference.delivery_cycle_id)? else {
                return Ok(Err(stale()));
            };
            let same = |settled: &Settled| {
                settled.lease_id == reference.lease_id && settled.action == settlement.action().tag()
            };
            if let Some(settled) = cycle.settled.as_ref().filter(|settled| same(settled)) {
                return repeated(transaction, &group, settled.index);
            }
            let lease = match &cycle.phase {
                Phase::Leased(lease) if is_held(lease, &cycle, reference, holder) => lease.clone(),
                Phase::Ended(_) => {
                    return Ok(Err(Refusal::new(Code::DeliveryTerminal, "this delivery cycle is over")));
                }
                Phase::Leased(_) | Phase::Waiting(_) => return Ok(Err(stale())),
            };
            let update = self.apply_in(transaction, &group, &mut row, (queue, &mut cycle), &lease, settlement)?;
            self.refresh_in(transaction, &group, &mut row)?;
            Ok(Ok(update))
        })?;
        if let Err(refusal) = &settled {
            refused = Some(refusal.code);
        }
        // Whatever ran out was receipted, even when the request was refused.
        if refused != Some(Code::GroupNotFound) {
            self.log.signal.raise();
        }
        Ok(settled)
    }

    fn apply_in(
        &self,
        transaction: &WriteTransaction,
        group: &GroupId,
        row: &mut GroupRow,
        (queue, cycle): (u64, &mut CycleRow),
        lease: &Leased,
        settlement: Settlement,
    ) -> anyhow::Result<DeliveryStateUpdate> {
        let now = self.log.chain.now_ms();
        let terms = cycle.terms.clone();
        let dead = |expires_at_ms| Phase::Ended(Ended { end: End::DeadLettered, expires_at_ms, redriven: None });
        let dead_until = now.saturating_add(terms.dead_letter_ttl_ms);
        let mut state = self.state_of(group, queue, cycle, settlement.action());
        (state.lease_id, state.attempt) = (Some(lease.lease_id), cycle.attempts);
        match settlement {
            Settlement::Ack => {
                state.terminal_at_ms = Some(now);
                cycle.phase = Phase::Ended(Ended { end: End::Acked, expires_at_ms: now, redriven: None });
            }
            Settlement::Nack { .. } if cycle.attempts >= terms.max_attempts => {
                (state.terminal_at_ms, state.terminal_expires_at_ms) = (Some(now), Some(dead_until));
                cycle.phase = dead(dead_until);
            }
            Settlement::Nack { retry_after_ms } => {
                let available_at_ms = now.saturating_add(retry_after_ms.min(terms.max_visibility_ms));
                state.available_at_ms = Some(available_at_ms);
                cycle.phase = Phase::Waiting(Waiting { available_at_ms });
            }
            Settlement::Extend { extend_by_ms } => {
                let longest = lease.issued_at_ms.saturating_add(terms.max_visibility_ms);
                let expires_at_ms = now.saturating_add(extend_by_ms).min(longest).max(lease.expires_at_ms);
                state.holder_signing_key_id = Some(lease.holder);
                (state.issued_at_ms, state.lease_expires_at_ms) = (Some(lease.issued_at_ms), Some(expires_at_ms));
                cycle.phase = Phase::Leased(Leased { expires_at_ms, ..lease.clone() });
            }
            Settlement::Reject { reason_hash } => {
                (state.terminal_at_ms, state.terminal_expires_at_ms) = (Some(now), Some(dead_until));
                state.reason_hash = Some(reason_hash);
                cycle.phase = dead(dead_until);
            }
        }
        let ends = !matches!(cycle.phase, Phase::Leased(_));
        if ends {
            Self::release_lease_in(transaction, row, &lease.holder)?;
            // Where the update will be.
            let (lease_id, action, index) = (lease.lease_id, settlement.action().tag(), row.updates);
            cycle.settled = Some(Settled { lease_id, action, index });
        }
        Ok(self.change_in(transaction, group, row, (queue, cycle), state)?.1)
    }

    /// Makes the one successor of a cycle that is over, at the group's tail.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3918, 3919, 3920 for one that can no longer be brought back.
    pub fn redrive(&self, body: &RedriveRequest) -> Decided {
        let group = GroupId { lane_id: body.lane_id, group_id: body.group_id };
        let redriven = self.log.store.decide(|transaction| {
            let mut row = match self.live_row_in(transaction, &group)? {
                Ok(row) => row,
                Err(refusal) => return Ok(Err(refusal)),
            };
            self.sweep_in(transaction, &group, &mut row)?;
            let found = Self::cycle_in(transaction, &group, &body.terminal_cycle_id)?;
            let found = found.filter(|(_, cycle)| cycle.record_sequence == body.record_id.sequence);
            let Some((queue, mut cycle)) = found else { return Ok(Err(stale())) };
            let Phase::Ended(ended) = &mut cycle.phase else { return Ok(Err(stale())) };
            if let Some(index) = ended.redriven {
                return repeated(transaction, &group, index);
            }
            let now = self.log.chain.now_ms();
            if ended.end == End::DeadLettered && now > ended.expires_at_ms {
                return Ok(Err(Refusal::new(Code::DeliveryTerminal, "this dead letter is no longer kept")));
            }
            ended.redriven = Some(row.updates);
            let successor_id =
                redrive_delivery_cycle_id(&self.key(&group), &body.record_id, &cycle.cycle_id, &row.tail);
            let position = row.next_queue;
            row.next_queue = position.saturating_add(1);
            let terms = mutable_part(&row.config);
            let successor = CycleRow {
                record_sequence: cycle.record_sequence,
                cycle_id: successor_id,
                attempts: 0,
                deadline_ms: now.saturating_add(terms.record_deadline_ms),
                terms,
                phase: Phase::Waiting(Waiting { available_at_ms: now }),
                settled: None,
            };
            Self::put_cycle_in(transaction, &group, position, &successor)?;
            let mut state = self.state_of(&group, position, &cycle, DeliveryStateAction::Redrive);
            (state.available_at_ms, state.successor_cycle_id) = (Some(now), Some(successor_id));
            let (_, update) = self.change_in(transaction, &group, &mut row, (queue, &cycle), state)?;
            self.refresh_in(transaction, &group, &mut row)?;
            Ok(Ok(update))
        })?;
        if redriven.is_ok() {
            self.log.signal.raise();
        }
        Ok(redriven)
    }
}

fn repeated(transaction: &WriteTransaction, group: &GroupId, index: u64) -> Decided {
    match Groups::update_in(transaction, group, index)? {
        ServerMessage::DeliveryState(update) => Ok(Ok(update)),
        _ => anyhow::bail!("update {index} is of no record"),
    }
}

fn stale() -> Refusal {
    Refusal::new(Code::LeaseStale, "this lease is not live, or not of this holder")
}

fn is_held(lease: &Leased, cycle: &CycleRow, reference: &DeliveryLeaseRef, holder: &Bytes32) -> bool {
    lease.lease_id == reference.lease_id
        && lease.holder == *holder
        && cycle.record_sequence == reference.record_id.sequence
}
