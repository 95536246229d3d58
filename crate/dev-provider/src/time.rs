//! The wall clock: the provider, unlike everything that judges it, may read one.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970; zero for a clock before that.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
