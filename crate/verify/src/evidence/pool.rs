//! The authenticated objects of an audit, in memory that does not grow with the file.
//!
//! Objects stand in two generations. When the newer is full the older is forgotten: a new object is compared with at
//! least the [`GENERATION_OBJECTS`] that came before it, and with all of them until two generations are full.

use alloc::vec::Vec;

use remuda_wire::verdict::Contradiction;
use remuda_wire::Bytes32;

use super::claim::{Claim, Evident};
use super::generation::Generation;
use super::object::evident;
use super::AuthenticatedObject;

/// Objects of one generation: a pool of two holds about 200 MiB of receipts.
pub const GENERATION_OBJECTS: usize = 1 << 18;

/// The authenticated objects so far.
#[derive(Debug)]
pub struct EvidencePool {
    older: Generation,
    newer: Generation,
    generation_objects: usize,
    forgot: bool,
}

impl EvidencePool {
    /// An empty pool of generations of [`GENERATION_OBJECTS`].
    pub fn new() -> Self {
        Self::with_generations_of(GENERATION_OBJECTS)
    }

    /// An empty pool of generations of so many objects.
    pub fn with_generations_of(generation_objects: usize) -> Self {
        Self { older: Generation::default(), newer: Generation::default(), generation_objects, forgot: false }
    }

    /// How many distinct objects are here.
    pub fn len(&self) -> usize {
        self.older.len() + self.newer.len()
    }

    /// True before the first object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when some objects are no longer here to be contradicted.
    pub const fn forgot(&self) -> bool {
        self.forgot
    }

    /// Adds an object of an item, unless its digest is here already. Answers for each code the earliest item whose
    /// object it contradicts, in the order of those items.
    pub fn insert(&mut self, item: usize, object: &AuthenticatedObject) -> Vec<(Contradiction, usize)> {
        self.insert_evident(item, evident(object), object.digest())
    }

    /// Adds an authentic object that has this signing digest.
    pub(crate) fn insert_evident(
        &mut self,
        item: usize,
        object: &dyn Evident,
        digest: Bytes32,
    ) -> Vec<(Contradiction, usize)> {
        self.insert_claim(item, Claim::of(object, digest))
    }

    pub(super) fn insert_claim(&mut self, item: usize, claim: Claim) -> Vec<(Contradiction, usize)> {
        let mut found = Vec::new();
        let generations = [&self.older, &self.newer];
        if generations.iter().any(|generation| generation.knows(&claim.digest)) {
            return found;
        }
        generations.iter().for_each(|generation| generation.contradict(&claim, &mut found));
        if self.newer.len() >= self.generation_objects {
            self.forgot |= self.older.len() > 0;
            self.older = core::mem::take(&mut self.newer);
        }
        self.newer.push(item, claim);
        found
    }

    /// The earliest checkpoint here that ends a batch at this place.
    pub fn checkpoint_ending_at(&self, broker_epoch: u64, last_sequence: u64) -> Option<Bytes32> {
        let generations = [&self.older, &self.newer];
        generations.iter().find_map(|generation| generation.checkpoint_ending_at(broker_epoch, last_sequence))
    }
}

impl Default for EvidencePool {
    fn default() -> Self {
        Self::new()
    }
}
