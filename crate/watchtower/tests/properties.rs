//! What holds for any bytes and any order of events.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use remuda_watchtower::cbor::{decode, Float64, Map, Value};
use remuda_watchtower::feed::{Feed, FeedConfig, Output, Start};
use remuda_watchtower::message::StreamMessage;
use remuda_watchtower::schedule::{KeyEntry, KeySchedule};
use remuda_watchtower::signing::Profile;
use remuda_watchtower::verifier::{Cursor, Verifier};
use support::*;

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(Value::Unsigned),
        any::<u64>().prop_map(Value::Negative),
        vec(any::<u8>(), 0..300).prop_map(Value::Bytes),
        ".{0,30}".prop_map(Value::Text),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
        any::<f64>().prop_filter_map("finite", |number| Float64::new(number).map(Value::Float)),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::Array),
            vec((".{0,30}", inner), 0..8).prop_map(|entries| Value::Map(Map::new(entries))),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_has_one_encoding_which_decodes_to_it(value in values()) {
        let bytes = value.to_bytes();
        prop_assert_eq!(decode(&bytes), Ok(value));
        prop_assert!(decode(&bytes[..bytes.len() - 1]).is_err(), "a prefix is no value");
        prop_assert!(decode(&[&bytes[..], &[0]].concat()).is_err(), "nor is an extension");
    }

    #[test]
    fn what_decodes_encodes_to_itself(bytes in vec(any::<u8>(), 0..64)) {
        if let Ok(value) = decode(&bytes) {
            prop_assert_eq!(value.to_bytes(), bytes);
        }
    }

    #[test]
    fn a_bent_value_is_refused_or_another_value(value in values(), at in any::<prop::sample::Index>(), bit in 0_u32..8) {
        let bytes = value.to_bytes();
        let mut bent = bytes.clone();
        *at.get_mut(&mut bent) ^= 1_u8 << bit;
        if let Ok(other) = decode(&bent) {
            prop_assert_ne!(&other, &value, "no bit is without meaning");
            prop_assert_eq!(other.to_bytes(), bent);
        }
    }
}

#[test]
fn every_bit_of_a_message_is_signed_or_refused() {
    let mut author = Author::new();
    author.publish_sealed(7);
    let message = &author.log[0];
    let verifier = Verifier {
        stream_id: stream_id(),
        profile: Profile::default(),
        schedule: KeySchedule::new(author.schedule.iter().copied()).unwrap(),
        cursor: Cursor::default(),
    };
    assert!(verifier.authenticate(message).is_ok());
    let bytes = message.to_value().to_bytes();
    for bit in 0..bytes.len() * 8 {
        let mut bent = bytes.clone();
        bent[bit / 8] ^= 1 << (bit % 8);
        let judged = decode(&bent).and_then(StreamMessage::from_value).and_then(|bent| verifier.authenticate(&bent));
        assert!(judged.is_err(), "bit {bit} means nothing");
    }
}

/// What a reader does, one step at a time.
#[derive(Clone, Copy, Debug)]
enum Event {
    Publish,
    PublishSealed(u64),
    Rotate,
    Prune,
    Pull,
    PullAndFail,
    GiveKey(u64),
    /// The process ends before or after what it was told is stored, and begins again from the store.
    Restart {
        stored: bool,
    },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => Just(Event::Publish),
        2 => (7_u64..10).prop_map(Event::PublishSealed),
        1 => Just(Event::Rotate),
        1 => Just(Event::Prune),
        4 => Just(Event::Pull),
        1 => Just(Event::PullAndFail),
        1 => (7_u64..10).prop_map(Event::GiveKey),
        1 => any::<bool>().prop_map(|stored| Event::Restart { stored }),
    ];
    vec(event, 1..60)
}

/// What is durable.
#[derive(Default)]
struct Store {
    cursor: Cursor,
    schedule: Vec<KeyEntry>,
    sequences: Vec<u64>,
    lost: Vec<u64>,
}

impl Store {
    fn take(&mut self, told: Vec<Output>) {
        for output in told {
            match output {
                Output::Store(batch) => {
                    self.sequences.extend(batch.items.iter().map(|item| item.message.sequence));
                    self.lost.extend(batch.gaps.iter().flat_map(|gap| gap.first..=gap.last));
                    self.cursor = batch.cursor;
                }
                Output::KeyHistory(schedule) => self.schedule = schedule,
                Output::StreamAccessRequired { .. } | Output::CursorTooOld(_) => {}
                other => panic!("an honest actor is not refused: {other:?}"),
            }
        }
    }

    fn feed(&self) -> Feed {
        let config = FeedConfig::new(stream_id(), Start::After(self.cursor));
        Feed::new(FeedConfig { schedule: self.schedule.clone(), ..config }).expect("a feed")
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_message_is_stored_once_in_order_or_reported_lost(events in events()) {
        let mut actor = Actor::new(Author::new());
        let mut store = Store::default();
        let mut feed = store.feed();
        let mut now = 0;
        for event in events {
            now += 60_000;
            let mut told = Vec::new();
            match event {
                Event::Publish => actor.author.publish(),
                Event::PublishSealed(epoch) => actor.author.publish_sealed(epoch),
                Event::Rotate => actor.author.rotate(),
                Event::Prune => actor.floor = (actor.floor + 3).min(actor.author.publisher.head_sequence().max(1)),
                Event::Pull => told = run(&mut feed, &mut actor, now),
                Event::PullAndFail => {
                    feed.handle_time(now);
                    feed.handle_transport_failure(at(now));
                    told = std::iter::from_fn(|| feed.poll_output()).filter(|output| !matches!(output, Output::Request(_))).collect();
                }
                Event::GiveKey(epoch) => {
                    feed.give_key(epoch, epoch_key(epoch), at(now));
                    told = settle(&mut feed, &mut actor, now);
                }
                Event::Restart { stored } => {
                    let last = run(&mut feed, &mut actor, now);
                    if stored {
                        store.take(last);
                    }
                    feed = store.feed();
                }
            }
            let too_old = told.iter().any(|output| matches!(output, Output::CursorTooOld(_)));
            store.take(told);
            if too_old {
                feed.choose(remuda_watchtower::feed::Choice::Resume, at(now));
                store.take(settle(&mut feed, &mut actor, now));
            }
        }
        // At the end every key comes.
        for round in 0..8 {
            now += 60_000;
            for epoch in 7..10 {
                feed.give_key(epoch, epoch_key(epoch), at(now));
            }
            let told = run(&mut feed, &mut actor, now);
            let too_old = told.iter().any(|output| matches!(output, Output::CursorTooOld(_)));
            store.take(told);
            if too_old {
                feed.choose(remuda_watchtower::feed::Choice::Resume, at(now + round));
                store.take(settle(&mut feed, &mut actor, now));
            }
        }
        let mut all: Vec<_> = store.sequences.iter().chain(&store.lost).copied().collect();
        prop_assert!(store.sequences.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", store.sequences);
        all.sort_unstable();
        let head = actor.author.publisher.head_sequence();
        prop_assert!(all.into_iter().eq(1..=head), "stored {:?}, lost {:?}, head {head}", store.sequences, store.lost);
    }
}
