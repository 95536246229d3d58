//! The routes.
//!
//! ```text
//! GET  /cbqs/broker-state?stream=<64 hex>[&block=<64 hex>]   canonical BrokerState; 400, 404 or 410
//! POST /cbqs                                                 ClientFrame -> ServerFrameBatch; 400, 413 or 500
//! GET  /cbqs, upgraded                                       a WebSocket: one frame in each binary message
//! GET  /demo/info        POST /demo/grant                    JSON
//! GET  anything else                                         a static page, when there are pages
//! ```

use std::path::Path;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{header, HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use remuda_wire::bound::MAX_WIRE_FRAME_BYTES;
use remuda_wire::frame::ClientFrame;
use remuda_wire::Canonical;
use serde::Deserialize;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::chain::NodeFault;
use crate::demo;
use crate::exchange::Exchange;
use crate::lanes::DemoLane;
use crate::websocket;

/// What the routes share.
#[derive(Debug)]
pub struct Site {
    /// Sessions and the broker behind them.
    pub exchange: Exchange,
    /// The demo lanes, by name.
    pub lanes: Vec<DemoLane>,
    /// Where its long-poll requests are posted.
    pub endpoint: String,
    /// Where its WebSocket is opened.
    pub web_socket: String,
    /// The names of the lies that it tells.
    pub lies: Vec<String>,
}

/// All routes of a site.
pub fn router(site: Arc<Site>, pages: Option<&Path>) -> Router {
    let router = Router::new()
        .route("/cbqs", post(exchange).get(upgrade))
        .route("/cbqs/broker-state", get(broker_state))
        .route("/demo/info", get(info))
        .route("/demo/grant", post(grant))
        .layer(DefaultBodyLimit::max(MAX_WIRE_FRAME_BYTES))
        .layer(cors())
        .with_state(site);
    match pages {
        Some(directory) => crate::pages::serve(router, directory),
        None => router,
    }
}

/// Any page of this machine, without credentials; preflights are kept for a day.
fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(|origin, _| is_loopback(origin)))
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::CONTENT_TYPE])
        .max_age(std::time::Duration::from_secs(86_400))
}

pub(crate) fn is_loopback(origin: &HeaderValue) -> bool {
    let Some(authority) = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")) else { return false };
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    matches!(host, "127.0.0.1" | "localhost" | "[::1]")
}

#[derive(Debug, Deserialize)]
struct StateQuery {
    stream: String,
    block: Option<String>,
}

async fn broker_state(State(site): State<Arc<Site>>, Query(query): Query<StateQuery>) -> Response {
    let block = query.block.as_deref().map(demo::bytes32).transpose();
    let (Ok(stream), Ok(block)) = (demo::bytes32(&query.stream), block) else {
        return (StatusCode::BAD_REQUEST, "stream and block are 64 hexadecimal digits").into_response();
    };
    let chain = &site.exchange.broker.chain;
    if chain.records().of(&stream).is_none() {
        return (StatusCode::NOT_FOUND, "no such stream").into_response();
    }
    if chain.node_fault() == Some(NodeFault::Unreachable) {
        return (StatusCode::SERVICE_UNAVAILABLE, "the node is unreachable").into_response();
    }
    match chain.broker_state_of(&stream, block.as_ref()) {
        Some(state) => octets(state.to_bytes()),
        None => (StatusCode::GONE, "this block cannot be served").into_response(),
    }
}

async fn exchange(State(site): State<Arc<Site>>, body: Bytes) -> Response {
    let frame = match ClientFrame::from_bytes(&body) {
        Ok(frame) => frame,
        Err(error) => return (StatusCode::BAD_REQUEST, error.code()).into_response(),
    };
    match site.exchange.answer(frame).await {
        Ok(bytes) => octets(bytes),
        Err(error) => {
            tracing::error!(%error, "a request failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "the provider failed").into_response()
        }
    }
}

async fn upgrade(State(site): State<Arc<Site>>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    // A page of another site must not speak through a visitor's browser: CORS does not cover WebSockets.
    if headers.get(header::ORIGIN).is_some_and(|origin| !is_loopback(origin)) {
        return (StatusCode::FORBIDDEN, "not from this origin").into_response();
    }
    let upgrade = upgrade.max_message_size(MAX_WIRE_FRAME_BYTES).max_frame_size(MAX_WIRE_FRAME_BYTES);
    upgrade.on_upgrade(async move |socket| websocket::serve(&site.exchange, socket).await)
}

async fn info(State(site): State<Arc<Site>>) -> Response {
    let chain = &site.exchange.broker.chain;
    Json(demo::info(chain, &site)).into_response()
}

async fn grant(State(site): State<Arc<Site>>, Json(request): Json<demo::GrantRequest>) -> Response {
    let broker = &site.exchange.broker;
    match demo::grant(&request, &broker.chain, &broker.keys) {
        Ok(answer) => Json(answer).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

fn octets(bytes: Vec<u8>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/octet-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, bytes).into_response()
}
