//! A signed provider object of any kind.

use remuda_wire::audit::HeldObject;

use super::claim::Evident;
use crate::authentic::Verified;

/// A provider object whose signature was checked, of any of the eight kinds.
pub type AuthenticatedObject = Verified<HeldObject>;

/// An object of any kind by what another can contradict of it.
pub(crate) fn evident(object: &HeldObject) -> &dyn Evident {
    match object {
        HeldObject::AppendReceipt(object) => object,
        HeldObject::CheckpointReceipt(object) => object,
        HeldObject::BrokerEpochTransition(object) => object,
        HeldObject::DeliveryStateReceipt(object) => object,
        HeldObject::StandardRetentionAnchor(object) => object,
        HeldObject::GroupRetentionAnchor(object) => object,
        HeldObject::FastRetentionAnchor(object) => object,
        HeldObject::KeyBatchReceipt(object) => object,
    }
}
