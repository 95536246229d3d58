//! An honest provider in a few lines: batches, frames and audit files that verify, for benchmarks and tests.

mod audit_file;
mod batch;
mod provider;
pub mod rows;

pub use audit_file::AuditFile;
pub use batch::{Batch, Record};
pub use provider::Provider;
