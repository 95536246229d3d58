//! The signed provider objects of an item.

use remuda_wire::audit::{AuditItem, HeldObject};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::response::ResponseBody;
use remuda_wire::retention::{FastRetentionAnchor, GroupRetentionAnchor, StandardRetentionAnchor};
use remuda_wire::Canonical;

/// Every signed provider object in an item, in the order of its bytes.
pub(crate) fn provider_objects(item: &AuditItem) -> Vec<HeldObject> {
    match item {
        AuditItem::Subscription(_) => Vec::new(),
        AuditItem::Held(object) => vec![object.clone()],
        AuditItem::Snapshot(snapshot) => vec![snapshot.receipt.clone()],
        AuditItem::ServerFrame(bytes) => {
            ServerFrame::from_bytes(bytes).map_or_else(|_| Vec::new(), |frame| of_message(&frame.0))
        }
    }
}

/// Every signed provider object in a frame.
pub(crate) fn of_message(message: &ServerMessage) -> Vec<HeldObject> {
    match message {
        ServerMessage::Delivery(delivery) => {
            let append = delivery.append_receipt.clone().map(HeldObject::from);
            let state = delivery.delivery_state_receipt.clone().map(HeldObject::from);
            append.into_iter().chain(state).collect()
        }
        ServerMessage::Checkpoint(frame) => vec![frame.receipt.clone().into()],
        ServerMessage::BrokerEpochTransition(transition) => vec![transition.clone().into()],
        ServerMessage::DeliveryState(update) => vec![update.receipt.clone().into()],
        ServerMessage::GroupState(update) => vec![update.receipt.clone().into()],
        ServerMessage::Error(error) => anchor(&error.details).into_iter().collect(),
        ServerMessage::Response(response) => of_response(&response.body).into_iter().collect(),
        ServerMessage::SessionChallenge(_) | ServerMessage::SessionOpened(_) => Vec::new(),
    }
}

fn of_response(body: &ResponseBody) -> Option<HeldObject> {
    match body {
        ResponseBody::Append(result) => result.append_receipt.clone().map(HeldObject::from),
        ResponseBody::CommitKeyBatch(receipt) => Some(receipt.clone().into()),
        ResponseBody::CreateLane(lane) | ResponseBody::CloseLane(lane) => Some(lane.receipt.clone().into()),
        ResponseBody::CreateGroup(update) | ResponseBody::UpdateGroup(update) | ResponseBody::DeleteGroup(update) => {
            Some(update.receipt.clone().into())
        }
        ResponseBody::Ack(update)
        | ResponseBody::Nack(update)
        | ResponseBody::Extend(update)
        | ResponseBody::Reject(update)
        | ResponseBody::Redrive(update) => Some(update.receipt.clone().into()),
        ResponseBody::BeginKeyBatch(_)
        | ResponseBody::PutKeyBatchChunk(_)
        | ResponseBody::ListLanes(_)
        | ResponseBody::OpenSubscription(_)
        | ResponseBody::CloseSubscription(_)
        | ResponseBody::Credit(_) => None,
    }
}

/// The floor that the details of an error carry (§15), of whichever kind they are the canonical bytes of.
fn anchor(details: &[u8]) -> Option<HeldObject> {
    let fast = FastRetentionAnchor::from_bytes(details).map(HeldObject::from);
    let group = || GroupRetentionAnchor::from_bytes(details).map(HeldObject::from);
    let standard = || StandardRetentionAnchor::from_bytes(details).map(HeldObject::from);
    fast.or_else(|_| group()).or_else(|_| standard()).ok()
}
