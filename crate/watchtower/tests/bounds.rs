//! A declared length or count reserves nothing that is not there, and depth is bounded.

use std::alloc::System;

use remuda_watchtower::cbor::decode;
use remuda_watchtower::WatchtowerRefusal;
use stats_alloc::{Region, StatsAlloc, INSTRUMENTED_SYSTEM};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Heads that declare far more than follows.
const DECLARED: [&[u8]; 8] = [
    b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x9a\x7f\xff\xff\xff\x00",
    b"\xbb\x7f\xff\xff\xff\xff\xff\xff\xff\x61a\x00",
    b"\xba\x00\x10\x00\x00\x61a\x00",
    b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff\x00",
    b"\x5a\x7f\xff\xff\xff\x00",
    b"\x7b\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x7a\x7f\xff\xff\xffabc",
];

#[test]
fn what_is_declared_and_not_there_is_not_allocated() {
    for bytes in DECLARED {
        let region = Region::new(HEAP);
        assert_eq!(decode(bytes), Err(WatchtowerRefusal::Cbor));
        assert!(region.change().bytes_allocated < 1_024, "{bytes:?}");
    }
    // Arrays in arrays, each declaring as many elements as bytes are left.
    let mut nested: Vec<u8> = (0..100_u8).map(|_| 0x97).collect();
    nested.resize(1_000_000, 0);
    let region = Region::new(HEAP);
    assert_eq!(decode(&nested), Err(WatchtowerRefusal::Cbor));
    assert!(region.change().bytes_allocated < 65_536, "depth is bounded");
}
