//! The client's exports: every one converts, calls and converts. What they mean is in the crates that they call.

mod client;
mod object;
mod options;
mod signer;
mod thrown;
mod to_js;

pub use client::Client;
