//! `POST /demo/control/…`, only with `--control`: faults and lies by name, at run time.
//!
//! ```text
//! lies    {"lies": ["withhold-record"], "after": 3}   tell these, to each holder after so many honest frames
//! chain   {"operation": "rotate-admin", "times": 1}   one more block with this change
//! node    {"fault": "behind"}                         behind, unreachable, inconsistent or null
//! refuse  {"code": 3933, "times": 1}                  the next requests are refused with this code
//! link    {"delayMs": 0, "offline": false, "cut": true}
//! collect {}                                          prune now what is older than the retention
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use clap::ValueEnum;
use serde::Deserialize;

use crate::chain::{NodeFault, Operation};
use crate::http::Site;
use crate::lie::Lie;
use crate::refusal::Code;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lies {
    lies: Vec<String>,
    after: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OnChain {
    operation: Operation,
    times: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    fault: Option<NodeFault>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refuse {
    code: u16,
    times: Option<u8>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Link {
    delay_ms: Option<u64>,
    offline: Option<bool>,
    cut: Option<bool>,
}

/// The routes.
pub fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/demo/control/lies", post(lies))
        .route("/demo/control/chain", post(on_chain))
        .route("/demo/control/node", post(node))
        .route("/demo/control/refuse", post(refuse))
        .route("/demo/control/link", post(link))
        .route("/demo/control/collect", post(collect))
}

/// Whoever waits looks again.
fn done(site: &Site) -> Response {
    site.exchange.signal.raise();
    StatusCode::NO_CONTENT.into_response()
}

fn wrong(message: impl Into<String>) -> Response {
    (StatusCode::BAD_REQUEST, message.into()).into_response()
}

async fn lies(State(site): State<Arc<Site>>, Json(body): Json<Lies>) -> Response {
    let named: Result<Vec<_>, _> = body.lies.iter().map(|name| Lie::from_str(name, false)).collect();
    match named {
        Ok(lies) => {
            site.exchange.tell(lies, body.after);
            done(&site)
        }
        Err(error) => wrong(error),
    }
}

async fn on_chain(State(site): State<Arc<Site>>, Json(body): Json<OnChain>) -> Response {
    let exchange = &site.exchange;
    if body.operation == Operation::ActivateGeneration {
        match exchange.key_stream.as_ref().map(|keys| keys.has_next_generation()) {
            Some(Ok(true)) => {}
            Some(Err(error)) => return failed(&error),
            _ => return wrong("no batch of the next generation is committed (§9.4)"),
        }
    }
    for _ in 0..body.times.unwrap_or(1) {
        if let Err(error) = exchange.broker.chain.perform(body.operation, &exchange.broker.keys) {
            return failed(&error);
        }
    }
    done(&site)
}

async fn node(State(site): State<Arc<Site>>, Json(body): Json<Node>) -> Response {
    site.exchange.broker.chain.set_fault(body.fault);
    done(&site)
}

async fn refuse(State(site): State<Arc<Site>>, Json(body): Json<Refuse>) -> Response {
    let Some(code) = Code::ALL.iter().copied().find(|code| code.number() == body.code) else {
        return wrong("no such code in §17");
    };
    site.exchange.faults.refuse(code, usize::from(body.times.unwrap_or(1)));
    done(&site)
}

async fn link(State(site): State<Arc<Site>>, Json(body): Json<Link>) -> Response {
    let faults = &site.exchange.faults;
    body.delay_ms.into_iter().for_each(|delay| faults.set_delay(Duration::from_millis(delay)));
    body.offline.into_iter().for_each(|offline| faults.set_offline(offline));
    if body.cut == Some(true) {
        faults.cut();
    }
    done(&site)
}

async fn collect(State(site): State<Arc<Site>>) -> Response {
    let collecting = Arc::clone(&site);
    match tokio::task::spawn_blocking(move || collecting.exchange.collect()).await {
        Ok(Ok(_)) => done(&site),
        Ok(Err(error)) => failed(&error),
        Err(error) => failed(&error.into()),
    }
}

fn failed(error: &anyhow::Error) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
}
