//! `remuda-bps`: BPS-lite (SWIP-74, revision 8), one author's broadcasts to an audience over a broker that is believed in
//! nothing: each message is a single-owner chunk whose identifier says which one it is.
//!
//! | module | `BPS.md` |
//! |---|---|
//! | [`chunk`], [`soc`], [`signature`] | content-addressed and single-owner chunks, who signed them |
//! | [`topic`] | feed identifiers, salted with the stream's challenge |
//! | [`message`] | the protobuf messages `Join`, `Ack`, `Broadcast` |
//! | [`broadcast`] | the judgement over one broadcast |
//! | [`bridge`] | the node's WebSocket bridge: paths, frames, the offer |
//! | [`connection`] | how a broker is reached, left and come back to |
//! | [`subscriber`], [`publisher`] | the two machines, over the bridge or the direct frames |
//! | [`evidence`] | two updates for one index |
//! | [`stored`] | what of a cohort is durable |
//! | [`refusal`] | every verdict, its code and what to do about it |
//!
//! Pure: no clock, no randomness, no log, no I/O.
#![no_std]
extern crate alloc;

pub mod bridge;
pub mod broadcast;
pub mod chunk;
pub mod connection;
pub mod evidence;
pub mod message;
pub mod publisher;
pub mod refusal;
pub mod signature;
pub mod soc;
pub mod stored;
pub mod subscriber;
pub mod topic;

pub use broadcast::{judge, Cohort, Gap, Judged};
pub use message::Broadcast;
pub use refusal::BpsRefusal;
pub use remuda_wire::Address;
