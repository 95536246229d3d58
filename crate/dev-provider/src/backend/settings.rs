//! What the backend is to be like, as the command line says it.

use clap::Args;

use super::fault::Fault;

/// Arguments of `serve` that concern the backend.
#[derive(Clone, Debug, Args)]
pub struct BackendSettings {
    /// Between keepalives of a static stream, in milliseconds; announced in `Started`.
    #[arg(long = "backend-keepalive-ms", default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub keepalive_ms: u32,
    /// How long after its publication readers see a row, in milliseconds.
    #[arg(long = "backend-lag-ms", default_value_t = 0)]
    pub replica_lag_ms: u64,
    /// Longest run of sequence ids that is never used, between two rows.
    #[arg(long = "backend-gap", default_value_t = 2)]
    pub sequence_gap: u64,
    /// Do this wrong on a static stream; may be given more than once, one stream each, in turn.
    #[arg(long = "backend-fault", value_enum)]
    pub faults: Vec<Fault>,
    /// How many streams get a fault before all are honest.
    #[arg(long = "backend-faulty-streams", default_value_t = u64::MAX)]
    pub faulty_streams: u64,
}

impl Default for BackendSettings {
    fn default() -> Self {
        Self {
            keepalive_ms: remuda_streaming::bound::DEFAULT_KEEPALIVE_INTERVAL_MS,
            replica_lag_ms: 0,
            sequence_gap: 2,
            faults: Vec::new(),
            faulty_streams: u64::MAX,
        }
    }
}
