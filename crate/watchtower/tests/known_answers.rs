//! The known answers of `WATCHTOWER.md`, and what the publisher's side promises.

mod support;

use std::collections::BTreeMap;

use ed25519_dalek::{Signer, SigningKey};
use remuda_watchtower::content_key::{open, ContentKeys, MAX_EFFECTIVE_PLAINTEXT_BYTES};
use remuda_watchtower::message::MAX_INLINE_PAYLOAD_BYTES;
use remuda_watchtower::publisher::{Draft, Publisher, Sealing};
use remuda_watchtower::signing::{associated_data, sha256};
use remuda_watchtower::{StreamId, Tag, WatchtowerRefusal};
use remuda_wire::{Bytes24, Bytes32, Signature};
use support::{epoch_key, stream_id, Author};

fn known_draft() -> Draft {
    Draft {
        timestamp_unix_ms: 1_800_000_000_000,
        kind: "price".into(),
        content_type: None,
        tags: BTreeMap::from([
            ("px".into(), Tag::number(1.5).unwrap()),
            ("sym".into(), Tag::Text("ETH".into())),
            ("live".into(), Tag::Bool(true)),
        ]),
        payload: br#"{"p":1}"#.to_vec(),
    }
}

#[test]
fn the_signing_payload_of_the_document() {
    let composed = Author::new().publisher.compose(known_draft(), None).unwrap();
    let signed = composed.signing_bytes();
    assert_eq!(signed.len(), 236);
    assert_eq!(sha256(signed).to_string(), "ffa26f9f7a330d881322134252fd6f2f7ca4f62176a4fb4f23c24fd98b67a902");
}

#[test]
fn the_associated_data_of_the_document() {
    let bytes = associated_data(&stream_id(), 1, 7, "price", "application/json");
    let known =
        "a5646b696e646570726963656873657175656e636501696b65795f65706f6368076973747265616d5f696466666565642d316c\
                 636f6e74656e745f74797065706170706c69636174696f6e2f6a736f6e";
    assert_eq!(hex::encode(bytes), known);
}

#[test]
fn a_signature_is_checked_before_it_is_published() {
    let mut author = Author::new();
    let composed = author.publisher.compose(known_draft(), None).unwrap();
    let stranger = SigningKey::from_bytes(&[9; 32]).sign(composed.signing_bytes());
    let refused = author.publisher.complete(composed.clone(), Signature(stranger.to_bytes()));
    assert_eq!(refused, Err(WatchtowerRefusal::Signature));
    assert_eq!(author.publisher.head_sequence(), 0);

    let own = Signature(author.key.sign(composed.signing_bytes()).to_bytes());
    assert_eq!(author.publisher.complete(composed.clone(), own).unwrap().sequence, 1);
    // A second message for one sequence would be evidence against us.
    assert_eq!(author.publisher.complete(composed, own), Err(WatchtowerRefusal::Equivocation));
}

#[test]
fn payloads_are_bounded_sealed_or_not() {
    let publisher = Author::new().publisher;
    let draft = |length| Draft { payload: vec![0; length], ..known_draft() };
    let key = epoch_key(7);
    let sealing = Sealing { key_epoch: 7, key: &key, nonce: Bytes24([1; 24]) };
    assert!(publisher.compose(draft(MAX_INLINE_PAYLOAD_BYTES), None).is_ok());
    assert!(publisher.compose(draft(MAX_EFFECTIVE_PLAINTEXT_BYTES), Some(&sealing)).is_ok());
    for (length, sealing) in [(MAX_INLINE_PAYLOAD_BYTES + 1, None), (MAX_EFFECTIVE_PLAINTEXT_BYTES + 1, Some(&sealing))]
    {
        assert_eq!(publisher.compose(draft(length), sealing), Err(WatchtowerRefusal::PayloadTooLarge));
    }
}

#[test]
fn what_is_sealed_opens_for_its_envelope() {
    let mut author = Author::new();
    author.publish_sealed(7);
    let mut keys = ContentKeys::default();
    keys.insert(stream_id(), 7, epoch_key(7));
    let message = &author.log[0];
    assert_eq!(open(&keys, message).unwrap().plaintext, 1_u64.to_be_bytes());
    let mut moved = message.clone();
    moved.sequence += 1;
    assert_eq!(open(&keys, &moved).map_err(|refused| refused.verdict()), Err(WatchtowerRefusal::Aead));
}

#[test]
fn a_publisher_needs_a_key_that_is_one() {
    let refused = Publisher::new(StreamId::Text("s".into()), 0, 1, &Bytes32([0xff; 32]));
    assert_eq!(refused.map(drop), Err(WatchtowerRefusal::KeySchedule));
}
