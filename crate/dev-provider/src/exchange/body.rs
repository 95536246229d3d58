//! What is said of every request body alike.

use remuda_wire::request::RequestBody;
use remuda_wire::Bytes32;

/// The stream that a body names.
pub(super) const fn stream_id(body: &RequestBody) -> &Bytes32 {
    match body {
        RequestBody::Append(body) => &body.stream_id,
        RequestBody::BeginKeyBatch(body) => &body.key_stream_id,
        RequestBody::PutKeyBatchChunk(body) => &body.key_stream_id,
        RequestBody::CommitKeyBatch(body) => &body.key_stream_id,
        RequestBody::CreateLane(body) => &body.stream_id,
        RequestBody::CloseLane(body) => &body.stream_id,
        RequestBody::ListLanes(body) => &body.stream_id,
        RequestBody::CreateGroup(body) => &body.stream_id,
        RequestBody::UpdateGroup(body) => &body.stream_id,
        RequestBody::DeleteGroup(body) => &body.stream_id,
        RequestBody::OpenSubscription(body) => &body.stream_id,
        RequestBody::CloseSubscription(body) => &body.stream_id,
        RequestBody::Credit(body) => &body.stream_id,
        RequestBody::Ack(body) => &body.lease.stream_id,
        RequestBody::Nack(body) => &body.lease.stream_id,
        RequestBody::Extend(body) => &body.lease.stream_id,
        RequestBody::Reject(body) => &body.lease.stream_id,
        RequestBody::Redrive(body) => &body.stream_id,
    }
}

/// Reading, acknowledging and recovering keys go on while rent is owed; what adds does not (§6).
pub(super) const fn is_refused_while_suspended(body: &RequestBody) -> bool {
    matches!(
        body,
        RequestBody::Append(_)
            | RequestBody::BeginKeyBatch(_)
            | RequestBody::PutKeyBatchChunk(_)
            | RequestBody::CommitKeyBatch(_)
            | RequestBody::CreateLane(_)
            | RequestBody::CloseLane(_)
            | RequestBody::CreateGroup(_)
            | RequestBody::UpdateGroup(_)
            | RequestBody::DeleteGroup(_)
            | RequestBody::Redrive(_)
    )
}
