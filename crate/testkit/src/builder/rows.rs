//! Messages of an honest backend of the streaming document, and the ordered prefixes that they become.

use prost::Message;
use remuda_streaming::proto::subscribe_static_response::Response;
use remuda_streaming::proto::{self, client_envelope, message_hash};
use remuda_streaming::static_stream::{StaticEvent, StaticRequest};
use remuda_streaming::{Bytes, OrderedPrefix, Topic, TopicKind};

/// The topic of `kind` whose identifier is `number` throughout.
pub fn topic(kind: TopicKind, number: u8) -> Topic {
    Topic::new(kind, &vec![number; kind.identifier_bytes()]).expect("an identifier of the right length")
}

/// A group of its own for each number.
pub fn group(number: u8) -> Topic {
    topic(TopicKind::Group, number)
}

/// A topic as it is on the wire.
pub fn wire_topic(topic: &Topic) -> proto::Topic {
    proto::Topic { topic: Bytes::copy_from_slice(topic.as_bytes()) }
}

/// A row with this payload; its hash is of nothing that we could recompute.
pub fn row(topic: &Topic, sequence_id: u64, data: &[u8]) -> proto::ServerEnvelope {
    let message = proto::GroupMessage { data: Bytes::copy_from_slice(data), ..Default::default() };
    proto::ServerEnvelope {
        meta: Some(proto::EnvelopeMeta {
            cursor: Some(proto::Cursor { sequence_id }),
            server_ns: sequence_id.wrapping_mul(1_000),
            message_hash: Some(proto::MessageHash {
                hash: Some(message_hash::Hash::Sha256(Bytes::from_static(&[7; 32]))),
            }),
            topic: Some(wire_topic(topic)),
            ..Default::default()
        }),
        envelope: Some(proto::ClientEnvelope { payload: Some(client_envelope::Payload::GroupMessage(message)) }),
    }
}

/// The payload of a row that [`row`] made.
pub fn data_of(envelope: &[u8]) -> Bytes {
    let row = proto::ServerEnvelope::decode(envelope).expect("a stored row is protobuf");
    match row.envelope.and_then(|envelope| envelope.payload) {
        Some(client_envelope::Payload::GroupMessage(message)) => message.data,
        _ => Bytes::new(),
    }
}

fn response(response: Response) -> Bytes {
    proto::SubscribeStaticResponse { response: Some(response) }.encode_to_vec().into()
}

/// `Started` with these targets.
pub fn started(keepalive_interval_ms: u32, targets: &[(Topic, u64)]) -> Bytes {
    let target = |(topic, through): &(Topic, u64)| proto::CatchupTarget {
        topic: Some(wire_topic(topic)),
        through_sequence_id: *through,
    };
    response(Response::Started(proto::Started { keepalive_interval_ms, targets: targets.iter().map(target).collect() }))
}

/// `Messages` with these rows.
pub fn messages(envelopes: Vec<proto::ServerEnvelope>) -> Bytes {
    response(Response::Messages(proto::Messages { envelopes }))
}

/// `Keepalive`.
pub fn keepalive() -> Bytes {
    response(Response::Keepalive(proto::Keepalive {}))
}

/// What an honest stream serves of one topic behind `after`: these places, with these payloads.
pub fn prefix(topic: &Topic, after: u64, rows: &[(u64, &[u8])]) -> OrderedPrefix {
    // A stream without a row yields no prefix: a row that is cut off again leaves one without.
    let behind = rows.last().map_or(after, |(place, _)| *place) + 1;
    let all: Vec<_> = rows.iter().copied().chain([(behind, &b""[..])]).collect();
    let mut stream = StaticRequest::new(&[(topic, after)]).expect("one topic").open();
    stream.handle(started(1_000, &[(*topic, 0)])).expect("an honest start");
    let served = messages(all.iter().map(|(place, data)| row(topic, *place, data)).collect());
    match stream.handle(served).expect("honest rows") {
        StaticEvent::Rows(mut prefixes) => prefixes.remove(0).split_at(rows.len()).0,
        other => panic!("rows are no {other:?}"),
    }
}
