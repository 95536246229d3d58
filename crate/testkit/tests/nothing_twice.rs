//! No sub-root, chain or signature is computed twice for one item: by the count of hashes and of judged signatures.
//!
//! One test, so that nothing else of this process hashes meanwhile.

use std::sync::atomic::Ordering;

use remuda_testkit::builder::{AuditFile, Batch, Provider};
use remuda_verify::audit::Auditor;
use remuda_verify::authentic::OneKey;
use remuda_verify::fast::{FastState, FastSubscription, FastSubscriptionConfig, Verification};
use remuda_verify::signature::PublicKey;
use remuda_verify::sparse::{Folder, Proof};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::preimage::{empty_subtree, lane_payload_digest, HASHES_COMPUTED};
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::{Bytes32, List};

const SUBSCRIPTION: Bytes32 = Bytes32([1; 32]);
const LANES: u32 = 40;
const ACTIVE: u32 = 3;
const RECORDS: u32 = 50;

/// What a record costs: its payload, its digest, its leaf.
const PER_RECORD: u64 = 3;
/// What a checkpoint costs beside its lanes: its signing digest, which is also its name in the chain, and its range root.
const PER_CHECKPOINT: u64 = 2;

fn count<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = HASHES_COMPUTED.load(Ordering::Relaxed);
    let result = work();
    (result, HASHES_COMPUTED.load(Ordering::Relaxed) - before)
}

/// A Merkle list of `n` leaves has `n - 1` nodes: over all lanes, records less lanes.
fn sub_roots() -> u64 {
    u64::from(RECORDS - ACTIVE)
}

fn verify(provider: &Provider, verification: Verification, frames: &[Vec<u8>], key: &PublicKey) -> u64 {
    let config = FastSubscriptionConfig {
        context: provider.context.clone(),
        stream_id: provider.stream_id,
        encrypted: false,
        subscription_id: SUBSCRIPTION,
        verification,
    };
    let keys = OneKey(Some(key.clone()));
    let mut subscription = FastSubscription::new(config, FastState::default());
    let ((), hashes) = count(|| {
        for bytes in frames {
            match ServerFrame::from_bytes(bytes).expect("a frame").0 {
                ServerMessage::Delivery(delivery) => subscription.handle_delivery(&delivery, ()).expect("a record"),
                ServerMessage::Checkpoint(frame) => {
                    assert_eq!(subscription.handle_checkpoint(frame, &keys).expect("a batch").records().len(), 50);
                }
                other => panic!("an unexpected frame: {other:?}"),
            }
        }
    });
    hashes
}

/// Each path node of a sorted list of proofs once: those below where a lane parts from the one before it.
fn folding(batch: &Batch, lanes: &[Bytes32]) -> u64 {
    let mut folder = Folder::new();
    let mut least = 0;
    for (at, lane) in lanes.iter().enumerate() {
        let proof = batch.prove(lane);
        let leaf = proof.payload.as_ref().map(|payload| lane_payload_digest(lane, payload));
        let deepest = (0..256).rev().find(|depth| proof.bitmap.0[depth / 8] >> (7 - depth % 8) & 1 == 1);
        let bottom = if leaf.is_some() { 256 } else { deepest.map_or(0, |depth| depth + 1) };
        let bit = |key: &Bytes32, depth: usize| key.0[depth / 8] >> (7 - depth % 8) & 1;
        let top = match at.checked_sub(1).map(|before| &lanes[before]) {
            Some(before) => (0..256).find(|depth| bit(before, *depth) != bit(lane, *depth)).expect("lanes differ") + 1,
            None => 0,
        };
        least += u64::try_from(bottom.saturating_sub(top)).expect("at most 256");
        let Ok(_) = folder.fold(&Proof { key: lane, leaf, bitmap: &proof.bitmap, siblings: &proof.siblings }) else {
            panic!("an honest proof");
        };
    }
    assert_eq!(folder.hashes(), least, "the folder computes a node that it knows already");
    least
}

#[test]
fn nothing_is_computed_twice() {
    let mut provider = Provider::new();
    let lanes = provider.lanes(LANES);
    let batch = provider.commit(provider.records(RECORDS, 20, ACTIVE));
    let key = PublicKey::from_signing_key(&provider.public_key()).expect("a key");
    // Constants of the protocol are computed once for the whole process.
    empty_subtree(0);

    // Scoped: the lanes that are present, their payload digests, and each node of the map once.
    let scope = LaneScope::Set(LaneSet::new(lanes.clone()).expect("few").expect("some"));
    let frames: Vec<_> = batch.frames(SUBSCRIPTION, &lanes).collect();
    let expected =
        PER_RECORD * u64::from(RECORDS) + sub_roots() + u64::from(ACTIVE) + folding(&batch, &lanes) + PER_CHECKPOINT;
    assert_eq!(verify(&provider, Verification::ScopedProofs(scope), &frames, &key), expected);
    assert_eq!(key.judged(), 1);

    // Full: the map is made of its leaves instead; three paths of 256 that share what is above where they part.
    let frames: Vec<_> = batch.frames(SUBSCRIPTION, &provider.lanes(ACTIVE)).collect();
    let mut closing = batch.checkpoint(SUBSCRIPTION, &[]);
    closing.lanes = List::new(vec![]).expect("no lane");
    let full: Vec<_> = frames[..frames.len() - 1]
        .iter()
        .cloned()
        .chain([ServerFrame(ServerMessage::Checkpoint(closing)).to_bytes()])
        .collect();
    let (_, map) = count(|| folding(&batch, &provider.lanes(ACTIVE)));
    let shared = map - u64::from(ACTIVE);
    let hashes = verify(&provider, Verification::FullStream, &full, &key);
    let fixed = PER_RECORD * u64::from(RECORDS) + sub_roots() + u64::from(ACTIVE) + PER_CHECKPOINT;
    assert!(hashes <= fixed + shared, "{hashes} hashes where {} do", fixed + shared);
    assert_eq!(key.judged(), 2);

    // A whole audit: the same for each of its batches, whatever the size of its pieces.
    let (mut whole, mut cut) = (Auditor::new(), Auditor::new());
    let pieces: Vec<_> = AuditFile::new(2_048, 8).collect();
    let ((), hashes) = count(|| pieces.iter().for_each(|piece| whole.push(piece)));
    let ((), again) = count(|| pieces.iter().flat_map(|piece| piece.chunks(97)).for_each(|piece| cut.push(piece)));
    assert_eq!(hashes, again, "an item that a chunk cuts is judged twice");
    let report = whole.finish();
    assert_eq!((report.records, report.signatures), (2_048, 3));
    let mut provider = Provider::new();
    let eight = provider.lanes(8);
    let batches: u64 = (0..2).map(|_| folding(&provider.commit(provider.records(1_024, 8, 8)), &eight)).sum();
    let per_batch = PER_RECORD * 1_024 + (1_024 - 8) + 8 + PER_CHECKPOINT;
    // The stream's id and, for encryption, its key stream's; checkpoint genesis for the subscription and the
    // transition; the transition's digest.
    let head = hashes - 2 * per_batch - batches;
    assert!(head <= 8, "{head} hashes beside the batches");
}
