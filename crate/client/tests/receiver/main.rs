//! The receiver against a model backend, in virtual time.

mod backend;
mod simulation;
mod streams;
mod syncs;
