//! Appending: one request on the command session, and what came of it.

use remuda_wire::request::AppendRequest;
use remuda_wire::response::AppendResult;
use remuda_wire::{bound, Bytes, Bytes24, Bytes32};

use crate::failure::Failure;

/// A record to append. Payloads are opaque; on an encrypted stream the caller encrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The lane.
    pub lane_id: Bytes32,
    /// The application's own id of this message: stable over retries.
    pub client_message_id: Bytes32,
    /// The application's clock.
    pub client_created_at_ms: u64,
    /// When the message is of no more use; 0 for never.
    pub expires_at_ms: u64,
    /// The payload.
    pub payload: Bytes<{ bound::MAX_INLINE_MESSAGE_BYTES }>,
}

impl Append {
    pub(crate) fn into_request(self, stream_id: Bytes32) -> AppendRequest {
        AppendRequest {
            stream_id,
            lane_id: self.lane_id,
            client_message_id: self.client_message_id,
            client_created_at_ms: self.client_created_at_ms,
            visible_after_ms: 0,
            expires_at_ms: self.expires_at_ms,
            encryption_generation: 0,
            nonce: Bytes24::ZERO,
            payload: self.payload,
        }
    }
}

/// Names one append until it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendId(pub u64);

/// An append on its way.
#[derive(Debug)]
pub(crate) struct PendingAppend {
    pub(crate) id: AppendId,
    pub(crate) request: AppendRequest,
    /// Whether it was sent in a session that the provider had forgotten, and is on its way once more.
    pub(crate) sent_again: bool,
}

/// What came of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "settled one by one, never kept in numbers")]
pub enum AppendOutcome {
    /// The provider took it. Provisional until a checkpoint covers it.
    Accepted(AppendResult),
    /// It was refused, or never sent: it had no effect.
    Refused(Failure),
    /// It was sent and not answered: it may or may not be in the stream.
    Unknown,
}
