//! The engine against the provider over a virtual link, disk and clock. A failing seed fails again.

mod honest;
mod provider;
mod random;
mod world;
