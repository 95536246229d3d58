//! A declared length or count is only a claim: over its bound it is refused before anything is allocated, and within it
//! nothing is reserved that the bytes at hand could not fill. Counted by the allocator of this test binary.
//!
//! One test, since the counter is shared by all threads.

mod support;

use std::alloc::System;

use remuda_testkit::vector::op::decode::recode_as;
use remuda_wire::chain::{BrokerState, ProviderEndpoint};
use remuda_wire::checkpoint::LaneProof;
use remuda_wire::frame::ServerFrameBatch;
use remuda_wire::key_batch::{HpkeCiphertext, KeyEnvelope};
use remuda_wire::lane::LaneRecord;
use remuda_wire::preimage::empty_subtree;
use remuda_wire::scope::LaneSet;
use remuda_wire::{bound, Bytes, Bytes32, Canonical, DecodeError, List, Text};
use stats_alloc::{Region, StatsAlloc, INSTRUMENTED_SYSTEM};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The answer, and all bytes that the heap gave out on the way to it, those already given back included.
fn counted<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let region = Region::new(HEAP);
    let answer = work();
    let change = region.change();
    (answer, change.bytes_allocated)
}

/// Something with a length or count in front.
struct Bounded {
    name: &'static str,
    bound: usize,
    refusal: DecodeError,
    decode: fn(&[u8]) -> Result<(), DecodeError>,
}

macro_rules! bounded {
    ($($ty:ty, $bound:ident;)+) => { [$(Bounded {
        name: stringify!($bound),
        bound: bound::$bound,
        refusal: DecodeError::LengthOverBound,
        decode: |bytes| <$ty>::from_bytes(bytes).map(drop),
    },)+] };
}

fn all() -> Vec<Bounded> {
    let mut all: Vec<_> = bounded! {
        Text<{ bound::MAX_PROVIDER_ENDPOINT_URI_BYTES }>, MAX_PROVIDER_ENDPOINT_URI_BYTES;
        List<ProviderEndpoint, { bound::MAX_PROVIDER_ENDPOINTS }>, MAX_PROVIDER_ENDPOINTS;
        Text<{ bound::MAX_ERROR_MESSAGE_BYTES }>, MAX_ERROR_MESSAGE_BYTES;
        Bytes<{ bound::MAX_ERROR_DETAILS_BYTES }>, MAX_ERROR_DETAILS_BYTES;
        Bytes<{ bound::MAX_CBFS_REFERENCE_BYTES }>, MAX_CBFS_REFERENCE_BYTES;
        List<Bytes32, { bound::MAX_KEY_ENVELOPES_PER_BATCH }>, MAX_KEY_ENVELOPES_PER_BATCH;
        Bytes<{ bound::MAX_AUDIT_SNAPSHOT_BYTES }>, MAX_AUDIT_SNAPSHOT_BYTES;
        Bytes<{ bound::MAX_WIRE_FRAME_BYTES }>, MAX_WIRE_FRAME_BYTES;
        List<BrokerState, { bound::MAX_AUDIT_CHAIN_READS }>, MAX_AUDIT_CHAIN_READS;
        List<Bytes32, { bound::MAX_PROOF_SIBLINGS }>, MAX_PROOF_SIBLINGS;
        List<LaneProof, { bound::MAX_PROOF_LANES_PER_SUBSCRIPTION }>, MAX_PROOF_LANES_PER_SUBSCRIPTION;
        LaneSet, MAX_LANE_IDS_PER_GRANT;
        Bytes<{ bound::MAX_INLINE_MESSAGE_BYTES }>, MAX_INLINE_MESSAGE_BYTES;
        List<LaneRecord, { bound::MAX_LANE_LIST_PAGE }>, MAX_LANE_LIST_PAGE;
        List<KeyEnvelope, { bound::MAX_KEY_ENVELOPES_PER_CHUNK }>, MAX_KEY_ENVELOPES_PER_CHUNK;
    }
    .into();
    all.push(Bounded {
        name: "HPKE_CIPHERTEXT_BYTES",
        bound: bound::HPKE_CIPHERTEXT_BYTES,
        refusal: DecodeError::EnvelopeLength,
        decode: |bytes| HpkeCiphertext::from_bytes(bytes).map(drop),
    });
    all.push(Bounded {
        name: "MAX_SERVER_FRAMES_PER_BATCH",
        bound: bound::MAX_SERVER_FRAMES_PER_BATCH,
        refusal: DecodeError::LengthOverBound,
        decode: |bytes| ServerFrameBatch::from_bytes(bytes).map(drop),
    });
    all
}

/// The bounds that the sources name where they read a length.
fn bounds_in_sources() -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).expect("sources") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).expect("a source");
        let reading = ["List<", "Bytes<", "Text<", "reader.length("];
        for line in text.lines().filter(|line| reading.iter().any(|word| line.contains(word))) {
            let Some((_, after)) = line.split_once("bound::") else { continue };
            let end = after.find(|letter: char| !letter.is_ascii_uppercase() && letter != '_').unwrap_or(after.len());
            names.push(after[..end].to_owned());
        }
    }
    names.sort();
    names.dedup();
    names
}

/// A declared length with `present` zero bytes after it.
fn declared(length: usize, present: usize) -> Vec<u8> {
    let mut bytes = u32::try_from(length).expect("a u32").to_be_bytes().to_vec();
    bytes.resize(4 + present, 0);
    bytes
}

#[test]
fn claims_allocate_nothing() {
    // The table of empty subtrees is computed once and kept.
    empty_subtree(0);
    over_the_bound_is_refused_unallocated();
    within_the_bound_only_what_is_there_counts();
    a_frame_slot_over_the_bound_is_refused_unallocated();
    any_four_bytes_of_any_object_may_claim_anything();
}

fn over_the_bound_is_refused_unallocated() {
    let all = all();
    for name in bounds_in_sources() {
        assert!(all.iter().any(|bounded| bounded.name == name), "bound::{name} is read and not tested here");
    }
    for Bounded { name, bound, refusal, decode } in &all {
        for (length, present) in [(bound + 1, 0), (bound + 1, 64), (0xffff_ffff, 64), (bound + 1, bound + 1)] {
            let bytes = declared(length, present);
            let (answer, allocated) = counted(|| decode(&bytes));
            assert_eq!(answer, Err(*refusal), "{name}: {length} declared");
            assert!(allocated < 1_024, "{name}: {length} declared, {allocated} bytes allocated");
        }
    }
}

/// The worst ratio of a value to its fewest bytes is that of a broker state: almost all options, absent on the wire.
const MULTIPLE: usize = 16;

fn within_the_bound_only_what_is_there_counts() {
    for Bounded { name, bound, decode, .. } in &all() {
        for present in [0, 1, 100, 1_000] {
            // As many bytes as declared would be a whole string; one less is a claim.
            let bytes = declared(*bound, present.min(bound - 1));
            let (answer, allocated) = counted(|| decode(&bytes));
            assert!(answer.is_err(), "{name}");
            let allowed = MULTIPLE * bytes.len() + 256;
            assert!(allocated <= allowed, "{name}: {present} bytes present, {allocated} allocated, {allowed} allowed");
        }
    }
}

fn a_frame_slot_over_the_bound_is_refused_unallocated() {
    let mut body = declared(1, 0);
    body.extend(declared(bound::MAX_WIRE_FRAME_BYTES + 1, 64));
    let (answer, allocated) = counted(|| ServerFrameBatch::from_bytes(&body).map(drop));
    assert_eq!(answer, Err(DecodeError::FrameTooLarge));
    assert!(allocated < 1_024, "{allocated} bytes allocated");
}

/// Wherever the length fields of an object are: each window of four bytes is one of them in turn.
fn any_four_bytes_of_any_object_may_claim_anything() {
    let mut tried = 0;
    for accepted in support::accepted(640) {
        let mut bent = accepted.bytes.clone();
        for at in 0..bent.len().saturating_sub(3) {
            for claim in [[0xff; 4], [0, 0xff, 0xff, 0xff], [0, 0, 0xff, 0xff], [0, 0, 1, 0]] {
                bent[at..at + 4].copy_from_slice(&claim);
                let (_, allocated) = counted(|| recode_as(&accepted.of, &bent));
                // Encoding again allocates too, and growing a buffer counts each of its sizes.
                let allowed = MULTIPLE * bent.len() + 4_096;
                assert!(allocated <= allowed, "{}: a claim at byte {at}, {allocated} allocated", accepted.name);
                tried += 1;
            }
            bent[at..at + 4].copy_from_slice(&accepted.bytes[at..at + 4]);
        }
    }
    assert!(tried > 10_000, "only {tried} claims were made");
}
