//! The wall clock: the provider, unlike everything that judges it, may read one.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::runtime::RuntimeFlavor;

/// What a provider reads the time from.
#[derive(Clone, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// A simulation's, in milliseconds since 1970.
    Virtual(Arc<dyn Fn() -> u64 + Send + Sync>),
}

impl Clock {
    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        match self {
            Self::System => now_ms(),
            Self::Virtual(now_ms) => now_ms(),
        }
    }

    /// Runs what writes to the store where nothing can be awaited: other tasks of a busy worker move elsewhere meanwhile.
    pub(crate) fn write_here<T>(&self, write: impl FnOnce() -> T) -> T {
        let flavor = tokio::runtime::Handle::try_current().map(|runtime| runtime.runtime_flavor());
        match (self, flavor) {
            (Self::System, Ok(RuntimeFlavor::MultiThread)) => tokio::task::block_in_place(write),
            _ => write(),
        }
    }

    /// Runs what writes to the store: beside other tasks, or in a simulation in their order.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        match self {
            Self::System => tokio::task::spawn_blocking(write).await?,
            Self::Virtual(_) => write(),
        }
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::Virtual(_) => "Virtual",
        })
    }
}

/// Milliseconds since 1970; zero for a clock before that.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
