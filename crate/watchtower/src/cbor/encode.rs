//! Values to bytes: everything in its shortest form.

use alloc::vec::Vec;

use super::{Map, Value};

impl Value {
    /// The only encoding of this value.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(self, &mut bytes);
        bytes
    }
}

impl Map {
    /// The only encoding of this map.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_map(self, &mut bytes);
        bytes
    }
}

fn encode(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Unsigned(number) => head(0, *number, bytes),
        Value::Negative(number) => head(1, *number, bytes),
        Value::Bytes(content) => string(2, content, bytes),
        Value::Text(content) => string(3, content.as_bytes(), bytes),
        Value::Array(elements) => {
            head(4, count(elements.len()), bytes);
            elements.iter().for_each(|element| encode(element, bytes));
        }
        Value::Map(map) => encode_map(map, bytes),
        Value::Bool(false) => bytes.push(0xf4),
        Value::Bool(true) => bytes.push(0xf5),
        Value::Null => bytes.push(0xf6),
        Value::Float(number) => {
            bytes.push(0xfb);
            bytes.extend_from_slice(&number.get().to_be_bytes());
        }
    }
}

fn encode_map(map: &Map, bytes: &mut Vec<u8>) {
    head(5, count(map.entries().len()), bytes);
    for (key, value) in map.entries() {
        string(3, key.as_bytes(), bytes);
        encode(value, bytes);
    }
}

fn string(major: u8, content: &[u8], bytes: &mut Vec<u8>) {
    head(major, count(content.len()), bytes);
    bytes.extend_from_slice(content);
}

/// What is in memory has a length of at most 64 bits.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn head(major: u8, argument: u64, bytes: &mut Vec<u8>) {
    let major = major << 5;
    if let Ok(argument) = u8::try_from(argument) {
        if argument < 24 {
            bytes.push(major | argument);
        } else {
            bytes.extend_from_slice(&[major | 24, argument]);
        }
    } else if let Ok(argument) = u16::try_from(argument) {
        bytes.push(major | 25);
        bytes.extend_from_slice(&argument.to_be_bytes());
    } else if let Ok(argument) = u32::try_from(argument) {
        bytes.push(major | 26);
        bytes.extend_from_slice(&argument.to_be_bytes());
    } else {
        bytes.push(major | 27);
        bytes.extend_from_slice(&argument.to_be_bytes());
    }
}
