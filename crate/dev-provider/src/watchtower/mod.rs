//! A Watchtower feed: an author with its keys, the stream actor that keeps what it signed, and the routes to both.
//!
//! ```text
//! POST /watchtower/{stream}/get_since         deterministic CBOR both ways; 400, 404 or 409
//! POST /watchtower/{stream}/get_key_history   deterministic CBOR both ways; 400, 404 or 409
//! GET  /demo/watchtower                       JSON: the stream, its key schedule, where it stands
//! POST /demo/watchtower/publish               JSON: signs and publishes a text
//! POST /demo/watchtower/rotate                JSON: the next key
//! GET  /demo/watchtower/content-key?epoch=N   JSON: what the committee would deliver to who paid
//! ```
//!
//! In memory: each start is a stream of its own.

pub mod actor;
pub mod author;
pub mod lie;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{header, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use clap::Args;
use remuda_watchtower::StreamId;
use serde::Deserialize;
use serde_json::json;

use crate::keys::random32;
use crate::time::Clock;
use actor::{Answer, FeedActor};
use lie::FeedLie;

/// What the feed is like.
#[derive(Clone, Debug, Args)]
pub struct FeedSettings {
    /// Messages that the feed's ring buffer retains.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub feed_capacity: u32,
    /// Messages that are on the feed at the start.
    #[arg(long, default_value_t = 0)]
    pub feed_backlog: u32,
    /// Messages per second that the feed's author publishes by itself; 0: none.
    #[arg(long, default_value_t = 0)]
    pub feed_rate: u32,
    /// The feed is subscriber-paid: its payloads are sealed under the content keys of epochs.
    #[arg(long)]
    pub feed_paid: bool,
    /// Messages of an epoch.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub feed_epoch_messages: u64,
    /// The author's key is rotated after so many messages; 0: only when asked.
    #[arg(long, default_value_t = 0)]
    pub feed_rotate_every: u64,
    /// The feed tells this lie.
    #[arg(long, value_enum)]
    pub feed_lie: Option<FeedLie>,
    /// Cursors below this are answered honestly.
    #[arg(long, default_value_t = 10)]
    pub feed_lie_after: u64,
}

/// Opens the feed, its author writing at its own pace, and its routes.
///
/// # Errors
/// When the operating system has no randomness.
pub fn open(settings: &FeedSettings, clock: Clock) -> anyhow::Result<Router> {
    let actor = Arc::new(FeedActor::new(settings, random32()?, clock)?);
    if settings.feed_rate > 0 {
        tokio::spawn(write(Arc::clone(&actor), settings.feed_rate));
    }
    Ok(routes(actor))
}

async fn write(actor: Arc<FeedActor>, per_second: u32) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / per_second);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = actor.publish_demo() {
            tracing::error!(%error, "the feed stands still");
        }
    }
}

fn routes(actor: Arc<FeedActor>) -> Router {
    Router::new()
        .route("/watchtower/{stream}/get_since", post(get_since))
        .route("/watchtower/{stream}/get_key_history", post(get_key_history))
        .route("/demo/watchtower", get(info))
        .route("/demo/watchtower/publish", post(publish))
        .route("/demo/watchtower/rotate", post(rotate))
        .route("/demo/watchtower/content-key", get(content_key))
        .with_state(actor)
}

fn answer(actor: &FeedActor, stream: &str, of: impl FnOnce(&FeedActor) -> Option<Answer>) -> Response {
    if *actor.stream_id() != StreamId::Text(stream.into()) {
        return (StatusCode::NOT_FOUND, "no such stream").into_response();
    }
    let Some(Answer { refused, body }) = of(actor) else {
        return (StatusCode::BAD_REQUEST, "not the documented request").into_response();
    };
    let status = if refused { StatusCode::CONFLICT } else { StatusCode::OK };
    let headers = [(header::CONTENT_TYPE, "application/cbor"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body).into_response()
}

async fn get_since(State(actor): State<Arc<FeedActor>>, Path(stream): Path<String>, body: Bytes) -> Response {
    answer(&actor, &stream, |actor| actor.get_since(&body))
}

async fn get_key_history(State(actor): State<Arc<FeedActor>>, Path(stream): Path<String>, body: Bytes) -> Response {
    answer(&actor, &stream, |actor| actor.get_key_history(&body))
}

async fn info(State(actor): State<Arc<FeedActor>>) -> Response {
    Json(actor.info()).into_response()
}

#[derive(Deserialize)]
struct Publication {
    text: String,
    kind: Option<String>,
}

async fn publish(State(actor): State<Arc<FeedActor>>, Json(publication): Json<Publication>) -> Response {
    match actor.publish(publication.kind.as_deref().unwrap_or("note"), publication.text.as_bytes()) {
        Ok(sequence) => Json(json!({ "sequence": sequence.to_string() })).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

async fn rotate(State(actor): State<Arc<FeedActor>>) -> Response {
    match actor.rotate() {
        Ok(signing_key_id) => Json(json!({ "signingKeyId": signing_key_id.to_string() })).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[derive(Deserialize)]
struct Epoch {
    epoch: u64,
}

async fn content_key(State(actor): State<Arc<FeedActor>>, Query(Epoch { epoch }): Query<Epoch>) -> Response {
    Json(json!({ "key": hex::encode(actor.content_key(epoch).expose()) })).into_response()
}
