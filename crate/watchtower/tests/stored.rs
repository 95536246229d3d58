//! What is stored comes back as it was verified.

mod support;

use remuda_watchtower::feed::{Content, Gap, Start};
use remuda_watchtower::stored::{source_name, Standing, StoredItem};
use remuda_watchtower::verifier::Cursor;
use remuda_watchtower::StreamId;
use remuda_wire::Bytes32;

use support::*;

fn rows(batch: &remuda_watchtower::feed::Batch) -> Vec<StoredItem> {
    StoredItem::rows(batch).iter().map(|row| StoredItem::from_bytes(row).expect("a row of ours")).collect()
}

#[test]
fn messages_come_back_with_their_payloads() {
    let mut author = Author::with(1);
    author.publish_sealed(3);
    let mut actor = Actor::new(author);
    let mut feed = from_zero();
    let mut told = run(&mut feed, &mut actor, 0);
    feed.give_key(3, epoch_key(3));
    told.extend(settle(&mut feed, &mut actor, 0));
    let stored: Vec<_> = batches(&told).into_iter().flat_map(rows).collect();
    let expected = |sequence: u64| {
        let message = actor.author.log[usize::try_from(sequence).unwrap() - 1].clone();
        StoredItem::Message { message, content: Content::Plain(sequence.to_be_bytes().into()) }
    };
    assert_eq!(stored, [expected(1), expected(2)], "the sealed one opened, and its envelope beside it");
}

#[test]
fn what_does_not_open_says_so() {
    let mut author = Author::new();
    author.publish_sealed(1);
    let mut actor = Actor::new(author);
    let mut feed = from_zero();
    run(&mut feed, &mut actor, 0);
    feed.give_key(1, epoch_key(2));
    let told = settle(&mut feed, &mut actor, 0);
    let items = rows(batches(&told)[0]);
    assert!(matches!(items[..], [StoredItem::Message { content: Content::Unopened, .. }]), "{items:?}");
}

#[test]
fn gaps_stand_in_their_places() {
    let mut actor = Actor::new(Author::with(4));
    let mut feed = from_zero();
    let told = run(&mut feed, &mut actor, 0);
    let mut batch = batches(&told)[0].clone();
    batch.items.remove(1);
    batch.gaps = vec![Gap { first: 2, last: 2 }];
    let kinds: Vec<_> = rows(&batch)
        .into_iter()
        .map(|item| match item {
            StoredItem::Message { message, .. } => (message.sequence, message.sequence),
            StoredItem::Gap(Gap { first, last }) => (first, last),
        })
        .collect();
    assert_eq!(kinds, [(1, 1), (2, 2), (3, 3), (4, 4)]);
}

#[test]
fn a_standing_comes_back_and_only_whole() {
    let cursor = Cursor { last_sequence: u64::MAX, last_digest: Some(Bytes32([9; 32])) };
    for standing in [Standing { cursor, schedule: Author::new().schedule }, Standing::default()] {
        let bytes = standing.to_bytes();
        assert_eq!(Standing::from_bytes(&bytes), Ok(standing));
        for cut in 0..bytes.len() {
            assert!(Standing::from_bytes(&bytes[..cut]).is_err() && StoredItem::from_bytes(&bytes[..cut]).is_err());
        }
    }
    assert_eq!(feed(Start::After(cursor)).verified_cursor(), cursor);
}

#[test]
fn a_source_is_its_stream_and_its_filter() {
    let names = [
        source_name(&StreamId::Text("a".into()), None),
        source_name(&StreamId::Text("b".into()), None),
        source_name(&StreamId::Text("a".into()), Some("{}")),
        source_name(&StreamId::Text("a".into()), Some("")),
        source_name(&StreamId::Bytes(Bytes32([b'a'; 32])), None),
        source_name(&StreamId::Text("a".repeat(32)), None),
    ];
    for (index, name) in names.iter().enumerate() {
        assert!(!names[..index].contains(name));
    }
}
