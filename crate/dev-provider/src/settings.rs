//! What to serve, as the command line says it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use remuda_wire::chain::DeliveryClass;

use crate::backend::settings::BackendSettings;
use crate::lie::Lie;

/// A delivery class by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Class {
    /// Provisional answers, durable batches.
    Fast,
    /// Durable before it is answered; groups and leases.
    Standard,
}

impl Class {
    /// As a chain record has it.
    pub const fn delivery(self) -> DeliveryClass {
        match self {
            Self::Fast => DeliveryClass::Fast,
            Self::Standard => DeliveryClass::Standard,
        }
    }
}

/// Arguments of `serve`.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    /// Where the chain, the records and the keys are kept; created when missing.
    #[arg(long)]
    pub data: PathBuf,
    /// Address to listen on; port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:8339")]
    pub listen: SocketAddr,
    /// Records per second that the built-in writer appends; 0 writes nothing.
    #[arg(long, default_value_t = 0)]
    pub writer: u32,
    /// Demo lanes beside the default lane.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub lanes: u32,
    /// Directory of static pages to serve.
    #[arg(long)]
    pub pages: Option<PathBuf>,
    /// Tell this lie; may be given more than once.
    #[arg(long = "lie", value_enum)]
    pub lies: Vec<Lie>,
    /// Checkpoints that each holder is served honestly before the lies begin.
    #[arg(long, default_value_t = 3)]
    pub lie_after: u64,
    /// Longest time that a poll is held, in milliseconds.
    #[arg(long, default_value_t = 20_000)]
    pub poll_ms: u64,
    /// Time between finalized blocks, in milliseconds; 0 finalizes one block per start.
    #[arg(long, default_value_t = 10_000)]
    pub block_ms: u64,
    /// Delivery class of the stream, fixed when it is created.
    #[arg(long, value_enum, default_value_t = Class::Fast)]
    pub class: Class,
    /// Encrypted payloads and a key stream, fixed when the stream is created.
    #[arg(long)]
    pub encrypted: bool,
    /// `fast_batch_max_ms` of the stream, fixed when it is created.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub batch_ms: u32,
    /// `fast_batch_max_records` of the stream, fixed when it is created.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub batch_records: u32,
    /// Longest life of a session, in milliseconds.
    #[arg(long, default_value_t = 3_600_000)]
    pub session_ms: u64,
    /// The backend of the streaming document.
    #[command(flatten)]
    pub backend: BackendSettings,
}
