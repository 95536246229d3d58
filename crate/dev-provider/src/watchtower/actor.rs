//! The stream actor (CIP-7): what it takes from a publisher, what it retains, and what it answers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{ensure, Context};
use remuda_verify::signature::verify_signature;
use remuda_watchtower::cbor::{decode, map, Map, Value};
use remuda_watchtower::content_key::SecretBytes;
use remuda_watchtower::publisher::Draft;
use remuda_watchtower::schedule::KeyEntry;
use remuda_watchtower::signing::{sha256, Profile};
use remuda_watchtower::{StreamId, StreamMessage, Tag};
use remuda_wire::Bytes32;
use serde_json::json;

use super::author::Author;
use super::lie::FeedLie;
use super::FeedSettings;
use crate::time::Clock;

/// `MAX_GET_SINCE_LIMIT`.
const MAX_LIMIT: u64 = 500;

/// An answer: of status 409 when it is refused, else 200.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Whether it is an error.
    pub refused: bool,
    /// Deterministic CBOR, when nobody lies.
    pub body: Vec<u8>,
}

impl Answer {
    fn ok(body: Map) -> Self {
        Self { refused: false, body: body.to_bytes() }
    }

    fn refused(body: Map) -> Self {
        Self { refused: true, body: body.to_bytes() }
    }
}

/// A stream, and whoever writes it.
#[derive(Debug)]
pub struct FeedActor {
    settings: FeedSettings,
    stream_id: StreamId,
    clock: Clock,
    state: Mutex<ActorState>,
}

#[derive(Debug)]
struct ActorState {
    author: Author,
    schedule: Vec<KeyEntry>,
    /// Messages from `floor_sequence` to `head_sequence`.
    ring: VecDeque<StreamMessage>,
    head_sequence: u64,
    floor_sequence: u64,
}

impl FeedActor {
    /// `init`, and the backlog that the settings ask for.
    ///
    /// # Errors
    /// When publishing fails.
    pub fn new(settings: &FeedSettings, seed: Bytes32, clock: Clock) -> anyhow::Result<Self> {
        let stream_id = StreamId::Text(format!("feed-{}", &seed.to_string()[..12]));
        let (author, first) = Author::new(seed, stream_id.clone())?;
        let state =
            ActorState { author, schedule: vec![first], ring: VecDeque::new(), head_sequence: 0, floor_sequence: 1 };
        let actor = Self { settings: settings.clone(), stream_id, clock, state: Mutex::new(state) };
        (0..settings.feed_backlog).try_for_each(|_| actor.publish_demo().map(drop))?;
        Ok(actor)
    }

    /// Which stream.
    pub const fn stream_id(&self) -> &StreamId {
        &self.stream_id
    }

    fn state(&self) -> MutexGuard<'_, ActorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the author sign a payload, and publishes it. Answers its sequence.
    ///
    /// # Errors
    /// For a payload that is too large.
    pub fn publish(&self, kind: &str, payload: &[u8]) -> anyhow::Result<u64> {
        let mut state = self.state();
        let next = state.head_sequence + 1;
        let every = self.settings.feed_rotate_every;
        if every > 0 && next > 1 && (next - 1).is_multiple_of(every) {
            state.rotate()?;
        }
        let number = Tag::number(f64::from(u32::try_from(next % 1_000)?)).context("a finite tag")?;
        let draft = Draft {
            timestamp_unix_ms: self.clock.now_ms(),
            kind: kind.into(),
            content_type: None,
            tags: BTreeMap::from([("n".into(), number), ("even".into(), Tag::Bool(next.is_multiple_of(2)))]),
            payload: payload.into(),
        };
        let key_epoch = self.settings.feed_paid.then(|| next / self.settings.feed_epoch_messages);
        let message = state.author.write(draft, key_epoch)?;
        state.accept(message, u64::from(self.settings.feed_capacity))?;
        Ok(next)
    }

    /// Publishes something: what the author does by itself.
    ///
    /// # Errors
    /// Those of [`Self::publish`].
    pub fn publish_demo(&self) -> anyhow::Result<u64> {
        let at = self.clock.now_ms();
        self.publish("price", format!("{{\"at\":{at}}}").as_bytes())
    }

    /// `rotate_publisher_key`. Answers the new id.
    ///
    /// # Errors
    /// Never for a key that the author made itself.
    pub fn rotate(&self) -> anyhow::Result<u64> {
        self.state().rotate()
    }

    /// The content key of an epoch: what the committee would deliver.
    pub fn content_key(&self, key_epoch: u64) -> SecretBytes {
        self.state().author.content_key(key_epoch)
    }

    /// What a page is told about the feed.
    pub fn info(&self) -> serde_json::Value {
        let state = self.state();
        let StreamId::Text(stream_id) = &self.stream_id else { return serde_json::Value::Null };
        let schedule = state.schedule.iter().map(|entry| {
            json!({
                "signingKeyId": entry.signing_key_id.to_string(),
                "pubkey": entry.pubkey.to_string(),
                "effectiveSequence": entry.effective_sequence.to_string(),
            })
        });
        json!({
            "streamId": stream_id,
            "schedule": schedule.collect::<Vec<_>>(),
            "paid": self.settings.feed_paid,
            "headSequence": state.head_sequence.to_string(),
            "floorSequence": state.floor_sequence.to_string(),
        })
    }

    fn lie_at(&self, cursor: u64) -> Option<FeedLie> {
        self.settings.feed_lie.filter(|_| cursor >= self.settings.feed_lie_after)
    }

    /// `get_since`. `None` when the body is not the documented request.
    pub fn get_since(&self, body: &[u8]) -> Option<Answer> {
        let request = decode(body).ok()?.into_map()?;
        let (cursor, limit) = (request.get("cursor")?.as_u64()?, request.get("limit")?.as_u64()?);
        let state = self.state();
        let lie = self.lie_at(cursor);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Some(Answer::refused(map([("code", "LIMIT_EXCEEDED".into())])));
        }
        if cursor + 1 < state.floor_sequence || lie == Some(FeedLie::FalseFloor) {
            return Some(Answer::refused(map([
                ("code", "CURSOR_TOO_OLD".into()),
                ("floor_sequence", state.floor_sequence.into()),
                ("head_sequence", state.head_sequence.into()),
            ])));
        }
        let after = state.ring.iter().filter(|message| message.sequence > cursor);
        let mut page: Vec<_> = after.take(usize::try_from(limit).ok()?).cloned().collect();
        if lie.is_none() {
            // What is below the threshold is told honestly, up to it.
            let honest = |message: &StreamMessage| message.sequence <= self.settings.feed_lie_after;
            page.retain(|message| self.settings.feed_lie.is_none() || honest(message));
        }
        let messages = match lie {
            Some(lie) => lie.bend_page(page, &state.author),
            None => page.iter().map(StreamMessage::to_value).collect(),
        };
        let mut answer = Answer::ok(map([
            ("messages", Value::Array(messages)),
            ("head_sequence", state.head_sequence.into()),
            ("floor_sequence", state.floor_sequence.into()),
        ]));
        if lie == Some(FeedLie::TrailingByte) {
            answer.body.push(0);
        }
        Some(answer)
    }

    /// `get_key_history`. `None` when the body is not the documented request.
    pub fn get_key_history(&self, body: &[u8]) -> Option<Answer> {
        let request = decode(body).ok()?.into_map()?;
        let (from, limit) = (request.get("from_signing_key_id")?.as_u64()?, request.get("limit")?.as_u64()?);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Some(Answer::refused(map([("code", "LIMIT_EXCEEDED".into())])));
        }
        let state = self.state();
        let entries = state.schedule.iter().filter(|entry| entry.signing_key_id >= from);
        let entries = entries.take(usize::try_from(limit).ok()?).map(KeyEntry::to_value);
        Some(Answer::ok(map([("entries", Value::Array(entries.collect()))])))
    }
}

impl ActorState {
    fn rotate(&mut self) -> anyhow::Result<u64> {
        let entry = self.author.rotate()?;
        self.schedule.push(entry);
        Ok(entry.signing_key_id)
    }

    /// `publish`: the checks of the document, then the ring buffer.
    fn accept(&mut self, message: StreamMessage, capacity: u64) -> anyhow::Result<()> {
        let active = self.schedule.last().context("a key")?;
        ensure!(message.sequence == self.head_sequence + 1, "the next sequence");
        ensure!(message.signing_key_id == active.signing_key_id, "the active key");
        ensure!(message.payload_hash == sha256(&message.payload_inline), "the hash of the payload");
        let signed = Profile::default().signing_bytes(&message);
        verify_signature(&active.pubkey, &signed, &message.publisher_sig).context("the publisher's signature")?;
        self.head_sequence = message.sequence;
        self.ring.push_back(message);
        if self.head_sequence - self.floor_sequence + 1 > capacity {
            self.ring.pop_front();
            self.floor_sequence += 1;
        }
        Ok(())
    }
}
