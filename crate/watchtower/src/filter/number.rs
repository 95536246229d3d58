//! Numbers of headers and filters are one type, whatever they are written as, and compare by value, exactly.

use core::cmp::Ordering;

use crate::cbor::Float64;

/// An integer of up to 64 bits, or a binary64.
#[derive(Clone, Copy, Debug)]
pub struct Number(Repr);

#[derive(Clone, Copy, Debug)]
enum Repr {
    Integer(i128),
    Float(Float64),
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self(Repr::Integer(number.into()))
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self(Repr::Integer(number.into()))
    }
}

impl From<Float64> for Number {
    fn from(number: Float64) -> Self {
        Self(Repr::Float(number))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.compare(*other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl Number {
    /// The order of two numbers by value: neither is rounded to the other's form.
    pub fn compare(self, other: Self) -> Ordering {
        match (self.0, other.0) {
            (Repr::Integer(a), Repr::Integer(b)) => a.cmp(&b),
            // Finite numbers are ordered.
            (Repr::Float(a), Repr::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (Repr::Integer(a), Repr::Float(b)) => compare_mixed(a, b.get()),
            (Repr::Float(a), Repr::Integer(b)) => compare_mixed(b, a.get()).reverse(),
        }
    }
}

/// Mantissa bits of a binary64, and the exponent of its last one.
const MANTISSA_BITS: u32 = 52;
const EXPONENT_BIAS: i32 = 1_075;

/// An integer of at most 65 bits against a finite float, which is `mantissa * 2^exponent`.
fn compare_mixed(integer: i128, float: f64) -> Ordering {
    let bits = float.to_bits();
    let fraction = bits & ((1 << MANTISSA_BITS) - 1);
    let biased = i32::try_from(bits >> MANTISSA_BITS & 0x7ff).unwrap_or(0);
    let (mantissa, exponent) = if biased == 0 {
        (fraction, 1 - EXPONENT_BIAS)
    } else {
        (fraction | 1 << MANTISSA_BITS, biased - EXPONENT_BIAS)
    };
    let mantissa = i128::from(mantissa);
    // The whole part towards zero, far above every integer where it would not fit, and whether something is left.
    let (whole, rest) = match u32::try_from(exponent) {
        Ok(shift) => (mantissa << shift.min(70), false),
        Err(_) => {
            let shift = exponent.unsigned_abs().min(64);
            (mantissa >> shift, mantissa & ((1 << shift) - 1) != 0)
        }
    };
    if float < 0.0 {
        integer.cmp(&-whole).then(if rest { Ordering::Greater } else { Ordering::Equal })
    } else {
        integer.cmp(&whole).then(if rest { Ordering::Less } else { Ordering::Equal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(number: f64) -> Number {
        Float64::new(number).unwrap().into()
    }

    #[test]
    fn integers_and_floats_compare_by_value() {
        let cases = [
            (Number::from(3_u64), float(3.0), Ordering::Equal),
            (Number::from(3_u64), float(3.1), Ordering::Less),
            (Number::from(-3_i64), float(-3.1), Ordering::Greater),
            (Number::from(-4_i64), float(-3.9), Ordering::Less),
            (Number::from(0_u64), float(-0.0), Ordering::Equal),
            (Number::from(0_u64), float(f64::MIN_POSITIVE), Ordering::Less),
            (Number::from(0_u64), float(-f64::from_bits(1)), Ordering::Greater),
            // 2^53 + 1 has no binary64: rounding it would make it equal.
            (Number::from(9_007_199_254_740_993_u64), float(9_007_199_254_740_992.0), Ordering::Greater),
            (Number::from(u64::MAX), float(18_446_744_073_709_551_616.0), Ordering::Less),
            (Number::from(u64::MAX), float(f64::MAX), Ordering::Less),
            (Number::from(i64::MIN), float(-9_223_372_036_854_775_808.0), Ordering::Equal),
            (Number::from(i64::MIN), float(f64::MIN), Ordering::Greater),
        ];
        for (a, b, order) in cases {
            assert_eq!(a.compare(b), order, "{a:?} {b:?}");
            assert_eq!(b.compare(a), order.reverse(), "{b:?} {a:?}");
        }
    }
}
