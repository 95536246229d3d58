//! `SubscriptionService`: static streams (STR-050 to STR-053).

use std::sync::Arc;
use std::time::Duration;

use remuda_streaming::bound::MAX_STATIC_TOPICS;
use remuda_streaming::proto::subscribe_static_response::Response as Member;
use remuda_streaming::proto::{self, SubscribeStaticRequest, SubscribeStaticResponse};
use remuda_streaming::Topic;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::body::BodyFault;
use super::fault::Fault;
use super::generated::subscription_service_server::SubscriptionService;
use super::publish::topic_of;
use super::query::judge_topics;
use super::rows::{wire_topic, Rows};
use super::turns::Turns;
use super::Backend;

/// Frames that wait for a slow reader before its stream is served no further (STR-030).
const OUTBOUND_FRAMES: usize = 2;

#[tonic::async_trait]
impl SubscriptionService for Backend {
    type SubscribeStaticStream = ReceiverStream<Result<SubscribeStaticResponse, Status>>;

    async fn subscribe_static(
        &self,
        request: Request<SubscribeStaticRequest>,
    ) -> Result<Response<Self::SubscribeStaticStream>, Status> {
        let topics = judge_topics(&request.into_inner().topics, MAX_STATIC_TOPICS)?;
        let fault = self.next_fault();
        let (responses, receiver) = mpsc::channel(OUTBOUND_FRAMES);
        let stream = Stream {
            responses,
            rows: Arc::clone(&self.rows),
            keepalive_ms: self.settings.keepalive_ms,
            fault,
            closing: self.closing.clone(),
        };
        tokio::spawn(stream.serve(topics));
        let mut response = Response::new(ReceiverStream::new(receiver));
        if let Some(fault) = fault.and_then(BodyFault::of) {
            response.extensions_mut().insert(fault);
        }
        Ok(response)
    }
}

/// One stream's task.
struct Stream {
    responses: mpsc::Sender<Result<SubscribeStaticResponse, Status>>,
    rows: Arc<Rows>,
    keepalive_ms: u32,
    fault: Option<Fault>,
    closing: watch::Receiver<bool>,
}

/// The reader is gone.
struct Gone;

impl Stream {
    /// Serves until the reader is gone or the provider stops.
    async fn serve(mut self, topics: Vec<(Topic, u64)>) {
        let mut closing = self.closing.clone();
        let stopped = tokio::select! {
            _ = closing.wait_for(|closing| *closing) => true,
            _ = self.run(topics) => false,
        };
        if stopped {
            // A reader that is gone as well needs no word.
            let _ = self.responses.try_send(Err(Status::unavailable("the provider stops")));
        }
    }

    async fn run(&mut self, topics: Vec<(Topic, u64)>) -> Result<(), Gone> {
        // The registration comes first: whatever is published from here on is seen below.
        let mut published = self.rows.published();
        let mut position = self.rows.position();
        let mut turns = Turns::new(&topics);
        let started = self.started(&topics);
        if self.fault == Some(Fault::RacingPublication) {
            self.publish_like_the_first(&topics);
        }
        self.send(Member::Started(started)).await?;
        if self.fault == Some(Fault::UnsetOneof) {
            let unset = SubscribeStaticResponse { response: None };
            self.responses.send(Ok(unset)).await.map_err(|_| Gone)?;
        }
        let interval = Duration::from_millis(self.keepalive_ms.into());
        let mut last_sent = Instant::now();
        loop {
            let frame = turns.next_frame(&self.rows);
            if !frame.is_empty() {
                self.send(Member::Messages(proto::Messages { envelopes: frame })).await?;
                last_sent = Instant::now();
                continue;
            }
            let visible = self.rows.next_visible(position);
            tokio::select! {
                _ = self.responses.closed() => return Err(Gone),
                changed = published.changed() => changed.map_err(|_| Gone)?,
                () = tokio::time::sleep_until(visible.unwrap_or(last_sent)), if visible.is_some() => {}
                () = tokio::time::sleep_until(last_sent + interval) => {
                    self.send(Member::Keepalive(proto::Keepalive {})).await?;
                    last_sent = Instant::now();
                }
            }
            let (news, behind) = self.rows.topics_since(position);
            position = behind;
            turns.notify(news);
        }
    }

    fn started(&self, topics: &[(Topic, u64)]) -> proto::Started {
        let target = |(topic, _): &(Topic, u64)| proto::CatchupTarget {
            topic: Some(wire_topic(topic)),
            through_sequence_id: self.rows.newest(topic).map_or(0, |row| row.sequence_id),
        };
        proto::Started { keepalive_interval_ms: self.keepalive_ms, targets: topics.iter().map(target).collect() }
    }

    /// Publishes the newest row of the first topic again, as somebody else's.
    fn publish_like_the_first(&self, topics: &[(Topic, u64)]) {
        let newest = topics.first().and_then(|(topic, _)| self.rows.newest(topic));
        if let Some(envelope) = newest.and_then(|row| row.envelope.envelope.clone()) {
            if let Ok(topic) = topic_of(&envelope) {
                self.rows.publish(&topic, envelope);
            }
        }
    }

    async fn send(&self, member: Member) -> Result<(), Gone> {
        let bent = match self.fault {
            Some(fault) => fault.bend(member),
            None => Some(member),
        };
        let Some(member) = bent else { return Ok(()) };
        self.responses.send(Ok(SubscribeStaticResponse { response: Some(member) })).await.map_err(|_| Gone)
    }
}
