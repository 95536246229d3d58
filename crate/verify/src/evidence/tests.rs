//! The pool against comparing all pairs, over histories of a universe so small that everything collides.

use alloc::vec::Vec;

use remuda_wire::record::{FastRecordId, RecordId, StandardRecordId};
use remuda_wire::{Bytes32, ProviderEpoch};

use super::claim::{Anchor, AnchorScope, Append, Body, Checkpoint, Claim, Group, KeyBatch, Transition};
use super::pool::EvidencePool;

/// xorshift64*: the property needs many cases, not good ones.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn id(&mut self, bound: u64) -> Bytes32 {
        id(self.below(bound))
    }

    fn maybe(&mut self, bound: u64) -> Option<u64> {
        self.below(bound + 1).checked_sub(1)
    }
}

/// Distinct in the bytes that the pool cuts and in those that it does not.
fn id(number: u64) -> Bytes32 {
    let mut id = Bytes32::ZERO;
    id.0[..8].copy_from_slice(&(number / 2).to_be_bytes());
    id.0[24..].copy_from_slice(&(number + 1).to_be_bytes());
    id
}

fn body(random: &mut Random, kinds: u64, size: u64) -> Body {
    match random.below(kinds) {
        0 => {
            let sequence = random.below(size);
            Body::Append(Append {
                record_id: if random.below(3) > 0 {
                    RecordId::Standard(StandardRecordId { provider_epoch: ProviderEpoch, sequence })
                } else {
                    let broker_epoch = random.below(2);
                    RecordId::Fast(FastRecordId { provider_epoch: ProviderEpoch, broker_epoch, sequence })
                },
                lane_id: random.id(3),
                previous_global: random.id(size),
                previous_lane: random.id(size / 2 + 1),
            })
        }
        1 => {
            let first = random.below(size);
            let last = first + random.below(4);
            Body::Checkpoint(Checkpoint { broker_epoch: random.below(3), first, last, previous: random.id(size * 3) })
        }
        2 => Body::Transition(Transition {
            predecessor: random.maybe(3),
            replacement: random.below(3),
            durable_checkpoint: random.id(size * 3),
            durable_sequence: random.maybe(size),
        }),
        3 => Body::Group(Group { lane_id: random.id(2), group_id: random.id(2), previous: random.id(size) }),
        4 => {
            let first = random.below(size * 3);
            let last = first + 1 + random.below(3);
            Body::KeyBatch(KeyBatch { key_stream_id: random.id(2), first, last, previous: random.id(size * 2) })
        }
        _ => {
            let floor = random.below(size + 3);
            let committed_at_ms = if random.below(2) > 0 { floor * 2 + random.below(3) } else { random.below(size) };
            let scope = match random.below(4) {
                0 => AnchorScope::Standard(None),
                1 => AnchorScope::Standard(Some(random.id(2))),
                2 => AnchorScope::Group(random.id(2), random.id(2)),
                _ => AnchorScope::Fast(random.below(3)),
            };
            let predecessors = match scope {
                AnchorScope::Standard(Some(_)) => Some((random.id(3), Some(random.id(3)))),
                AnchorScope::Standard(None) | AnchorScope::Fast(_) => Some((random.id(3), None)),
                AnchorScope::Group(..) => None,
            };
            Body::Anchor(Anchor { scope, floor, predecessors, committed_at_ms }.into())
        }
    }
}

fn claim(random: &mut Random, kinds: u64, size: u64) -> Claim {
    Claim {
        digest: random.id(size * 4),
        height: random.below(size),
        block_hash: id(random.below(8) / 7),
        body: body(random, kinds, size),
    }
}

/// What the pool must answer, said as simply as `RESOLUTIONS.md` §10 says it.
fn naive(earlier: &[(usize, Claim)], new: &Claim) -> Vec<(remuda_wire::verdict::Contradiction, usize)> {
    let mut found: Vec<(_, usize)> = Vec::new();
    for (item, claim) in earlier {
        if let Some(code) = new.contradicts(claim) {
            if !found.iter().any(|(known, _)| *known == code) {
                found.push((code, *item));
            }
        }
    }
    found
}

#[test]
fn the_pool_equals_comparing_all_pairs() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut contradictions = 0;
    for round in 0..1_200 {
        let (kinds, size) = ([1, 3, 6, 6][round % 4], [3, 6, 12, 40][round / 4 % 4]);
        let mut pool = EvidencePool::new();
        let mut earlier: Vec<(usize, Claim)> = Vec::new();
        for item in 0..60 {
            let new = claim(&mut random, kinds, size);
            let got = pool.insert_claim(item, new.clone());
            if earlier.iter().any(|(_, claim)| claim.digest == new.digest) {
                assert!(got.is_empty());
                continue;
            }
            let expected = naive(&earlier, &new);
            contradictions += expected.len();
            assert_eq!(got, expected, "round {round}, item {item}: {new:?} after {earlier:?}");
            earlier.push((item, new));
        }
    }
    assert!(contradictions > 10_000, "the universe is too large to test anything: {contradictions}");
}

#[test]
fn a_full_pool_compares_with_at_least_a_generation_and_says_what_it_forgot() {
    const GENERATION: usize = 8;
    let mut random = Random(23);
    for round in 0..300 {
        let mut pool = EvidencePool::with_generations_of(GENERATION);
        let mut kept: Vec<(usize, Claim)> = Vec::new();
        for item in 0..60 {
            let new = claim(&mut random, 6, [6, 12, 40, 100][round % 4]);
            let got = pool.insert_claim(item, new.clone());
            if kept.iter().any(|(_, claim)| claim.digest == new.digest) {
                assert!(got.is_empty());
                continue;
            }
            assert_eq!(got, naive(&kept, &new), "round {round}, item {item}");
            if kept.len() == 2 * GENERATION {
                kept.drain(..GENERATION);
            }
            kept.push((item, new));
            assert_eq!(pool.len(), kept.len());
            assert_eq!(pool.forgot(), kept[0].0 > 0);
        }
        assert!(pool.forgot());
    }
}

#[test]
fn a_pair_is_judged_alike_both_ways() {
    let mut random = Random(7);
    for _ in 0..50_000 {
        let (a, b) = (claim(&mut random, 6, 5), claim(&mut random, 6, 5));
        assert_eq!(a.contradicts(&b), b.contradicts(&a));
    }
}

#[test]
fn an_honest_history_is_never_accused() {
    let mut pool = EvidencePool::new();
    let (mut global, mut lanes) = (id(0), [id(1), id(2), id(3)]);
    let mut random = Random(11);
    for sequence in 0..2_000 {
        let lane_number = random.below(3);
        let lane = usize::try_from(lane_number).unwrap_or(0);
        let body = Body::Append(Append {
            record_id: RecordId::Standard(StandardRecordId { provider_epoch: ProviderEpoch, sequence: sequence * 2 }),
            lane_id: id(lane_number),
            previous_global: global,
            previous_lane: lanes[lane],
        });
        global = id(100 + sequence);
        lanes[lane] = global;
        // Heights fall now and then: unrelated operations are not serialised.
        let height = sequence / 10 + random.below(3);
        let claim = Claim { digest: global, height, block_hash: id(height), body };
        assert!(pool.insert_claim(0, claim).is_empty());
        if sequence % 7 == 0 {
            let anchor = |number, scope, floor, predecessors| Claim {
                digest: id(1_000_000 + sequence * 2 + number),
                height: sequence / 10 + 3,
                block_hash: id(sequence / 10 + 3),
                body: Body::Anchor(
                    Anchor { scope, floor, predecessors: Some(predecessors), committed_at_ms: sequence }.into(),
                ),
            };
            let global_floor = anchor(0, AnchorScope::Standard(None), sequence * 2 + 1, (global, None));
            assert!(pool.insert_claim(0, global_floor).is_empty());
            let lane_floor = anchor(1, AnchorScope::Standard(Some(id(7))), sequence / 100, (id(5), Some(id(6))));
            assert!(pool.insert_claim(0, lane_floor).is_empty());
        }
    }
    assert_eq!(pool.len(), 2_000 + 2 * 286);
}
