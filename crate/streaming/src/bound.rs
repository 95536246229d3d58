//! What a backend accepts (`STREAMING.md`, "Backend limits"), and what it says when it says nothing.

/// Topics of one static stream (STR-050).
pub const MAX_STATIC_TOPICS: usize = 10_000;
/// Topics of one query.
pub const MAX_QUERY_TOPICS: usize = 1_000;
/// Rows of one query's page.
pub const MAX_QUERY_LIMIT: u32 = 1_000;
/// Topics of one question for the newest rows, without envelopes.
pub const MAX_NEWEST_TOPICS: usize = 1_000;
/// Topics of one question for the newest rows, with envelopes.
pub const MAX_NEWEST_ENVELOPE_TOPICS: usize = 100;
/// Bytes of one client envelope.
pub const MAX_ENVELOPE_BYTES: usize = 1024 * 1024;
/// Bytes of one request and of one response message: what a body's frame may declare.
pub const MAX_MESSAGE_BYTES: usize = 25 * 1024 * 1024;
/// Between keepalives, where a stream says zero (STR-053), in milliseconds.
pub const DEFAULT_KEEPALIVE_INTERVAL_MS: u32 = 30_000;
/// Silent intervals after which a stream is given up (STR-053).
pub const SILENT_INTERVALS: u64 = 3;

const _: () = assert!(MAX_ENVELOPE_BYTES < MAX_MESSAGE_BYTES, "every legal envelope fits a message (STR-031)");
