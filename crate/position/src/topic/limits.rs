//! The internal limits and timers (`STREAMING.md`): client policy, no setting of an application (STR-066, STR-079).

use remuda_streaming::TopicKind;

/// Rows and bytes that something may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Rows, which also bounds what is kept beside each row.
    pub rows: usize,
    /// Bytes: of stored envelopes for pending data, of decoded items for local reads.
    pub bytes: usize,
}

const MIB: usize = 1024 * 1024;

/// One admission, which is one transaction.
pub const MAX_ADMISSION: Limit = Limit { rows: 128, bytes: 32 * MIB };
/// All that was fetched and waits in memory.
pub const MAX_FETCHED: Limit = Limit { rows: 1_024, bytes: 64 * MIB };
/// Pending rows of one topic.
pub const MAX_PENDING_PER_TOPIC: Limit = Limit { rows: 1_024, bytes: 64 * MIB };
/// Pending rows of all groups.
pub const MAX_PENDING_GROUP: Limit = Limit { rows: 8_192, bytes: 128 * MIB };
/// Pending rows of all welcome topics.
pub const MAX_PENDING_WELCOME: Limit = Limit { rows: 1_024, bytes: 64 * MIB };
/// Pending rows of all identities.
pub const MAX_PENDING_IDENTITY: Limit = Limit { rows: 4_096, bytes: 32 * MIB };
/// Dependency requests in flight in one process.
pub const MAX_DEPENDENCY_REQUESTS: usize = 8;
/// One batch of a local reader.
pub const MAX_LOCAL_READ: Limit = Limit { rows: 128, bytes: 16 * MIB };

/// How long a send waits for a receiver before it queries, in milliseconds.
pub const RECEIVER_FALLBACK_INTERVAL_MS: u64 = 1_000;
/// Between fresh checks of the database by whatever is active, in milliseconds.
pub const ACTIVE_DATABASE_POLL_INTERVAL_MS: u64 = 250;
/// How long a default consumer owns D without renewing, in milliseconds.
pub const DEFAULT_CONSUMER_LEASE_DURATION_MS: u64 = 30_000;
/// When an owner renews: a third of its lease.
pub const DEFAULT_CONSUMER_RENEWAL_MS: u64 = DEFAULT_CONSUMER_LEASE_DURATION_MS / 3;
/// Healthy time until an absent identity update makes its reference invalid, in milliseconds (STR-076).
pub const IDENTITY_REFERENCE_WAIT_MS: u64 = 30_000;
/// How long a sync may take that names no timeout, in milliseconds.
pub const BARRIER_TIMEOUT_MS: u64 = 60_000;
/// How long a welcome is kept that cannot be processed, in milliseconds: thirty days (STR-115).
pub const WELCOME_RETENTION_MS: u64 = 30 * 24 * 3_600 * 1_000;

/// What a platform's timer can count, in milliseconds.
const MAX_TIMER_MS: u64 = 0x7fff_ffff;

const _: () = {
    let timers = [
        RECEIVER_FALLBACK_INTERVAL_MS,
        ACTIVE_DATABASE_POLL_INTERVAL_MS,
        DEFAULT_CONSUMER_LEASE_DURATION_MS,
        DEFAULT_CONSUMER_RENEWAL_MS,
        IDENTITY_REFERENCE_WAIT_MS,
        BARRIER_TIMEOUT_MS,
    ];
    let mut index = 0;
    while index < timers.len() {
        assert!(timers[index] > 0 && timers[index] <= MAX_TIMER_MS, "a timer is positive and fits (STR-079)");
        index += 1;
    }
    assert!(MAX_ADMISSION.bytes > remuda_streaming::bound::MAX_ENVELOPE_BYTES, "every legal row can be admitted");
    assert!(MAX_PENDING_IDENTITY.bytes > remuda_streaming::bound::MAX_ENVELOPE_BYTES, "of every kind");
};

/// The limits of receipt together. One value in every build; tests make smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiptLimits {
    /// One transaction.
    pub admission: Limit,
    /// One topic's pending rows.
    pub topic: Limit,
    /// All groups.
    pub group: Limit,
    /// All welcome topics.
    pub welcome: Limit,
    /// All identities.
    pub identity: Limit,
}

impl Default for ReceiptLimits {
    fn default() -> Self {
        Self {
            admission: MAX_ADMISSION,
            topic: MAX_PENDING_PER_TOPIC,
            group: MAX_PENDING_GROUP,
            welcome: MAX_PENDING_WELCOME,
            identity: MAX_PENDING_IDENTITY,
        }
    }
}

impl ReceiptLimits {
    /// The budget of a kind, which no other kind can use; `None` for a kind that is never pending.
    pub const fn kind(&self, kind: TopicKind) -> Option<Limit> {
        match kind {
            TopicKind::Group => Some(self.group),
            TopicKind::Welcome => Some(self.welcome),
            TopicKind::Identity => Some(self.identity),
            TopicKind::KeyPackage | TopicKind::CommitLog => None,
        }
    }
}
