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
    path: Box<Path>,
    /// The key of the last proof, once there is one.
    key: Option<Bytes32>,
    /// Node hashes computed so far: what a benchmark and a test count.
    hashes: u64,
}

/// The last proof, spread out: `nodes[d]` is the node at depth `d` on its path, `siblings[d]` the one beside `nodes[d + 1]`.
#[derive(Debug)]
struct Path {
    nodes: [Bytes32; 257],
    siblings: [Bytes32; 256],
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Folder {
    /// A folder that has seen nothing.
    pub fn new() -> Self {
        Self {
            path: Box::new(Path { nodes: [Bytes32::ZERO; 257], siblings: [Bytes32::ZERO; 256] }),
            key: None,
            hashes: 0,
        }
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
        let parting = self.key.and_then(|last| parting_depth(&last, proof.key));
        self.key = Some(*proof.key);
        let siblings = spread_siblings(proof);
        let leaf = proof.leaf.unwrap_or_else(|| empty_subtree(256));
        if let Some(parting) = parting {
            let shared = usize::from(parting);
            // The new path below the parting, then one comparison each with what the last proof said of this side.
            let subtree = self.climb(proof, &siblings, leaf, shared + 1);
            let agrees = self.path.siblings[shared] == subtree[shared + 1]
                && siblings[shared] == self.path.nodes[shared + 1]
                && siblings[..shared] == self.path.siblings[..shared];
            self.path.nodes[shared + 1..].copy_from_slice(&subtree[shared + 1..]);
            self.path.siblings[shared..].copy_from_slice(&siblings[shared..]);
            if agrees {
                return Ok(self.path.nodes[0]);
            }
        }
        self.path.nodes = *self.climb(proof, &siblings, leaf, 0);
        self.path.siblings = *siblings;
        Ok(self.path.nodes[0])
    }

    /// The nodes of a path from the leaf up to depth `top`; those above stay zero.
    fn climb(
        &mut self,
        proof: &Proof<'_>,
        siblings: &[Bytes32; 256],
        leaf: Bytes32,
        top: usize,
    ) -> Box<[Bytes32; 257]> {
        let mut nodes = Box::new([Bytes32::ZERO; 257]);
        // Below its deepest sibling an absent lane is an empty subtree of a known constant.
        let start = match proof.leaf {
            Some(_) => 256,
            None => set_bits(proof.bitmap).last().map_or(0, |deepest| usize::from(deepest) + 1),
        };
        for (depth, node) in (0u16..).zip(nodes.iter_mut()).skip(start.max(top)) {
            *node = empty_subtree(depth);
        }
        nodes[256] = leaf;
        for depth in (0..=u8::MAX).rev().skip(256 - start) {
            let at = usize::from(depth);
            if at < top {
                break;
            }
            nodes[at] = if bit(proof.key, depth) {
                merkle_node(&siblings[at], &nodes[at + 1])
            } else {
                merkle_node(&nodes[at + 1], &siblings[at])
            };
            self.hashes += 1;
        }
        nodes
    }
}

/// Every sibling of a proof, the defaults filled in.
fn spread_siblings(proof: &Proof<'_>) -> Box<[Bytes32; 256]> {
    let mut spread = Box::new([Bytes32::ZERO; 256]);
    for (below, sibling) in (1u16..).zip(spread.iter_mut()) {
        *sibling = empty_subtree(below);
    }
    for (depth, sibling) in set_bits(proof.bitmap).zip(proof.siblings) {
        spread[usize::from(depth)] = *sibling;
    }
    spread
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
        // One by one: collecting a map would sort first, which is code of its own.
        let mut map = alloc::collections::BTreeMap::new();
        for (key, leaf) in entries {
            map.insert(key, leaf);
        }
        Self { entries: map.into_iter().collect() }
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
