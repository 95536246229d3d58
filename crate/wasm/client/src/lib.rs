//! The client's exports: every one converts, calls and converts. What they mean is in the crates that they call.

mod client;
mod holder;
mod object;
mod options;
mod thrown;
mod to_js;

pub use client::Client;
