//! Key batches, as the owner's rotation workload makes them.

use ed25519_dalek::SigningKey;
use remuda_wire::key::HpkePublicKey;
use remuda_wire::key_batch::{HpkeCiphertext, KeyEnvelope, KeyRotationBatch};
use remuda_wire::preimage::{envelope_digest, keccak256, key_stream_id, membership_set_digest, recipient_order_key};
use remuda_wire::request::{BeginKeyBatchRequest, CommitKeyBatchRequest, PutKeyBatchChunkRequest, RequestBody};
use remuda_wire::{Bytes32, List, Signature, Signed};

use super::{bytes32, holder, sign, Provider, Session, Stream};

/// A session on the key stream.
pub fn key_session(provider: &Provider, verbs: &str) -> (Session, Stream, SigningKey) {
    let info = provider.json("GET", "/demo/info", "");
    let main = provider.stream();
    let key_stream = bytes32(info["keyStreamId"].as_str().expect("a key stream"));
    assert_eq!(key_stream, key_stream_id(&main.stream_id));
    let rotation = SigningKey::from_bytes(&bytes32(info["rotationSeed"].as_str().expect("a seed")).0);
    let grant = provider.grant(&holder(1), &format!(",\"stream\":\"{key_stream}\",\"verbs\":[{verbs}]"));
    let mut session = Session::with_grant(provider, holder(1), grant).unwrap_or_else(|frames| panic!("{frames:?}"));
    session.stream.stream_id = key_stream;
    (session, main, rotation)
}

/// A batch of `members` keys after `previous`, and its envelopes: nobody can open them.
pub fn batch(
    main: &Stream,
    rotation: &SigningKey,
    generation: u64,
    previous: Bytes32,
    members: u8,
) -> (KeyRotationBatch, Vec<KeyEnvelope>) {
    let keys: Vec<_> = (0..members).map(|number| HpkePublicKey(keccak256(&[number]))).collect();
    let mut envelopes: Vec<_> = keys
        .iter()
        .map(|key| KeyEnvelope {
            stream_id: main.stream_id,
            encryption_generation: generation,
            recipient_hpke_key: *key,
            hpke_ciphertext: HpkeCiphertext([7; 80]),
        })
        .collect();
    envelopes.sort_by_key(|envelope| recipient_order_key(&envelope.recipient_hpke_key));
    let mut batch = KeyRotationBatch {
        context: main.context.clone(),
        stream_id: main.stream_id,
        encryption_generation: generation,
        previous_batch_digest: previous,
        sorted_envelope_digests: List::new(envelopes.iter().map(envelope_digest).collect()).expect("few"),
        membership_set_digest: membership_set_digest(&keys),
        created_at_ms: 1,
        signature: Signature::ZERO,
    };
    batch.signature = sign(rotation, &batch);
    (batch, envelopes)
}

/// The requests that stage a batch in one chunk and commit it.
pub fn requests(key_stream_id: Bytes32, batch: &KeyRotationBatch, envelopes: &[KeyEnvelope]) -> [RequestBody; 3] {
    let batch_digest = batch.digest();
    let envelopes = List::new(envelopes.to_vec()).expect("few");
    [
        RequestBody::BeginKeyBatch(BeginKeyBatchRequest { key_stream_id, batch: batch.clone(), total_chunks: 1 }),
        RequestBody::PutKeyBatchChunk(PutKeyBatchChunkRequest {
            key_stream_id,
            batch_digest,
            chunk_index: 0,
            envelopes,
        }),
        RequestBody::CommitKeyBatch(CommitKeyBatchRequest { key_stream_id, batch_digest }),
    ]
}
