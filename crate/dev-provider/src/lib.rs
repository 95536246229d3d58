//! `remuda-dev-provider`: a chain, a CBQS broker and a page server in one process, for demos and tests.
//!
//! | module | what |
//! |---|---|
//! | [`settings`], [`server`] | what to run, and running it until a signal |
//! | [`chain`], [`keys`] | a deterministic dev chain: views, records, what may happen to them, a node that fails (§4) |
//! | [`store`], [`batch`], [`epoch`], [`broker`], [`floor`] | durable fast batches, checkpoints, epochs and retention (§12, §15) |
//! | [`log`], [`groups`], [`key_stream`] | standard records in their receipt chains, consumer groups, key batches (§9, §11, §14) |
//! | [`lanes`], [`lane_book`] | the demo lanes; every lane, and the event that tells of each change (§8) |
//! | [`backend`] | the backend of the streaming document, by gRPC-Web |
//! | [`grant`], [`session`], [`exchange`], [`refusal`] | grants, proofs of possession, requests over either transport, every code of §17 (§7, §13) |
//! | [`subscription`], [`deliver`], [`outbox`], [`signal`] | what a subscription is owed, in which order, under which credit (§12.2.1) |
//! | [`lie`], [`fault`], [`control`] | every falsehood by name with the verdict that must catch it; what goes wrong; both at run time |
//! | [`http`], [`websocket`], [`demo`], [`pages`], [`writer`] | the routes, demo grants, static files, and a writer that fills the lanes |
//! | [`watchtower`], [`bps`] | a Watchtower feed and a BPS broker, honest and lying |
//!
//! It shares no machine with the client: only `wire`, `verify` and the messages of `streaming`, so one misunderstanding cannot pass on both sides.
//! It is no production broker: one stream and one provider key.

pub mod backend;
pub mod batch;
pub mod bps;
pub mod broker;
pub mod chain;
pub mod control;
pub mod deliver;
pub mod demo;
pub mod epoch;
pub mod exchange;
pub mod fault;
pub mod floor;
pub mod grant;
pub mod groups;
pub mod http;
pub mod key_stream;
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
pub mod watchtower;
pub mod websocket;
pub mod writer;
