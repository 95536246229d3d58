//! `remuda-wire`: bytes to values and back for every CBQS object of CIP-39.
//!
//! Decoding proves shape, never truth: a decoded value is canonical, within its bounds, and says the same thing
//! wherever it says it twice. Whether it is *true* is for `remuda-verify`.
//!
//! | module | CIP-39 |
//! |---|---|
//! | [`codec`], [`reader`], [`writer`], [`bound`] | §14 canonical encoding, §18 bounds |
//! | [`context`], [`chain`], [`price`] | §4 signing context, chain records, §4.4 and §4.5 prices |
//! | [`grant`], [`scope`], [`session`] | §7 grants, lane scopes, proofs of possession |
//! | [`lane`], [`record`] | §8 lanes, §10 records |
//! | [`key_batch`] | §9.3 key batches |
//! | [`group`] | §11.2, §13.1, §14.2 groups, leases, delivery state |
//! | [`transition`], [`checkpoint`] | §12.1 broker epochs, §12.2 checkpoints and lane proofs |
//! | [`request`], [`response`], [`delivery`], [`frame`], [`error_frame`] | §13 transport |
//! | [`receipt`], [`signed`], [`preimage`] | §14 receipts, the signing registry, every hash preimage |
//! | [`retention`], [`snapshot`] | §15 retention anchors and snapshots |
//! | [`audit`] | `RESOLUTIONS.md` §8: the audit file |
//! | [`error`], [`verdict`], [`remedy`] | `VERDICTS.md`: every refusal, its code and what to do about it |
//! | [`backoff`] | the delay of a [`Remedy::Retry`], the same for every protocol |
//!
//! Pure: no clock, no randomness, no log, no I/O.
#![no_std]
extern crate alloc;

#[macro_use]
mod macros;

pub mod audit;
pub mod backoff;
pub mod bound;
pub mod bytes;
pub mod chain;
pub mod checkpoint;
pub mod codec;
pub mod context;
pub mod delivery;
pub mod error;
pub mod error_frame;
pub mod frame;
pub mod grant;
pub mod group;
pub mod key;
pub mod key_batch;
pub mod lane;
pub mod preimage;
pub mod price;
pub mod reader;
pub mod receipt;
pub mod record;
pub mod remedy;
pub mod request;
pub mod response;
pub mod retention;
pub mod scope;
pub mod session;
pub mod signed;
pub mod snapshot;
pub mod transition;
pub mod verdict;
pub mod writer;

pub use bytes::{Address, Bytes24, Bytes32, Signature};
pub use codec::{Bytes, Canonical, List, ProviderEpoch, Text, VersionOne};
pub use error::DecodeError;
pub use reader::Reader;
pub use remedy::Remedy;
pub use signed::Signed;
pub use verdict::Refusal;
pub use writer::Writer;
