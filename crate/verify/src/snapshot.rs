//! Snapshots (§15): every check that a reader makes before it hydrates.
//!
//! The bundled receipt authenticates the *anchor*: the named position existed, and the provider signed it. It does not
//! authenticate the snapshot bytes, which the provider never saw: that they are what the records up to the anchor make
//! is trust in whoever holds the application key, and no reader can check it.

use alloc::vec::Vec;

use remuda_wire::audit::HeldObject;
use remuda_wire::context::SigningContext;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::preimage::keccak256;
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::record::RecordId;
use remuda_wire::snapshot::{SnapshotCoverage, SnapshotManifest, SnapshotScope};
use remuda_wire::verdict::{AdmissionRefused, Refusal, VerifyError};
use remuda_wire::{Bytes32, Signed};

use crate::authentic::{Authority, KeySource};
use crate::evidence::AuthenticatedObject;
use crate::fast::FastState;
use crate::signature::PublicKey;

/// What a reader expects, from the application's own state: never from the manifest.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotExpectation<'a> {
    /// The chain.
    pub context: &'a SigningContext,
    /// The stream.
    pub stream_id: &'a Bytes32,
    /// The keys that the application lets sign snapshots.
    pub authorized_keys: &'a [SigningPublicKey],
    /// Whole stream or one lane.
    pub scope: &'a SnapshotScope,
    /// Where the snapshot was looked up.
    pub cbfs_reference: &'a [u8],
    /// The generation whose key the reader holds.
    pub encryption_generation: u64,
}

/// A snapshot as it was fetched. `bytes` is hashed and hydrated from this one buffer: a second fetch is another snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotBundle<'a> {
    /// The signed manifest.
    pub manifest: &'a SnapshotManifest,
    /// The provider receipt published with it.
    pub receipt: &'a HeldObject,
    /// The stored snapshot, exactly.
    pub bytes: &'a [u8],
    /// The key that signed the manifest, as claimed.
    pub application_key: &'a SigningPublicKey,
}

/// One check of §15, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SnapshotCheck {
    /// The manifest's context is ours.
    Context,
    /// The manifest's stream is ours.
    Stream,
    /// The application key is an authorized one.
    Signer,
    /// The application key signed the manifest.
    ApplicationSignature,
    /// The scope is the expected one.
    Scope,
    /// The reference is the expected one.
    CbfsReference,
    /// The encryption generation is the expected one.
    EncryptionGeneration,
    /// The bytes hash to `snapshot_hash`.
    SnapshotHash,
    /// The receipt's own context is the manifest's.
    ReceiptContext,
    /// The receipt's own stream is the manifest's.
    ReceiptStream,
    /// The provider signed the receipt, under the key that the stream had at the receipt's own `served_at`.
    ProviderSignature,
    /// `provider_anchor` is the receipt's signing digest.
    ProviderAnchor,
    /// `covered_through` is the checkpoint's digest, or the append receipt's record id.
    Coverage,
    /// The append receipt is of the scope's lane. Only of a standard lane snapshot.
    ReceiptLane,
}

impl SnapshotCheck {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Stream => "stream",
            Self::Signer => "signer",
            Self::ApplicationSignature => "application-signature",
            Self::Scope => "scope",
            Self::CbfsReference => "cbfs-reference",
            Self::EncryptionGeneration => "encryption-generation",
            Self::SnapshotHash => "snapshot-hash",
            Self::ReceiptContext => "receipt-context",
            Self::ReceiptStream => "receipt-stream",
            Self::ProviderSignature => "provider-signature",
            Self::ProviderAnchor => "provider-anchor",
            Self::Coverage => "coverage",
            Self::ReceiptLane => "receipt-lane",
        }
    }
}

/// A snapshot whose anchor is authentic. Its content is the application signer's word.
///
/// Made only by [`SnapshotExpectation::verify`].
#[derive(Clone, Debug)]
pub struct VerifiedSnapshot {
    anchor: AuthenticatedObject,
    resume: SnapshotResume,
    checks: Vec<SnapshotCheck>,
}

/// Where a reader resumes after hydrating.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotResume {
    /// A verifying fast subscription from the checkpoint's boundary.
    Fast(FastState),
    /// A standard replay after the record.
    Standard {
        /// Its sequence.
        last_sequence: u64,
        /// Its receipt: the tail of the global chain, and of the chain of its lane.
        global_tail: Bytes32,
        /// Its lane.
        lane_id: Bytes32,
    },
}

impl VerifiedSnapshot {
    /// Every check that was made and passed, in order.
    pub fn checks(&self) -> &[SnapshotCheck] {
        &self.checks
    }

    /// The authentic receipt: the durable checkpoint of a fast stream, or that of the last record that is covered.
    pub const fn anchor(&self) -> &AuthenticatedObject {
        &self.anchor
    }

    /// `provider_anchor`, now that it names an authentic receipt.
    pub const fn provider_anchor(&self) -> Bytes32 {
        self.anchor.digest()
    }

    /// Where to resume.
    pub fn resume(&self) -> SnapshotResume {
        self.resume.clone()
    }
}

/// The checks so far. Each is noted only when it has passed.
struct Checks(Vec<SnapshotCheck>);

impl Checks {
    fn require<E>(&mut self, check: SnapshotCheck, holds: bool, refusal: E) -> Result<(), E> {
        if holds {
            self.0.push(check);
            Ok(())
        } else {
            Err(refusal)
        }
    }
}

impl SnapshotExpectation<'_> {
    /// Verifies a bundle. `keys` are the provider keys of trusted chain reads, by view.
    ///
    /// # Errors
    /// In this order: [`VerifyError::ContextMismatch`], [`VerifyError::StreamMismatch`],
    /// [`AdmissionRefused::SnapshotSigner`], [`VerifyError::Signature`] of the application,
    /// [`AdmissionRefused::SnapshotExpectation`], [`VerifyError::SnapshotHash`], [`VerifyError::SnapshotCoverage`] for a
    /// bundled object that is neither a checkpoint nor an append receipt, [`VerifyError::SnapshotReceiptBinding`],
    /// [`Authority::authenticate`], [`VerifyError::SnapshotAnchor`], [`VerifyError::SnapshotCoverage`].
    pub fn verify(&self, bundle: &SnapshotBundle<'_>, keys: &dyn KeySource) -> Result<VerifiedSnapshot, Refusal> {
        self.verify_beside(bundle, keys, None)
    }

    /// The same of one that shares its bundled receipt with `sibling`: the receipt is not authenticated twice.
    pub(crate) fn verify_beside(
        &self,
        bundle: &SnapshotBundle<'_>,
        keys: &dyn KeySource,
        sibling: Option<&AuthenticatedObject>,
    ) -> Result<VerifiedSnapshot, Refusal> {
        let manifest = bundle.manifest;
        let mut checks = Checks(Vec::new());
        self.check_manifest(bundle, &mut checks)?;
        let hashes = keccak256(bundle.bytes) == manifest.snapshot_hash;
        checks.require(SnapshotCheck::SnapshotHash, hashes, VerifyError::SnapshotHash)?;
        if !matches!(bundle.receipt, HeldObject::CheckpointReceipt(_) | HeldObject::AppendReceipt(_)) {
            return Err(VerifyError::SnapshotCoverage.into());
        }
        let anchor = authenticate_bound(manifest, bundle.receipt, keys, sibling, &mut checks)?;
        let digest = anchor.digest();
        let resume = match &*anchor {
            HeldObject::CheckpointReceipt(receipt) => {
                let covered = manifest.covered_through == SnapshotCoverage::CheckpointReceiptDigest(digest);
                checks.require(SnapshotCheck::Coverage, covered, VerifyError::SnapshotCoverage)?;
                SnapshotResume::Fast(FastState {
                    broker_epoch: Some(receipt.broker_epoch),
                    next_sequence: Some(receipt.last_sequence.saturating_add(1)),
                    tail: Some(digest),
                    last_checkpoint: Some(digest),
                    last_durable_sequence: Some(receipt.last_sequence),
                })
            }
            HeldObject::AppendReceipt(receipt) => {
                let last_sequence = check_standard_coverage(manifest, receipt, &mut checks)?;
                SnapshotResume::Standard { last_sequence, global_tail: digest, lane_id: receipt.lane_id }
            }
            _ => return Err(VerifyError::SnapshotCoverage.into()),
        };
        Ok(VerifiedSnapshot { anchor, resume, checks: checks.0 })
    }

    fn check_manifest(&self, bundle: &SnapshotBundle<'_>, checks: &mut Checks) -> Result<(), Refusal> {
        let (manifest, key) = (bundle.manifest, bundle.application_key);
        checks.require(SnapshotCheck::Context, manifest.context == *self.context, VerifyError::ContextMismatch)?;
        checks.require(SnapshotCheck::Stream, manifest.stream_id == *self.stream_id, VerifyError::StreamMismatch)?;
        let authorized = self.authorized_keys.contains(key);
        checks.require(SnapshotCheck::Signer, authorized, AdmissionRefused::SnapshotSigner)?;
        let key = PublicKey::from_signing_key(key).ok_or(VerifyError::Signature)?;
        let signed = key.verify_digest(manifest, &manifest.digest()).is_ok();
        checks.require(SnapshotCheck::ApplicationSignature, signed, VerifyError::Signature)?;
        let expected = [
            (SnapshotCheck::Scope, manifest.scope == *self.scope),
            (SnapshotCheck::CbfsReference, *manifest.cbfs_reference == *self.cbfs_reference),
            (SnapshotCheck::EncryptionGeneration, manifest.encryption_generation == self.encryption_generation),
        ];
        for (check, holds) in expected {
            checks.require(check, holds, AdmissionRefused::SnapshotExpectation)?;
        }
        Ok(())
    }
}

/// The bundled receipt: of the manifest's chain and stream, signed, and the one that the manifest names.
fn authenticate_bound(
    manifest: &SnapshotManifest,
    receipt: &HeldObject,
    keys: &dyn KeySource,
    sibling: Option<&AuthenticatedObject>,
    checks: &mut Checks,
) -> Result<AuthenticatedObject, VerifyError> {
    // Not a corollary of the digest: a genuine receipt of another stream has a digest too.
    let binding = VerifyError::SnapshotReceiptBinding;
    checks.require(SnapshotCheck::ReceiptContext, *receipt.signed().context() == manifest.context, binding)?;
    checks.require(SnapshotCheck::ReceiptStream, *receipt.signed().stream_id() == manifest.stream_id, binding)?;
    let authority = Authority { context: &manifest.context, stream_id: &manifest.stream_id, keys };
    let receipt = match sibling.filter(|sibling| ***sibling == *receipt) {
        Some(sibling) => sibling.clone(),
        None => authority.authenticate_held(receipt.clone())?,
    };
    checks.require(SnapshotCheck::ProviderSignature, true, VerifyError::Signature)?;
    let named = receipt.digest() == manifest.provider_anchor;
    checks.require(SnapshotCheck::ProviderAnchor, named, VerifyError::SnapshotAnchor)?;
    Ok(receipt)
}

/// Answers the sequence of the covered record.
fn check_standard_coverage(
    manifest: &SnapshotManifest,
    receipt: &AppendReceipt,
    checks: &mut Checks,
) -> Result<u64, VerifyError> {
    // Not a corollary of the anchor: a genuine receipt of record N with a claim far beyond it would make the reader
    // skip records that the snapshot never held.
    let (SnapshotCoverage::StandardRecordId(covered), RecordId::Standard(id)) =
        (&manifest.covered_through, receipt.record_id)
    else {
        return Err(VerifyError::SnapshotCoverage);
    };
    checks.require(SnapshotCheck::Coverage, *covered == id, VerifyError::SnapshotCoverage)?;
    if let SnapshotScope::Lane(lane_id) = &manifest.scope {
        checks.require(SnapshotCheck::ReceiptLane, receipt.lane_id == *lane_id, VerifyError::SnapshotCoverage)?;
    }
    Ok(id.sequence)
}
