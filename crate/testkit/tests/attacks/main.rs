//! Attacks of the conformance list that no vector makes, each by the name of its rule in `validation.tsv`.

mod authentic;
mod batch;
mod delivery_state;
mod endpoint;
mod grant;
mod retention;
mod signing;
mod stream;
