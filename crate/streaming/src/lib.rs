//! `remuda-streaming`: the wire of the streaming document, package `xmtp.backend.v1` over gRPC-Web.
//!
//! ```text
//! body chunks ──GrpcWebBody──▶ message ──StaticStream / OrderedQuery──▶ OrderedPrefix
//!  (bounded)                   (bytes)     (asked for, in order)         (may advance F)
//! ```
//!
//! | module | rules |
//! |---|---|
//! | [`proto`] | the messages, generated from `proto/xmtp_backend_v1.proto` |
//! | [`topic`], [`sequence`], [`bound`] | topics, sequence ids, what a backend accepts |
//! | [`grpc_web`], [`status`] | gRPC-Web: a request's frame, an answer's body under a bound, its status |
//! | [`static_stream`] | STR-050 to STR-053, STR-060: a request, and everything that its stream may say |
//! | [`query`] | STR-040, STR-042, STR-060: ordered pages after F, and fixed targets |
//! | [`prefix`] | STR-060, STR-062: the one thing that may advance a received boundary |
//! | [`verdict`] | `VERDICTS.md`: every refusal of this wire |
//!
//! Pure: no clock, no randomness, no log, no I/O.
#![no_std]
extern crate alloc;

pub mod bound;
pub mod envelope;
pub mod grpc_web;
pub mod prefix;
pub mod query;
pub mod sequence;
pub mod static_stream;
pub mod status;
pub mod topic;
pub mod verdict;

/// The messages of `xmtp.backend.v1`. What they decode to is of the right shape for protobuf, and nothing more.
#[allow(missing_docs, clippy::as_conversions, clippy::large_enum_variant, reason = "generated")]
pub mod proto {
    include!("generated/xmtp_backend_v1.rs");
}

/// The compiled .proto file, a `google.protobuf.FileDescriptorSet`: what a dynamic client reads.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/xmtp_backend_v1.binpb");

pub use envelope::ReceivedEnvelope;
pub use prefix::OrderedPrefix;
pub use prost::bytes::Bytes;
pub use sequence::{SequenceId, Target};
pub use status::{GrpcCode, GrpcStatus};
pub use topic::{Topic, TopicKind};
pub use verdict::StreamRefused;
