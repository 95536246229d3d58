//! `remuda-dev-provider`: a chain, a CBQS broker and a page server in one process, for demos and tests.
//!
//! | module | what |
//! |---|---|
//! | [`settings`], [`server`] | what to run, and running it until a signal |
//! | [`chain`], [`keys`], [`lanes`] | a deterministic dev chain: views, stream and provider records (§4) |
//! | [`store`], [`batch`], [`epoch`], [`broker`] | durable fast batches, checkpoints and epochs (§12) |
//! | [`backend`] | the backend of the streaming document, by gRPC-Web |
//! | [`grant`], [`session`], [`exchange`] | grants, proofs of possession, one request at a time (§7, §13) |
//! | [`subscription`], [`deliver`], [`outbox`] | what a subscription is owed, in which order, under which credit (§12.2.1) |
//! | [`lie`] | every falsehood it can tell, by name, with the verdict that must catch it |
//! | [`http`], [`websocket`], [`demo`], [`pages`], [`writer`] | the routes, demo grants, static files, and a writer that fills the lanes |
//!
//! It shares no machine with the client: only `wire`, `verify` and the messages of `streaming`, so one misunderstanding cannot pass on both sides.
//! It is no production broker: one stream, one provider key, no retention.

pub mod backend;
pub mod batch;
pub mod broker;
pub mod chain;
pub mod deliver;
pub mod demo;
pub mod epoch;
pub mod exchange;
pub mod grant;
pub mod http;
pub mod keys;
pub mod lane_book;
pub mod lanes;
pub mod lie;
pub mod log;
pub mod outbox;
pub mod pages;
pub mod refusal;
pub mod server;
pub mod session;
pub mod settings;
pub mod signal;
pub mod store;
pub mod subscription;
pub mod time;
pub mod websocket;
pub mod writer;
