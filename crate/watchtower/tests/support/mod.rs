//! An author, and an actor that serves what it wrote: as much of the other side as a feed needs.
#![allow(dead_code)] // Each test file uses a part.

use std::collections::BTreeMap;

use ed25519_dalek::{Signer, SigningKey};
use remuda_verify::secret::SecretBytes;
use remuda_watchtower::cbor::{map, Value};
use remuda_watchtower::feed::{Batch, Feed, FeedConfig, Moment, Output, Start};
use remuda_watchtower::publisher::{Draft, Publisher, Sealing};
use remuda_watchtower::schedule::KeyEntry;
use remuda_watchtower::transport::Request;
use remuda_watchtower::verifier::Cursor;
use remuda_watchtower::{StreamId, StreamMessage, Tag};
use remuda_wire::{Bytes24, Bytes32, Signature};

pub fn stream_id() -> StreamId {
    StreamId::Text("feed-1".into())
}

pub fn at(now_ms: u64) -> Moment {
    Moment { now_ms, random: 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(now_ms + 1) }
}

pub fn epoch_key(key_epoch: u64) -> SecretBytes {
    SecretBytes::new([u8::try_from(key_epoch).expect("a small epoch"); 32])
}

/// Whoever has the key, and the history of keys.
pub struct Author {
    pub publisher: Publisher,
    pub key: SigningKey,
    pub schedule: Vec<KeyEntry>,
    pub log: Vec<StreamMessage>,
}

fn signing_key(id: u64) -> SigningKey {
    SigningKey::from_bytes(&[u8::try_from(id).expect("a small id"); 32])
}

fn pubkey(key: &SigningKey) -> Bytes32 {
    Bytes32(key.verifying_key().to_bytes())
}

impl Author {
    pub fn new() -> Self {
        let key = signing_key(1);
        let schedule = vec![KeyEntry { signing_key_id: 1, pubkey: pubkey(&key), effective_sequence: 1 }];
        let publisher = Publisher::new(stream_id(), 0, 1, &pubkey(&key)).expect("a key");
        Self { publisher, key, schedule, log: Vec::new() }
    }

    pub fn with(messages: u64) -> Self {
        let mut author = Self::new();
        (0..messages).for_each(|_| author.publish());
        author
    }

    pub fn draft(&self) -> Draft {
        let sequence = self.publisher.head_sequence() + 1;
        let number = f64::from(u32::try_from(sequence).expect("a small sequence"));
        Draft {
            timestamp_unix_ms: 1_800_000_000_000 + sequence,
            kind: if sequence.is_multiple_of(2) { "even" } else { "odd" }.into(),
            content_type: None,
            tags: BTreeMap::from([("n".into(), Tag::number(number).expect("finite"))]),
            payload: sequence.to_be_bytes().into(),
        }
    }

    fn write(&mut self, draft: Draft, sealing: Option<Sealing<'_>>) {
        let composed = self.publisher.compose(draft, sealing.as_ref()).expect("composed");
        let signature = self.key.sign(composed.signing_bytes());
        let message = self.publisher.complete(composed, Signature(signature.to_bytes())).expect("complete");
        self.log.push(message);
    }

    pub fn publish(&mut self) {
        self.write(self.draft(), None);
    }

    pub fn publish_sealed(&mut self, key_epoch: u64) {
        let mut nonce = Bytes24::ZERO;
        nonce.0[..8].copy_from_slice(&self.publisher.head_sequence().to_be_bytes());
        self.write(self.draft(), Some(Sealing { key_epoch, key: &epoch_key(key_epoch), nonce }));
    }

    /// Another message for the next sequence than the one that will be published.
    pub fn sign_alternative(&self, kind: &str) -> StreamMessage {
        let mut publisher = self.publisher.clone();
        let composed = publisher.compose(Draft { kind: kind.into(), ..self.draft() }, None).expect("composed");
        let signature = self.key.sign(composed.signing_bytes());
        publisher.complete(composed, Signature(signature.to_bytes())).expect("complete")
    }

    pub fn rotate(&mut self) {
        let id = u64::try_from(self.schedule.len()).expect("few") + 1;
        self.key = signing_key(id);
        self.publisher.rotate(id, &pubkey(&self.key)).expect("a key");
        let effective_sequence = self.publisher.head_sequence() + 1;
        self.schedule.push(KeyEntry { signing_key_id: id, pubkey: pubkey(&self.key), effective_sequence });
    }
}

/// Serves an author's log from `floor` on.
pub struct Actor {
    pub author: Author,
    pub floor: u64,
    pub calls: Vec<Request>,
}

impl Actor {
    pub fn new(author: Author) -> Self {
        Self { author, floor: 1, calls: Vec::new() }
    }

    pub fn answer(&mut self, request: Request) -> (u16, Vec<u8>) {
        self.calls.push(request);
        let head = self.author.publisher.head_sequence();
        match request {
            Request::GetSince { cursor, .. } if cursor + 1 < self.floor => (409, too_old(self.floor, head)),
            Request::GetSince { cursor, limit } => {
                let messages = self.author.log.iter().filter(|message| message.sequence > cursor).take(limit);
                (200, page(messages.map(StreamMessage::to_value), head, self.floor))
            }
            Request::GetKeyHistory { from_signing_key_id, limit } => {
                let entries = self.author.schedule.iter().filter(|entry| entry.signing_key_id >= from_signing_key_id);
                (200, history(entries.take(limit)))
            }
        }
    }

    pub fn since_calls(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call, Request::GetSince { .. })).count()
    }
}

pub fn page(messages: impl Iterator<Item = Value>, head: u64, floor: u64) -> Vec<u8> {
    let messages = Value::Array(messages.collect());
    map([("messages", messages), ("head_sequence", head.into()), ("floor_sequence", floor.into())]).to_bytes()
}

pub fn too_old(floor: u64, head: u64) -> Vec<u8> {
    map([("code", "CURSOR_TOO_OLD".into()), ("floor_sequence", floor.into()), ("head_sequence", head.into())])
        .to_bytes()
}

pub fn history<'a>(entries: impl Iterator<Item = &'a KeyEntry>) -> Vec<u8> {
    map([("entries", Value::Array(entries.map(KeyEntry::to_value).collect()))]).to_bytes()
}

pub fn feed(start: Start) -> Feed {
    Feed::new(FeedConfig::new(stream_id(), start)).expect("a feed")
}

/// From the very beginning.
pub fn from_zero() -> Feed {
    feed(Start::After(Cursor::default()))
}

/// Runs a feed that is due until it waits for something else than an answer; hands back all that it told.
pub fn run(feed: &mut Feed, actor: &mut Actor, now_ms: u64) -> Vec<Output> {
    feed.handle_time(now_ms);
    settle(feed, actor, now_ms)
}

/// Answers requests until there is none, and stops after the first answer that brought nothing.
pub fn settle(feed: &mut Feed, actor: &mut Actor, now_ms: u64) -> Vec<Output> {
    let mut told = Vec::new();
    while let Some(output) = feed.poll_output() {
        match output {
            Output::Request(request) => {
                let (status, body) = actor.answer(request);
                feed.handle_answer(status, &body, at(now_ms));
            }
            other => told.push(other),
        }
    }
    told
}

pub fn batches(told: &[Output]) -> Vec<&Batch> {
    told.iter().filter_map(stored).collect()
}

fn stored(output: &Output) -> Option<&Batch> {
    match output {
        Output::Store(batch) => Some(batch),
        _ => None,
    }
}

pub fn sequences(told: &[Output]) -> Vec<u64> {
    batches(told).iter().flat_map(|batch| batch.items.iter().map(|item| item.message.sequence)).collect()
}
