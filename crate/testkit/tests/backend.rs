//! The receiver against the provider's own backend, over its routes and in virtual time: each fault by name, survived.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use axum::Router;
use clap::ValueEnum;
use http_body_util::BodyExt;
use remuda_client::receiver::{Output, QueryId, Receiver, ReceiverEvent, StreamId, StreamsConfig};
use remuda_dev_provider::backend::fault::Fault;
use remuda_dev_provider::backend::settings::BackendSettings;
use remuda_dev_provider::backend::Backend;
use remuda_position::topic::limits::ReceiptLimits;
use remuda_position::topic::memory::MemoryTopicStore;
use remuda_position::topic::receipt::{receive, received};
use remuda_session::entropy::Entropy;
use remuda_session::Backoff;
use remuda_streaming::bound::MAX_MESSAGE_BYTES;
use remuda_streaming::grpc_web::{request_body, GrpcWebBody, CONTENT_TYPE};
use remuda_streaming::proto::client_envelope::Payload;
use remuda_streaming::proto::{ClientEnvelope, GroupMessage};
use remuda_streaming::{Bytes, SequenceId, Topic};
use remuda_testkit::builder::rows::group;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep_until, Instant};
use tower::ServiceExt;

/// What comes back from the network.
enum Input {
    Head(StreamId, u16, Vec<(String, String)>),
    Chunk(StreamId, Vec<u8>),
    End(StreamId),
    Page(QueryId, Option<Bytes>),
}

async fn post(routes: Router, path: &str, message: &[u8]) -> axum::http::Response<Body> {
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("/xmtp.backend.v1.{path}"))
        .header("content-type", CONTENT_TYPE)
        .body(Body::from(request_body(message).expect("short")))
        .expect("a request");
    routes.oneshot(request).await.expect("routes answer")
}

fn headers(response: &axum::http::Response<Body>) -> Vec<(String, String)> {
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

async fn stream(routes: Router, id: StreamId, message: Vec<u8>, inputs: mpsc::UnboundedSender<Input>) {
    let response = post(routes, "SubscriptionService/SubscribeStatic", &message).await;
    let _ = inputs.send(Input::Head(id, response.status().as_u16(), headers(&response)));
    let mut body = response.into_body();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            let _ = inputs.send(Input::Chunk(id, data.to_vec()));
        }
    }
    let _ = inputs.send(Input::End(id));
}

async fn query(routes: Router, id: QueryId, message: Vec<u8>, inputs: mpsc::UnboundedSender<Input>) {
    let response = post(routes, "QueryService/Query", &message).await;
    let (status, pairs) = (response.status().as_u16(), headers(&response));
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    let mut body = GrpcWebBody::new(status, pairs.iter().copied(), MAX_MESSAGE_BYTES).expect("gRPC-Web");
    body.handle_chunk(&bytes).expect("an honest body");
    let _ = inputs.send(Input::Page(id, body.poll_message()));
}

/// One page: a receiver, its store, and its tasks.
struct Page {
    routes: Router,
    receiver: Receiver,
    store: MemoryTopicStore,
    sender: mpsc::UnboundedSender<Input>,
    inputs: mpsc::UnboundedReceiver<Input>,
    tasks: BTreeMap<StreamId, AbortHandle>,
    began: Instant,
    events: Vec<ReceiverEvent>,
}

impl Page {
    fn new(routes: Router) -> Self {
        let (sender, inputs) = mpsc::unbounded_channel();
        let backoff = Backoff { base_ms: 100, cap_ms: 1_000 };
        let receiver = Receiver::new(StreamsConfig { backoff, entropy: Entropy::new([5; 32]) }, 0);
        let (store, tasks, events) = (MemoryTopicStore::default(), BTreeMap::new(), Vec::new());
        Self { routes, receiver, store, sender, inputs, tasks, began: Instant::now(), events }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).expect("a short test")
    }

    async fn want(&mut self, topics: &[Topic]) {
        let known = received(&self.store, topics).await.expect("a store");
        self.receiver.set_interests(&known, self.now_ms());
        self.drain().await;
    }

    async fn drain(&mut self) {
        while let Some(output) = self.receiver.poll_output() {
            match output {
                Output::Open { stream: id, message } => {
                    let task = stream(self.routes.clone(), id, message, self.sender.clone());
                    self.tasks.insert(id, tokio::spawn(task).abort_handle());
                }
                Output::Cancel { stream } => {
                    if let Some(task) = self.tasks.remove(&stream) {
                        task.abort();
                    }
                }
                Output::Query { query: id, message } => {
                    tokio::spawn(query(self.routes.clone(), id, message, self.sender.clone()));
                }
                Output::Receive(batch) => {
                    let receipts = receive(&self.store, &ReceiptLimits::default(), batch).await.expect("a store");
                    self.receiver.handle_receipts(Some(receipts), self.now_ms());
                }
                Output::Event(event) => self.events.push(event),
            }
        }
    }

    /// Goes on until `topic` is received through `place`.
    async fn until(&mut self, topic: Topic, place: u64) {
        loop {
            let at = received(&self.store, &[topic]).await.expect("a store")[0].1.sequence_id().get();
            if at >= place {
                return;
            }
            let wake = self.receiver.wake_at().unwrap_or(self.now_ms() + 3_600_000);
            let wake = self.began + Duration::from_millis(wake);
            tokio::select! {
                biased;
                input = self.inputs.recv() => {
                    let now_ms = self.now_ms();
                    match input.expect("a sender of ours") {
                        Input::Head(id, status, headers) => {
                            let headers: Vec<_> =
                                headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                            self.receiver.handle_head(id, status, &headers, now_ms);
                        }
                        Input::Chunk(id, bytes) => self.receiver.handle_chunk(id, &bytes, now_ms),
                        Input::End(id) => self.receiver.handle_end(id, now_ms),
                        Input::Page(id, message) => self.receiver.handle_page(id, message, now_ms),
                    }
                }
                () = sleep_until(wake) => self.receiver.handle_time(self.now_ms()),
            }
            self.drain().await;
        }
    }
}

struct Served {
    backend: Arc<Backend>,
    _stop: watch::Sender<bool>,
    counter: Rc<Cell<u32>>,
}

fn serve(settings: BackendSettings) -> Served {
    let (stop, closing) = watch::channel(false);
    Served { backend: Backend::new(settings, closing), _stop: stop, counter: Rc::default() }
}

impl Served {
    /// Publishes so many rows to a group; the place of the last.
    fn publish(&self, number: u8, count: u32) -> u64 {
        let mut last = 0;
        for _ in 0..count {
            self.counter.set(self.counter.get() + 1);
            let data = [&[number; 16][..], &self.counter.get().to_be_bytes()].concat();
            let payload = Payload::GroupMessage(GroupMessage { data: data.into(), ..Default::default() });
            let meta = self.backend.rows.publish(&group(number), ClientEnvelope { payload: Some(payload) });
            last = meta.cursor.expect("a place").sequence_id;
        }
        last
    }
}

#[tokio::test(start_paused = true)]
async fn each_fault_by_name_is_survived_with_every_row() {
    for fault in Fault::value_variants() {
        let served = serve(BackendSettings {
            keepalive_ms: 1_000,
            faults: vec![*fault],
            faulty_streams: 2,
            replica_lag_ms: 150,
            ..Default::default()
        });
        let mut last = served.publish(1, 70);
        let mut page = Page::new(served.backend.routes());
        page.want(&[group(1), group(2)]).await;
        page.until(group(1), last).await;
        last = served.publish(2, 3);
        page.until(group(2), last).await;
        let refused = page.events.iter().filter_map(|event| match event {
            ReceiverEvent::Reconnecting(remuda_client::receiver::StreamEnd::Refused(refused)) => Some(*refused),
            _ => None,
        });
        let refused: BTreeSet<_> = refused.map(|refused| refused.code()).collect();
        assert_eq!(refused, fault.verdict().iter().map(|verdict| verdict.code()).collect(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_fetches_by_queries_what_no_stream_brings() {
    let served = serve(BackendSettings { replica_lag_ms: 400, ..Default::default() });
    let last = served.publish(1, 900);
    let mut page = Page::new(served.backend.routes());
    page.receiver.fetch((group(1), Default::default()), SequenceId::new(last).expect("small"), 0);
    page.drain().await;
    page.until(group(1), last).await;
    assert!(page.tasks.is_empty(), "no stream was opened for it");
}
