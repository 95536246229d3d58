//! A BPS-lite broker, and the bridge of a node that talks to it.
//!
//! ```text
//! GET /bps/direct                                                       upgraded: one protobuf message in each binary message
//! GET /bps/subscribe/{owner}/{topic}?broker=…&identity=…[&cursor=…]     upgraded: challenge || index || soc
//! GET /bps/publish/{owner}/{topic}?broker=…                             upgraded: an offer, then kind || index || soc
//! GET /demo/bps                                                         JSON: the broker's address, its counters, its open streams
//! ```

pub mod broker;
pub mod lie;
pub mod socket;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State};
use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use clap::Args;
use remuda_bps::message::Join;
use remuda_bps::soc::MAX_SOC_BYTES;
use remuda_bps::{Address, Cohort};
use remuda_wire::Bytes32;
use serde::Deserialize;
use serde_json::json;

use crate::demo::bytes32;
use crate::http::is_loopback;
use crate::keys::random32;
use crate::time::Clock;
use broker::{Bounds, Broker};
use lie::BrokerLie;

/// What the broker is like.
#[derive(Clone, Debug, Args)]
pub struct BrokerSettings {
    /// Subscribers of a cohort.
    #[arg(long, default_value_t = 64)]
    pub bps_subscribers: usize,
    /// Cohorts of the broker.
    #[arg(long, default_value_t = 64)]
    pub bps_cohorts: usize,
    /// A cohort without accepted frames ends after so many milliseconds.
    #[arg(long, default_value_t = 600_000)]
    pub bps_inactivity_ms: u64,
    /// A stream that may publish claims within so many milliseconds.
    #[arg(long, default_value_t = 30_000)]
    pub bps_claim_ms: u64,
    /// The broker tells this lie.
    #[arg(long, value_enum)]
    pub bps_lie: Option<BrokerLie>,
}

/// What the routes share.
#[derive(Debug)]
pub struct Node {
    /// The broker that the node talks to.
    pub broker: Broker,
    /// Its overlay address.
    pub overlay: Bytes32,
    /// The lie that is told of what it says.
    pub lie: Option<BrokerLie>,
}

/// Opens the broker, its deadlines, and its routes.
///
/// # Errors
/// When the operating system has no randomness.
pub fn open(settings: &BrokerSettings, clock: Clock) -> anyhow::Result<Router> {
    let bounds = Bounds {
        subscribers: settings.bps_subscribers,
        cohorts: settings.bps_cohorts,
        inactivity_ms: settings.bps_inactivity_ms,
        claim_ms: settings.bps_claim_ms,
        ..Bounds::default()
    };
    let node = Arc::new(Node { broker: Broker::new(bounds, clock), overlay: random32()?, lie: settings.bps_lie });
    let deadlines = Arc::clone(&node);
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(250));
        loop {
            ticks.tick().await;
            deadlines.broker.expire();
        }
    });
    Ok(Router::new()
        .route("/bps/direct", get(direct))
        .route("/bps/subscribe/{owner}/{topic}", get(subscribe))
        .route("/bps/publish/{owner}/{topic}", get(publish))
        .route("/demo/bps", get(info))
        .with_state(node))
}

async fn info(State(node): State<Arc<Node>>) -> Response {
    let (counters, streams) = (node.broker.counters(), node.broker.streams());
    Json(json!({ "broker": node.overlay.to_string(), "counters": counters, "streams": streams })).into_response()
}

/// The largest message: a broadcast with room for fields that we do not know.
const MAX_MESSAGE_BYTES: usize = 2 * MAX_SOC_BYTES;

fn upgraded<F>(
    headers: &HeaderMap,
    upgrade: WebSocketUpgrade,
    serve: impl FnOnce(WebSocket) -> F + Send + 'static,
) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    // A page of another site must not speak through a visitor's browser: CORS does not cover WebSockets.
    if headers.get(header::ORIGIN).is_some_and(|origin| !is_loopback(origin)) {
        return (StatusCode::FORBIDDEN, "not from this origin").into_response();
    }
    upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES).on_upgrade(serve)
}

async fn direct(State(node): State<Arc<Node>>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    upgraded(&headers, upgrade, move |socket| async move { socket::serve_direct(&node, socket).await })
}

#[derive(Deserialize)]
struct Bridge {
    broker: String,
    identity: Option<String>,
    cursor: Option<u64>,
}

/// The stream that a bridge path asks for; `None` when it is not the documented one.
fn asked(node: &Node, owner: &str, topic: &str, bridge: &Bridge) -> Option<Join> {
    let address = |text: &str| {
        let mut address = Address::ZERO;
        hex::decode_to_slice(text, &mut address.0).ok().map(|()| address)
    };
    let cohort = Cohort { topic: bytes32(topic).ok()?, admin: address(owner)? };
    let addr = bridge.identity.as_deref().map_or(Some(cohort.admin), address)?;
    (bytes32(&bridge.broker).ok()? == node.overlay).then_some(Join { cohort, addr })
}

async fn subscribe(
    State(node): State<Arc<Node>>,
    Path((owner, topic)): Path<(String, String)>,
    Query(bridge): Query<Bridge>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(join) = asked(&node, &owner, &topic, &bridge).filter(|_| bridge.identity.is_some()) else {
        return (StatusCode::BAD_REQUEST, "no such stream, broker or identity").into_response();
    };
    let cursor = bridge.cursor;
    upgraded(
        &headers,
        upgrade,
        move |socket| async move { socket::serve_subscriber(&node, &join, cursor, socket).await },
    )
}

async fn publish(
    State(node): State<Arc<Node>>,
    Path((owner, topic)): Path<(String, String)>,
    Query(bridge): Query<Bridge>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(join) = asked(&node, &owner, &topic, &bridge) else {
        return (StatusCode::BAD_REQUEST, "no such stream or broker").into_response();
    };
    upgraded(&headers, upgrade, move |socket| async move { socket::serve_publisher(&node, &join, socket).await })
}
