//! The engine against the provider over a virtual link, disk and clock. A failing seed fails again.

mod appends;
mod checks;
mod consumer;
mod faults;
mod grants;
mod group_faults;
mod groups;
mod honest;
mod lies;
mod lifecycle;
mod member_keys;
mod outbox;
mod provider;
mod random;
mod recordings;
mod resume;
mod schedules;
mod snapshots;
mod sockets;
mod standard;
mod tails;
mod weather;
mod world;
