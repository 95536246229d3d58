//! Evidence of the two other families: of a feed, and of a broadcast.

use ed25519_dalek::{Signer, SigningKey};
use remuda_bps::evidence::Equivocation as BpsEquivocation;
use remuda_bps::signature::LocalSigner;
use remuda_bps::soc::UnsignedChunk;
use remuda_bps::topic::{session_topic, update_id, KIND_DATA};
use remuda_bps::{Broadcast, Cohort};
use remuda_watchtower::evidence::Equivocation;
use remuda_watchtower::message::Tags;
use remuda_watchtower::publisher::{Draft, Publisher};
use remuda_watchtower::schedule::{KeyEntry, KeySchedule};
use remuda_watchtower::{StreamId, StreamMessage};
use remuda_wire::{Bytes32, Signature};

use super::{Family, Sample};

pub(super) fn samples() -> Vec<Sample> {
    vec![
        Sample {
            name: "feed-equivocation",
            family: Family::Contradiction,
            title: "Two messages for one place",
            says: "The publisher of a Watchtower feed signed two messages for one sequence.",
            code: Some("watchtower/equivocation"),
            file: feed(),
        },
        Sample {
            name: "broadcast-contradiction",
            family: Family::Contradiction,
            title: "Two updates for one index",
            says: "The owner of a broadcast signed two updates for one index.",
            code: Some("bps contradiction"),
            file: broadcast(),
        },
    ]
}

fn feed() -> Vec<u8> {
    let key = SigningKey::from_bytes(&[0x5b; 32]);
    let pubkey = Bytes32(key.verifying_key().to_bytes());
    let stream = StreamId::Text("prices".into());
    let write = |payload: &[u8]| -> StreamMessage {
        let mut publisher = Publisher::new(stream.clone(), 41, 1, &pubkey).expect("a key");
        let draft = Draft {
            timestamp_unix_ms: 1_700_000_000_000,
            kind: "price".into(),
            content_type: None,
            tags: Tags::default(),
            payload: payload.to_vec(),
        };
        let composed = publisher.compose(draft, None).expect("composed");
        let signature = Signature(key.sign(composed.signing_bytes()).to_bytes());
        publisher.complete(composed, signature).expect("signed")
    };
    let entries = [KeyEntry { signing_key_id: 1, pubkey, effective_sequence: 1 }];
    let schedule = KeySchedule::new(entries).expect("a schedule");
    let found = Equivocation::judge(&stream, &schedule, write(b"{\"eth\":3120}"), write(b"{\"eth\":2870}"));
    found.expect("both are signed").expect("a contradiction").to_file(&entries)
}

fn broadcast() -> Vec<u8> {
    let signer = LocalSigner::new(&[0x64; 32]).expect("a key");
    let cohort = Cohort { topic: Bytes32([7; 32]), admin: signer.address() };
    let challenge = Bytes32([9; 32]);
    let update = |payload: &[u8]| {
        let chunk = UnsignedChunk::new(update_id(&session_topic(&cohort.topic, KIND_DATA, &challenge), 12), payload);
        let chunk = chunk.expect("short enough");
        let signature = signer.sign(&chunk.message()).expect("signed");
        let soc = chunk.sign(&cohort.admin, &signature).expect("by its owner");
        Broadcast { soc, kind: KIND_DATA.into(), challenge: challenge.0.into(), index: 12 }
    };
    let found = BpsEquivocation::judge(&cohort, update(b"north"), update(b"south"));
    found.expect("both are signed").expect("a contradiction").to_file(&cohort).expect("bounded")
}
