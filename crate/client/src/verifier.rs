//! What judges the frames of one open subscription, by the class of its stream.

use alloc::rc::Rc;

use remuda_position::{Boundary, DeliveredRecord};
use remuda_verify::fast::{FastSubscription, FastSubscriptionConfig, Verification};
use remuda_verify::group::GroupSubscription;
use remuda_verify::record_shape::StreamShape;
use remuda_verify::standard::{StandardReplayConfig, StandardSubscription};
use remuda_wire::chain::Purpose;
use remuda_wire::context::SigningContext;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::verdict::Refusal;
use remuda_wire::Bytes32;

use crate::group::Consumer;
use crate::key_book::KeyBook;
use crate::subscription::SubscriptionSpec;

/// What a verifier must know of its stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamFacts {
    pub(crate) context: SigningContext,
    pub(crate) stream_id: Bytes32,
    pub(crate) encrypted: bool,
    pub(crate) purpose: Purpose,
    /// Whose leases they are.
    pub(crate) holder_signing_key_id: Bytes32,
}

/// The verifier of one subscription.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One for each open subscription.
pub(crate) enum Verifier {
    /// Batches under checkpoints.
    Fast(FastSubscription<DeliveredRecord>),
    /// Records with receipts.
    Standard(StandardSubscription<DeliveredRecord>),
    /// The receipts of a group.
    Group(GroupSubscription),
}

impl Verifier {
    /// A verifier that goes on from `boundary`.
    pub(crate) fn new(
        spec: &SubscriptionSpec,
        stream: &StreamFacts,
        subscription_id: Bytes32,
        boundary: &Boundary,
        consumer: &mut Consumer,
    ) -> Self {
        let StreamFacts { context, stream_id, encrypted, purpose, .. } = stream.clone();
        let fast = |verification| {
            let context = context.clone();
            let config = FastSubscriptionConfig { context, stream_id, encrypted, subscription_id, verification };
            Self::Fast(FastSubscription::new(config, boundary.resume_state()))
        };
        match spec {
            SubscriptionSpec::ScopedProofs(_) => fast(Verification::ScopedProofs(spec.scope())),
            SubscriptionSpec::FullStream => fast(Verification::FullStream),
            SubscriptionSpec::StandardReplay(scope) => {
                let shape = StreamShape { encrypted, purpose };
                let scope = scope.clone();
                let config =
                    StandardReplayConfig { context: context.clone(), stream_id, shape, subscription_id, scope };
                Self::Standard(StandardSubscription::new(config, boundary.receipt_chain_state()))
            }
            SubscriptionSpec::Group(group) => {
                Self::Group(consumer.open(*group, stream, subscription_id, boundary.group_receipt()))
            }
        }
    }

    /// Takes a record, to be kept once its evidence is whole.
    ///
    /// # Errors
    /// Those of [`FastSubscription::handle_delivery`] or [`StandardSubscription::handle_delivery`].
    pub(crate) fn handle_delivery(&mut self, delivery: &Rc<RecordDelivery>, keys: &KeyBook) -> Result<(), Refusal> {
        let kept = DeliveredRecord::new(Rc::clone(delivery));
        match self {
            Self::Fast(verifier) => verifier.handle_delivery(delivery, kept),
            Self::Standard(verifier) => verifier.handle_delivery(delivery, kept, keys),
            Self::Group(verifier) => verifier.handle_delivery(delivery, keys).map(|_| ()),
        }
    }

    /// Records whose evidence is not whole yet.
    pub(crate) fn waiting(&self) -> usize {
        match self {
            Self::Fast(verifier) => verifier.waiting(),
            Self::Standard(verifier) => verifier.waiting(),
            // Each is judged as it comes.
            Self::Group(_) => 0,
        }
    }
}
