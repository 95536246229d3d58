//! Messages of an honest backend.

use prost::Message;
use remuda_streaming::proto::subscribe_static_response::Response;
use remuda_streaming::proto::{self, client_envelope, message_hash};
use remuda_streaming::{Bytes, Topic, TopicKind};

/// A group of its own for each number.
pub fn group(number: u8) -> Topic {
    Topic::new(TopicKind::Group, &[number; 16]).expect("a group id has 16 bytes")
}

fn wire_topic(topic: &Topic) -> proto::Topic {
    proto::Topic { topic: Bytes::copy_from_slice(topic.as_bytes()) }
}

/// A row, as a backend stores it.
pub fn row(topic: &Topic, sequence_id: u64) -> proto::ServerEnvelope {
    let data = Bytes::from(format!("payload {sequence_id}"));
    let message = proto::GroupMessage { data, ..Default::default() };
    proto::ServerEnvelope {
        meta: Some(proto::EnvelopeMeta {
            cursor: Some(proto::Cursor { sequence_id }),
            server_ns: 1_000 * sequence_id,
            message_hash: Some(proto::MessageHash {
                hash: Some(message_hash::Hash::Sha256(Bytes::from_static(&[7; 32]))),
            }),
            topic: Some(wire_topic(topic)),
            ..Default::default()
        }),
        envelope: Some(proto::ClientEnvelope { payload: Some(client_envelope::Payload::GroupMessage(message)) }),
    }
}

fn response(response: Response) -> Bytes {
    proto::SubscribeStaticResponse { response: Some(response) }.encode_to_vec().into()
}

/// `Started` with these targets.
pub fn started(targets: &[(Topic, u64)]) -> Bytes {
    let target = |(topic, through): &(Topic, u64)| proto::CatchupTarget {
        topic: Some(wire_topic(topic)),
        through_sequence_id: *through,
    };
    let targets = targets.iter().map(target).collect();
    response(Response::Started(proto::Started { keepalive_interval_ms: 1_000, targets }))
}

/// `Messages` with these rows.
pub fn messages(envelopes: Vec<proto::ServerEnvelope>) -> Bytes {
    response(Response::Messages(proto::Messages { envelopes }))
}
