//! One group's receipt chain, update by update.

use remuda_wire::context::SigningContext;
use remuda_wire::group::{DeliveryResultState, DeliveryStateAction, DeliveryStateReceipt, GroupConfig, GroupStart};
use remuda_wire::preimage::{group_genesis, initial_delivery_cycle_id, lease_id, redrive_delivery_cycle_id, GroupKey};
use remuda_wire::verdict::{ProtocolViolation, VerifyError};
use remuda_wire::Bytes32;

use super::cycle::{outcome, Cycle, Phase};
use super::queue::Queue;
use super::segment::GroupSegment;
use crate::authentic::Verified;
use crate::sorted::SortedMap;

/// A group by its full name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupName {
    /// The chain.
    pub context: SigningContext,
    /// The stream.
    pub stream_id: Bytes32,
    /// The lane.
    pub lane_id: Bytes32,
    /// The group.
    pub group_id: Bytes32,
}

impl GroupName {
    const fn key(&self) -> GroupKey<'_> {
        GroupKey {
            context: &self.context,
            stream_id: &self.stream_id,
            lane_id: &self.lane_id,
            group_id: &self.group_id,
        }
    }
}

/// What an update did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It is the new tail.
    Advanced,
    /// Its receipt is the tail already: a response and a frame may carry the same one.
    Repeated,
}

/// Whether the group exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Existence {
    Absent,
    Alive,
    Deleted,
}

/// A group's chain and everything known of its cycles.
#[derive(Clone, Debug)]
pub struct GroupChain {
    name: GroupName,
    tail: Bytes32,
    updates: usize,
    /// Behind which receipt the open segment begins; `None` at the genesis.
    segment_after: Option<Bytes32>,
    existence: Existence,
    start: Option<GroupStart>,
    config_digest: Option<Bytes32>,
    /// After a cursor: a cycle never seen may already have a history.
    after_cursor: bool,
    cycles: SortedMap<Bytes32, Cycle>,
    terminal: usize,
    queue: Queue,
}

/// A judged update that is not applied yet.
#[derive(Debug)]
pub(super) struct Step {
    receipt: Bytes32,
    change: Change,
}

#[derive(Debug)]
enum Change {
    Repeat,
    Group { existence: Existence, start: Option<GroupStart>, config_digest: Bytes32 },
    Cycle { cycle_id: Bytes32, cycle: Cycle, taken: Option<Taken>, successor: Option<(Bytes32, Cycle)> },
}

/// A queue position that an update takes.
#[derive(Clone, Copy, Debug)]
struct Taken {
    position: u64,
    /// The record's sequence when the cycle is its initial one.
    initial_of: Option<u64>,
}

impl GroupChain {
    /// Follows a group from its genesis, or after a receipt that is already known.
    pub fn new(name: GroupName, after_group_receipt: Option<Bytes32>) -> Self {
        let existence = if after_group_receipt.is_some() { Existence::Alive } else { Existence::Absent };
        Self {
            tail: after_group_receipt.unwrap_or_else(|| group_genesis(&name.key())),
            name,
            updates: 0,
            segment_after: after_group_receipt,
            existence,
            start: None,
            config_digest: None,
            after_cursor: after_group_receipt.is_some(),
            cycles: SortedMap::new(),
            terminal: 0,
            queue: Queue::default(),
        }
    }

    /// The group.
    pub const fn name(&self) -> &GroupName {
        &self.name
    }

    /// The last receipt.
    pub const fn tail(&self) -> Bytes32 {
        self.tail
    }

    /// The last receipt as a cursor; `None` at the genesis.
    pub fn cursor(&self) -> Option<Bytes32> {
        (self.after_cursor || self.updates > 0).then_some(self.tail)
    }

    /// Behind which receipt the segment begins that [`GroupChain::take_segment`] would give.
    pub const fn segment_after(&self) -> Option<Bytes32> {
        self.segment_after
    }

    /// Every receipt since the last segment; `None` when there is none.
    pub fn take_segment(&mut self) -> Option<GroupSegment> {
        if self.cursor() == self.segment_after {
            return None;
        }
        let after = self.segment_after.replace(self.tail);
        Some(GroupSegment { after, receipt: self.tail })
    }

    /// Begins the open segment further back, behind a receipt that ended an earlier one: what followed it did not become durable.
    pub const fn reopen_segment(&mut self, after: Option<Bytes32>) {
        self.segment_after = after;
    }

    /// Forgets every cycle, as after a cursor: they are taken as they come, and the chain goes on.
    pub fn forget_cycles(&mut self) {
        (self.cycles, self.terminal, self.queue) = (SortedMap::new(), 0, Queue::default());
        self.after_cursor = true;
    }

    /// How many receipts were applied, repeats not counted.
    pub const fn updates(&self) -> usize {
        self.updates
    }

    /// The state that the last group mutation committed.
    pub const fn config_digest(&self) -> Option<Bytes32> {
        self.config_digest
    }

    /// How many cycles are known, successors included.
    pub fn cycles(&self) -> usize {
        self.cycles.len()
    }

    /// How many of them are terminal.
    pub const fn terminal(&self) -> usize {
        self.terminal
    }

    /// Whether a receipt is of this group.
    ///
    /// # Errors
    /// [`ProtocolViolation::UnknownGroup`].
    pub fn admit(&self, receipt: &DeliveryStateReceipt) -> Result<(), ProtocolViolation> {
        if (receipt.lane_id, receipt.group_id) == (self.name.lane_id, self.name.group_id) {
            Ok(())
        } else {
            Err(ProtocolViolation::UnknownGroup)
        }
    }

    /// Takes a mutation of the group itself.
    ///
    /// # Errors
    /// [`VerifyError::GroupChain`], then [`VerifyError::GroupLifecycle`].
    pub fn apply_mutation(
        &mut self,
        receipt: &Verified<DeliveryStateReceipt>,
        config: Option<&GroupConfig>,
    ) -> Result<Applied, VerifyError> {
        let step = self.judge_mutation(receipt, config)?;
        Ok(self.commit(step))
    }

    /// Takes a mutation of one record's delivery.
    ///
    /// # Errors
    /// In this order: [`VerifyError::GroupChain`], [`VerifyError::GroupLifecycle`], [`VerifyError::DerivedId`],
    /// [`VerifyError::QueueSequence`], [`VerifyError::DeliveryLifecycle`].
    pub fn apply_record(
        &mut self,
        receipt: &Verified<DeliveryStateReceipt>,
        state: &DeliveryResultState,
    ) -> Result<Applied, VerifyError> {
        let step = self.judge_record(receipt, state)?;
        Ok(self.commit(step))
    }

    fn is_repeat(&self, receipt: &Verified<DeliveryStateReceipt>) -> Result<bool, VerifyError> {
        if receipt.digest() == self.tail {
            return Ok(true);
        }
        if receipt.previous_group_receipt == self.tail {
            Ok(false)
        } else {
            Err(VerifyError::GroupChain)
        }
    }

    fn judge_mutation(
        &self,
        receipt: &Verified<DeliveryStateReceipt>,
        config: Option<&GroupConfig>,
    ) -> Result<Step, VerifyError> {
        let digest = receipt.digest();
        if self.is_repeat(receipt)? {
            return Ok(Step { receipt: digest, change: Change::Repeat });
        }
        let existence = match (self.existence, receipt.action) {
            (Existence::Absent, DeliveryStateAction::GroupCreate)
            | (Existence::Alive, DeliveryStateAction::GroupUpdate) => Existence::Alive,
            (Existence::Alive, DeliveryStateAction::GroupDelete) => Existence::Deleted,
            _ => return Err(VerifyError::GroupLifecycle),
        };
        let start = match (&self.start, config.map(|config| &config.start)) {
            (Some(known), Some(now)) if known != now => return Err(VerifyError::GroupLifecycle),
            (known, now) => now.or(known.as_ref()).cloned(),
        };
        let config_digest = receipt.resulting_state_digest;
        Ok(Step { receipt: digest, change: Change::Group { existence, start, config_digest } })
    }

    pub(super) fn judge_record(
        &self,
        receipt: &Verified<DeliveryStateReceipt>,
        state: &DeliveryResultState,
    ) -> Result<Step, VerifyError> {
        let digest = receipt.digest();
        if self.is_repeat(receipt)? {
            return Ok(Step { receipt: digest, change: Change::Repeat });
        }
        if self.existence != Existence::Alive {
            return Err(VerifyError::GroupLifecycle);
        }
        let known = self.cycles.get(&state.delivery_cycle_id);
        let is_initial = self.check_ids(known, state, receipt)?;
        let initial_of = is_initial.then_some(state.record_id.sequence);
        let (queue_sequence, taken) = self.check_position(known, state, initial_of)?;
        let phase = match known {
            Some(cycle) => cycle.phase.after(state)?,
            None if self.after_cursor => outcome(state)?,
            None => Phase::Waiting { attempts: 0 }.after(state)?,
        };
        let successor = state.successor_cycle_id.map(|successor_id| {
            let phase = Phase::Waiting { attempts: 0 };
            let queue_sequence = Some(state.group_queue_sequence);
            (successor_id, Cycle { record_id: state.record_id, queue_sequence, phase })
        });
        let cycle = Cycle { record_id: state.record_id, queue_sequence, phase };
        let change = Change::Cycle { cycle_id: state.delivery_cycle_id, cycle, taken, successor };
        Ok(Step { receipt: digest, change })
    }

    /// Every identifier that can be derived is. Answers whether the cycle is seen for the first time and is its record's
    /// initial one; after a cursor it may be a successor whose redrive was never seen.
    fn check_ids(
        &self,
        known: Option<&Cycle>,
        state: &DeliveryResultState,
        receipt: &DeliveryStateReceipt,
    ) -> Result<bool, VerifyError> {
        let (key, record_id, cycle_id) = (self.name.key(), &state.record_id, &state.delivery_cycle_id);
        let is_initial = known.is_none() && *cycle_id == initial_delivery_cycle_id(&key, record_id);
        let cycle_derives = known.map_or(is_initial || self.after_cursor, |cycle| cycle.record_id == *record_id);
        let lease_derives = match (state.lease_id, state.holder_signing_key_id) {
            (Some(named), Some(holder)) => named == lease_id(&key, record_id, cycle_id, state.attempt, &holder),
            _ => true,
        };
        let successor_derives = state.successor_cycle_id.is_none_or(|successor| {
            successor == redrive_delivery_cycle_id(&key, record_id, cycle_id, &receipt.previous_group_receipt)
        });
        if cycle_derives && lease_derives && successor_derives {
            Ok(is_initial)
        } else {
            Err(VerifyError::DerivedId)
        }
    }

    /// The cycle's own position, and the one that this update takes: of a redrive it is the successor's.
    fn check_position(
        &self,
        known: Option<&Cycle>,
        state: &DeliveryResultState,
        initial_of: Option<u64>,
    ) -> Result<(Option<u64>, Option<Taken>), VerifyError> {
        let named = state.group_queue_sequence;
        if state.successor_cycle_id.is_some() {
            self.queue.check_tail(named)?;
            return Ok((
                known.and_then(|cycle| cycle.queue_sequence),
                Some(Taken { position: named, initial_of: None }),
            ));
        }
        match (known.and_then(|cycle| cycle.queue_sequence), initial_of) {
            (Some(position), _) if position == named => return Ok((Some(named), None)),
            (Some(_), _) => return Err(VerifyError::QueueSequence),
            (None, Some(record_sequence)) => self.queue.check_initial(record_sequence, named)?,
            (None, None) => self.queue.check_free(named)?,
        }
        Ok((Some(named), Some(Taken { position: named, initial_of })))
    }

    pub(super) fn commit(&mut self, step: Step) -> Applied {
        match step.change {
            Change::Repeat => return Applied::Repeated,
            Change::Group { existence, start, config_digest } => {
                self.existence = existence;
                self.start = start;
                self.config_digest = Some(config_digest);
            }
            Change::Cycle { cycle_id, cycle, taken, successor } => {
                if let Some(Taken { position, initial_of }) = taken {
                    self.queue.take(position, initial_of);
                }
                let is_terminal = cycle.phase.is_terminal();
                let before = self.cycles.insert(cycle_id, cycle);
                if is_terminal && !before.is_some_and(|before| before.phase.is_terminal()) {
                    self.terminal += 1;
                }
                if let Some((successor_id, successor)) = successor {
                    self.cycles.insert(successor_id, successor);
                }
            }
        }
        self.tail = step.receipt;
        self.updates += 1;
        Applied::Advanced
    }
}
