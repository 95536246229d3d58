//! `S B - k A` by the multiples of two points: a row of them for few signatures, and for many a comb that leaves hardly
//! any doubling.
//!
//! Made of the library's public interface alone. Variable time: everything here is public.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::array;

use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::traits::Identity;
use curve25519_dalek::{EdwardsPoint, Scalar};
use once_cell::race::OnceBox;

/// Bits of a digit: a larger table of 8 would save a sixth of the additions and cost three times the memory.
const DIGIT_BITS: usize = 6;
/// Digits of a scalar below 2^255, the last carry included.
const DIGITS: usize = 43;
/// Multiples in a row: digits are signed.
const MULTIPLES: usize = 32;

/// How much is computed in advance.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    /// One row, 5 KB: cheap to make, and every digit costs its doublings.
    Small,
    /// A row for every second digit, 113 KB: as much work as six verifications.
    Large,
}

/// The multiples of one point at some digits: `rows[i][j] = (j + 1) 64^(stride i) P`.
pub(super) struct Comb {
    size: Size,
    stride: usize,
    rows: Vec<[EdwardsPoint; MULTIPLES]>,
}

impl Comb {
    pub fn new(point: EdwardsPoint, size: Size) -> Self {
        let stride = match size {
            Size::Small => DIGITS,
            Size::Large => 2,
        };
        let mut step = point;
        let rows = (0..DIGITS.div_ceil(stride)).map(|row| {
            if row > 0 {
                (0..stride).for_each(|_| step = shift_digit(&step));
            }
            let mut multiple = EdwardsPoint::identity();
            array::from_fn(|_| {
                multiple += step;
                multiple
            })
        });
        Self { size, stride, rows: rows.collect() }
    }

    /// The base point's, shared by every key. Computed once: the library's own would add its bytes to every download.
    fn of_base_point(size: Size) -> &'static Self {
        static SMALL: OnceBox<Comb> = OnceBox::new();
        static LARGE: OnceBox<Comb> = OnceBox::new();
        let table = match size {
            Size::Small => &SMALL,
            Size::Large => &LARGE,
        };
        table.get_or_init(|| Box::new(Self::new(ED25519_BASEPOINT_POINT, size)))
    }

    /// Adds to `sum`, or takes away, what the digits at `offset` of every stride say.
    fn accumulate(&self, sum: &mut EdwardsPoint, digits: &[i8; DIGITS], offset: usize, takes_away: bool) {
        for (row, digit) in self.rows.iter().zip(digits.iter().skip(offset).step_by(self.stride)) {
            let at = usize::from(digit.unsigned_abs());
            // Zero has no multiple, and adds nothing.
            let Some(multiple) = at.checked_sub(1).and_then(|at| row.get(at)) else { continue };
            if (*digit < 0) == takes_away {
                *sum += multiple;
            } else {
                *sum -= multiple;
            }
        }
    }
}

/// `response B - challenge A`, `key` being the multiples of `A`.
pub(super) fn difference(response: &Scalar, challenge: &Scalar, key: &Comb) -> EdwardsPoint {
    let (response, challenge) = (digits(response), digits(challenge));
    let base = Comb::of_base_point(key.size);
    let mut sum = EdwardsPoint::identity();
    for offset in (0..key.stride).rev() {
        sum = shift_digit(&sum);
        base.accumulate(&mut sum, &response, offset, false);
        key.accumulate(&mut sum, &challenge, offset, true);
    }
    sum
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

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: [[u8; 32]; 4] = [[0; 32], [1; 32], [0xff; 32], [0x20; 32]];

    fn scalars() -> impl Iterator<Item = Scalar> {
        SEEDS.map(Scalar::from_bytes_mod_order).into_iter().flat_map(|scalar| [scalar, -scalar])
    }

    #[test]
    fn digits_make_the_scalar_again() {
        for scalar in scalars() {
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

    #[test]
    fn a_comb_of_any_size_multiplies() {
        let point = EdwardsPoint::mul_base(&Scalar::from(39u8));
        for size in [Size::Small, Size::Large] {
            let comb = Comb::new(point, size);
            for (response, challenge) in scalars().zip(scalars().skip(1)) {
                let expected = EdwardsPoint::mul_base(&response) - point * challenge;
                assert_eq!(difference(&response, &challenge, &comb), expected);
            }
        }
    }
}
