//! What one seed of random bytes is stretched to: correlation ids and jitter. Nothing secret is made here.

use remuda_wire::Bytes32;

/// Correlation ids that never repeat, and jitter, from 32 random bytes.
///
/// A `request_id` is opaque correlation, seen by the provider anyway and outside every proof (§13.1): it must be unique,
/// not unpredictable. Ids are the seed's first 24 bytes and a count.
#[derive(Clone, Debug)]
pub struct Entropy {
    prefix: [u8; 24],
    issued: u64,
    jitter: u64,
}

impl Entropy {
    /// Takes 32 random bytes, fresh for each machine.
    pub fn new(seed: [u8; 32]) -> Self {
        let (mut prefix, mut jitter) = ([0; 24], [0; 8]);
        prefix.copy_from_slice(&seed[..24]);
        jitter.copy_from_slice(&seed[24..]);
        Self { prefix, issued: 0, jitter: u64::from_be_bytes(jitter) }
    }

    /// A correlation id that this machine has not used before.
    pub fn request_id(&mut self) -> Bytes32 {
        self.issued = self.issued.wrapping_add(1);
        let mut id = [0; 32];
        id[..24].copy_from_slice(&self.prefix);
        id[24..].copy_from_slice(&self.issued.to_be_bytes());
        Bytes32(id)
    }

    /// The next number for jitter: SplitMix64.
    pub fn jitter(&mut self) -> u64 {
        self.jitter = self.jitter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.jitter;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
