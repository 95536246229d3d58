//! The wall clock: the provider, unlike everything that judges it, may read one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a provider reads the time from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// Milliseconds since 1970 that a simulation sets.
    Virtual(Arc<AtomicU64>),
}

impl Clock {
    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        match self {
            Self::System => now_ms(),
            Self::Virtual(now_ms) => now_ms.load(Ordering::Relaxed),
        }
    }
}

/// Milliseconds since 1970; zero for a clock before that.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
