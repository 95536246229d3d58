//! Data keys from the batches of a key stream (§9.3, §9.4), and batches of our own.
//!
//! ```text
//!  rows of the key stream ─▶ MemberKeys ─▶ Agree ──▶ X25519 with a key that nobody can read
//!  (verified, durable)          │    ◀── handle_agreed ──┘
//!                               ├─▶ Keyring: the data key of a generation
//!                               └─▶ Keep: how far, and the keys, to be wrapped and kept
//!
//!  KeyBatchDraft ─sign─▶ KeyBatchUpload ─▶ BeginKeyBatch, PutKeyBatchChunk…, CommitKeyBatch ─▶ receipt
//! ```
//! The key stream is a stream of its own: a second engine follows it and commits its rows. Nothing here does I/O, waits or draws
//! random bytes. A batch is believed because the rotation key of the stream record signed it and it extends the chain of batches.

mod draft;
mod follower;
mod kept;
mod upload;

pub use draft::KeyBatchDraft;
pub use follower::{MemberKeyConfig, MemberKeyEvent, MemberKeyOutput, MemberKeys, StreamKeyFacts};
pub use upload::{KeyBatchUpload, UploadStep};
