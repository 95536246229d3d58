//! The key stream: staged batches become records at once, and every part of them verifies.

mod common;

use common::keys::{batch, key_session};
use common::standard::{answered, append_request, standard_id};
use common::{fresh_directory, holder, Provider, Session};
use remuda_verify::key_batch::KeyBatchPosition;
use remuda_verify::response::AnsweredResult;
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::key_batch::{KeyEnvelope, KeyRotationBatch};
use remuda_wire::preimage::{keccak256, key_batch_genesis};
use remuda_wire::request::{
    BeginKeyBatchRequest, CommitKeyBatchRequest, OpenSubscriptionRequest, PutKeyBatchChunkRequest, RequestBody,
    StandardReplaySource, SubscriptionSource, VerificationMode,
};
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes24, Bytes32, List, Signed};

const ENCRYPTED: [&str; 3] = ["--class", "standard", "--encrypted"];

#[test]
fn a_batch_is_staged_committed_and_read_as_it_must_be() {
    let provider = Provider::start(&fresh_directory("key-batch"), &ENCRYPTED);
    let (mut session, main, rotation) = key_session(&provider, "\"APPEND\",\"REPLAY\"");
    let key_stream = session.stream.stream_id;
    let genesis = key_batch_genesis(&main.context, &key_stream);
    let (batch, envelopes) = batch(&main, &rotation, 1, genesis, 5);
    let digest = batch.digest();
    let begin = |batch: &KeyRotationBatch, total_chunks| {
        RequestBody::BeginKeyBatch(BeginKeyBatchRequest {
            key_stream_id: key_stream,
            batch: batch.clone(),
            total_chunks,
        })
    };
    let put = |index, envelopes: &[KeyEnvelope]| {
        RequestBody::PutKeyBatchChunk(PutKeyBatchChunkRequest {
            key_stream_id: key_stream,
            batch_digest: digest,
            chunk_index: index,
            envelopes: List::new(envelopes.to_vec()).expect("few"),
        })
    };
    let commit = RequestBody::CommitKeyBatch(CommitKeyBatchRequest { key_stream_id: key_stream, batch_digest: digest });
    assert_eq!(answered(&mut session, commit.clone()).err(), Some(3924), "not begun");
    let accepted = |result| match result {
        Ok(AnsweredResult::Staged(result)) => result.accepted_chunks,
        other => panic!("{other:?}"),
    };
    assert_eq!(accepted(answered(&mut session, begin(&batch, 2))), 0);
    assert_eq!(answered(&mut session, begin(&batch, 3)).err(), Some(3924), "begun with two chunks");
    assert_eq!(accepted(answered(&mut session, put(0, &envelopes[..3]))), 1);
    assert_eq!(accepted(answered(&mut session, put(0, &envelopes[..3]))), 1, "the same again");
    assert_eq!(answered(&mut session, put(0, &envelopes[..2])).err(), Some(3924), "other bytes");
    assert_eq!(answered(&mut session, put(2, &[])).err(), Some(3924), "no such index");
    assert_eq!(answered(&mut session, commit.clone()).err(), Some(3924), "a chunk is missing");
    assert_eq!(accepted(answered(&mut session, put(1, &envelopes[3..]))), 2);
    let committed = answered(&mut session, commit.clone()).expect("committed");
    assert_eq!(answered(&mut session, commit).expect("the same").receipt_digest(), committed.receipt_digest());
    let AnsweredResult::Committed(receipt) = committed else { panic!("{committed:?}") };
    assert_eq!((receipt.first_sequence, receipt.last_sequence), (0, 5));
    // The records are the batch's, and the receipt's.
    let id = keccak256(b"keys");
    let opened = session.request(RequestBody::OpenSubscription(OpenSubscriptionRequest {
        stream_id: key_stream,
        subscription_id: id,
        source: SubscriptionSource::StandardReplay(StandardReplaySource { scope: LaneScope::Any, after: None }),
        after_group_receipt: None,
        verification: VerificationMode::None,
    }));
    assert!(matches!(&opened[..], [ServerMessage::Response(_)]));
    let frames: Vec<_> = session.credit(id, 100, 1 << 20).into_iter().skip(1).map(ServerFrame).collect();
    let rotation_key = SigningPublicKey(Bytes32(rotation.verifying_key().to_bytes()));
    let position = KeyBatchPosition {
        context: &main.context,
        main_stream_id: &main.stream_id,
        rotation_key: &rotation_key,
        active_generation: 0,
        batch_tail: None,
        members: &[],
    };
    let verified = position.verify(batch, envelopes).expect("the next batch");
    let keys = main.keys();
    let receipt = verified.verify_receipt(receipt.into_inner(), &keys).expect("its receipt");
    verified.verify_records(&frames, Some(&receipt), None, &keys).expect("its records");
    let after = session.request(RequestBody::OpenSubscription(OpenSubscriptionRequest {
        stream_id: key_stream,
        subscription_id: id,
        source: SubscriptionSource::StandardReplay(StandardReplaySource {
            scope: LaneScope::Any,
            after: Some(standard_id(4)),
        }),
        after_group_receipt: None,
        verification: VerificationMode::None,
    }));
    assert!(matches!(&after[..], [ServerMessage::Response(_)]));
    assert_eq!(session.credit(id, 100, 1 << 20).len(), 2, "the last envelope alone");
}

#[test]
fn batches_that_do_not_belong_here() {
    let provider = Provider::start(&fresh_directory("key-refused"), &ENCRYPTED);
    let (mut session, main, rotation) = key_session(&provider, "\"APPEND\"");
    let key_stream = session.stream.stream_id;
    let genesis = key_batch_genesis(&main.context, &key_stream);
    let mut refused = |batch: KeyRotationBatch| {
        let body = BeginKeyBatchRequest { key_stream_id: key_stream, batch, total_chunks: 1 };
        answered(&mut session, RequestBody::BeginKeyBatch(body)).err()
    };
    assert_eq!(refused(batch(&main, &rotation, 2, genesis, 1).0), Some(3924), "two generations ahead");
    assert_eq!(refused(batch(&main, &rotation, 1, keccak256(b"other"), 1).0), Some(3924), "another predecessor");
    assert_eq!(refused(batch(&main, &holder(9), 1, genesis, 1).0), Some(3924), "another rotation key");
    let mut elsewhere = main.clone();
    elsewhere.stream_id = keccak256(b"elsewhere");
    assert_eq!(refused(batch(&elsewhere, &rotation, 1, genesis, 1).0), Some(3924), "another stream");
    elsewhere = main.clone();
    elsewhere.context.chain_id += 1;
    assert_eq!(refused(batch(&elsewhere, &rotation, 1, genesis, 1).0), Some(3938), "another chain");
    assert_eq!(refused(batch(&main, &rotation, 1, genesis, 1).0), None);
    let append = RequestBody::Append(append_request(&session, Bytes32::ZERO, "no ordinary record"));
    assert_eq!(answered(&mut session, append).err(), Some(3908));
}

#[test]
fn an_encrypted_stream_takes_nonces_and_binds_hpke_keys() {
    let provider = Provider::start(&fresh_directory("encrypted"), &ENCRYPTED);
    let refused = Session::with_grant(&provider, holder(1), provider.grant(&holder(1), ""));
    assert_eq!(common::error_code(&refused.err().expect("no HPKE key")), 3906);
    let grant = provider.grant(&holder(1), &format!(",\"hpkeKey\":\"{}\"", keccak256(b"member")));
    let mut session = Session::with_grant(&provider, holder(1), grant).unwrap_or_else(|frames| panic!("{frames:?}"));
    let lane = session.stream.lanes[0];
    let mut body = append_request(&session, lane, "sealed");
    body.nonce = Bytes24([5; 24]);
    assert!(answered(&mut session, RequestBody::Append(body.clone())).is_ok());
    body.encryption_generation = 1;
    assert_eq!(answered(&mut session, RequestBody::Append(body)).err(), Some(3905));
}
