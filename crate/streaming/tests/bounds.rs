//! A declared length is only a claim: nothing is reserved for what has not come. Counted by the allocator of this test
//! binary, which is shared by all threads: one test.

use std::alloc::System;

use remuda_streaming::bound::MAX_MESSAGE_BYTES;
use remuda_streaming::grpc_web::{GrpcWebBody, CONTENT_TYPE};
use remuda_streaming::StreamRefused;
use stats_alloc::{Region, StatsAlloc, INSTRUMENTED_SYSTEM};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn a_declared_length_reserves_nothing() {
    for (declared, refused) in
        [(MAX_MESSAGE_BYTES, Ok(())), (MAX_MESSAGE_BYTES + 1, Err(StreamRefused::MessageTooLarge))]
    {
        let length = u32::try_from(declared).expect("a length on the wire").to_be_bytes();
        let bytes = [&[0u8][..], &length, &[1, 2, 3]].concat();
        let headers = [("content-type", CONTENT_TYPE)];
        let region = Region::new(HEAP);
        let mut body = GrpcWebBody::new(200, headers.iter().copied(), MAX_MESSAGE_BYTES).expect("a gRPC-Web answer");
        assert_eq!(body.handle_chunk(&bytes), refused);
        let allocated = region.change().bytes_allocated;
        assert!(allocated < 4_096, "{allocated} bytes for eight");
    }
}
