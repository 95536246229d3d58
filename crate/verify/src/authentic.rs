//! Who signed an object, and for which chain and stream (§4, §14): from a claim to a [`Verified`] object.

use core::ops::Deref;

use remuda_wire::audit::HeldObject;
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::key_batch::KeyBatchReceipt;
use remuda_wire::retention::StandardRetentionAnchor;
use remuda_wire::signed::{digest, ProviderSigned};
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

use crate::signature::PublicKey;

/// Where provider keys come from: the stream record read at a receipt's own `served_at`.
pub trait KeySource {
    /// The key at exactly this view, or `None`: an unresolvable key holds the item, it never falls back to another view.
    fn key_at(&self, view: &FinalizedView) -> Option<&PublicKey>;

    /// Whether the stream was read at this view at all. A key that was read and is no canonical point verifies nothing,
    /// which is not the same as a key that is not known.
    fn is_read_at(&self, view: &FinalizedView) -> bool {
        self.key_at(view).is_some()
    }
}

/// One key at every view: of a stream whose chain reads are already settled. `None`: it is no canonical point.
#[derive(Clone, Debug)]
pub struct OneKey(pub Option<PublicKey>);

impl KeySource for OneKey {
    fn key_at(&self, _: &FinalizedView) -> Option<&PublicKey> {
        self.0.as_ref()
    }

    fn is_read_at(&self, _: &FinalizedView) -> bool {
        true
    }
}

/// An object whose provider signed exactly these bytes for this chain and stream. Says nothing of its contents.
///
/// Made only by [`Authority::authenticate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified<T> {
    object: T,
    digest: Bytes32,
}

impl<T> Verified<T> {
    /// The signing digest, computed once.
    pub const fn digest(&self) -> Bytes32 {
        self.digest
    }

    /// The same object among those of every kind.
    pub fn held(self) -> Verified<HeldObject>
    where
        HeldObject: From<T>,
    {
        Verified { object: self.object.into(), digest: self.digest }
    }

    /// The object itself.
    pub fn into_inner(self) -> T {
        self.object
    }
}

impl Verified<HeldObject> {
    /// The retention floor of a standard stream, when it is one.
    pub fn into_standard_anchor(self) -> Option<Verified<StandardRetentionAnchor>> {
        match self.object {
            HeldObject::StandardRetentionAnchor(object) => Some(Verified { object, digest: self.digest }),
            _ => None,
        }
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

/// What a provider object is checked against: our chain, our stream, its keys.
#[derive(Debug)]
pub struct Authority<'a, K> {
    /// The chain.
    pub context: &'a SigningContext,
    /// The stream.
    pub stream_id: &'a Bytes32,
    /// Provider keys by view.
    pub keys: &'a K,
}

impl<K: KeySource> Authority<'_, K> {
    /// Checks context, stream, view, key and signature, in this order, and computes the signing digest once.
    ///
    /// # Errors
    /// [`VerifyError::ContextMismatch`], [`VerifyError::StreamMismatch`], [`VerifyError::ServedAtMismatch`],
    /// [`VerifyError::KeyUnresolved`], [`VerifyError::Signature`].
    pub fn authenticate<T: ProviderSigned>(&self, object: T) -> Result<Verified<T>, VerifyError> {
        let is_ours = object.stream_id() == self.stream_id;
        self.authenticate_if(object, is_ours)
    }

    /// Authenticates a key-batch receipt, which is of a stream when either of its stream ids is.
    ///
    /// # Errors
    /// As [`Authority::authenticate`].
    pub fn authenticate_key_batch(&self, receipt: KeyBatchReceipt) -> Result<Verified<KeyBatchReceipt>, VerifyError> {
        let is_ours = [receipt.key_stream_id, receipt.main_stream_id].contains(self.stream_id);
        self.authenticate_if(receipt, is_ours)
    }

    /// Authenticates a held object by its kind.
    ///
    /// # Errors
    /// As [`Authority::authenticate`].
    pub fn authenticate_held(&self, object: HeldObject) -> Result<Verified<HeldObject>, VerifyError> {
        match object {
            HeldObject::KeyBatchReceipt(receipt) => self.authenticate_key_batch(receipt).map(Verified::held),
            object => {
                let digest = self.check(object.signed(), object.signed().stream_id() == self.stream_id)?;
                Ok(Verified { object, digest })
            }
        }
    }

    fn authenticate_if<T: ProviderSigned>(&self, object: T, is_ours: bool) -> Result<Verified<T>, VerifyError> {
        let digest = self.check(&object, is_ours)?;
        Ok(Verified { object, digest })
    }

    /// Answers the signing digest of an object that is authentic once it is ours.
    fn check(&self, object: &dyn ProviderSigned, is_ours: bool) -> Result<Bytes32, VerifyError> {
        let served_at = object.served_at();
        if object.context() != self.context {
            return Err(VerifyError::ContextMismatch);
        }
        if !is_ours {
            return Err(VerifyError::StreamMismatch);
        }
        if served_at.chain_instance_id != self.context.chain_instance_id {
            return Err(VerifyError::ServedAtMismatch);
        }
        let unusable =
            if self.keys.is_read_at(served_at) { VerifyError::Signature } else { VerifyError::KeyUnresolved };
        let key = self.keys.key_at(served_at).ok_or(unusable)?;
        let digest = digest(object);
        key.verify_digest(object, &digest)?;
        Ok(digest)
    }
}
