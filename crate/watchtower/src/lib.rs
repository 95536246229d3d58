//! `remuda-watchtower`: feeds of the Watchtower protocol (CIP-7), pulled, verified, filtered and opened.
//!
//! The provider of an answer is believed in nothing: a message counts when the publisher's key in force at its sequence
//! signed it. What is *not* signed is only what keeps us going: the head, the floor, and the key history beyond what the
//! application pinned.
//!
//! | module | `WATCHTOWER.md`, CIP-7 |
//! |---|---|
//! | [`cbor`] | deterministic CBOR of this profile |
//! | [`message`], [`signing`] | `StreamMessage`, its signing payload and associated data |
//! | [`schedule`], [`verifier`] | key schedule; hash, signature and contiguity of each message |
//! | [`evidence`] | two signed messages for one sequence |
//! | [`filter`] | the JSON filter language |
//! | [`content_key`], [`mirror`] | paid mode: derived keys, sealed payloads, byte-layout mirrors |
//! | [`recovery`] | the content key from the committee's signature (feature `recovery`) |
//! | [`transport`], [`feed`] | `get_since` and `get_key_history`; the machine that pulls with them |
//! | [`stored`] | what of a feed is durable |
//! | [`publisher`] | composing, sealing and signing messages |
//! | [`refusal`] | every verdict, its code and what to do about it |
//!
//! Pure: no clock, no randomness, no log, no I/O.
#![no_std]
extern crate alloc;

pub mod cbor;
pub mod content_key;
pub mod evidence;
pub mod feed;
pub mod filter;
pub mod message;
pub mod mirror;
pub mod publisher;
#[cfg(feature = "recovery")]
pub mod recovery;
pub mod refusal;
pub mod schedule;
pub mod signing;
pub mod stored;
pub mod transport;
pub mod verifier;

pub use message::{StreamId, StreamMessage, Tag};
pub use refusal::WatchtowerRefusal;
