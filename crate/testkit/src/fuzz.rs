//! Fuzz targets: what must hold for any bytes at all. The same functions run under libFuzzer (`fuzz/`) and under the driver of
//! `cargo xtask fuzz`, which needs no other compiler.
//!
//! A target panics when a decoder takes bytes that it does not encode again, or when an answer depends on what it may not
//! depend on. [`Target::check`] adds the heap: everything that was allocated on the way is bounded by the length of the input.

use remuda_verify::audit::{audit, Auditor};
use remuda_wire::audit::{AuditHead, AuditItem};
use remuda_wire::{Canonical, Reader};
use serde_json::Value;

use crate::vector::input::Input;
use crate::vector::op::audit::decode_base64;
use crate::vector::op::decode::{recode_as, type_names};

/// A promise about any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also of its file in `fuzz/fuzz_targets/` and of its folder in `fuzz/fixtures/`.
    pub name: &'static str,
    /// Panics where the promise is broken.
    pub run: fn(&[u8]),
    /// How many bytes may be allocated for each byte of input, those given back again included.
    pub heap_multiple: usize,
}

/// What may be allocated beside [`Target::heap_multiple`]: tables that are computed once, and what an empty answer costs.
const HEAP_CONSTANT: usize = 128 * 1024;

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "server_frame", run: server_frame, heap_multiple: 64 },
    Target { name: "client_frame", run: client_frame, heap_multiple: 64 },
    // A frame as a value is as large as the largest kind, however few bytes it came in.
    Target { name: "batch", run: batch, heap_multiple: 512 },
    Target { name: "broker_state", run: broker_state, heap_multiple: 64 },
    Target { name: "grant", run: grant, heap_multiple: 64 },
    Target { name: "object", run: object, heap_multiple: 64 },
    Target { name: "audit_parts", run: audit_parts, heap_multiple: 64 },
    // Judged twice, and printed.
    Target { name: "audit", run: audit_file, heap_multiple: 1_024 },
];

/// The target called `name`.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// Runs it under the heap bound; `allocated` answers all bytes that were ever allocated.
    ///
    /// # Panics
    /// Where the promise is broken.
    pub fn check(&self, bytes: &[u8], allocated: impl Fn() -> usize) {
        let before = allocated();
        (self.run)(bytes);
        let taken = allocated() - before;
        let allowed = self.heap_multiple * bytes.len() + HEAP_CONSTANT;
        assert!(taken <= allowed, "{} bytes of input, {taken} allocated, {allowed} allowed", bytes.len());
    }
}

fn recodes(of: &str, bytes: &[u8]) {
    match recode_as(of, bytes) {
        Some(Ok(again)) => assert_eq!(again, bytes, "{of} encodes to other bytes than it was decoded from"),
        Some(Err(_)) => {}
        None => panic!("no type {of}"),
    }
}

/// `CbqsServerFrameV1`.
pub fn server_frame(bytes: &[u8]) {
    recodes("CbqsServerFrameV1", bytes);
}

/// `CbqsClientFrameV1`.
pub fn client_frame(bytes: &[u8]) {
    recodes("CbqsClientFrameV1", bytes);
}

/// `CbqsServerFrameBatchV1`.
pub fn batch(bytes: &[u8]) {
    recodes("CbqsServerFrameBatchV1", bytes);
}

/// `BrokerStateV1`.
pub fn broker_state(bytes: &[u8]) {
    recodes("BrokerStateV1", bytes);
}

/// `StreamGrantV1`.
pub fn grant(bytes: &[u8]) {
    recodes("StreamGrantV1", bytes);
}

/// Any type: the first byte chooses it.
pub fn object(bytes: &[u8]) {
    if let Some((choice, rest)) = bytes.split_first() {
        let count = type_names().count();
        if let Some(name) = type_names().nth(usize::from(*choice) % count) {
            recodes(name, rest);
        }
    }
}

/// The head of an audit file and its items, decoded as values.
pub fn audit_parts(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let mut again = Vec::new();
    let Ok(head) = AuditHead::decode(&mut reader) else { return };
    again.extend(head.to_bytes());
    let Ok(count) = u32::decode(&mut reader) else { return };
    again.extend(count.to_bytes());
    for _ in 0..count {
        let Ok(item) = AuditItem::decode(&mut reader) else { break };
        again.extend(item.to_bytes());
    }
    assert!(bytes.starts_with(&again), "an audit's parts encode to other bytes than they were decoded from");
}

/// A whole audit: it ends, it never panics, and its report does not depend on how the file is cut.
pub fn audit_file(bytes: &[u8]) {
    let whole = audit(bytes).to_json();
    let mut auditor = Auditor::new();
    let step = bytes.last().map_or(1, |byte| usize::from(*byte) + 1);
    bytes.chunks(step).for_each(|chunk| auditor.push(chunk));
    assert_eq!(auditor.finish().to_json(), whole, "the report depends on how the file is cut");
}

/// What the vectors have for each target: honest objects and those that are refused.
pub fn seeds(vector_files: &[Value]) -> Vec<(&'static Target, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut add = |name: &str, bytes: Vec<u8>| {
        // What is larger is slow to bend and adds nothing but size.
        if let (Some(target), true) = (find(name), bytes.len() <= 65_536) {
            seeds.push((target, bytes));
        }
    };
    for vector in vector_files.iter().filter_map(|file| file["vectors"].as_array()).flatten() {
        let input = &vector["in"];
        if let Some(file) = input["file"].as_str().and_then(decode_base64) {
            add("audit", file.clone());
            add("audit_parts", file);
        }
        for frame in input["frames"].as_array().into_iter().flatten() {
            if let Ok(bytes) = Input::new(frame).bytes() {
                add("server_frame", bytes);
            }
        }
        let (Some(of), Ok(bytes)) = (input["type"].as_str(), Input::new(&input["bytes"]).bytes()) else { continue };
        match of {
            "CbqsServerFrameV1" => add("server_frame", bytes.clone()),
            "CbqsClientFrameV1" => add("client_frame", bytes.clone()),
            "CbqsServerFrameBatchV1" => add("batch", bytes.clone()),
            "BrokerStateV1" => add("broker_state", bytes.clone()),
            "StreamGrantV1" => add("grant", bytes.clone()),
            _ => {}
        }
        if let Some(choice) = type_names().position(|name| name == of).and_then(|at| u8::try_from(at).ok()) {
            add("object", [&[choice], &bytes[..]].concat());
        }
    }
    seeds
}

/// A source of choices that is the same in every run: xorshift64*.
#[derive(Debug)]
pub struct Choices(u64);

impl Choices {
    /// From a seed other than zero.
    pub const fn new(seed: u64) -> Self {
        Self(if seed == 0 { 1 } else { seed })
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Less than `bound`; zero for a bound of zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from((self.next() >> 16) % bound).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.next() >> 56).unwrap_or(0)
    }
}

/// Bends an input in one to six places, now and then with a piece of `other`.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], choices: &mut Choices) {
    const LENGTHS: [u32; 8] = [0, 1, 2, 255, 256, 65_536, 0x7fff_ffff, u32::MAX];
    for _ in 0..=choices.below(6) {
        let at = choices.below(bytes.len());
        match choices.below(9) {
            _ if bytes.is_empty() => bytes.push(choices.byte()),
            0 | 1 => bytes[at] ^= 1 << choices.below(8),
            2 => bytes[at] = choices.byte(),
            3 => bytes.insert(at, choices.byte()),
            4 => {
                bytes.remove(at);
            }
            5 => bytes.truncate(at),
            6 => {
                let length = LENGTHS[choices.below(LENGTHS.len())].to_be_bytes();
                bytes.iter_mut().skip(at).zip(length).for_each(|(byte, new)| *byte = new);
            }
            7 => {
                let end = (at + 1 + choices.below(64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = choices.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let start = choices.below(other.len());
                let end = (start + choices.below(256)).min(other.len());
                let until = (at + end - start).min(bytes.len());
                bytes.splice(at..until, other[start..end].iter().copied());
            }
        }
    }
}
