//! `remuda-client`: the engine. It speaks to a provider, verifies what it says, and plans what becomes durable; it owns no
//! socket, no disk and no clock.
//!
//! ```text
//!  subscribe ─▶ Load ─▶ handle_loaded          command            what the driver does         what it gives back
//!  (time)    ─▶ Post, Sign, ReadChain          ─────────▶ Engine ─▶ outputs            ─────▶ handle_*
//!  frames    ─▶ verify ─▶ Commit ─▶ handle_committed ─▶ Event::Committed
//! ```
//! The driver gives one input, drains [`Engine::poll_output`] until it is empty, then sleeps until [`Engine::wake_at`].
//! [`receiver`] is the same for the streaming document: static streams, queries and receipts.
//! What is appended goes through the outbox of the database, and is sent from there: [`Engine::handle_enqueued`].
//! What a consumer group leases is told by [`Event::Group`], and settled by [`Engine::decide`].
//! Frames are applied in the order in which they came; while a key is read or a commit is under way they wait.
#![no_std]
extern crate alloc;

mod answer_check;
mod append_check;
mod chain_quorum;
mod command;
mod durable_receipts;
mod engine;
mod event;
mod failure;
mod group;
mod key_book;
mod keyring;
pub mod member_keys;
mod outbox;
mod outcome;
pub mod receiver;
mod recorder;
mod subscription;
mod verifier;
mod work;

pub use chain_quorum::{ChainAnswer, ChainConclusion, ChainQuorum};
pub use command::{Append, CommandId, CommandOutcome};
pub use engine::{Engine, EngineConfig, Output, SnapshotDraft, SnapshotPart, TailKey};
pub use event::{BatchSummary, Connection, Event, Hydrated, SegmentSummary, TransitionSummary};
pub use failure::Failure;
pub use group::{undecryptable, Decision, GroupId, GroupNews};
pub use keyring::{Keyring, OpenedPayload};
pub use outbox::{AppendUpdate, OutboxCounts};
pub use outcome::ChainReadError;
pub use recorder::Recording;
pub use remuda_verify::snapshot_generation::{FetchedSnapshot, SnapshotGeneration};
pub use subscription::{ProofScope, Subscription, SubscriptionSpec, SubscriptionState};
