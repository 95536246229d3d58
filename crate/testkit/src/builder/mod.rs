//! An honest provider in a few lines: batches, frames and audit files that verify, for benchmarks and tests.

mod audit_file;
mod batch;
mod full_frame;
mod group;
mod provider;
pub mod rows;

pub use audit_file::AuditFile;
pub use batch::{Batch, Record};
pub use full_frame::FullFrame;
pub use group::GroupReceipts;
pub use provider::Provider;
