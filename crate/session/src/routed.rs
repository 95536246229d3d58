//! Frames that are legal now. Only this crate makes them.

use core::ops::Deref;

use remuda_wire::checkpoint::CheckpointFrame;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::group::{DeliveryStateUpdate, GroupStateUpdate};
use remuda_wire::transition::BrokerEpochTransition;

/// A frame of this session that was legal when it came: for a live subscription of a fitting kind, and a delivery within
/// its credit. Says nothing of signatures or contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routed<T>(T);

impl<T> Routed<T> {
    pub(crate) const fn new(frame: T) -> Self {
        Self(frame)
    }

    /// The frame.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Routed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A routed frame by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // The common one is the large one.
pub enum RoutedFrame {
    /// A record for a live subscription, taken out of its credit.
    Delivery(Routed<RecordDelivery>),
    /// A checkpoint for a live verifying subscription.
    Checkpoint(Routed<CheckpointFrame>),
    /// A broker-epoch transition: of the stream, for every fast subscription.
    Transition(Routed<BrokerEpochTransition>),
    /// A mutation of a group that a live subscription follows.
    GroupState(Routed<GroupStateUpdate>),
    /// A delivery state of a group that a live subscription follows.
    DeliveryState(Routed<DeliveryStateUpdate>),
}
