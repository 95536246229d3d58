//! `sparse_root_v1` (§12.2): the depth-256 map of lanes, its proofs, and folding many proofs of one map cheaply.
//!
//! A path has 256 levels, yet almost all of them are empty. Three facts keep the work near the number of active lanes:
//! an absent lane starts at its deepest non-default sibling with the constant of that depth; two proofs share every node
//! above where their keys part; and a sorted list parts from its past exactly where it parts from the previous key.

use alloc::boxed::Box;
use alloc::vec::Vec;

use remuda_wire::checkpoint::{bit, check_siblings, set_bits};
use remuda_wire::preimage::{empty_subtree, merkle_node};
use remuda_wire::verdict::{Refusal, VerifyError};
use remuda_wire::Bytes32;

use crate::sorted::SortedMap;

/// A compact proof at one key: a leaf or none, and the siblings that are not the default of their depth.
#[derive(Clone, Copy, Debug)]
pub struct Proof<'a> {
    /// The key that is proven.
    pub key: &'a Bytes32,
    /// The leaf of a presence proof; `None` claims absence.
    pub leaf: Option<Bytes32>,
    /// Which depths have a non-default sibling.
    pub bitmap: &'a Bytes32,
    /// Those siblings, ascending by depth.
    pub siblings: &'a [Bytes32],
}

/// The root that one proof folds to.
///
/// # Errors
/// [`remuda_wire::DecodeError::ProofShape`]; [`VerifyError::PresenceEmptyLeaf`].
pub fn root_from_proof(proof: &Proof<'_>) -> Result<Bytes32, Refusal> {
    check_siblings(proof.bitmap, proof.siblings)?;
    Ok(Folder::new().fold(proof)?)
}

/// Folds proofs of one map one after the other, and does no work twice.
#[derive(Debug)]
pub struct Folder {
    /// The key of the last proof, once there is one.
    key: Option<Bytes32>,
    /// The last proof.
    path: Box<Path>,
    /// The next one, in the making.
    next: Box<Path>,
    /// Node hashes computed so far: what a benchmark and a test count.
    hashes: u64,
}

/// A proof, spread out down to `depth`; all that is below, beside its path and on it, is empty.
///
/// `nodes[d]`, for `d <= depth`, is the node at depth `d` on the path; `siblings[d]`, for `d < depth`, the one beside
/// `nodes[d + 1]`. Hardly any path is long: what is empty is neither written down nor copied.
#[derive(Debug)]
struct Path {
    depth: u16,
    nodes: [Bytes32; 257],
    siblings: [Bytes32; 256],
}

impl Path {
    fn new() -> Box<Self> {
        Box::new(Self { depth: 0, nodes: [Bytes32::ZERO; 257], siblings: [Bytes32::ZERO; 256] })
    }

    fn node(&self, depth: u16) -> Bytes32 {
        if depth <= self.depth {
            self.nodes[usize::from(depth)]
        } else {
            empty_subtree(depth)
        }
    }

    /// The sibling beside the node at `below`.
    fn sibling(&self, below: u16) -> Bytes32 {
        match self.siblings.get(usize::from(below).wrapping_sub(1)) {
            Some(sibling) if below <= self.depth => *sibling,
            _ => empty_subtree(below),
        }
    }

    /// Begins at the leaf of `proof`: an absent lane is an empty subtree of a known constant below its deepest sibling.
    fn start(&mut self, proof: &Proof<'_>) {
        self.depth = match proof.leaf {
            Some(_) => 256,
            None => set_bits(proof.bitmap).last().map_or(0, |deepest| u16::from(deepest) + 1),
        };
        for (below, sibling) in (1..=self.depth).zip(&mut self.siblings) {
            *sibling = empty_subtree(below);
        }
        for (depth, sibling) in set_bits(proof.bitmap).zip(proof.siblings) {
            self.siblings[usize::from(depth)] = *sibling;
        }
        self.nodes[usize::from(self.depth)] = proof.leaf.unwrap_or_else(|| empty_subtree(self.depth));
    }

    /// Computes the nodes from just above `from` up to `to`. Answers how many.
    fn climb(&mut self, key: &Bytes32, from: u16, to: u16) -> u64 {
        let mut hashes = 0;
        for depth in (to..from).rev() {
            let Ok(bit_at) = u8::try_from(depth) else { continue };
            let at = usize::from(depth);
            self.nodes[at] = if bit(key, bit_at) {
                merkle_node(&self.siblings[at], &self.nodes[at + 1])
            } else {
                merkle_node(&self.nodes[at + 1], &self.siblings[at])
            };
            hashes += 1;
        }
        hashes
    }

    /// Writes down what is empty, down to `depth`.
    fn deepen(&mut self, depth: u16) {
        for below in self.depth + 1..=depth {
            let at = usize::from(below);
            self.nodes[at] = empty_subtree(below);
            self.siblings[at - 1] = empty_subtree(below);
        }
        self.depth = self.depth.max(depth);
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Folder {
    /// A folder that has seen nothing.
    pub fn new() -> Self {
        Self { key: None, path: Path::new(), next: Path::new(), hashes: 0 }
    }

    /// How many node hashes were computed.
    pub const fn hashes(&self) -> u64 {
        self.hashes
    }

    /// The root of `proof`, whose shape is already checked.
    ///
    /// # Errors
    /// [`VerifyError::PresenceEmptyLeaf`]: admitting it would let presence and absence collapse into each other.
    pub fn fold(&mut self, proof: &Proof<'_>) -> Result<Bytes32, VerifyError> {
        if proof.leaf == Some(empty_subtree(256)) {
            return Err(VerifyError::PresenceEmptyLeaf);
        }
        let Self { key, path, next, hashes } = self;
        let parting = key.and_then(|last| parting_depth(&last, proof.key));
        *key = Some(*proof.key);
        next.start(proof);
        let bottom = next.depth;
        let mut reached = bottom;
        if let Some(parting) = parting {
            let shared = u16::from(parting);
            // The new path below the parting, then one comparison each with what the last proof said of this side.
            *hashes += next.climb(proof.key, bottom, shared + 1);
            reached = bottom.min(shared + 1);
            let agrees = path.sibling(shared + 1) == next.node(shared + 1)
                && next.sibling(shared + 1) == path.node(shared + 1)
                && (1..=shared).all(|below| next.sibling(below) == path.sibling(below));
            if agrees {
                path.deepen(bottom.min(shared));
                let (from, to) = (usize::from(shared), usize::from(bottom));
                if from < to {
                    path.siblings[from..to].copy_from_slice(&next.siblings[from..to]);
                    path.nodes[from + 1..=to].copy_from_slice(&next.nodes[from + 1..=to]);
                }
                path.depth = bottom;
                return Ok(path.nodes[0]);
            }
        }
        *hashes += next.climb(proof.key, reached, 0);
        core::mem::swap(path, next);
        Ok(path.nodes[0])
    }
}

/// The depth at which two keys take different sides; `None` for equal keys.
fn parting_depth(a: &Bytes32, b: &Bytes32) -> Option<u8> {
    (0..=u8::MAX).find(|depth| bit(a, *depth) != bit(b, *depth))
}

/// A map from keys to leaves: roots and proofs, for whoever holds all of it.
#[derive(Clone, Debug, Default)]
pub struct SparseMap {
    /// Ascending by key, each once.
    entries: Vec<(Bytes32, Bytes32)>,
}

/// A proof that owns its siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedProof {
    /// The leaf, or `None` when the key is absent.
    pub leaf: Option<Bytes32>,
    /// Which depths have a non-default sibling.
    pub bitmap: Bytes32,
    /// Those siblings, ascending by depth.
    pub siblings: Vec<Bytes32>,
}

impl SparseMap {
    /// A map of `entries`, in any order. Of one key given twice the last leaf counts.
    pub fn new(entries: impl IntoIterator<Item = (Bytes32, Bytes32)>) -> Self {
        let map: SortedMap<_, _> = entries.into_iter().collect();
        Self { entries: map.iter().map(|(key, leaf)| (*key, *leaf)).collect() }
    }

    /// `sparse_root_v1`; the root of the empty map is `EMPTY[0]`.
    pub fn root(&self) -> Bytes32 {
        subtree_root(&self.entries, 0)
    }

    /// The canonical proof at `key`, present or absent.
    pub fn prove(&self, key: &Bytes32) -> OwnedProof {
        let mut bitmap = Bytes32::ZERO;
        let mut siblings = Vec::new();
        let mut within = &self.entries[..];
        for depth in 0..=u8::MAX {
            let [left, right] = split(within, depth);
            let (own, beside) = if bit(key, depth) { (right, left) } else { (left, right) };
            if !beside.is_empty() {
                bitmap.0[usize::from(depth / 8)] |= 0x80 >> (depth % 8);
                siblings.push(subtree_root(beside, u16::from(depth) + 1));
            }
            within = own;
        }
        OwnedProof { leaf: within.first().map(|(_, leaf)| *leaf), bitmap, siblings }
    }
}

/// Entries of a subtree at `depth`, by the side that their keys take there.
fn split(entries: &[(Bytes32, Bytes32)], depth: u8) -> [&[(Bytes32, Bytes32)]; 2] {
    entries.split_at(entries.partition_point(|(key, _)| !bit(key, depth))).into()
}

fn subtree_root(entries: &[(Bytes32, Bytes32)], depth: u16) -> Bytes32 {
    match (entries, u8::try_from(depth)) {
        ([], _) => empty_subtree(depth),
        ([(_, leaf), ..], Err(_)) => *leaf,
        ([(key, leaf)], Ok(top)) => (top..=u8::MAX).rev().fold(*leaf, |node, depth| {
            let sibling = empty_subtree(u16::from(depth) + 1);
            if bit(key, depth) {
                merkle_node(&sibling, &node)
            } else {
                merkle_node(&node, &sibling)
            }
        }),
        (_, Ok(at)) => {
            let [left, right] = split(entries, at);
            merkle_node(&subtree_root(left, depth + 1), &subtree_root(right, depth + 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// xorshift64*.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap_or(0) % bound
        }

        /// Keys that part early, late and in between.
        fn key(&mut self) -> Bytes32 {
            let mut key = Bytes32([0xa5; 32]);
            for _ in 0..self.below(4) {
                let bit = [self.below(5), self.below(256), 251 + self.below(5)][self.below(3)];
                key.0[bit / 8] ^= 0x80 >> (bit % 8);
            }
            key
        }
    }

    #[test]
    fn folding_many_proofs_is_folding_each_alone() {
        let mut random = Random(39);
        let (mut same, mut other) = (0, 0);
        for _ in 0..150 {
            let leaves: Vec<_> = (0..random.below(6)).map(|_| (random.key(), Bytes32([7; 32]))).collect();
            let map = SparseMap::new(leaves.clone());
            let mut folder = Folder::new();
            for _ in 0..12 {
                let present = leaves.get(random.below(leaves.len() + 2)).map(|(key, _)| *key);
                let key = present.unwrap_or_else(|| random.key());
                let mut proof = map.prove(&key);
                // Some say something else, of their own leaf or of what is beside their path.
                match random.below(6) {
                    0 => proof.leaf = Some(Bytes32([8; 32])),
                    1 if !proof.siblings.is_empty() => {
                        let at = random.below(proof.siblings.len());
                        proof.siblings[at].0[0] ^= 1;
                    }
                    2 => proof.leaf = None,
                    _ => {}
                }
                let OwnedProof { leaf, bitmap, siblings } = &proof;
                let proof = Proof { key: &key, leaf: *leaf, bitmap, siblings };
                let alone = root_from_proof(&proof).expect("a proof of canonical shape");
                assert_eq!(folder.fold(&proof), Ok(alone));
                if alone == map.root() {
                    same += 1;
                } else {
                    other += 1;
                }
            }
        }
        assert!(same > 400 && other > 200, "{same} proofs are of the map, {other} are not");
    }
}
