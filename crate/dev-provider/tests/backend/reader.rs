//! A reader over the routes themselves: gRPC-Web in, judged messages out.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, Response};
use axum::Router;
use http_body_util::BodyExt;
use remuda_dev_provider::backend::settings::BackendSettings;
use remuda_dev_provider::backend::Backend;
use remuda_streaming::bound::MAX_MESSAGE_BYTES;
use remuda_streaming::grpc_web::{request_body, GrpcWebBody, CONTENT_TYPE};
use remuda_streaming::proto::client_envelope::Payload;
use remuda_streaming::proto::{ClientEnvelope, GroupMessage};
use remuda_streaming::static_stream::{StaticEvent, StaticRequest, StaticStream};
use remuda_streaming::{GrpcStatus, StreamRefused, Topic, TopicKind};
use tokio::sync::watch;
use tower::ServiceExt;

/// A backend and its routes.
pub struct Served {
    pub backend: Arc<Backend>,
    routes: Router,
    /// Dropped with the backend; true stops it.
    pub stop: watch::Sender<bool>,
}

pub fn serve(settings: BackendSettings) -> Served {
    let (stop, closing) = watch::channel(false);
    let backend = Backend::new(settings, closing);
    Served { routes: backend.routes(), backend, stop }
}

pub fn group(number: u8) -> Topic {
    Topic::new(TopicKind::Group, &[number; 16]).expect("a group")
}

/// A group message that belongs to [`group`].
pub fn message(number: u8, text: &str) -> ClientEnvelope {
    let data = [&[number; 16][..], text.as_bytes()].concat();
    ClientEnvelope { payload: Some(Payload::GroupMessage(GroupMessage { data: data.into(), ..Default::default() })) }
}

impl Served {
    /// Publishes `count` messages to one group; returns their sequence ids.
    pub fn publish(&self, number: u8, count: usize) -> Vec<u64> {
        let publish = |index| self.backend.rows.publish(&group(number), message(number, &format!("message {index}")));
        (0..count).map(|index| publish(index).cursor.expect("a place").sequence_id).collect()
    }

    pub async fn post(&self, path: &str, message: &[u8]) -> Response<Body> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("/xmtp.backend.v1.{path}"))
            .header("content-type", CONTENT_TYPE)
            .header("x-grpc-web", "1")
            .header("origin", "http://127.0.0.1:5173")
            .body(Body::from(request_body(message).expect("short")));
        self.routes.clone().oneshot(request.expect("a request")).await.expect("routes answer")
    }

    pub async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.routes.clone().oneshot(request).await.expect("routes answer")
    }

    /// A unary call: its one message and its status.
    pub async fn call(&self, path: &str, message: &[u8]) -> (Option<Bytes>, GrpcStatus) {
        let mut body = Answer::new(self.post(path, message).await).expect("gRPC-Web");
        let first = body.next().await.expect("a body");
        let status = match first {
            Some(_) => body.end().await,
            None => body.status(),
        };
        (first, status.expect("a status"))
    }

    pub async fn subscribe(&self, topics: &[(Topic, u64)]) -> Result<Subscription, StreamRefused> {
        let request = StaticRequest::new(topics)?;
        let answer = Answer::new(self.post("SubscriptionService/SubscribeStatic", &request.to_bytes()).await)?;
        Ok(Subscription { answer, stream: request.open() })
    }
}

/// A response, read under the client's bound.
pub struct Answer {
    body: Body,
    reader: Option<GrpcWebBody>,
}

impl Answer {
    pub fn new(response: Response<Body>) -> Result<Self, StreamRefused> {
        let (parts, body) = response.into_parts();
        let headers: Vec<_> =
            parts.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
        let reader = GrpcWebBody::new(parts.status.as_u16(), headers.iter().copied(), MAX_MESSAGE_BYTES)?;
        Ok(Self { body, reader: Some(reader) })
    }

    /// The next message; `None` when the body has ended, however it did.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StreamRefused> {
        loop {
            let reader = self.reader.as_mut().expect("not ended");
            if let Some(message) = reader.poll_message() {
                return Ok(Some(message));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        reader.handle_chunk(&data)?;
                    }
                }
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }

    pub fn status(&mut self) -> Result<GrpcStatus, StreamRefused> {
        self.reader.take().expect("not ended").end()
    }

    async fn end(&mut self) -> Result<GrpcStatus, StreamRefused> {
        while self.next().await?.is_some() {}
        self.status()
    }
}

/// A static stream that is read.
pub struct Subscription {
    answer: Answer,
    pub stream: StaticStream,
}

/// How a stream went on.
#[derive(Debug)]
pub enum Read {
    Event(StaticEvent),
    Ended(GrpcStatus),
}

impl Subscription {
    pub async fn next(&mut self) -> Result<Read, StreamRefused> {
        match self.answer.next().await? {
            Some(message) => self.stream.handle(message).map(Read::Event),
            None => self.answer.status().map(Read::Ended),
        }
    }

    /// Reads until `count` rows have come; returns them as topic and place.
    pub async fn rows(&mut self, count: usize) -> Vec<(Topic, u64)> {
        let mut rows = Vec::new();
        while rows.len() < count {
            match self.next().await.expect("honest") {
                Read::Event(StaticEvent::Rows(prefixes)) => {
                    for prefix in prefixes {
                        rows.extend(prefix.rows().iter().map(|row| (prefix.topic(), row.sequence_id().get())));
                    }
                }
                Read::Event(_) => {}
                Read::Ended(status) => panic!("ended with {status:?} after {rows:?}"),
            }
        }
        rows
    }
}
