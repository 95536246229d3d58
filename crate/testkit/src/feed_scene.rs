//! What the benchmarks pull and receive of the two other protocols: a full page of a Watchtower feed, and a run of BPS
//! updates.

use ed25519_dalek::{Signer, SigningKey};
use remuda_bps::signature::LocalSigner;
use remuda_bps::soc::UnsignedChunk;
use remuda_bps::topic::{session_topic, update_id, KIND_DATA};
use remuda_bps::{judge, Broadcast, Cohort, Judged};
use remuda_watchtower::cbor::{map, Value};
use remuda_watchtower::feed::{Feed, FeedConfig, Moment, Output, Start};
use remuda_watchtower::message::Tags;
use remuda_watchtower::publisher::{Draft, Publisher};
use remuda_watchtower::schedule::KeyEntry;
use remuda_watchtower::verifier::Cursor;
use remuda_watchtower::{StreamId, StreamMessage, Tag};
use remuda_wire::{Bytes32, Signature};

/// Messages of a page.
pub const MESSAGES: u32 = 500;
/// Updates of a run.
pub const UPDATES: u32 = 64;
/// Bytes of each payload.
pub const PAYLOAD_BYTES: usize = 256;

/// An answer of `get_since`, full, and the schedule that its messages verify under.
#[derive(Clone, Debug)]
pub struct FeedPage {
    schedule: Vec<KeyEntry>,
    answer: Vec<u8>,
}

fn stream_id() -> StreamId {
    StreamId::Text("bench".into())
}

impl Default for FeedPage {
    fn default() -> Self {
        Self::new()
    }
}

impl FeedPage {
    /// 500 messages of one author.
    pub fn new() -> Self {
        let key = SigningKey::from_bytes(&[0x5a; 32]);
        let pubkey = Bytes32(key.verifying_key().to_bytes());
        let mut publisher = Publisher::new(stream_id(), 0, 1, &pubkey).expect("a key");
        let mut write = |number: u32| -> StreamMessage {
            let price = Tag::number(f64::from(number)).expect("finite");
            let draft = Draft {
                timestamp_unix_ms: 1_800_000_000_000,
                kind: "price".into(),
                content_type: None,
                tags: Tags::from([("px".into(), price), ("sym".into(), Tag::Text("ETH".into()))]),
                payload: vec![0x70; PAYLOAD_BYTES],
            };
            let composed = publisher.compose(draft, None).expect("composed");
            let signature = Signature(key.sign(composed.signing_bytes()).to_bytes());
            publisher.complete(composed, signature).expect("signed")
        };
        let messages = (0..MESSAGES).map(|number| write(number).to_value()).collect();
        let head = u64::from(MESSAGES);
        let answer =
            map([("messages", Value::Array(messages)), ("head_sequence", head.into()), ("floor_sequence", 1.into())]);
        let schedule = vec![KeyEntry { signing_key_id: 1, pubkey, effective_sequence: 1 }];
        Self { schedule, answer: answer.to_bytes() }
    }

    /// A feed that asks for this page.
    pub fn feed(&self) -> Feed {
        let config = FeedConfig::new(stream_id(), Start::After(Cursor::default()));
        Feed::new(FeedConfig { schedule: self.schedule.clone(), ..config }).expect("a feed")
    }

    /// Decodes, verifies and delivers everything.
    ///
    /// # Panics
    /// Where not all messages verify.
    pub fn pull(&self, mut feed: Feed) {
        feed.handle_time(0);
        assert!(matches!(feed.poll_output(), Some(Output::Request(_))));
        feed.handle_answer(200, &self.answer, Moment { now_ms: 0, random: 0 });
        let Some(Output::Store(batch)) = feed.poll_output() else { panic!("an honest page") };
        assert_eq!(u32::try_from(batch.items.len()), Ok(MESSAGES));
    }
}

/// A run of updates of one author.
#[derive(Clone, Debug)]
pub struct Broadcasts {
    cohort: Cohort,
    run: Vec<Broadcast>,
}

impl Default for Broadcasts {
    fn default() -> Self {
        Self::new()
    }
}

impl Broadcasts {
    /// 64 updates under one challenge.
    pub fn new() -> Self {
        let admin = LocalSigner::new(&[0x5a; 32]).expect("a key");
        let cohort = Cohort { topic: Bytes32([7; 32]), admin: admin.address() };
        let challenge = Bytes32([9; 32]);
        let topic = session_topic(&cohort.topic, KIND_DATA, &challenge);
        let sign = |index: u64| {
            let chunk = UnsignedChunk::new(update_id(&topic, index), &[0x70; PAYLOAD_BYTES]).expect("short");
            let signature = admin.sign(&chunk.message()).expect("signed");
            let soc = chunk.sign(&cohort.admin, &signature).expect("by the admin");
            Broadcast { soc, kind: KIND_DATA.into(), challenge: challenge.0.into(), index }
        };
        Self { cohort, run: (0..u64::from(UPDATES)).map(sign).collect() }
    }

    /// Judges everything.
    ///
    /// # Panics
    /// Where not all updates are delivered.
    pub fn judge(&self) {
        let mut cursor = None;
        for broadcast in &self.run {
            let judged = judge(&self.cohort, broadcast, cursor);
            assert!(matches!(judged, Ok(Judged::Delivered { gap: None, .. })));
            cursor = Some(broadcast.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Broadcasts, FeedPage};

    #[test]
    fn the_scenes_are_honest() {
        let page = FeedPage::new();
        page.pull(page.feed());
        Broadcasts::new().judge();
    }
}
