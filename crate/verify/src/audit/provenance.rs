//! Where an audit's objects come from: the trusted chain, and the pool that every authentic one enters.

use alloc::vec::Vec;

use remuda_wire::audit::HeldObject;
use remuda_wire::context::SigningContext;
use remuda_wire::key_batch::KeyBatchReceipt;
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

use super::report::Evidence;
use crate::authentic::{Authority, Verified};
use crate::evidence::{evident, AuthenticatedObject, EvidencePool, Evident};
use crate::trusted_chain::TrustedChain;

/// Chain, keys, pool and what the pool found.
#[derive(Debug)]
pub(super) struct Provenance {
    pub context: SigningContext,
    pub stream_id: Bytes32,
    pub chain: TrustedChain,
    pub pool: EvidencePool,
    pub evidence: Vec<Evidence>,
    pub signatures: usize,
}

impl Provenance {
    pub fn new(context: SigningContext, stream_id: Bytes32) -> Self {
        Self {
            chain: TrustedChain::new(context.clone(), stream_id),
            context,
            stream_id,
            pool: EvidencePool::new(),
            evidence: Vec::new(),
            signatures: 0,
        }
    }

    const fn authority(&self) -> Authority<'_, TrustedChain> {
        Authority { context: &self.context, stream_id: &self.stream_id, keys: &self.chain }
    }

    /// Authenticates an object of `item`; whatever its chain says later, it is in the pool.
    ///
    /// # Errors
    /// As [`Authority::authenticate`].
    pub fn authenticate<T: Evident + Clone>(&mut self, item: usize, object: &T) -> Result<Verified<T>, VerifyError> {
        let object = self.authority().authenticate(object.clone())?;
        self.keep(item, &*object, object.digest());
        Ok(object)
    }

    /// A key-batch receipt is of a stream when either of its stream ids is.
    ///
    /// # Errors
    /// As [`Authority::authenticate`].
    pub fn authenticate_key_batch(&mut self, item: usize, receipt: &KeyBatchReceipt) -> Result<(), VerifyError> {
        self.authenticate_held(item, HeldObject::KeyBatchReceipt(receipt.clone())).map(|_| ())
    }

    /// Authenticates a held object by its kind.
    ///
    /// # Errors
    /// As [`Authority::authenticate`].
    pub fn authenticate_held(&mut self, item: usize, object: HeldObject) -> Result<AuthenticatedObject, VerifyError> {
        let object = self.authority().authenticate_held(object)?;
        self.keep(item, evident(&object), object.digest());
        Ok(object)
    }

    /// Puts an object that is already authentic into the pool.
    pub fn keep(&mut self, item: usize, object: &dyn Evident, digest: Bytes32) {
        let found = self.pool.insert_evident(item, object, digest);
        self.signatures += 1;
        self.evidence.extend(found.into_iter().map(|(code, earlier)| Evidence { code, items: [earlier, item] }));
    }
}
