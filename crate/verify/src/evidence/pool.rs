//! All authenticated objects of an audit, and for a new one whom it contradicts.
//!
//! The answer is that of comparing the new object with every earlier one; the work is a few look-ups. Every kind of
//! contradiction has an index whose lists hold only elements that some later object could still be the first to meet:
//! an object that an earlier one always beats is not listed. What can still grow with the history's own contradictions
//! are scans over views in conflict and over anchors of one key that are already out of order.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;

use remuda_wire::record::RecordId;
use remuda_wire::verdict::Contradiction;
use remuda_wire::Bytes32;

use super::claim::{Anchor, AnchorScope, Append, Body, Checkpoint, Claim, Evident, Group, KeyBatch, Transition};
use super::coverage::Coverage;
use super::stairs::Stairs;
use super::AuthenticatedObject;
use crate::authentic::Verified;

/// Numbers of entries by key, ascending. Keys are digests cut to eight bytes, small numbers, and mixtures of them: a list
/// may hold strangers, and whoever reads it compares the entries themselves. One type of key, since every type of map is
/// code of its own.
#[derive(Debug, Default)]
struct Index(BTreeSet<(u64, u32)>);

impl Index {
    fn list(&self, key: u64) -> impl Iterator<Item = u32> + '_ {
        self.0.range((key, 0)..=(key, u32::MAX)).map(|(_, number)| *number)
    }

    fn insert(&mut self, key: u64, number: u32) {
        self.0.insert((key, number));
    }
}

/// What is known of one lineage.
#[derive(Debug, Default)]
struct Lineage {
    checkpoints: Coverage,
    /// Checkpoints by how far they reach.
    reach: Stairs<u64>,
    /// Transitions out of it by how little they keep of it.
    kept: Stairs<Reverse<Option<u64>>>,
}

/// Anchors of one comparison key.
#[derive(Debug, Default)]
struct Anchors {
    /// By time, height and floor.
    ordered: BTreeMap<(u64, u64, u64), u32>,
    numbers: Vec<u32>,
    /// Some pair is out of order: the neighbours no longer speak for all.
    disordered: bool,
}

impl Anchors {
    /// True when heights and floors rise with time around this place, and so everywhere: nobody regresses.
    fn fits(&self, place: &(u64, u64, u64)) -> bool {
        let rises = |a: &(u64, u64, u64), b: &(u64, u64, u64)| a.1 <= b.1 && a.2 <= b.2;
        let before = self.ordered.range(..place).next_back().is_none_or(|(before, _)| rises(before, place));
        let after = self.ordered.range(place..).next().is_none_or(|(after, _)| rises(place, after));
        !self.disordered && before && after
    }
}

#[derive(Debug)]
struct Member {
    item: usize,
    claim: Claim,
}

/// The authenticated objects so far.
#[derive(Debug, Default)]
pub struct EvidencePool {
    entries: Vec<Member>,
    digests: Index,
    /// The first entry of every block, by height.
    blocks: Index,
    block_members: Index,
    records: Index,
    global_predecessors: Index,
    lane_predecessors: Index,
    group_predecessors: Index,
    key_predecessors: Index,
    key_ranges: BTreeMap<Bytes32, Coverage>,
    lineages: BTreeMap<u64, Lineage>,
    checkpoint_predecessors: Index,
    checkpoint_ends: Index,
    first_checkpoints: Index,
    transitions: Index,
    transition_ends: Index,
    transitions_into: Index,
    anchors: BTreeMap<AnchorScope, Anchors>,
    anchor_floors: Index,
    standard_floors: Index,
}

/// Earliest entry by code, ascending by entry.
#[derive(Default)]
struct Found(Vec<(Contradiction, u32)>);

impl Found {
    fn offer(&mut self, code: Contradiction, number: Option<u32>) {
        let Some(number) = number else { return };
        if self.0.iter().any(|(known, earliest)| *known == code && *earliest <= number) {
            return;
        }
        self.0.retain(|(known, _)| *known != code);
        let after = self.0.iter().take_while(|(_, earlier)| *earlier <= number).count();
        self.0.insert(after, (code, number));
    }
}

fn cut(digest: &Bytes32) -> u64 {
    digest.0.first_chunk().map_or(0, |chunk| u64::from_be_bytes(*chunk))
}

/// One key of two.
const fn mix(a: u64, b: u64) -> u64 {
    a.rotate_left(31).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b
}

/// Zero and absent share a key.
fn optional(number: Option<u64>) -> u64 {
    number.unwrap_or(0)
}

fn scope_key(scope: &AnchorScope) -> u64 {
    match scope {
        AnchorScope::Standard(lane_id) => lane_id.as_ref().map_or(1, cut),
        AnchorScope::Group(lane_id, group_id) => mix(cut(lane_id), cut(group_id)),
        AnchorScope::Fast(epoch) => *epoch,
    }
}

/// Spreads both delivery classes and all lineages over one number.
const fn record_key(id: &RecordId) -> u64 {
    match id {
        RecordId::Standard(id) => id.sequence.rotate_left(1),
        RecordId::Fast(id) => id.sequence.rotate_left(1) ^ (!id.broker_epoch).rotate_right(17),
    }
}

impl EvidencePool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many distinct objects are here.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True before the first object.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an object of an item, unless its digest is here already. Answers for each code the earliest item whose
    /// object it contradicts, in the order of those items.
    pub fn insert(&mut self, item: usize, object: &AuthenticatedObject) -> Vec<(Contradiction, usize)> {
        self.insert_claim(item, object.claim())
    }

    /// Adds an object whose kind is known.
    pub(crate) fn insert_verified<T: Evident>(
        &mut self,
        item: usize,
        object: &Verified<T>,
    ) -> Vec<(Contradiction, usize)> {
        self.insert_claim(item, Claim::of(object))
    }

    pub(super) fn insert_claim(&mut self, item: usize, claim: Claim) -> Vec<(Contradiction, usize)> {
        let known = self
            .digests
            .list(cut(&claim.digest))
            .any(|number| self.claim(number).is_some_and(|earlier| earlier.digest == claim.digest));
        // Four billion objects do not fit any memory; were they to, the rest would go unindexed rather than wrap.
        let (false, Ok(number)) = (known, u32::try_from(self.entries.len())) else { return Vec::new() };
        let mut found = Found::default();
        self.find(&claim, &mut found);
        self.index(&claim, number);
        self.entries.push(Member { item, claim });
        let Found(pairs) = found;
        pairs.into_iter().filter_map(|(code, number)| Some((code, self.entry(number)?.item))).collect()
    }

    /// The earliest checkpoint here that ends a batch at this place.
    pub fn checkpoint_ending_at(&self, broker_epoch: u64, last_sequence: u64) -> Option<Bytes32> {
        let mut ends =
            self.checkpoint_ends.list(mix(broker_epoch, last_sequence)).filter_map(|number| self.claim(number));
        let is_ours = |body: &Body| matches!(body, Body::Checkpoint(it) if it.broker_epoch == broker_epoch && it.last == last_sequence);
        ends.find(|claim| is_ours(&claim.body)).map(|claim| claim.digest)
    }

    fn entry(&self, number: u32) -> Option<&Member> {
        self.entries.get(usize::try_from(number).ok()?)
    }

    fn claim(&self, number: u32) -> Option<&Claim> {
        self.entry(number).map(|entry| &entry.claim)
    }

    /// The first of `candidates` that contradicts `claim` in this way.
    fn earliest(&self, claim: &Claim, code: Contradiction, mut candidates: impl Iterator<Item = u32>) -> Option<u32> {
        candidates.find(|number| self.claim(*number).and_then(|earlier| claim.contradicts(earlier)) == Some(code))
    }

    fn find(&self, claim: &Claim, found: &mut Found) {
        match &claim.body {
            Body::Append(append) => self.find_append(claim, append, found),
            Body::Checkpoint(checkpoint) => self.find_checkpoint(claim, checkpoint, found),
            Body::Transition(transition) => self.find_transition(claim, transition, found),
            Body::Group(Group { previous, .. }) => {
                let list = self.group_predecessors.list(cut(previous));
                found.offer(Contradiction::GroupFork, self.earliest(claim, Contradiction::GroupFork, list));
            }
            Body::KeyBatch(batch) => {
                let list = self.key_predecessors.list(cut(&batch.previous));
                found.offer(Contradiction::KeyBatchFork, self.earliest(claim, Contradiction::KeyBatchFork, list));
                let overlap = self.key_ranges.get(&batch.key_stream_id);
                let overlap = overlap.and_then(|ranges| ranges.earliest_overlap(batch.first, batch.last));
                found.offer(Contradiction::KeyBatchFork, overlap);
            }
            Body::Anchor(anchor) => self.find_anchor(claim, anchor, found),
        }
        for first in self.blocks.list(claim.height).filter_map(|number| self.claim(number)) {
            if first.block_hash != claim.block_hash {
                let members = self.block_members.list(mix(first.height, cut(&first.block_hash)));
                found.offer(Contradiction::ViewConflict, self.earliest(claim, Contradiction::ViewConflict, members));
            }
        }
    }

    fn find_append(&self, claim: &Claim, append: &Append, found: &mut Found) {
        let lists = [
            (Contradiction::AppendFork, self.records.list(record_key(&append.record_id))),
            (Contradiction::GlobalFork, self.global_predecessors.list(cut(&append.previous_global))),
            (Contradiction::LaneFork, self.lane_predecessors.list(cut(&append.previous_lane))),
        ];
        for (code, list) in lists {
            found.offer(code, self.earliest(claim, code, list));
        }
        if let RecordId::Standard(id) = &append.record_id {
            let code = Contradiction::AnchorContradictsReceipt;
            let floors = id.sequence.checked_add(1).map(|floor| self.standard_floors.list(floor));
            found.offer(code, self.earliest(claim, code, floors.into_iter().flatten()));
        }
    }

    fn find_checkpoint(&self, claim: &Claim, checkpoint: &Checkpoint, found: &mut Found) {
        let epoch = checkpoint.broker_epoch;
        let code = Contradiction::CheckpointFork;
        found.offer(code, self.earliest(claim, code, self.checkpoint_predecessors.list(cut(&checkpoint.previous))));
        let lineage = self.lineages.get(&epoch);
        let overlap = lineage.and_then(|it| it.checkpoints.earliest_overlap(checkpoint.first, checkpoint.last));
        found.offer(code, overlap);

        let code = Contradiction::TransitionContradictsCheckpoint;
        found.offer(code, lineage.and_then(|it| it.kept.earliest_above(&Reverse(Some(checkpoint.last)))));
        let ends = self.transition_ends.list(mix(epoch, checkpoint.last));
        found.offer(code, self.earliest(claim, code, ends));
        if checkpoint.first == 0 {
            found.offer(code, self.earliest(claim, code, self.transitions_into.list(epoch)));
        }

        let code = Contradiction::AnchorContradictsReceipt;
        let floors = checkpoint.last.checked_add(1).map(|floor| self.anchor_floors.list(mix(epoch, floor)));
        found.offer(code, self.earliest(claim, code, floors.into_iter().flatten()));
    }

    fn find_transition(&self, claim: &Claim, transition: &Transition, found: &mut Found) {
        let code = Contradiction::TransitionFork;
        let same = self.transitions.list(mix(optional(transition.predecessor), transition.replacement));
        found.offer(code, self.earliest(claim, code, same));

        let code = Contradiction::TransitionContradictsCheckpoint;
        if let Some(epoch) = transition.predecessor {
            let abandoned = match transition.durable_sequence {
                Some(durable) => self.lineages.get(&epoch).and_then(|it| it.reach.earliest_above(&durable)),
                None => self.lineages.get(&epoch).and_then(|it| it.reach.earliest()),
            };
            found.offer(code, abandoned);
            let ends = transition.durable_sequence.map(|durable| self.checkpoint_ends.list(mix(epoch, durable)));
            found.offer(code, self.earliest(claim, code, ends.into_iter().flatten()));
        }
        found.offer(code, self.earliest(claim, code, self.first_checkpoints.list(transition.replacement)));
    }

    fn find_anchor(&self, claim: &Claim, anchor: &Anchor, found: &mut Found) {
        if let Some(others) = self.anchors.get(&anchor.scope) {
            let place = (anchor.committed_at_ms, claim.height, anchor.floor);
            if !others.fits(&place) {
                let code = Contradiction::FloorRegression;
                found.offer(code, self.earliest(claim, code, others.numbers.iter().copied()));
            }
        }
        let code = Contradiction::AnchorFork;
        let equal = self.anchor_floors.list(mix(scope_key(&anchor.scope), anchor.floor));
        found.offer(code, self.earliest(claim, code, equal));

        let code = Contradiction::AnchorContradictsReceipt;
        let Some(before) = anchor.floor.checked_sub(1) else { return };
        match anchor.scope {
            AnchorScope::Standard(_) => {
                let list = self.records.list(before.rotate_left(1));
                found.offer(code, self.earliest(claim, code, list));
            }
            AnchorScope::Fast(epoch) => {
                found.offer(code, self.earliest(claim, code, self.checkpoint_ends.list(mix(epoch, before))));
            }
            AnchorScope::Group(..) => {}
        }
    }

    fn index(&mut self, claim: &Claim, number: u32) {
        self.digests.insert(cut(&claim.digest), number);
        let is_known = {
            let mut firsts = self.blocks.list(claim.height).filter_map(|number| self.claim(number));
            firsts.any(|first| first.block_hash == claim.block_hash)
        };
        if !is_known {
            self.blocks.insert(claim.height, number);
        }
        self.block_members.insert(mix(claim.height, cut(&claim.block_hash)), number);
        match &claim.body {
            Body::Append(append) => self.index_append(append, number),
            Body::Checkpoint(checkpoint) => self.index_checkpoint(checkpoint, number),
            Body::Transition(transition) => self.index_transition(transition, number),
            Body::Group(Group { previous, .. }) => self.group_predecessors.insert(cut(previous), number),
            Body::KeyBatch(KeyBatch { key_stream_id, first, last, previous }) => {
                self.key_predecessors.insert(cut(previous), number);
                self.key_ranges.entry(*key_stream_id).or_default().insert(*first, *last, number);
            }
            Body::Anchor(anchor) => self.index_anchor(anchor, claim.height, number),
        }
    }

    fn index_append(&mut self, append: &Append, number: u32) {
        self.records.insert(record_key(&append.record_id), number);
        if !self.beaten_as_global(append) {
            self.global_predecessors.insert(cut(&append.previous_global), number);
        }
        if !self.beaten_as_lane(append) {
            self.lane_predecessors.insert(cut(&append.previous_lane), number);
        }
    }

    fn appends<'a>(&'a self, list: impl Iterator<Item = u32> + 'a) -> impl Iterator<Item = &'a Append> + 'a {
        list.filter_map(|number| match &self.claim(number)?.body {
            Body::Append(append) => Some(append),
            _ => None,
        })
    }

    /// One listed successor of the same record, or two of different ones: whoever this one would meet, they meet first.
    fn beaten_as_global(&self, append: &Append) -> bool {
        let listed = self.appends(self.global_predecessors.list(cut(&append.previous_global)));
        let mut records: Vec<_> = listed
            .filter(|other| other.previous_global == append.previous_global)
            .map(|other| other.record_id)
            .collect();
        records.dedup();
        records.len() >= 2 || records.contains(&append.record_id)
    }

    /// As above with two ways to be named for another fork: the record and the global predecessor. A later object can
    /// share each with only so many; three that differ in both, or two that share one with this, leave it one to meet.
    fn beaten_as_lane(&self, append: &Append) -> bool {
        let listed = self.appends(self.lane_predecessors.list(cut(&append.previous_lane)));
        let listed: Vec<_> = listed
            .filter(|other| other.lane_id == append.lane_id && other.previous_lane == append.previous_lane)
            .map(|other| (other.record_id, other.previous_global))
            .collect();
        let same_record = listed.iter().filter(|other| other.0 == append.record_id).count();
        let same_global = listed.iter().filter(|other| other.1 == append.previous_global).count();
        let same_both = listed.contains(&(append.record_id, append.previous_global));
        same_both || same_record >= 2 || same_global >= 2 || listed.len() >= 5
    }

    fn index_checkpoint(&mut self, checkpoint: &Checkpoint, number: u32) {
        let epoch = checkpoint.broker_epoch;
        self.checkpoint_predecessors.insert(cut(&checkpoint.previous), number);
        let lineage = self.lineages.entry(epoch).or_default();
        lineage.checkpoints.insert(checkpoint.first, checkpoint.last, number);
        lineage.reach.insert(checkpoint.last, number);
        self.checkpoint_ends.insert(mix(epoch, checkpoint.last), number);
        if checkpoint.first == 0 {
            self.first_checkpoints.insert(epoch, number);
        }
    }

    fn index_transition(&mut self, transition: &Transition, number: u32) {
        self.transitions.insert(mix(optional(transition.predecessor), transition.replacement), number);
        self.transitions_into.insert(transition.replacement, number);
        if let Some(epoch) = transition.predecessor {
            self.lineages.entry(epoch).or_default().kept.insert(Reverse(transition.durable_sequence), number);
            self.transition_ends.insert(mix(epoch, optional(transition.durable_sequence)), number);
        }
    }

    fn index_anchor(&mut self, anchor: &Anchor, height: u64, number: u32) {
        let place = (anchor.committed_at_ms, height, anchor.floor);
        let others = self.anchors.entry(anchor.scope).or_default();
        others.disordered = !others.fits(&place);
        others.ordered.entry(place).or_insert(number);
        others.numbers.push(number);
        self.anchor_floors.insert(mix(scope_key(&anchor.scope), anchor.floor), number);
        if let AnchorScope::Standard(_) = anchor.scope {
            self.standard_floors.insert(anchor.floor, number);
        }
    }
}
