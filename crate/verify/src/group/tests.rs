//! Honest groups of every kind of life are never accused, from genesis and from any cursor.

use alloc::vec::Vec;

use ed25519_dalek::{Signer, SigningKey};
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::group::{
    DeliveryResultState, DeliveryStateAction, DeliveryStateReceipt, GroupConfig, GroupMode, GroupStart,
};
use remuda_wire::preimage::{group_genesis, initial_delivery_cycle_id, lease_id, redrive_delivery_cycle_id, GroupKey};
use remuda_wire::record::StandardRecordId;
use remuda_wire::verdict::VerifyError;
use remuda_wire::{Bytes32, ProviderEpoch, Signature, Signed, VersionOne};

use super::{Applied, GroupChain, GroupName};
use crate::authentic::{Authority, OneKey, Verified};
use crate::signature::PublicKey;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap_or(0) % bound
    }
}

/// One link, as a frame would carry it.
#[derive(Clone)]
struct Link {
    receipt: Verified<DeliveryStateReceipt>,
    state: Option<DeliveryResultState>,
    config: Option<GroupConfig>,
}

impl Link {
    fn apply(&self, chain: &mut GroupChain) -> Result<Applied, VerifyError> {
        match &self.state {
            Some(state) => chain.apply_record(&self.receipt, state),
            None => chain.apply_mutation(&self.receipt, self.config.as_ref()),
        }
    }
}

struct Cycle {
    record_id: StandardRecordId,
    id: Bytes32,
    position: u64,
    attempts: u16,
    lease: Option<Bytes32>,
    expired: Option<Bytes32>,
    terminal: bool,
    redriven: bool,
}

/// A broker that keeps every rule, and does whatever it may at random.
struct Broker {
    name: GroupName,
    key: SigningKey,
    tail: Bytes32,
    cycles: Vec<Cycle>,
    next_position: u64,
    next_record: u64,
    links: Vec<Link>,
}

impl Broker {
    fn new() -> Self {
        let chain_instance_id = Bytes32([9; 32]);
        let context = SigningContext { version: VersionOne, chain_id: 7, chain_instance_id };
        let name =
            GroupName { context, stream_id: Bytes32([1; 32]), lane_id: Bytes32([2; 32]), group_id: Bytes32([3; 32]) };
        let tail = group_genesis(&group_key(&name));
        let key = SigningKey::from_bytes(&[5; 32]);
        Self { name, key, tail, cycles: Vec::new(), next_position: 1, next_record: 0, links: Vec::new() }
    }

    fn commit(&mut self, action: DeliveryStateAction, state: Option<DeliveryResultState>, config: Option<GroupConfig>) {
        let GroupName { context, stream_id, lane_id, group_id } = self.name.clone();
        let mut receipt = DeliveryStateReceipt {
            served_at: FinalizedView {
                chain_instance_id: context.chain_instance_id,
                height: 1,
                block_hash: Bytes32::ZERO,
            },
            context,
            stream_id,
            lane_id,
            group_id,
            provider_epoch: ProviderEpoch,
            action,
            record_id: state.as_ref().map(|state| state.record_id),
            lease_id: state.as_ref().and_then(|state| state.lease_id),
            resulting_state_digest: Bytes32([8; 32]),
            previous_group_receipt: self.tail,
            committed_at_ms: 1,
            signature: Signature([0; 64]),
        };
        receipt.signature = Signature(self.key.sign(&receipt.digest().0).to_bytes());
        let keys = OneKey(PublicKey::parse(&Bytes32(self.key.verifying_key().to_bytes())));
        let authority = Authority { context: &self.name.context, stream_id: &self.name.stream_id, keys: &keys };
        let receipt = authority.authenticate(receipt).expect("our own signature");
        self.tail = receipt.digest();
        self.links.push(Link { receipt, state, config });
    }

    fn config(&self) -> GroupConfig {
        GroupConfig {
            group_id: self.name.group_id,
            lane_id: self.name.lane_id,
            mode: GroupMode::Concurrent,
            start: GroupStart::Head,
            visibility_timeout_ms: 1,
            max_visibility_ms: 1,
            max_in_flight: 1,
            max_attempts: 1,
            record_deadline_ms: 1,
            dead_letter_ttl_ms: 0,
            retention_pin_until_ms: 0,
        }
    }

    fn state(&self, at: usize, action: DeliveryStateAction, lease: Option<Bytes32>) -> DeliveryResultState {
        let cycle = &self.cycles[at];
        DeliveryResultState {
            action,
            stream_id: self.name.stream_id,
            lane_id: self.name.lane_id,
            group_id: self.name.group_id,
            record_id: cycle.record_id,
            delivery_cycle_id: cycle.id,
            lease_id: lease,
            attempt: if lease.is_some() { cycle.attempts } else { 0 },
            holder_signing_key_id: None,
            available_at_ms: None,
            issued_at_ms: None,
            lease_expires_at_ms: None,
            terminal_at_ms: None,
            terminal_expires_at_ms: None,
            reason_hash: None,
            successor_cycle_id: None,
            group_queue_sequence: cycle.position,
        }
    }

    /// Records enter the queue in order; who is served first is anyone's guess.
    fn enqueue(&mut self) {
        let record_id = StandardRecordId { provider_epoch: ProviderEpoch, sequence: self.next_record };
        let id = initial_delivery_cycle_id(&group_key(&self.name), &record_id);
        self.push(record_id, id);
        self.next_record += 3;
    }

    fn push(&mut self, record_id: StandardRecordId, id: Bytes32) {
        let position = self.next_position;
        self.next_position += 1;
        let (lease, expired) = (None, None);
        self.cycles.push(Cycle {
            record_id,
            id,
            position,
            attempts: 0,
            lease,
            expired,
            terminal: false,
            redriven: false,
        });
    }

    fn act(&mut self, random: &mut Random) {
        use DeliveryStateAction as Action;
        let at = random.below(self.cycles.len());
        let (lease, expired) = (self.cycles[at].lease, self.cycles[at].expired);
        if self.cycles[at].terminal {
            if !self.cycles[at].redriven {
                let mut state = self.state(at, Action::Redrive, None);
                let id = redrive_delivery_cycle_id(
                    &group_key(&self.name),
                    &state.record_id,
                    &state.delivery_cycle_id,
                    &self.tail,
                );
                (state.successor_cycle_id, state.group_queue_sequence) = (Some(id), self.next_position);
                self.cycles[at].redriven = true;
                self.push(state.record_id, id);
                self.commit(Action::Redrive, Some(state), None);
            }
            return;
        }
        let (action, named) = match (lease, expired, random.below(8)) {
            (Some(lease), _, 0) => (Action::Ack, Some(lease)),
            (Some(lease), _, 1 | 2) => (Action::Nack, Some(lease)),
            (Some(lease), _, 3) => (Action::Extend, Some(lease)),
            (Some(lease), _, 4) => (Action::Reject, Some(lease)),
            (Some(lease), _, 5) => (Action::LeaseExpire, Some(lease)),
            (Some(lease), _, 6) => (Action::AttemptsExhaust, Some(lease)),
            (Some(lease), _, _) => (Action::RecordExpire, Some(lease)),
            (None, Some(expired), 0) => (Action::AttemptsExhaust, Some(expired)),
            (None, _, 1) => (Action::RecordExpire, None),
            (None, _, _) => {
                let holder = Bytes32([u8::try_from(random.below(3)).unwrap_or(0) + 1; 32]);
                self.cycles[at].attempts += 1;
                let cycle = &self.cycles[at];
                let id = lease_id(&group_key(&self.name), &cycle.record_id, &cycle.id, cycle.attempts, &holder);
                let mut state = self.state(at, Action::LeaseIssue, Some(id));
                state.holder_signing_key_id = Some(holder);
                (self.cycles[at].lease, self.cycles[at].expired) = (Some(id), None);
                return self.commit(Action::LeaseIssue, Some(state), None);
            }
        };
        let mut state = self.state(at, action, named);
        let retries = action == Action::Nack && random.below(2) == 0;
        let cycle = &mut self.cycles[at];
        match action {
            Action::Extend => {}
            Action::LeaseExpire => (cycle.lease, cycle.expired) = (None, named),
            Action::Nack if retries => cycle.lease = None,
            _ => {
                cycle.terminal = true;
                state.terminal_at_ms = Some(1);
            }
        }
        self.commit(action, Some(state), None);
    }

    fn live(random: &mut Random, steps: usize) -> Self {
        let mut broker = Self::new();
        broker.commit(DeliveryStateAction::GroupCreate, None, Some(broker.config()));
        broker.enqueue();
        for _ in 0..steps {
            match random.below(6) {
                0 => broker.enqueue(),
                1 if random.below(4) == 0 => {
                    broker.commit(DeliveryStateAction::GroupUpdate, None, Some(broker.config()))
                }
                _ => broker.act(random),
            }
        }
        broker.commit(DeliveryStateAction::GroupDelete, None, None);
        broker
    }
}

const fn group_key(name: &GroupName) -> GroupKey<'_> {
    GroupKey { context: &name.context, stream_id: &name.stream_id, lane_id: &name.lane_id, group_id: &name.group_id }
}

#[test]
fn an_honest_group_is_never_accused_wherever_one_starts() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for _ in 0..60 {
        let broker = Broker::live(&mut random, 60);
        for start in [0, 1, random.below(broker.links.len()), random.below(broker.links.len())] {
            let after = start.checked_sub(1).map(|last| broker.links[last].receipt.digest());
            let mut chain = GroupChain::new(broker.name.clone(), after);
            for link in &broker.links[start..] {
                assert_eq!(link.apply(&mut chain), Ok(Applied::Advanced));
                assert_eq!(link.apply(&mut chain), Ok(Applied::Repeated));
            }
            assert_eq!((chain.tail(), chain.updates()), (broker.tail, broker.links.len() - start));
        }
    }
}

#[test]
fn a_withheld_or_reordered_link_is_noticed_and_changes_nothing() {
    let mut random = Random(77);
    let broker = Broker::live(&mut random, 40);
    for missing in 0..broker.links.len() - 1 {
        let mut chain = GroupChain::new(broker.name.clone(), None);
        for link in &broker.links[..missing] {
            link.apply(&mut chain).expect("honest so far");
        }
        let before = (chain.tail(), chain.updates(), chain.cycles(), chain.terminal());
        assert_eq!(broker.links[missing + 1].apply(&mut chain), Err(VerifyError::GroupChain));
        assert_eq!((chain.tail(), chain.updates(), chain.cycles(), chain.terminal()), before);
    }
}
