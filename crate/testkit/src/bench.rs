//! The measurements of `cargo xtask bench`: the same natively and in WebAssembly.
//!
//! Each is the best of several runs, since what else a machine does only ever slows it down.

use remuda_verify::audit::{AuditVerdict, Auditor};
use remuda_verify::authentic::OneKey;
use remuda_verify::fast::{FastState, FastSubscription, FastSubscriptionConfig, Verification};
use remuda_verify::signature::PublicKey;
use remuda_verify::sparse::{Folder, Proof};
use remuda_wire::checkpoint::{bit, set_bits, CheckpointFrame, LaneProof};
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::preimage::{empty_subtree, lane_payload_digest, merkle_node};
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::{Bytes32, Signed};

use crate::builder::{AuditFile, Provider};
use crate::edge_signature::{is_strictly_valid, Comparison, EdgeCases};
use crate::feed_scene::{Broadcasts, FeedPage, MESSAGES, UPDATES};

/// Lanes of the subscription.
pub const LANES: u32 = 463;
/// Lanes with records.
pub const ACTIVE_LANES: u32 = 8;
/// Records of the batch.
pub const RECORDS: u32 = 1_024;
/// Bytes of each payload.
pub const PAYLOAD_BYTES: usize = 256;

const RUNS: u32 = 5;
const RUN_MS: f64 = 250.0;
const AUDITS: [u32; 2] = [100_000, 1_000_000];
const EDGE_CASES: usize = 100_000;

/// What the measurements need of their host.
pub trait Host {
    /// A clock that only goes forward, in milliseconds.
    fn now_ms(&self) -> f64;
    /// The most memory that this process or module has had, in bytes.
    fn peak_bytes(&self) -> f64;
    /// Prints a line.
    fn line(&self, line: &str);
}

/// The frames that a `ScopedProofs` subscription to 463 lanes is sent of one batch.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Who signed it.
    pub provider: Provider,
    /// The scope, ascending.
    pub lanes: Vec<Bytes32>,
    /// Deliveries and the checkpoint, in their bytes.
    pub frames: Vec<Vec<u8>>,
}

const SUBSCRIPTION: Bytes32 = Bytes32([0x53; 32]);

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Scene {
    /// 1,024 records of 256 bytes over 8 of 463 lanes.
    pub fn new() -> Self {
        let mut provider = Provider::new();
        let lanes = provider.lanes(LANES);
        let batch = provider.commit(provider.records(RECORDS, PAYLOAD_BYTES, ACTIVE_LANES));
        let frames = batch.frames(SUBSCRIPTION, &lanes).collect();
        Self { provider, lanes, frames }
    }

    fn subscription(&self) -> FastSubscription<RecordDelivery> {
        let lanes = LaneSet::new(self.lanes.clone()).expect("few lanes").expect("some lanes");
        let config = FastSubscriptionConfig {
            context: self.provider.context.clone(),
            stream_id: self.provider.stream_id,
            encrypted: false,
            subscription_id: SUBSCRIPTION,
            verification: Verification::ScopedProofs(LaneScope::Set(lanes)),
        };
        FastSubscription::new(config, FastState::default())
    }

    /// The provider's key, its table made.
    pub fn keys(&self) -> OneKey {
        let key = PublicKey::from_signing_key(&self.provider.public_key()).expect("a key");
        key.prepare();
        OneKey(Some(key))
    }

    /// Decodes and verifies everything.
    ///
    /// # Panics
    /// Where not all records verify.
    pub fn verify(&self, keys: &OneKey) {
        let mut subscription = self.subscription();
        let mut verified = 0;
        for bytes in &self.frames {
            match ServerFrame::from_bytes(bytes).expect("a frame").0 {
                ServerMessage::Delivery(delivery) => {
                    subscription.handle_delivery(&delivery.clone(), delivery).expect("an honest record");
                }
                ServerMessage::Checkpoint(frame) => {
                    verified += subscription.handle_checkpoint(frame, keys).expect("an honest batch").records().len();
                }
                other => panic!("an unexpected frame: {other:?}"),
            }
        }
        assert_eq!(u32::try_from(verified), Ok(RECORDS));
    }

    fn checkpoint(&self) -> CheckpointFrame {
        let last = self.frames.last().expect("frames");
        match ServerFrame::from_bytes(last).expect("a frame").0 {
            ServerMessage::Checkpoint(frame) => frame,
            other => panic!("an unexpected frame: {other:?}"),
        }
    }
}

/// Runs everything.
pub fn run(host: &impl Host) {
    let bench = Bench { host };
    let scene = Scene::new();
    bench.batch(&scene);
    bench.frame(&scene);
    bench.signatures(&scene);
    bench.edge_cases();
    bench.feeds();
    AUDITS.iter().for_each(|records| bench.audit(*records));
}

struct Bench<'a, H> {
    host: &'a H,
}

impl<H: Host> Bench<'_, H> {
    fn print(&self, name: &str, value: f64, unit: &str) {
        self.host.line(&format!("bench: {name} = {value:.4} {unit}"));
    }

    /// The least milliseconds of one call.
    fn best_ms(&self, mut call: impl FnMut()) -> f64 {
        // Warm, and every table made.
        call();
        (0..RUNS).map(|_| self.run_ms(&mut call)).fold(f64::INFINITY, f64::min)
    }

    /// The same of two, turn by turn, so that whatever disturbs one disturbs the other.
    fn best_of_both_ms(&self, mut one: impl FnMut(), mut other: impl FnMut()) -> [f64; 2] {
        one();
        other();
        (0..RUNS).fold([f64::INFINITY; 2], |[a, b], _| [a.min(self.run_ms(&mut one)), b.min(self.run_ms(&mut other))])
    }

    fn run_ms(&self, call: &mut impl FnMut()) -> f64 {
        let (started, mut calls) = (self.host.now_ms(), 0.0);
        loop {
            call();
            calls += 1.0;
            let elapsed = self.host.now_ms() - started;
            if elapsed >= RUN_MS {
                return elapsed / calls;
            }
        }
    }

    fn batch(&self, scene: &Scene) {
        let keys = scene.keys();
        let ms = self.best_ms(|| scene.verify(&keys));
        self.print("verified records", f64::from(RECORDS) / ms * 1_000.0, "records/s");
    }

    fn frame(&self, scene: &Scene) {
        let frame = scene.checkpoint();
        let fold = || {
            let mut folder = Folder::new();
            let roots = frame.lanes.iter().map(|proof| {
                let LaneProof { lane_id: key, bitmap, siblings, .. } = proof;
                folder.fold(&Proof { key, leaf: leaf(proof), bitmap, siblings }).expect("a proof")
            });
            one_root(roots);
        };
        let naively = || one_root(frame.lanes.iter().map(fold_naively));
        let [ours, naive] = self.best_of_both_ms(fold, naively);
        self.print("463-lane frame, 8 active", ours, "ms");
        self.print("463-lane frame, 8 active, folded naively", naive, "ms");
        self.print("naive folding over ours (bar 20)", naive / ours, "times");
    }

    fn signatures(&self, scene: &Scene) {
        let mut provider = scene.provider.clone();
        let key = provider.public_key().0;
        let signed: Vec<_> = (0..64)
            .map(|_| {
                let batch = provider.commit(provider.records(1, 8, 1));
                (batch.receipt().digest(), *batch.receipt().signature())
            })
            .collect();
        let count = 64.0;
        let parsed = PublicKey::parse(&key).expect("a key");
        parsed.prepare();
        let parse_each_time = || {
            let good = signed.iter().all(|(digest, it)| is_strictly_valid(&key, &digest.0, it));
            assert!(good);
        };
        let parsed_once = || assert!(signed.iter().all(|(digest, it)| parsed.verify(&digest.0, it).is_ok()));
        let [strict, ours] = self.best_of_both_ms(parse_each_time, parsed_once);
        self.print("signatures, key parsed each time", count / strict * 1_000.0, "signatures/s");
        self.print("signatures of one key", count / ours * 1_000.0, "signatures/s");
        self.print("one key over parsing it (bar 1.5)", strict / ours, "times");
    }

    fn edge_cases(&self) {
        let comparison = Comparison::of(EdgeCases::new(39).take(EDGE_CASES));
        self.print("edge cases judged", f64::from(comparison.cases), "signatures");
        self.print("edge cases that hold", f64::from(comparison.accepted), "signatures");
        assert!(comparison.differing.is_empty(), "{:?}", comparison.differing);
        self.print("edge cases judged otherwise than strictly (bar 0)", 0.0, "signatures");
    }

    /// The two other protocols: from the bytes of an answer to what is stored.
    fn feeds(&self) {
        let page = FeedPage::new();
        // The key's table is made once for a feed, not once for a page.
        let feed = page.feed();
        page.pull(feed.clone());
        let ms = self.best_ms(|| page.pull(feed.clone()));
        self.print("verified messages of a watchtower feed", f64::from(MESSAGES) / ms * 1_000.0, "messages/s");
        let run = Broadcasts::new();
        let ms = self.best_ms(|| run.judge());
        self.print("verified chunks of a bps cohort", f64::from(UPDATES) / ms * 1_000.0, "chunks/s");
    }

    /// Only the audit is timed: making the file takes as long.
    fn audit(&self, records: u32) {
        let mut auditor = Auditor::new();
        let mut ms = 0.0;
        for piece in AuditFile::new(records, PAYLOAD_BYTES) {
            let started = self.host.now_ms();
            auditor.push(&piece);
            ms += self.host.now_ms() - started;
        }
        let report = auditor.finish();
        assert_eq!(report.verdict, AuditVerdict::Consistent);
        assert_eq!(u32::try_from(report.assurance[0].verified), Ok(records));
        let thousands = records / 1_000;
        self.print(&format!("audit of {thousands}k records"), f64::from(records) / ms * 1_000.0, "records/s");
        let mib = self.host.peak_bytes() / 1_048_576.0;
        self.print(&format!("peak memory after {thousands}k records"), mib, "MiB");
    }
}

fn leaf(proof: &LaneProof) -> Option<Bytes32> {
    proof.payload.as_ref().map(|payload| lane_payload_digest(&proof.lane_id, payload))
}

/// As the specification writes it down: 256 hashes for every lane.
fn fold_naively(proof: &LaneProof) -> Bytes32 {
    let mut siblings: [Option<Bytes32>; 256] = [None; 256];
    for (depth, sibling) in set_bits(&proof.bitmap).zip(proof.siblings.iter()) {
        siblings[usize::from(depth)] = Some(*sibling);
    }
    (0..=u8::MAX).rev().fold(leaf(proof).unwrap_or_else(|| empty_subtree(256)), |node, depth| {
        let sibling = siblings[usize::from(depth)].unwrap_or_else(|| empty_subtree(u16::from(depth) + 1));
        if bit(&proof.lane_id, depth) {
            merkle_node(&sibling, &node)
        } else {
            merkle_node(&node, &sibling)
        }
    })
}

fn one_root(mut roots: impl Iterator<Item = Bytes32>) {
    let first = roots.next().expect("a proof");
    assert!(roots.all(|root| root == first), "honest proofs fold to one root");
}
