//! Waiting until a subscription may be owed something, or may have ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::Exchange;
use crate::chain::Chain;
use crate::epoch::Head;
use crate::groups::Groups;

/// Everything that is waited for.
#[derive(Debug)]
pub(super) struct Wait {
    head: watch::Receiver<Head>,
    signal: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
    groups: Arc<Groups>,
    chain: Arc<Chain>,
}

impl Wait {
    pub fn new(exchange: &Exchange) -> Self {
        Self {
            head: exchange.broker.head(),
            signal: exchange.signal.subscribe(),
            closing: exchange.closing.clone(),
            groups: Arc::clone(&exchange.groups),
            chain: Arc::clone(&exchange.broker.chain),
        }
    }

    /// What changes from here on is seen by [`Self::change`]. Answers whether the provider is closing.
    pub fn mark(&mut self) -> bool {
        self.head.borrow_and_update();
        self.signal.borrow_and_update();
        *self.closing.borrow_and_update()
    }

    /// Waits for a change since [`Self::mark`], for at most `longest`. A lease that runs out is a change.
    pub async fn change(&mut self, longest: Duration) {
        let now = self.chain.now_ms();
        // What is due already was looked at: it waits for credit or for another holder.
        let due = self.groups.next_due_ms().filter(|due| *due > now);
        let longest = due.map_or(longest, |due| longest.min(Duration::from_millis(due - now)));
        tokio::select! {
            _ = self.head.changed() => {}
            _ = self.signal.changed() => {}
            _ = self.closing.changed() => {}
            () = tokio::time::sleep(longest) => {}
        }
    }
}
