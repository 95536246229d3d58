//! What a static stream may say, and what becomes of a message that it may not.

use prost::Message;
use remuda_streaming::query::{NewestQuery, OrderedQuery};
use remuda_streaming::static_stream::{StaticEvent, StaticRequest, StaticStream};
use remuda_streaming::{proto, OrderedPrefix, SequenceId, StreamRefused, Topic};
use remuda_testkit::builder::rows::{self, group, messages};

fn row(topic: &Topic, place: u64) -> proto::ServerEnvelope {
    rows::row(topic, place, b"payload")
}

fn open() -> StaticStream {
    let mut stream = StaticRequest::new(&[(group(1), 5), (group(2), 0)]).expect("two topics").open();
    stream.handle(rows::started(1_000, &[(group(1), 9), (group(2), 0)])).expect("an honest start");
    stream
}

fn prefixes(event: StaticEvent) -> Vec<OrderedPrefix> {
    match event {
        StaticEvent::Rows(prefixes) => prefixes,
        other => panic!("{other:?}"),
    }
}

fn places(prefix: &OrderedPrefix) -> (u64, Vec<u64>) {
    (prefix.after().get(), prefix.rows().iter().map(|row| row.sequence_id().get()).collect())
}

#[test]
fn rows_become_one_prefix_per_topic_that_begins_where_the_last_one_ended() {
    let mut stream = open();
    let first = messages(vec![row(&group(2), 3), row(&group(1), 6), row(&group(2), 1_000_000)]);
    let first = prefixes(stream.handle(first).expect("honest"));
    assert_eq!(first.iter().map(OrderedPrefix::topic).collect::<Vec<_>>(), [group(2), group(1)]);
    assert_eq!(first.iter().map(places).collect::<Vec<_>>(), [(0, vec![3, 1_000_000]), (5, vec![6])]);
    let second = prefixes(stream.handle(messages(vec![row(&group(1), 8)])).expect("honest"));
    assert_eq!(second.iter().map(places).collect::<Vec<_>>(), [(6, vec![8])]);
}

#[test]
fn a_refused_message_yields_none_of_its_rows_and_moves_nothing() {
    let mut stream = open();
    let before: Vec<_> = stream.received().to_vec();
    let bad = messages(vec![row(&group(1), 6), row(&group(2), 4), row(&group(1), 6)]);
    assert_eq!(stream.handle(bad), Err(StreamRefused::Order));
    assert_eq!(stream.received(), before, "the good rows before the bad one are dropped with it");
}

#[test]
fn a_row_is_kept_as_it_came_with_what_we_do_not_know() {
    let mut bytes = row(&group(1), 6).encode_to_vec();
    bytes.extend_from_slice(&[0x78, 0x2a]);
    let mut message = vec![0x0a, u8::try_from(bytes.len()).expect("short")];
    message.extend_from_slice(&bytes);
    let mut response = vec![0x12, u8::try_from(message.len()).expect("short")];
    response.extend_from_slice(&message);
    let rows = prefixes(open().handle(response.into()).expect("an unknown field is ignored"));
    assert_eq!(rows[0].rows()[0].bytes().as_ref(), bytes);
    assert_eq!(rows[0].rows()[0].message_hash(), &[7; 32]);
}

#[test]
fn a_prefix_divided_is_two_prefixes_without_a_gap() {
    let rows = messages((6..10).map(|place| row(&group(1), place)).collect());
    let whole = prefixes(open().handle(rows).expect("honest")).remove(0);
    let (first, rest) = whole.clone().split_at(3);
    assert_eq!(places(&first), (5, vec![6, 7, 8]));
    assert_eq!(rest.as_ref().map(places), Some((8, vec![9])));
    assert_eq!(whole.clone().split_at(4), (whole.clone(), None));
    let (none, all) = whole.clone().split_at(0);
    assert_eq!((places(&none), all), ((5, vec![]), Some(whole)));
}

#[test]
fn a_page_is_judged_like_a_stream() {
    let page = |rows: Vec<proto::ServerEnvelope>, has_more| {
        let continuation = Some(proto::query_response::Continuation { has_more });
        proto::QueryResponse { envelopes: rows, continuation }.encode_to_vec().into()
    };
    let query = OrderedQuery::new(&[(group(1), 5)], 100).expect("one topic");
    let answer = query.clone().answer(page(vec![row(&group(1), 7), row(&group(1), 9)], true)).expect("honest");
    assert!(answer.has_more);
    assert_eq!(answer.prefixes.iter().map(places).collect::<Vec<_>>(), [(5, vec![7, 9])]);
    for (rows, refused) in [
        (vec![row(&group(1), 5)], StreamRefused::Order),
        (vec![row(&group(1), 9), row(&group(1), 7)], StreamRefused::Order),
        (vec![row(&group(2), 9)], StreamRefused::UnrequestedTopic),
    ] {
        assert_eq!(query.clone().answer(page(rows, false)), Err(refused));
    }
    let sent =
        proto::QueryRequest::decode(OrderedQuery::new(&[(group(1), 0)], 9_999).expect("one").to_bytes().as_slice());
    assert_eq!(sent.expect("protobuf").limit, 1_000, "never more than a backend allows");
}

#[test]
fn a_target_is_the_head_of_a_topic_and_zero_without_one() {
    let newest = |rows: Vec<proto::ServerEnvelope>| {
        let result = |row: proto::ServerEnvelope| proto::query_newest_response::Result {
            topic: row.meta.as_ref().and_then(|meta| meta.topic.clone()),
            meta: row.meta,
            envelope: None,
        };
        proto::QueryNewestResponse { results: rows.into_iter().map(result).collect() }.encode_to_vec().into()
    };
    let query = NewestQuery::new(&[group(1), group(2)]).expect("two topics");
    let targets = query.clone().answer(newest(vec![row(&group(2), 40)])).expect("honest");
    let heads: Vec<_> = targets.iter().map(|(topic, target)| (*topic, target.through().get())).collect();
    assert_eq!(heads, [(group(1), 0), (group(2), 40)]);
    assert!(targets[1].1.is_reached_by(SequenceId::new(40).expect("small")));
    assert!(!targets[1].1.is_reached_by(SequenceId::new(39).expect("small")));
    for rows in [vec![row(&group(3), 1)], vec![row(&group(1), 1), row(&group(1), 2)]] {
        assert_eq!(query.clone().answer(newest(rows)), Err(StreamRefused::Targets));
    }
}
