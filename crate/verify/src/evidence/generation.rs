//! Authenticated objects by the thousand, and for a new one whom it contradicts.
//!
//! The answer is that of comparing the new object with every earlier one; the work is a few look-ups. Every kind of
//! contradiction has an index whose lists hold only elements that some later object could still be the first to meet:
//! an object that an earlier one always beats is not listed. What can still grow with the history's own contradictions
//! are scans over views in conflict and over anchors of one key that are already out of order.

use alloc::vec::Vec;
use core::cmp::Reverse;

use remuda_wire::record::RecordId;
use remuda_wire::verdict::Contradiction;
use remuda_wire::Bytes32;

use super::claim::{Anchor, AnchorScope, Append, Body, Checkpoint, Claim, Group, KeyBatch, Transition};
use super::coverage::Coverage;
use super::stairs::Stairs;
use crate::sorted::SortedMap;

/// What the lists of an index are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Digest,
    /// The first entry of every block, by height.
    Block,
    BlockMember,
    Record,
    GlobalPredecessor,
    LanePredecessor,
    GroupPredecessor,
    KeyPredecessor,
    CheckpointPredecessor,
    CheckpointEnd,
    FirstCheckpoint,
    Transition,
    TransitionEnd,
    TransitionInto,
    AnchorScope,
    AnchorFloor,
    StandardFloor,
}

/// Numbers of entries by key, ascending. Keys are digests cut to eight bytes, small numbers, and mixtures of them: a list
/// may hold strangers, and whoever reads it compares the entries themselves.
#[derive(Debug, Default)]
struct Index(SortedMap<(By, u64, u32), ()>);

impl Index {
    fn list(&self, by: By, key: u64) -> impl Iterator<Item = u32> + '_ {
        let entries = self.0.since(&(by, key, 0)).map(|(entry, ())| *entry);
        entries.take_while(move |entry| (entry.0, entry.1) == (by, key)).map(|(_, _, number)| number)
    }

    fn insert(&mut self, by: By, key: u64, number: u32) {
        self.0.insert((by, key, number), ());
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
    ordered: SortedMap<(u64, u64, u64), ()>,
    /// Some pair is out of order: the neighbours no longer speak for all.
    disordered: bool,
}

impl Anchors {
    /// True when heights and floors rise with time around this place, and so everywhere: nobody regresses.
    fn fits(&self, place: &(u64, u64, u64)) -> bool {
        let rises = |a: &(u64, u64, u64), b: &(u64, u64, u64)| a.1 <= b.1 && a.2 <= b.2;
        let before = self.ordered.before(place).is_none_or(|(before, _)| rises(before, place));
        let after = self.ordered.since(place).next().is_none_or(|(after, _)| rises(place, after));
        !self.disordered && before && after
    }
}

#[derive(Debug)]
struct Member {
    item: usize,
    claim: Claim,
}

/// The objects of one generation of a pool.
#[derive(Debug, Default)]
pub(super) struct Generation {
    entries: Vec<Member>,
    index: Index,
    key_ranges: SortedMap<Bytes32, Coverage>,
    lineages: SortedMap<u64, Lineage>,
    anchors: SortedMap<AnchorScope, Anchors>,
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

impl Generation {
    /// How many objects are here.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when an object of this digest is here.
    pub fn knows(&self, digest: &Bytes32) -> bool {
        self.claims(By::Digest, cut(digest)).any(|earlier| earlier.digest == *digest)
    }

    /// Adds for each code that is not found yet the earliest item whose object `claim` contradicts, in the order of items.
    pub fn contradict(&self, claim: &Claim, found: &mut Vec<(Contradiction, usize)>) {
        let mut here = Found::default();
        self.find(claim, &mut here);
        for (code, number) in here.0 {
            if let (Some(entry), false) = (self.entry(number), found.iter().any(|(known, _)| *known == code)) {
                found.push((code, entry.item));
            }
        }
    }

    /// Adds an object that is not known.
    pub fn push(&mut self, item: usize, claim: Claim) {
        // A generation is far shorter than what numbers can say; were it not, the rest would go unindexed rather than wrap.
        if let Ok(number) = u32::try_from(self.entries.len()) {
            self.index(&claim, number);
        }
        self.entries.push(Member { item, claim });
    }

    /// The earliest checkpoint here that ends a batch at this place.
    pub fn checkpoint_ending_at(&self, broker_epoch: u64, last_sequence: u64) -> Option<Bytes32> {
        let is_ours = |body: &Body| matches!(body, Body::Checkpoint(it) if it.broker_epoch == broker_epoch && it.last == last_sequence);
        let mut ends = self.claims(By::CheckpointEnd, mix(broker_epoch, last_sequence));
        ends.find(|claim| is_ours(&claim.body)).map(|claim| claim.digest)
    }

    fn entry(&self, number: u32) -> Option<&Member> {
        self.entries.get(usize::try_from(number).ok()?)
    }

    fn claims(&self, by: By, key: u64) -> impl Iterator<Item = &Claim> {
        self.index.list(by, key).filter_map(|number| self.entry(number).map(|entry| &entry.claim))
    }

    /// Offers the first of a list that contradicts `claim` in this way.
    fn meet(&self, claim: &Claim, found: &mut Found, code: Contradiction, by: By, key: u64) {
        let contradicts =
            |number: &u32| self.entry(*number).and_then(|earlier| claim.contradicts(&earlier.claim)) == Some(code);
        found.offer(code, self.index.list(by, key).find(contradicts));
    }

    fn find(&self, claim: &Claim, found: &mut Found) {
        match &claim.body {
            Body::Append(append) => self.find_append(claim, append, found),
            Body::Checkpoint(checkpoint) => self.find_checkpoint(claim, checkpoint, found),
            Body::Transition(transition) => self.find_transition(claim, transition, found),
            Body::Group(Group { previous, .. }) => {
                self.meet(claim, found, Contradiction::GroupFork, By::GroupPredecessor, cut(previous));
            }
            Body::KeyBatch(batch) => {
                self.meet(claim, found, Contradiction::KeyBatchFork, By::KeyPredecessor, cut(&batch.previous));
                let overlap = self.key_ranges.get(&batch.key_stream_id);
                let overlap = overlap.and_then(|ranges| ranges.earliest_overlap(batch.first, batch.last));
                found.offer(Contradiction::KeyBatchFork, overlap);
            }
            Body::Anchor(anchor) => self.find_anchor(claim, anchor, found),
        }
        for first in self.claims(By::Block, claim.height) {
            if first.block_hash != claim.block_hash {
                let block = mix(first.height, cut(&first.block_hash));
                self.meet(claim, found, Contradiction::ViewConflict, By::BlockMember, block);
            }
        }
    }

    fn find_append(&self, claim: &Claim, append: &Append, found: &mut Found) {
        self.meet(claim, found, Contradiction::AppendFork, By::Record, record_key(&append.record_id));
        self.meet(claim, found, Contradiction::GlobalFork, By::GlobalPredecessor, cut(&append.previous_global));
        self.meet(claim, found, Contradiction::LaneFork, By::LanePredecessor, cut(&append.previous_lane));
        if let RecordId::Standard(id) = &append.record_id {
            if let Some(floor) = id.sequence.checked_add(1) {
                self.meet(claim, found, Contradiction::AnchorContradictsReceipt, By::StandardFloor, floor);
            }
        }
    }

    fn find_checkpoint(&self, claim: &Claim, checkpoint: &Checkpoint, found: &mut Found) {
        let epoch = checkpoint.broker_epoch;
        let code = Contradiction::CheckpointFork;
        self.meet(claim, found, code, By::CheckpointPredecessor, cut(&checkpoint.previous));
        let lineage = self.lineages.get(&epoch);
        let overlap = lineage.and_then(|it| it.checkpoints.earliest_overlap(checkpoint.first, checkpoint.last));
        found.offer(code, overlap);

        let code = Contradiction::TransitionContradictsCheckpoint;
        found.offer(code, lineage.and_then(|it| it.kept.earliest_above(&Reverse(Some(checkpoint.last)))));
        self.meet(claim, found, code, By::TransitionEnd, mix(epoch, checkpoint.last));
        if checkpoint.first == 0 {
            self.meet(claim, found, code, By::TransitionInto, epoch);
        }
        if let Some(floor) = checkpoint.last.checked_add(1) {
            self.meet(claim, found, Contradiction::AnchorContradictsReceipt, By::AnchorFloor, mix(epoch, floor));
        }
    }

    fn find_transition(&self, claim: &Claim, transition: &Transition, found: &mut Found) {
        let same = mix(optional(transition.predecessor), transition.replacement);
        self.meet(claim, found, Contradiction::TransitionFork, By::Transition, same);

        let code = Contradiction::TransitionContradictsCheckpoint;
        if let Some(epoch) = transition.predecessor {
            let reach = self.lineages.get(&epoch).map(|lineage| &lineage.reach);
            let abandoned = match transition.durable_sequence {
                Some(durable) => reach.and_then(|reach| reach.earliest_above(&durable)),
                None => reach.and_then(Stairs::earliest),
            };
            found.offer(code, abandoned);
            if let Some(durable) = transition.durable_sequence {
                self.meet(claim, found, code, By::CheckpointEnd, mix(epoch, durable));
            }
        }
        self.meet(claim, found, code, By::FirstCheckpoint, transition.replacement);
    }

    fn find_anchor(&self, claim: &Claim, anchor: &Anchor, found: &mut Found) {
        let scope = scope_key(&anchor.scope);
        let place = (anchor.committed_at_ms, claim.height, anchor.floor);
        if self.anchors.get(&anchor.scope).is_some_and(|others| !others.fits(&place)) {
            self.meet(claim, found, Contradiction::FloorRegression, By::AnchorScope, scope);
        }
        self.meet(claim, found, Contradiction::AnchorFork, By::AnchorFloor, mix(scope, anchor.floor));

        let code = Contradiction::AnchorContradictsReceipt;
        let Some(before) = anchor.floor.checked_sub(1) else { return };
        match anchor.scope {
            AnchorScope::Standard(_) => self.meet(claim, found, code, By::Record, before.rotate_left(1)),
            AnchorScope::Fast(epoch) => self.meet(claim, found, code, By::CheckpointEnd, mix(epoch, before)),
            AnchorScope::Group(..) => {}
        }
    }

    fn index(&mut self, claim: &Claim, number: u32) {
        let is_known = self.claims(By::Block, claim.height).any(|first| first.block_hash == claim.block_hash);
        let index = &mut self.index;
        index.insert(By::Digest, cut(&claim.digest), number);
        if !is_known {
            index.insert(By::Block, claim.height, number);
        }
        index.insert(By::BlockMember, mix(claim.height, cut(&claim.block_hash)), number);
        match &claim.body {
            Body::Append(append) => self.index_append(append, number),
            Body::Checkpoint(checkpoint) => self.index_checkpoint(checkpoint, number),
            Body::Transition(transition) => self.index_transition(transition, number),
            Body::Group(Group { previous, .. }) => index.insert(By::GroupPredecessor, cut(previous), number),
            Body::KeyBatch(KeyBatch { key_stream_id, first, last, previous }) => {
                index.insert(By::KeyPredecessor, cut(previous), number);
                self.key_ranges.get_or_insert_with(*key_stream_id, Coverage::default).insert(*first, *last, number);
            }
            Body::Anchor(anchor) => self.index_anchor(anchor, claim.height, number),
        }
    }

    fn index_append(&mut self, append: &Append, number: u32) {
        self.index.insert(By::Record, record_key(&append.record_id), number);
        if !self.beaten_as_global(append) {
            self.index.insert(By::GlobalPredecessor, cut(&append.previous_global), number);
        }
        if !self.beaten_as_lane(append) {
            self.index.insert(By::LanePredecessor, cut(&append.previous_lane), number);
        }
    }

    fn appends(&self, by: By, key: u64) -> impl Iterator<Item = &Append> {
        self.claims(by, key).filter_map(|claim| match &claim.body {
            Body::Append(append) => Some(append),
            _ => None,
        })
    }

    /// One listed successor of the same record, or two of different ones: whoever this one would meet, they meet first.
    fn beaten_as_global(&self, append: &Append) -> bool {
        let mut listed = 0;
        for other in self.appends(By::GlobalPredecessor, cut(&append.previous_global)) {
            if other.previous_global == append.previous_global {
                listed += 1;
                if listed >= 2 || other.record_id == append.record_id {
                    return true;
                }
            }
        }
        false
    }

    /// As above with two ways to be named for another fork: the record and the global predecessor. A later object can
    /// share each with only so many; three that differ in both, or two that share one with this, leave it one to meet.
    fn beaten_as_lane(&self, append: &Append) -> bool {
        let (mut listed, mut same_record, mut same_global) = (0, 0, 0);
        for other in self.appends(By::LanePredecessor, cut(&append.previous_lane)) {
            if other.lane_id == append.lane_id && other.previous_lane == append.previous_lane {
                let (record, global) =
                    (other.record_id == append.record_id, other.previous_global == append.previous_global);
                listed += 1;
                same_record += u32::from(record);
                same_global += u32::from(global);
                if (record && global) || same_record >= 2 || same_global >= 2 || listed >= 5 {
                    return true;
                }
            }
        }
        false
    }

    fn lineage(&mut self, epoch: u64) -> &mut Lineage {
        self.lineages.get_or_insert_with(epoch, Lineage::default)
    }

    fn index_checkpoint(&mut self, checkpoint: &Checkpoint, number: u32) {
        let Checkpoint { broker_epoch: epoch, first, last, previous } = checkpoint;
        let lineage = self.lineage(*epoch);
        lineage.checkpoints.insert(*first, *last, number);
        lineage.reach.insert(*last, number);
        self.index.insert(By::CheckpointPredecessor, cut(previous), number);
        self.index.insert(By::CheckpointEnd, mix(*epoch, *last), number);
        if *first == 0 {
            self.index.insert(By::FirstCheckpoint, *epoch, number);
        }
    }

    fn index_transition(&mut self, transition: &Transition, number: u32) {
        let same = mix(optional(transition.predecessor), transition.replacement);
        self.index.insert(By::Transition, same, number);
        self.index.insert(By::TransitionInto, transition.replacement, number);
        if let Some(epoch) = transition.predecessor {
            self.lineage(epoch).kept.insert(Reverse(transition.durable_sequence), number);
            self.index.insert(By::TransitionEnd, mix(epoch, optional(transition.durable_sequence)), number);
        }
    }

    fn index_anchor(&mut self, anchor: &Anchor, height: u64, number: u32) {
        let place = (anchor.committed_at_ms, height, anchor.floor);
        let others = self.anchors.get_or_insert_with(anchor.scope, Anchors::default);
        others.disordered = !others.fits(&place);
        others.ordered.insert(place, ());
        let scope = scope_key(&anchor.scope);
        self.index.insert(By::AnchorScope, scope, number);
        self.index.insert(By::AnchorFloor, mix(scope, anchor.floor), number);
        if let AnchorScope::Standard(_) = anchor.scope {
            self.index.insert(By::StandardFloor, anchor.floor, number);
        }
    }
}
