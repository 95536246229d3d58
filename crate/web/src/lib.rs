//! `remuda-web`: the browser, behind small typed functions.
//!
//! ```text
//! IdbStore ── one strict transaction a call ──▶ IndexedDB        Endpoint ── post, get ──▶ fetch, cut at a cap
//! Socket ── binary messages within a bound ──▶ WebSocket
//! now_ms, sleep_until, random_bytes                               (a page or a worker: nothing here needs a window)
//! ```
//! Everything runs in a page and in a worker. Nothing here judges what a peer says: bytes come out as they came in.

pub mod chain_nodes;
pub mod clock;
pub mod dial;
pub mod driver;
mod event;
#[cfg(feature = "feeds")]
pub mod feeds;
pub mod fetch;
mod idb_ordered;
mod idb_schema;
mod idb_store;
mod idb_transaction;
mod script;
pub mod store;
pub mod web_socket;

pub use idb_store::IdbStore;
