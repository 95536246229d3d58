//! Ed25519 signatures at the edges, where implementations disagree, made in any number.
//!
//! | of the key | of `R` | of `S` |
//! |---|---|---|
//! | prime, mixed and small order | the same, and chosen so that a mixed-order key holds | as signed, plus multiples of l, minus l, random |
//! | over-long and signed-zero encodings | the same | 0, l - 1, l, high bits set |
//!
//! and a single flipped bit anywhere.

use std::collections::HashMap;

use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::{EdwardsPoint, Scalar};
use ed25519_dalek::{Signature as DalekSignature, VerifyingKey};
use remuda_verify::signature::{verify_signature, PublicKey};
use remuda_wire::{Bytes32, Signature};
use sha2::{Digest, Sha512};

use crate::random::Random;

const SECRETS: usize = 3;
const NONCES: usize = 64;
/// l, the order of the base point, little-endian.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// One signature to judge.
#[derive(Clone, Debug)]
pub struct EdgeCase {
    /// 32 bytes that may be a key.
    pub key: Bytes32,
    /// What may be signed.
    pub message: [u8; 32],
    /// 64 bytes that may be its signature.
    pub signature: Signature,
}

#[derive(Clone, Debug)]
struct Key {
    secret: Scalar,
    /// Its part of small order is so many times the generator.
    torsion: usize,
    bytes: [u8; 32],
}

/// Cases without end, the same for the same seed.
#[derive(Clone, Debug)]
pub struct EdgeCases {
    random: Random,
    keys: Vec<Key>,
    nonces: Vec<(Scalar, EdwardsPoint)>,
    odd_encodings: Vec<[u8; 32]>,
}

impl EdgeCases {
    /// Begins at `seed`. The keys are the same for every seed.
    pub fn new(seed: u64) -> Self {
        let mut fixed = Random::new(0x5eed);
        let mut scalar = || Scalar::from_bytes_mod_order(fixed.bytes());
        let secrets = [Scalar::ZERO].into_iter().chain((0..SECRETS).map(|_| scalar()));
        let with_torsion = |secret: Scalar| {
            let point = EdwardsPoint::mul_base(&secret);
            let key = |(torsion, part): (usize, &EdwardsPoint)| Key {
                secret,
                torsion,
                bytes: (point + part).compress().to_bytes(),
            };
            EIGHT_TORSION.iter().enumerate().map(key).collect::<Vec<_>>()
        };
        let keys = secrets.flat_map(with_torsion).collect();
        let mut random = Random::new(seed);
        let nonces = (0..NONCES).map(|_| {
            let nonce = Scalar::from_bytes_mod_order(random.bytes());
            (nonce, EdwardsPoint::mul_base(&nonce))
        });
        Self { nonces: nonces.collect(), random, keys, odd_encodings: odd_encodings() }
    }

    /// A signature that holds wherever one of this key can: `S B - k A` is `R` where the parts of small order agree.
    fn sign(&mut self, key: &Key, message: &[u8; 32]) -> [[u8; 32]; 2] {
        let (nonce, point) = match self.random.below(16) {
            // R itself is of small order.
            0 => (Scalar::ZERO, EdwardsPoint::default()),
            _ => self.nonces[self.random.below(NONCES)],
        };
        let first = self.random.below(8);
        let mut signature = [[0; 32]; 2];
        for torsion in (first..first + 8).map(|torsion| torsion % 8) {
            let commitment = (point + EIGHT_TORSION[torsion]).compress().to_bytes();
            let hash = Sha512::new().chain_update(commitment).chain_update(key.bytes).chain_update(message);
            let challenge = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
            signature = [commitment, (nonce + challenge * key.secret).to_bytes()];
            // Most mixed-order signatures fail; half of them are made to hold.
            let holds = (torsion + usize::from(challenge.as_bytes()[0] & 7) * key.torsion).is_multiple_of(8);
            if holds || first.is_multiple_of(2) {
                break;
            }
        }
        signature
    }

    fn bent_response(&mut self, response: [u8; 32]) -> [u8; 32] {
        match self.random.below(8) {
            0 => (0..=self.random.below(15)).fold(response, |sum, _| add(sum, ORDER)),
            1 => add(response, ORDER.map(|byte| !byte)),
            2 => ORDER,
            3 => (Scalar::ZERO - Scalar::ONE).to_bytes(),
            4 => [0; 32],
            5 => {
                let mut high = response;
                high[31] |= 0x20 << self.random.below(3);
                high
            }
            6 => self.random.bytes(),
            _ => Scalar::from_bytes_mod_order(self.random.bytes()).to_bytes(),
        }
    }

    fn odd_encoding(&mut self) -> [u8; 32] {
        self.odd_encodings[self.random.below(self.odd_encodings.len())]
    }
}

impl Iterator for EdgeCases {
    type Item = EdgeCase;

    fn next(&mut self) -> Option<EdgeCase> {
        let key = self.keys[self.random.below(self.keys.len())].clone();
        let mut message = self.random.bytes();
        let [mut commitment, mut response] = self.sign(&key, &message);
        let mut encoded = key.bytes;
        let flip = |bytes: &mut [u8; 32], bit: usize| bytes[bit / 8] ^= 1 << (bit % 8);
        match self.random.below(24) {
            0..6 => response = self.bent_response(response),
            6..8 => commitment = self.odd_encoding(),
            8 => encoded = self.odd_encoding(),
            9..11 => flip(&mut commitment, self.random.below(256)),
            11..13 => flip(&mut response, self.random.below(256)),
            13 => flip(&mut message, self.random.below(256)),
            14 if self.random.below(8) == 0 => flip(&mut encoded, self.random.below(256)),
            _ => {}
        }
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&commitment);
        signature[32..].copy_from_slice(&response);
        Some(EdgeCase { key: Bytes32(encoded), message, signature: Signature(signature) })
    }
}

/// `a + b` modulo 2^256, little-endian.
fn add(a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
    let mut carry = 0;
    std::array::from_fn(|at| {
        let [low, high] = (u16::from(a[at]) + u16::from(b[at]) + carry).to_le_bytes();
        carry = u16::from(high);
        low
    })
}

/// Encodings that are not those of a compressed point: `y + p` where that fits, and a sign on `x = 0`; and those of
/// small order, which are canonical.
fn odd_encodings() -> Vec<[u8; 32]> {
    let over_long = (0u8..19).map(|y| {
        let mut bytes = [0xff; 32];
        bytes[0] = 0xed + y;
        bytes[31] = 0x7f;
        bytes
    });
    let small = EIGHT_TORSION.iter().map(|point| point.compress().to_bytes());
    let signed = |bytes: [u8; 32]| {
        let mut negative = bytes;
        negative[31] ^= 0x80;
        [bytes, negative]
    };
    over_long.chain(small).flat_map(signed).collect()
}

/// What `ed25519-dalek` says strictly, of a key that is parsed for it and is the canonical encoding of its point.
pub fn is_strictly_valid(key: &Bytes32, message: &[u8], signature: &Signature) -> bool {
    let parsed = VerifyingKey::from_bytes(&key.0).ok();
    let canonical = parsed.filter(|parsed| parsed.to_edwards().compress().to_bytes() == key.0);
    canonical.is_some_and(|key| key.verify_strict(message, &DalekSignature::from_bytes(&signature.0)).is_ok())
}

/// What judging many cases in every way came to.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// How many were judged.
    pub cases: u32,
    /// How many hold.
    pub accepted: u32,
    /// Those that a new key, or one with its large table, judges otherwise than [`is_strictly_valid`].
    pub differing: Vec<EdgeCase>,
}

impl Comparison {
    /// Judges `cases` strictly, by a new key, and by one with its large table.
    pub fn of(cases: impl Iterator<Item = EdgeCase>) -> Self {
        let mut prepared: HashMap<Bytes32, Option<PublicKey>> = HashMap::new();
        let mut comparison = Self::default();
        for case in cases {
            let reference = is_strictly_valid(&case.key, &case.message, &case.signature);
            let by_new_key = verify_signature(&case.key, &case.message, &case.signature).is_ok();
            let key = prepared.entry(case.key).or_insert_with_key(|bytes| {
                let key = PublicKey::parse(bytes)?;
                key.prepare();
                Some(key)
            });
            let judged = key.as_ref().is_some_and(|key| key.verify(&case.message, &case.signature).is_ok());
            comparison.cases += 1;
            comparison.accepted += u32::from(reference);
            if [by_new_key, judged] != [reference; 2] {
                comparison.differing.push(case);
            }
        }
        comparison
    }
}
