//! What one virtual session is made of.

use crate::backoff::Backoff;
use crate::handshake::HandshakeConfig;

/// The configuration of one session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Chain, stream and grant.
    pub handshake: HandshakeConfig,
    /// Delays between attempts.
    pub backoff: Backoff,
    /// How long one exchange may take, the provider's own poll timeout included.
    pub request_timeout_ms: u64,
    /// A request that would be sent within this time of the session's expiry opens a new session first; at most half
    /// of the session's life.
    pub renew_before_expiry_ms: u64,
    /// How many requests may wait their turn.
    pub max_queued_requests: usize,
    /// How many requests may await their answer at once. Over long-poll it is always one (§13.2).
    pub max_requests_in_flight: usize,
    /// A WebSocket that has subscriptions and brought nothing for this long is asked for a sign of life.
    pub heartbeat_ms: u64,
}

impl SessionConfig {
    /// The defaults: a minute per exchange, half a minute before expiry, 256 requests, 32 at once, half a minute of silence.
    pub const fn new(handshake: HandshakeConfig) -> Self {
        Self {
            handshake,
            backoff: Backoff::DEFAULT,
            request_timeout_ms: 60_000,
            renew_before_expiry_ms: 30_000,
            max_queued_requests: 256,
            max_requests_in_flight: 32,
            heartbeat_ms: 30_000,
        }
    }
}
