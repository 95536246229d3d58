//! `streaming_topic`, `streaming_request`, `streaming_frames`, `streaming_grpc_web`.

use remuda_streaming::grpc_web::GrpcWebBody;
use remuda_streaming::static_stream::{StaticEvent, StaticRequest, StaticStream};
use remuda_streaming::{OrderedPrefix, Topic};
use serde_json::{json, Value};

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// One topic.
pub fn topic(input: &Input<'_>) -> Answer {
    let topic = Topic::from_bytes(&input.at("topic").bytes()?)?;
    Ok(json!({ "kind": topic.kind().name(), "identifier": hex::encode(topic.identifier()) }))
}

/// A request as its bytes.
pub fn request(input: &Input<'_>) -> Answer {
    Ok(json!({ "bytes": hex::encode(static_request(input)?.to_bytes()) }))
}

/// One static stream, message by message, to its end.
pub fn frames(input: &Input<'_>) -> Answer {
    let mut stream = static_request(input)?.open();
    let mut seen = Seen::default();
    for frame in input.at("frames").list()? {
        seen.add(stream.handle(frame.bytes()?.into())?);
    }
    stream.end()?;
    Ok(seen.to_json(&stream))
}

/// One answer's body, chunk by chunk.
pub fn grpc_web(input: &Input<'_>) -> Answer {
    let headers: Result<Vec<_>, Refused> = input.at("headers").list()?.map(pair).collect();
    let headers = headers?;
    let http_status = input.at("http_status").number()?;
    let max_message_bytes = input.at("max_message_bytes").number()?;
    let mut body = GrpcWebBody::new(http_status, headers.iter().copied(), max_message_bytes)?;
    let mut messages = Vec::new();
    for chunk in input.at("chunks").list()? {
        body.handle_chunk(&chunk.bytes()?)?;
        messages.extend(core::iter::from_fn(|| body.poll_message()).map(hex::encode));
    }
    let status = body.end()?;
    Ok(json!({ "messages": messages, "status": status.number, "message": status.message }))
}

fn pair<'a>(input: Input<'a>) -> Result<(&'a str, &'a str), Refused> {
    match input.list()?.collect::<Vec<_>>().as_slice() {
        [name, value] => Ok((name.text()?, value.text()?)),
        _ => Err(Refused::Malformed("a header is a pair".into())),
    }
}

fn static_request(input: &Input<'_>) -> Result<StaticRequest, Refused> {
    let topic = |topic: Input<'_>| Ok((topic.at("topic").bytes()?, topic.at("cursor").u64()?));
    let topics: Result<Vec<_>, Refused> = input.at("topics").list()?.map(topic).collect();
    Ok(StaticRequest::new(&topics?)?)
}

#[derive(Default)]
struct Seen {
    keepalive_interval_ms: u32,
    targets: Vec<String>,
    rows: usize,
    keepalives: usize,
}

impl Seen {
    fn add(&mut self, event: StaticEvent) {
        match event {
            StaticEvent::Started(started) => {
                self.keepalive_interval_ms = started.keepalive_interval_ms;
                self.targets = started.targets.iter().map(|(_, target)| target.through().get().to_string()).collect();
            }
            StaticEvent::Rows(prefixes) => {
                self.rows += prefixes.iter().map(OrderedPrefix::rows).map(<[_]>::len).sum::<usize>()
            }
            StaticEvent::Keepalive => self.keepalives += 1,
        }
    }

    fn to_json(&self, stream: &StaticStream) -> Value {
        let received: Vec<_> = stream.received().iter().map(|(_, place)| place.get().to_string()).collect();
        json!({
            "keepalive_interval_ms": self.keepalive_interval_ms,
            "targets": self.targets,
            "received": received,
            "rows": self.rows,
            "keepalives": self.keepalives,
        })
    }
}
