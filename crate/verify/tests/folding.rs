//! Sparse maps and Merkle lists against their definitions in §12.2, said as plainly as the document says them.

use proptest::prelude::*;
use remuda_verify::merkle::merkle_root;
use remuda_verify::sparse::{root_from_proof, Folder, OwnedProof, Proof, SparseMap};
use remuda_wire::checkpoint::{bit, check_siblings};
use remuda_wire::preimage::{empty_subtree, keccak256, merkle_node};
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

/// All 256 levels of one proof, sharing nothing with any other; and how many hashes that costs.
fn naive_root(proof: &Proof<'_>, hashes: &mut u64) -> Result<Bytes32, VerifyError> {
    if proof.leaf == Some(empty_subtree(256)) {
        return Err(VerifyError::PresenceEmptyLeaf);
    }
    let mut siblings = proof.siblings.iter().rev();
    let mut node = proof.leaf.unwrap_or_else(|| empty_subtree(256));
    for depth in (0..=u8::MAX).rev() {
        let sibling = if bit(proof.bitmap, depth) {
            *siblings.next().expect("as many siblings as set bits")
        } else {
            empty_subtree(u16::from(depth) + 1)
        };
        node = if bit(proof.key, depth) { merkle_node(&sibling, &node) } else { merkle_node(&node, &sibling) };
        *hashes += 1;
    }
    Ok(node)
}

/// `sparse_root_v1` by recursion over all entries, without the shortcut for subtrees of one entry.
fn naive_map_root(entries: &[(Bytes32, Bytes32)], depth: u16) -> Bytes32 {
    if entries.is_empty() {
        return empty_subtree(depth);
    }
    let Ok(at) = u8::try_from(depth) else { return entries[entries.len() - 1].1 };
    let side = |right: bool| entries.iter().filter(|(key, _)| bit(key, at) == right).copied().collect::<Vec<_>>();
    merkle_node(&naive_map_root(&side(false), depth + 1), &naive_map_root(&side(true), depth + 1))
}

/// Keys that share long prefixes as often as not: random ones part within a few bits.
fn key() -> impl Strategy<Value = Bytes32> {
    prop_oneof![
        any::<[u8; 32]>().prop_map(Bytes32),
        (0..32usize, any::<u8>()).prop_map(|(at, byte)| {
            let mut key = Bytes32([0x5a; 32]);
            key.0[at] = byte;
            key
        }),
        (0..8u8).prop_map(|byte| {
            let mut key = Bytes32([0xff; 32]);
            key.0[31] = byte;
            key
        }),
    ]
}

fn leaf_of(key: &Bytes32) -> Bytes32 {
    keccak256(&key.0)
}

/// How a proof is bent before it is folded.
#[derive(Clone, Debug)]
enum Bend {
    Honest,
    Leaf(u8),
    Absent,
    EmptyLeaf,
    Sibling(u8, u8),
    /// The sibling of one depth is moved to another.
    Bitmap(u8, u8),
    /// The proof of another key.
    OtherKey,
}

fn bend() -> impl Strategy<Value = Bend> {
    prop_oneof![
        6 => Just(Bend::Honest),
        1 => any::<u8>().prop_map(Bend::Leaf),
        1 => Just(Bend::Absent),
        1 => Just(Bend::EmptyLeaf),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(which, bit)| Bend::Sibling(which, bit)),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(from, to)| Bend::Bitmap(from, to)),
        1 => Just(Bend::OtherKey),
    ]
}

fn flip(bytes: &mut Bytes32, at: u8) {
    bytes.0[usize::from(at / 8)] ^= 0x80 >> (at % 8);
}

fn bent(map: &SparseMap, keys: &[Bytes32], at: usize, bend: &Bend) -> OwnedProof {
    let mut proof = map.prove(&keys[at]);
    match *bend {
        Bend::Honest => {}
        Bend::Leaf(bit) => {
            let mut leaf = proof.leaf.unwrap_or(Bytes32([1; 32]));
            flip(&mut leaf, bit);
            proof.leaf = Some(leaf);
        }
        Bend::Absent => proof.leaf = None,
        Bend::EmptyLeaf => proof.leaf = Some(empty_subtree(256)),
        Bend::Sibling(which, bit) => {
            let count = proof.siblings.len().max(1);
            if let Some(sibling) = proof.siblings.get_mut(usize::from(which) % count) {
                flip(sibling, bit);
            }
        }
        Bend::Bitmap(from, to) => {
            if bit(&proof.bitmap, from) && !bit(&proof.bitmap, to) {
                flip(&mut proof.bitmap, from);
                flip(&mut proof.bitmap, to);
            }
        }
        Bend::OtherKey => proof = map.prove(&keys[(at + 1) % keys.len()]),
    }
    proof
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_root_of_a_map_is_that_of_its_definition(keys in proptest::collection::btree_set(key(), 0..12)) {
        let entries: Vec<_> = keys.iter().map(|key| (*key, leaf_of(key))).collect();
        prop_assert_eq!(SparseMap::new(entries.clone()).root(), naive_map_root(&entries, 0));
    }

    #[test]
    fn input_order_never_changes_a_root(
        keys in proptest::collection::btree_set(key(), 0..12),
        swaps in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..24),
    ) {
        let sorted: Vec<_> = keys.iter().map(|key| (*key, leaf_of(key))).collect();
        let mut shuffled = sorted.clone();
        if !shuffled.is_empty() {
            for (a, b) in swaps {
                let length = shuffled.len();
                shuffled.swap(a.index(length), b.index(length));
            }
        }
        let (sorted, shuffled) = (SparseMap::new(sorted), SparseMap::new(shuffled));
        prop_assert_eq!(sorted.root(), shuffled.root());
        for key in &keys {
            prop_assert_eq!(sorted.prove(key), shuffled.prove(key));
        }
    }

    /// One folder over many proofs answers what folding each of them alone answers, honest or not.
    #[test]
    fn the_folder_equals_naive_folding(
        present in proptest::collection::btree_set(key(), 0..10),
        absent in proptest::collection::btree_set(key(), 1..10),
        bends in proptest::collection::vec(bend(), 20),
        ascending in any::<bool>(),
    ) {
        let map = SparseMap::new(present.iter().map(|key| (*key, leaf_of(key))));
        let mut keys: Vec<_> = present.union(&absent).copied().collect();
        if !ascending {
            keys.reverse();
        }
        let mut folder = Folder::new();
        for (at, bend) in (0..keys.len()).zip(&bends) {
            let owned = bent(&map, &keys, at, bend);
            // The folder is given only what decoded.
            if check_siblings(&owned.bitmap, &owned.siblings).is_err() {
                continue;
            }
            let proof =
                Proof { key: &keys[at], leaf: owned.leaf, bitmap: &owned.bitmap, siblings: &owned.siblings };
            let naive = naive_root(&proof, &mut 0);
            prop_assert_eq!(folder.fold(&proof), naive, "proof {} of {}: {:?}", at, keys.len(), bend);
            if let Bend::Honest = bend {
                prop_assert_eq!(naive, Ok(map.root()));
            }
        }
    }

    /// RESOLUTIONS §9: whoever reads a lane id or a bitmap from its least significant bit gets another root.
    #[test]
    fn the_mirrored_reading_fails(keys in proptest::collection::btree_set(any::<[u8; 32]>().prop_map(Bytes32), 2..8)) {
        let mirrored = |bytes: &Bytes32| Bytes32(bytes.0.map(u8::reverse_bits));
        let map = SparseMap::new(keys.iter().map(|key| (*key, leaf_of(key))));
        for key in &keys {
            let OwnedProof { leaf, bitmap, siblings } = map.prove(key);
            let root = |key: &Bytes32, bitmap: &Bytes32| {
                root_from_proof(&Proof { key, leaf, bitmap, siblings: &siblings }).ok()
            };
            prop_assert_eq!(root(key, &bitmap), Some(map.root()));
            if mirrored(key) != *key {
                prop_assert_ne!(root(&mirrored(key), &bitmap), Some(map.root()));
            }
            if mirrored(&bitmap) != bitmap {
                prop_assert_ne!(root(key, &mirrored(&bitmap)), Some(map.root()));
            }
        }
    }

    #[test]
    fn a_merkle_root_is_that_of_its_definition(leaves in proptest::collection::vec(any::<[u8; 32]>().prop_map(Bytes32), 1..40)) {
        let mut level = leaves.clone();
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| if let [left, right] = pair { merkle_node(left, right) } else { pair[0] })
                .collect();
        }
        prop_assert_eq!(merkle_root(leaves), Some(level[0]));
    }
}

/// The bar of §16.2's large frame: 463 lanes, 8 of them active.
#[test]
fn a_frame_of_463_lanes_costs_a_twentieth() {
    let lane = |number: u16| keccak256(&number.to_be_bytes());
    let mut keys: Vec<_> = (0..463).map(lane).collect();
    keys.sort();
    let map = SparseMap::new(keys.iter().step_by(58).map(|key| (*key, leaf_of(key))));
    let (mut folder, mut naive) = (Folder::new(), 0);
    for key in &keys {
        let OwnedProof { leaf, bitmap, siblings } = map.prove(key);
        let proof = Proof { key, leaf, bitmap: &bitmap, siblings: &siblings };
        assert_eq!(folder.fold(&proof), Ok(map.root()));
        assert_eq!(naive_root(&proof, &mut naive), Ok(map.root()));
    }
    assert_eq!(keys.iter().step_by(58).count(), 8);
    assert_eq!(naive, 463 * 256);
    assert!(folder.hashes() * 20 <= naive, "{} hashes where naive folding takes {naive}", folder.hashes());
}

/// The two ends of the table are in the vectors (`derive/empty_subtree-*`); here each level follows from the next.
#[test]
fn the_empty_table_is_its_recurrence() {
    assert_eq!(empty_subtree(256), keccak256(b"cbqs/sparse-empty/v1"));
    for depth in 0..256 {
        let below = empty_subtree(depth + 1);
        assert_eq!(empty_subtree(depth), merkle_node(&below, &below), "depth {depth}");
    }
    assert_eq!(SparseMap::default().root(), empty_subtree(0));
}
