//! How the link and the disk behave.

/// How the link and the disk behave. Chances are of a thousand.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Latencies are from 1 to this.
    pub latency_ms: u64,
    /// The request does not reach the provider.
    pub lose_request: u64,
    /// The provider acted, and its answer is lost.
    pub lose_answer: u64,
    /// No answer ever comes.
    pub hang: u64,
    /// A chain read fails.
    pub lose_read: u64,
    /// A pinned chain read is gone.
    pub gone: u64,
    /// A commit is aborted.
    pub abort: u64,
    /// A commit is reported as aborted that was kept.
    pub ambiguous: u64,
    /// A position cannot be read.
    pub unreadable: u64,
    /// Chain reads take this much longer.
    pub slow_read_ms: u64,
    /// Commits take this much longer.
    pub slow_disk_ms: u64,
}

impl Weather {
    pub const FAIR: Self = Self {
        latency_ms: 20,
        lose_request: 0,
        lose_answer: 0,
        hang: 0,
        lose_read: 0,
        gone: 0,
        abort: 0,
        ambiguous: 0,
        unreadable: 0,
        slow_read_ms: 0,
        slow_disk_ms: 0,
    };
    pub const FOUL: Self = Self {
        latency_ms: 200,
        lose_request: 40,
        lose_answer: 60,
        hang: 10,
        lose_read: 150,
        gone: 100,
        abort: 60,
        ambiguous: 60,
        unreadable: 100,
        slow_read_ms: 0,
        slow_disk_ms: 0,
    };
}
