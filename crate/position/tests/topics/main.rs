//! Topics: receipt, processing and delivery, rule by rule, and then against a naive model.

mod delivery;
mod model;
mod processing;
mod receipt;
mod support;
mod turns;
mod waits;
mod welcomes;
