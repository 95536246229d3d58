//! The client's exports: every one converts, calls and converts. What they mean is in the crates that they call.

mod client;
mod group;
mod holder;
mod members;
mod options;
mod publication;
mod secret;
mod snapshots;
mod to_js;

pub use client::Client;
use remuda_wasm_js::{object, thrown};
