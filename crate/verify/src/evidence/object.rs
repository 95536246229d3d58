//! A signed provider object of any kind.

use remuda_wire::audit::HeldObject;
use remuda_wire::checkpoint::CheckpointReceipt;
use remuda_wire::context::FinalizedView;
use remuda_wire::group::DeliveryStateReceipt;
use remuda_wire::key_batch::KeyBatchReceipt;
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::retention::{FastRetentionAnchor, GroupRetentionAnchor, StandardRetentionAnchor};
use remuda_wire::transition::BrokerEpochTransition;
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

use super::claim::Claim;
use crate::authentic::{Authority, KeySource, Verified};

macro_rules! authenticated {
    ($($kind:ident by $authenticate:ident;)+) => {
        /// A provider object whose signature was checked, of any of the eight kinds.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant, missing_docs)]
        pub enum AuthenticatedObject { $($kind(Verified<$kind>),)+ }

        impl AuthenticatedObject {
            /// The signing digest.
            pub const fn digest(&self) -> Bytes32 {
                match self { $(Self::$kind(object) => object.digest(),)+ }
            }

            /// What another object can contradict of it.
            pub(super) fn claim(&self) -> Claim {
                match self { $(Self::$kind(object) => Claim::of(object),)+ }
            }

            /// Where the provider stood when it signed.
            pub fn served_at(&self) -> &FinalizedView {
                match self { $(Self::$kind(object) => &object.served_at,)+ }
            }
        }

        $(impl From<Verified<$kind>> for AuthenticatedObject {
            fn from(object: Verified<$kind>) -> Self {
                Self::$kind(object)
            }
        })+

        impl<K: KeySource> Authority<'_, K> {
            /// Authenticates a held object by its kind.
            ///
            /// # Errors
            /// As [`Authority::authenticate`].
            pub fn authenticate_held(&self, object: HeldObject) -> Result<AuthenticatedObject, VerifyError> {
                match object { $(HeldObject::$kind(object) => self.$authenticate(object).map(Into::into),)+ }
            }
        }
    };
}

authenticated! {
    AppendReceipt by authenticate;
    CheckpointReceipt by authenticate;
    BrokerEpochTransition by authenticate;
    DeliveryStateReceipt by authenticate;
    StandardRetentionAnchor by authenticate;
    GroupRetentionAnchor by authenticate;
    FastRetentionAnchor by authenticate;
    KeyBatchReceipt by authenticate_key_batch;
}
