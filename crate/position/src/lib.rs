//! `remuda-position`: what is durable, and how it moves.
//!
//! ```text
//! evidence ──Boundary::plan──▶ Admission ──commit──▶ Committed ──▶ Boundary'
//!  (verified)                   (write set)  (one strict transaction, after its `complete`)
//! ```
//! A position moves only with its rows. Only verified evidence can be planned: a hint, a watermark or a target has no
//! way in, because [`Evidence`] is sealed.
//!
//! [`outbox`] is what goes the other way: appends, kept from before they are sent until it is known what came of them.
//!
//! [`topic`] is the same for the streaming document: F, P and D of topics, in a [`topic::store::TopicStore`].
//!
//! [`feed`] is the same for sources whose verification is their own: Watchtower feeds and BPS broadcasts.
//!
//! Pure: a [`Store`] is a trait; this crate has only the one in memory.
#![no_std]
extern crate alloc;

mod admission;
mod beginning;
mod boundary;
mod delivered;
mod evidence;
pub mod feed;
mod item;
pub mod memory;
pub mod outbox;
mod store;
#[cfg(feature = "suite")]
pub mod suite;
pub mod topic;

pub use admission::{Admission, AdmissionBudget};
pub use beginning::AcceptedGap;
pub use boundary::{
    AdoptedLineage, Anchor, Boundary, CheckpointEnd, FastPosition, GroupPosition, LaneTail, Place, PositionKey,
    ReceiptChainEnd, StandardPosition, StoredPosition, StreamPoint,
};
pub use delivered::DeliveredRecord;
pub use evidence::Evidence;
pub use item::{
    ItemAssurance, RowBytes, StoredGap, StoredItem, StoredItemBody, StoredRecord, StoredRow, StoredSnapshot,
    StoredStandardRecord, StoredTransition,
};
pub use store::{commit, Committed, Fence, Store, StoreError, WriteSet};
