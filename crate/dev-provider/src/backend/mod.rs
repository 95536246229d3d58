//! The backend of the streaming document: `xmtp.backend.v1` by tonic and tonic-web, on the provider's own listener.
//!
//! | module | what |
//! |---|---|
//! | [`rows`] | published rows: one global sequence with gaps, seen by readers after the replica's lag |
//! | [`publish`], [`query`] | the unary methods |
//! | [`subscribe`], [`turns`] | static streams, in fair bounded turns (STR-016, STR-050 to STR-053) |
//! | [`fault`], [`body`] | what it does wrong on request, in messages and below them |
//!
//! Rows live in memory. MLS is not parsed: the identifier of a topic is the first bytes of the payload
//! ([`publish::topic_of`]).

pub mod body;
pub mod fault;
pub mod publish;
pub mod query;
pub mod rows;
pub mod settings;
pub mod subscribe;
pub mod turns;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use axum::http::{header, HeaderName, Method};
use axum::Router;
use remuda_streaming::bound::MAX_MESSAGE_BYTES;
use remuda_streaming::grpc_web::REQUEST_HEADERS;
use tokio::sync::watch;
use tonic::service::Routes;
use tonic_web::GrpcWebLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};

use fault::Fault;
use generated::publish_service_server::PublishServiceServer;
use generated::query_service_server::QueryServiceServer;
use generated::subscription_service_server::SubscriptionServiceServer;
use rows::Rows;
use settings::BackendSettings;

/// What the services implement.
#[allow(missing_docs, clippy::as_conversions, reason = "generated")]
mod generated {
    include!("generated.rs");
}

/// Headers that a page may read from an answer (STR-055).
const EXPOSED: [&str; 3] = ["grpc-status", "grpc-message", "grpc-status-details-bin"];

/// One backend.
#[derive(Debug)]
pub struct Backend {
    /// What was published.
    pub rows: Arc<Rows>,
    settings: BackendSettings,
    streams: AtomicU64,
    /// Becomes true when the provider stops.
    closing: watch::Receiver<bool>,
}

impl Backend {
    /// A backend without rows.
    pub fn new(settings: BackendSettings, closing: watch::Receiver<bool>) -> Arc<Self> {
        let rows = Arc::new(Rows::new(settings.sequence_gap, Duration::from_millis(settings.replica_lag_ms)));
        Arc::new(Self { rows, settings, streams: AtomicU64::new(0), closing })
    }

    /// Its routes, for pages of this machine.
    pub fn routes(self: &Arc<Self>) -> Router {
        let subscriptions = SubscriptionServiceServer::from_arc(Arc::clone(self));
        let queries = QueryServiceServer::from_arc(Arc::clone(self));
        let publications = PublishServiceServer::from_arc(Arc::clone(self));
        Routes::new(subscriptions.max_decoding_message_size(MAX_MESSAGE_BYTES))
            .add_service(queries.max_decoding_message_size(MAX_MESSAGE_BYTES))
            .add_service(publications.max_decoding_message_size(MAX_MESSAGE_BYTES))
            .into_axum_router()
            // What is no method of ours is the pages' to answer.
            .reset_fallback()
            .layer(GrpcWebLayer::new())
            .layer(axum::middleware::from_fn(body::distort))
            .layer(cors())
    }

    /// The fault that the stream which opens now gets: the first streams get them in turn, later ones none.
    fn next_fault(&self) -> Option<Fault> {
        let stream = self.streams.fetch_add(1, Ordering::Relaxed);
        let faults = &self.settings.faults;
        let count = u64::try_from(faults.len()).ok().filter(|count| *count > 0)?;
        let told = stream < self.settings.faulty_streams;
        told.then(|| usize::try_from(stream % count).ok().and_then(|index| faults.get(index)).copied()).flatten()
    }
}

fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(|origin, _| crate::http::is_loopback(origin)))
        .allow_methods([Method::POST])
        .allow_headers(REQUEST_HEADERS.map(HeaderName::from_static))
        .expose_headers(
            EXPOSED.map(HeaderName::from_static).into_iter().chain([header::CONTENT_TYPE]).collect::<Vec<_>>(),
        )
        .max_age(Duration::from_secs(86_400))
}
