//! Key batches (§9.3, §9.4): one link of a generation's key distribution, its receipt and its records.
//!
//! ```text
//! batch chain    key_batch_genesis ◀── batch ◀── supplemental batch ◀── batch of the next generation
//!                     each signed by the rotation key, committing its envelopes and the whole membership
//! key stream     … header │ envelope │ envelope │ …     one contiguous run of records for each batch
//! receipt        the provider binds batch, envelopes and run
//! ```
//! Nothing here opens an envelope, and nothing here says that a data key is the generation's: that is `open`.

mod batch;
mod records;

pub use batch::{batch_context_digest, KeyBatchPosition, VerifiedKeyBatch};
pub use records::MaterialisedRecord;
