//! Waiting until a subscription may be owed something, or may have ended.

use std::time::Duration;

use tokio::sync::watch;

use super::Exchange;
use crate::epoch::Head;

/// Everything that is waited for.
#[derive(Debug)]
pub(super) struct Wait {
    head: watch::Receiver<Head>,
    signal: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
}

impl Wait {
    pub fn new(exchange: &Exchange) -> Self {
        let (head, closing) = (exchange.broker.head(), exchange.closing.clone());
        Self { head, signal: exchange.signal.subscribe(), closing }
    }

    /// What changes from here on is seen by [`Self::change`]. Answers whether the provider is closing.
    pub fn mark(&mut self) -> bool {
        self.head.borrow_and_update();
        self.signal.borrow_and_update();
        *self.closing.borrow_and_update()
    }

    /// Waits for a change since [`Self::mark`], for at most `longest`.
    pub async fn change(&mut self, longest: Duration) {
        tokio::select! {
            _ = self.head.changed() => {}
            _ = self.signal.changed() => {}
            _ = self.closing.changed() => {}
            () = tokio::time::sleep(longest) => {}
        }
    }
}
