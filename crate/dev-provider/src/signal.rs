//! One signal for everybody who waits: something may be ready, or may have ended.

use std::sync::Arc;

use tokio::sync::watch;

/// Raised after each change; whoever waits looks for itself.
#[derive(Clone, Debug, Default)]
pub struct Signal(Arc<watch::Sender<u64>>);

impl Signal {
    /// Wakes everybody.
    pub fn raise(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A way to wait for the next change.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
