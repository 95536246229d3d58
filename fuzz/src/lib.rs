//! One target under libFuzzer: the promise of `remuda_testkit::fuzz`, under its heap bound.

use std::alloc::System;

use stats_alloc::{StatsAlloc, INSTRUMENTED_SYSTEM};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Runs the target called `name`.
///
/// # Panics
/// Where its promise is broken.
pub fn check(name: &str, bytes: &[u8]) {
    let target = remuda_testkit::fuzz::find(name).expect("a target of that name");
    target.check(bytes, || HEAP.stats().bytes_allocated);
}
