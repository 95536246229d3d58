//! What to serve, as the command line says it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use remuda_wire::chain::DeliveryClass;

use crate::backend::settings::BackendSettings;
use crate::bps::BrokerSettings;
use crate::lie::Lie;
use crate::watchtower::FeedSettings;

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

impl Default for Settings {
    /// What the command line says when it says nothing, in memory or the working directory.
    fn default() -> Self {
        Self {
            data: PathBuf::new(),
            listen: ([127, 0, 0, 1], 8339).into(),
            writer: 0,
            lanes: 8,
            pages: None,
            lies: Vec::new(),
            lie_after: 3,
            poll_ms: 20_000,
            block_ms: 10_000,
            class: Class::Fast,
            encrypted: false,
            batch_ms: 100,
            batch_records: 1024,
            retention_ms: None,
            retained_bytes: None,
            max_lanes: None,
            control: false,
            backend: BackendSettings::default(),
            session_ms: 3_600_000,
        }
    }
}

/// Arguments of `serve` for what is beside the CBQS streams.
#[derive(Clone, Debug, Args)]
pub struct FeedsSettings {
    /// The Watchtower feed.
    #[command(flatten)]
    pub watchtower: FeedSettings,
    /// The BPS broker.
    #[command(flatten)]
    pub bps: BrokerSettings,
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
    /// `retention_ms` of the stream, fixed when it is created; a class has its default.
    #[arg(long)]
    pub retention_ms: Option<u64>,
    /// `retained_bytes_limit` of the stream, fixed when it is created.
    #[arg(long)]
    pub retained_bytes: Option<u64>,
    /// `max_lanes` of the stream, fixed when it is created.
    #[arg(long)]
    pub max_lanes: Option<u32>,
    /// Faults and lies can be set at run time: `POST /demo/control/...`.
    #[arg(long)]
    pub control: bool,
    /// Longest life of a session, in milliseconds.
    #[arg(long, default_value_t = 3_600_000)]
    pub session_ms: u64,
    /// The backend of the streaming document.
    #[command(flatten)]
    pub backend: BackendSettings,
}
