//! `remuda-session`: the conversation with a provider, without a socket, a clock or randomness.
//!
//! A frame that leaves here is *legal now*: of this session, for a live subscription, covered by credit. Whether what it
//! says is true is for `remuda-verify`; this crate knows no Merkle root and checks no signature.
//!
//! | module | what it is |
//! |---|---|
//! | [`handshake`] | §7.1, §13.2: `AwaitChallenge -> AwaitSignature -> AwaitOpened -> Open` |
//! | [`counter`], [`request`] | §7.1: proof counters, one request on its way to a signature |
//! | `seen` | §7.1: sessions and challenges are met once |
//! | [`credit`], [`subscription`], [`routed`] | §13.2: credit windows, live subscriptions, frames that are legal now |
//! | [`backoff`], [`entropy`] | full-jitter delays and correlation ids from one seed |
//! | [`provider_error`], [`transport_error`], [`misuse`] | errors by who is at fault, each with its remedy |
//! | [`long_poll`] | one virtual session over HTTPS long-poll, one request in flight by construction |
//! | [`channel`] | a command session beside a poll session, with a credit policy |
//! | [`web_socket`] | one session over a WebSocket, requests pipelined, frames pushed |
//! | [`link`] | whichever of both works, and back to the WebSocket later |
//! | [`output`], [`config`] | what machines ask for and tell, and what they are made of |
//!
//! # Driving a machine
//!
//! Time is an argument: `now_ms`, milliseconds since the Unix epoch. Give one input (`handle_*`, `submit`), then take
//! every output (`poll_output`) until there is none, then sleep until `wake_at`. When a timer fires late, after the
//! machine slept for hours, give every body that has already arrived before `handle_time`: a deadline is judged from
//! timestamps, and an answer that is here is an answer, however late the clock says it is.
#![no_std]
extern crate alloc;

pub mod channel;
pub mod config;
mod conversation;
pub mod counter;
pub mod credit;
pub mod entropy;
pub mod handshake;
pub mod link;
pub mod long_poll;
pub mod misuse;
pub mod output;
pub mod provider_error;
mod queue;
pub mod request;
pub mod routed;
mod seen;
pub mod subscription;
pub mod transport_error;
pub mod web_socket;

pub use channel::{ChannelConfig, ChannelOutput, LongPollChannel};
pub use config::SessionConfig;
pub use credit::{CreditTarget, CreditWindow};
pub use handshake::HandshakeConfig;
pub use link::{Link, Transports};
pub use long_poll::LongPollSession;
pub use misuse::ApiMisuse;
pub use output::{CloseCause, Output, PostId, RequestHandle, Slot, SocketId, Transport};
pub use provider_error::{ErrorKind, ProviderError};
pub use remuda_wire::backoff::{self, Backoff};
pub use routed::{Routed, RoutedFrame};
pub use transport_error::TransportError;
pub use web_socket::WebSocketSession;
