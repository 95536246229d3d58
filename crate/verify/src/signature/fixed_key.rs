//! Many signatures of one key, each for a third of the price: a table of the key's multiples instead of doublings.
//!
//! `verify_strict` spends its time on decoding `R` and on 256 doublings. Neither is needed once the key is known:
//!
//! ```text
//! accept  <=>  S < l,  A canonical and not of small order,  compress(S B - k A) = R bytes,  S B - k A not of small order
//! ```
//! where `k = SHA-512(R || A || M) mod l`. This is `verify_strict` exactly: it decodes `R` only to refuse an `R` of small
//! order, and compares the compressed point with `R`'s bytes. Bytes equal to a compressed point are canonical and decode
//! to it, so the order of the point that was computed is the order of `R`.
//!
//! Made of the library's public interface alone. Variable time: everything here is public.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::array;

use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::traits::Identity;
use curve25519_dalek::{EdwardsPoint, Scalar};
use once_cell::race::OnceBox;
use remuda_wire::{Bytes32, Signature};
use sha2::{Digest, Sha512};

/// Bits of a digit: a larger table of 8 would save a sixth of the additions and cost three times the memory.
const DIGIT_BITS: usize = 6;
/// Digits of a scalar below 2^255, the last carry included.
const DIGITS: usize = 43;
/// Multiples in a row: digits are signed.
const MULTIPLES: usize = 32;

/// The multiples of one point at every second digit: `rows[i][j] = (j + 1) 64^(2 i) P`, 113 KB.
#[derive(Clone)]
struct Comb {
    rows: Vec<[EdwardsPoint; MULTIPLES]>,
}

impl Comb {
    fn new(point: EdwardsPoint) -> Self {
        let mut step = point;
        let rows = (0..DIGITS.div_ceil(2)).map(|_| {
            let mut multiple = EdwardsPoint::identity();
            let row = array::from_fn(|_| {
                multiple += step;
                multiple
            });
            step = shift_digit(&shift_digit(&step));
            row
        });
        Self { rows: rows.collect() }
    }

    /// Adds what the digits of one parity say, `parity` being 0 or 1.
    fn accumulate(&self, sum: &mut EdwardsPoint, digits: &[i8; DIGITS], parity: usize) {
        for (row, digit) in self.rows.iter().zip(digits.iter().skip(parity).step_by(2)) {
            let at = usize::from(digit.unsigned_abs());
            // Zero has no multiple, and adds nothing.
            let Some(multiple) = at.checked_sub(1).and_then(|at| row.get(at)) else { continue };
            if *digit < 0 {
                *sum -= multiple;
            } else {
                *sum += multiple;
            }
        }
    }
}

/// `64 P`: eight times eight.
fn shift_digit(point: &EdwardsPoint) -> EdwardsPoint {
    point.mul_by_cofactor().mul_by_cofactor()
}

/// The scalar in radix 64, digits from -31 to 32, the least significant first.
fn digits(scalar: &Scalar) -> [i8; DIGITS] {
    let bytes = scalar.as_bytes();
    let mut carry = 0;
    array::from_fn(|index| {
        let bit = DIGIT_BITS * index;
        let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or(0));
        let [window, _] = ((byte(bit / 8) | byte(bit / 8 + 1) << 8) >> (bit % 8) & 0x3f).to_le_bytes();
        let digit = window.cast_signed() + carry;
        carry = i8::from(digit > 32);
        digit - 64 * carry
    })
}

/// One key, ready for many signatures.
pub(super) struct FixedKey {
    /// The key's canonical bytes.
    encoded: Bytes32,
    /// Of `-A`, so that everything is added.
    negated: Comb,
}

impl FixedKey {
    /// Computes the table of a canonical key: as much work as six verifications. `None` for a key of small order, which
    /// verifies nothing.
    pub fn new(encoded: Bytes32, point: EdwardsPoint) -> Option<Self> {
        (!point.is_small_order()).then(|| Self { encoded, negated: Comb::new(-point) })
    }

    /// True exactly when `verify_strict` accepts.
    pub fn accepts(&self, message: &[u8], signature: &Signature) -> bool {
        let (commitment, response) = signature.0.split_at(32);
        let response: Option<Scalar> =
            response.try_into().ok().and_then(|bytes| Scalar::from_canonical_bytes(bytes).into());
        let Some(response) = response else { return false };
        let hash = Sha512::new().chain_update(commitment).chain_update(self.encoded.0).chain_update(message);
        let challenge = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());

        let (base, response, challenge) = (base_point(), digits(&response), digits(&challenge));
        let mut sum = EdwardsPoint::identity();
        base.accumulate(&mut sum, &response, 1);
        self.negated.accumulate(&mut sum, &challenge, 1);
        sum = shift_digit(&sum);
        base.accumulate(&mut sum, &response, 0);
        self.negated.accumulate(&mut sum, &challenge, 0);
        sum.compress().as_bytes() == commitment && !sum.is_small_order()
    }
}

/// The base point's table, shared by every key. Computed once: the library's own would add its bytes to every download.
fn base_point() -> &'static Comb {
    static BASE: OnceBox<Comb> = OnceBox::new();
    BASE.get_or_init(|| Box::new(Comb::new(ED25519_BASEPOINT_POINT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_the_scalar_again() {
        let seeds = [[0; 32], [1; 32], [0xff; 32], [0x20; 32], array::from_fn(|at| (at * 37 % 256).to_le_bytes()[0])];
        for seed in seeds {
            for scalar in [Scalar::from_bytes_mod_order(seed), -Scalar::from_bytes_mod_order(seed)] {
                let digits = digits(&scalar);
                assert!(digits.iter().all(|digit| (-31..=32).contains(digit)));
                let sum = digits.iter().rev().fold(Scalar::ZERO, |sum, digit| {
                    let magnitude = Scalar::from(digit.unsigned_abs());
                    let sum = sum * Scalar::from(64u8);
                    if *digit < 0 {
                        sum - magnitude
                    } else {
                        sum + magnitude
                    }
                });
                assert_eq!(sum, scalar);
            }
        }
    }

    #[test]
    fn a_key_of_small_order_has_no_table() {
        for point in curve25519_dalek::constants::EIGHT_TORSION {
            assert!(FixedKey::new(Bytes32(point.compress().to_bytes()), point).is_none());
        }
    }
}
