//! Bytes to values: whatever is not the one encoding of a value is refused where it is read.
//!
//! Own code, since libraries are lenient where this profile is not: they take longer integers, shorter floats and
//! duplicate keys, and what is left of them after checking every head is a loop.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Float64, Map, Value, MAX_DEPTH};
use crate::refusal::WatchtowerRefusal;

type Decoded<T> = Result<T, WatchtowerRefusal>;

const REFUSED: WatchtowerRefusal = WatchtowerRefusal::Cbor;

/// Decodes exactly one item. Nothing is allocated for a length or count that the input does not have.
///
/// # Errors
/// [`WatchtowerRefusal::Cbor`].
pub fn decode(bytes: &[u8]) -> Decoded<Value> {
    let mut decoder = Decoder(bytes);
    let value = decoder.value(0)?;
    if decoder.0.is_empty() {
        Ok(value)
    } else {
        Err(REFUSED)
    }
}

/// What is left to read.
struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    fn value(&mut self, depth: usize) -> Decoded<Value> {
        let [first] = self.array()?;
        let (major, information) = (first >> 5, first & 0x1f);
        match major {
            0 => self.argument(information).map(Value::Unsigned),
            1 => self.argument(information).map(Value::Negative),
            2 => self.string(information).map(|bytes| Value::Bytes(bytes.into())),
            3 => self.text(information).map(Value::Text),
            4 => self.elements(information, depth).map(Value::Array),
            5 => self.entries(information, depth).map(Value::Map),
            7 => self.simple(information),
            _ => Err(REFUSED),
        }
    }

    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(REFUSED)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// The argument of a head, in its shortest form only.
    fn argument(&mut self, information: u8) -> Decoded<u64> {
        let (argument, least) = match information {
            0..=23 => (information.into(), 0),
            24 => (u8::from_be_bytes(self.array()?).into(), 24),
            25 => (u16::from_be_bytes(self.array()?).into(), 1 << 8),
            26 => (u32::from_be_bytes(self.array()?).into(), 1 << 16),
            27 => (u64::from_be_bytes(self.array()?), 1 << 32),
            _ => return Err(REFUSED),
        };
        if argument < least {
            return Err(REFUSED);
        }
        Ok(argument)
    }

    fn string(&mut self, information: u8) -> Decoded<&'a [u8]> {
        let length = usize::try_from(self.argument(information)?).map_err(|_| REFUSED)?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or(REFUSED)?;
        self.0 = rest;
        Ok(taken)
    }

    fn text(&mut self, information: u8) -> Decoded<String> {
        core::str::from_utf8(self.string(information)?).map(String::from).map_err(|_| REFUSED)
    }

    /// A count of parts that each take at least `least_bytes`.
    fn count(&mut self, information: u8, depth: usize, least_bytes: usize) -> Decoded<usize> {
        let count = usize::try_from(self.argument(information)?).map_err(|_| REFUSED)?;
        if depth >= MAX_DEPTH || count > self.0.len() / least_bytes {
            return Err(REFUSED);
        }
        Ok(count)
    }

    fn elements(&mut self, information: u8, depth: usize) -> Decoded<Vec<Value>> {
        let mut elements = Vec::new();
        for _ in 0..self.count(information, depth, 1)? {
            elements.push(self.value(depth + 1)?);
        }
        Ok(elements)
    }

    fn entries(&mut self, information: u8, depth: usize) -> Decoded<Map> {
        let mut map = Map::default();
        for _ in 0..self.count(information, depth, 2)? {
            let Value::Text(key) = self.value(depth + 1)? else { return Err(REFUSED) };
            let value = self.value(depth + 1)?;
            if !map.append(key, value) {
                return Err(REFUSED);
            }
        }
        Ok(map)
    }

    fn simple(&mut self, information: u8) -> Decoded<Value> {
        match information {
            20 => Ok(Value::Bool(false)),
            21 => Ok(Value::Bool(true)),
            22 => Ok(Value::Null),
            27 => {
                let number = f64::from_be_bytes(self.array()?);
                let kept = Float64::new(number).filter(|kept| kept.get().to_bits() == number.to_bits());
                kept.map(Value::Float).ok_or(REFUSED)
            }
            _ => Err(REFUSED),
        }
    }
}
