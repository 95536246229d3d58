//! Positions of topics (the streaming document): receipt, processing and delivery, each its own commit.
//!
//! ```text
//! OrderedPrefix ──receive──▶ pending rows, F ──process──▶ state, messages, P ──Consumer──▶ the application, D
//!                (receipt)                   (processing)                     (delivery)
//! ```
//!
//! | module | rules |
//! |---|---|
//! | [`place`] | F, P and D: types that do not convert into each other; H is [`remuda_streaming::Target`] |
//! | [`evidence`], [`receipt`] | STR-060 to STR-063: what may move F, and what it becomes |
//! | [`processing`], [`processor`], [`turns`], [`welcome`] | STR-070 to STR-077, STR-080 to STR-086, STR-115 |
//! | [`dependency`] | STR-075, STR-076: bounded requests, exact-N references, the healthy wait |
//! | [`consumer`], [`reader`], [`message`] | STR-090 to STR-104 |
//! | [`obligation`] | STR-013, STR-043: when a fixed target is reached |
//! | [`limits`] | STR-066, STR-079: the internal limits and timers |
//! | [`store`], [`memory`], [`suite`] | what a disk does: ordered rows, snapshots, compare and write |
//!
//! Every commit compares what it was planned from and writes everything or nothing. Whoever was overtaken plans again from
//! what is there: several tabs and workers may do this at once (STR-070).

pub mod consumer;
pub mod dependency;
pub mod evidence;
pub mod key;
pub mod limits;
pub mod memory;
pub mod message;
pub mod obligation;
pub mod place;
pub mod processing;
pub mod processor;
pub mod reader;
pub mod receipt;
pub(crate) mod row;
pub mod store;
#[cfg(feature = "suite")]
pub mod suite;
mod transaction;
pub mod turns;
pub mod welcome;
