//! A declared length reserves nothing that is not there.

use std::alloc::System;

use remuda_bps::message::{Ack, Join};
use remuda_bps::{BpsRefusal, Broadcast};
use stats_alloc::{Region, StatsAlloc, INSTRUMENTED_SYSTEM};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn what_is_declared_and_not_there_is_not_allocated() {
    // A field of 4 GiB, one of 2^63 bytes, and an unknown one.
    let declared: [&[u8]; 4] = [
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x7a\xff\xff\xff\xff\x0f",
        b"\x1a\x7f\x00",
    ];
    for bytes in declared {
        let region = Region::new(HEAP);
        assert_eq!(Broadcast::from_bytes(bytes), Err(BpsRefusal::Protobuf));
        assert_eq!(Join::from_bytes(bytes), Err(BpsRefusal::Protobuf));
        assert!(Ack::from_bytes(bytes).is_err());
        // An error of the decoder names its place.
        assert!(region.change().bytes_allocated < 4_096, "{bytes:?}");
    }
}
