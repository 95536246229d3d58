//! Proof counters (§7.1): they start at one and increase strictly within a session.

/// Hands out each counter of one session once, contiguously from one.
///
/// There is no way back: a request whose outcome is unknown has spent its counter, and the next request takes the next.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestCounter {
    last: u64,
}

impl RequestCounter {
    /// The counter of a session that has sent no request.
    pub const fn new() -> Self {
        Self { last: 0 }
    }

    /// The last counter handed out, or zero.
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// The next counter, or `None` when the session has no more.
    #[must_use]
    pub fn take(&mut self) -> Option<u64> {
        self.last = self.last.checked_add(1)?;
        Some(self.last)
    }
}

impl Default for RequestCounter {
    fn default() -> Self {
        Self::new()
    }
}
