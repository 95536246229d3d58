//! Commands: one request, and what came of it; and records to append, which go through the outbox.

use remuda_position::PositionKey;
use remuda_verify::response::AnsweredResult;
use remuda_wire::context::FinalizedView;
use remuda_wire::request::{AppendRequest, RequestBody};
use remuda_wire::response::ResponseBody;
use remuda_wire::{bound, Bytes, Bytes24, Bytes32};

use crate::failure::Failure;

/// A record to append.
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
    /// The request, in the clear: on an encrypted stream it is sealed before it goes anywhere ([`crate::Keyring::seal`]).
    pub fn into_request(self, stream_id: Bytes32) -> AppendRequest {
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

/// Names one command until it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandId(pub u64);

/// Who asks, and learns what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The application, by a command.
    Command(CommandId),
    /// The outbox, for the entry of this number.
    Outbox(u64),
    /// The consumer of the group of this position, for a decision of its application.
    Lease(PositionKey, CommandId),
}

/// A request on its way.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) asker: Asker,
    pub(crate) request: RequestBody,
    /// Whether it was sent in a session that the provider had forgotten, and is on its way once more.
    pub(crate) sent_again: bool,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "settled one by one, never kept in numbers")]
pub enum CommandOutcome {
    /// The provider did it, and what it answered is of this request, signed where it must be.
    Accepted(AnsweredResult),
    /// It was refused, or never sent: it had no effect.
    Refused(Failure),
    /// It was sent and not answered, or answered falsely: it may or may not have been done.
    Unknown,
}

/// The view whose key signed the receipt in a result, where it has one.
pub(crate) fn receipt_view(result: &ResponseBody) -> Option<&FinalizedView> {
    match result {
        ResponseBody::Append(result) => result.append_receipt.as_ref().map(|receipt| &receipt.served_at),
        ResponseBody::CommitKeyBatch(receipt) => Some(&receipt.served_at),
        ResponseBody::CreateLane(mutation) | ResponseBody::CloseLane(mutation) => Some(&mutation.receipt.served_at),
        ResponseBody::CreateGroup(update) | ResponseBody::UpdateGroup(update) | ResponseBody::DeleteGroup(update) => {
            Some(&update.receipt.served_at)
        }
        ResponseBody::Ack(update)
        | ResponseBody::Nack(update)
        | ResponseBody::Extend(update)
        | ResponseBody::Reject(update)
        | ResponseBody::Redrive(update) => Some(&update.receipt.served_at),
        ResponseBody::BeginKeyBatch(_)
        | ResponseBody::PutKeyBatchChunk(_)
        | ResponseBody::ListLanes(_)
        | ResponseBody::OpenSubscription(_)
        | ResponseBody::CloseSubscription(_)
        | ResponseBody::Credit(_) => None,
    }
}
