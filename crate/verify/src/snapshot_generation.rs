//! Snapshots that are hydrated together (§15): one of a whole stream, or one for each lane of a scope, under one receipt.
//!
//! A scope resumes with one cursor over the sequences of its stream, so lane snapshots that cover different checkpoints have
//! no place from which all of them go on. One receipt is bundled with all of them: a manifest that is bound to another is
//! refused as [`VerifyError::SnapshotAnchor`].

use alloc::vec::Vec;

use remuda_wire::audit::HeldObject;
use remuda_wire::chain::DeliveryClass;
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::scope::LaneScope;
use remuda_wire::snapshot::{SnapshotManifest, SnapshotScope};
use remuda_wire::verdict::{AdmissionRefused, Refusal, VerifyError};
use remuda_wire::Bytes32;

use crate::authentic::KeySource;
use crate::evidence::AuthenticatedObject;
use crate::snapshot::{SnapshotBundle, SnapshotCheck, SnapshotExpectation, SnapshotResume, VerifiedSnapshot};

/// One snapshot as it was fetched, and what the application expects of it: never taken from the manifest.
#[derive(Clone, Debug)]
pub struct FetchedSnapshot {
    /// The signed manifest.
    pub manifest: SnapshotManifest,
    /// The key that signed it, as claimed.
    pub application_key: SigningPublicKey,
    /// The stored snapshot, exactly.
    pub bytes: Vec<u8>,
    /// The lane that it was looked up for; `None` for the whole stream.
    pub lane_id: Option<Bytes32>,
    /// Where it was looked up.
    pub cbfs_reference: Vec<u8>,
    /// The generation whose key the reader holds.
    pub encryption_generation: u64,
}

impl FetchedSnapshot {
    fn scope(&self) -> SnapshotScope {
        self.lane_id.map_or(SnapshotScope::Stream, SnapshotScope::Lane)
    }
}

/// Snapshots of one generation with the receipt that they are bound to.
#[derive(Clone, Debug)]
pub struct SnapshotGeneration {
    /// The bundled provider receipt.
    pub receipt: HeldObject,
    /// One of the whole stream, or one for each lane of a scope.
    pub snapshots: Vec<FetchedSnapshot>,
    /// The keys that the application lets sign snapshots.
    pub authorized_keys: Vec<SigningPublicKey>,
}

/// A generation whose anchor is authentic, with the very bytes that were hashed. What they say is their signer's word.
///
/// Made only by [`SnapshotGeneration::verify`].
#[derive(Debug)]
pub struct VerifiedGeneration {
    scope: LaneScope,
    anchor: AuthenticatedObject,
    resume: SnapshotResume,
    checks: Vec<SnapshotCheck>,
    manifests: Vec<SnapshotManifest>,
    contents: Vec<Vec<u8>>,
}

impl VerifiedGeneration {
    /// The scope that it stands for.
    pub const fn scope(&self) -> &LaneScope {
        &self.scope
    }

    /// The authentic receipt that all of it is bound to.
    pub const fn anchor(&self) -> &AuthenticatedObject {
        &self.anchor
    }

    /// Where to resume.
    pub const fn resume(&self) -> &SnapshotResume {
        &self.resume
    }

    /// The checks that each of its snapshots passed, in order.
    pub fn checks(&self) -> &[SnapshotCheck] {
        &self.checks
    }

    /// The manifests, in the order in which they were given.
    pub fn manifests(&self) -> &[SnapshotManifest] {
        &self.manifests
    }

    /// Takes the contents, in the order of the manifests: the buffers that were hashed, to hydrate from.
    pub fn take_contents(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.contents)
    }
}

impl SnapshotGeneration {
    /// The view whose key signed the receipt.
    pub fn served_at(&self) -> &FinalizedView {
        self.receipt.signed().served_at()
    }

    /// Verifies all of it for a subscription to `scope`, in which nothing is left out and nothing is there twice.
    ///
    /// # Errors
    /// [`AdmissionRefused::SnapshotExpectation`] when the snapshots are not the whole stream's, nor exactly one of each lane
    /// of `scope`; of a standard stream a scope of several lanes has only the stream's, since the record that a lane's
    /// snapshot ends with is its own. Then those of [`SnapshotExpectation::verify`], snapshot by snapshot;
    /// [`VerifyError::SnapshotCoverage`] of a receipt of the other class.
    pub fn verify(
        self,
        context: &SigningContext,
        stream_id: &Bytes32,
        scope: &LaneScope,
        class: DeliveryClass,
        keys: &dyn KeySource,
    ) -> Result<VerifiedGeneration, Refusal> {
        if !self.covers(scope, class) {
            return Err(AdmissionRefused::SnapshotExpectation.into());
        }
        let mut verified = None::<VerifiedSnapshot>;
        for snapshot in &self.snapshots {
            let expected = SnapshotExpectation {
                context,
                stream_id,
                authorized_keys: &self.authorized_keys,
                scope: &snapshot.scope(),
                cbfs_reference: &snapshot.cbfs_reference,
                encryption_generation: snapshot.encryption_generation,
            };
            let bundle = SnapshotBundle {
                manifest: &snapshot.manifest,
                receipt: &self.receipt,
                bytes: &snapshot.bytes,
                application_key: &snapshot.application_key,
            };
            let sibling = verified.as_ref().map(VerifiedSnapshot::anchor);
            verified = Some(expected.verify_beside(&bundle, keys, sibling)?);
        }
        // A generation without a snapshot covers no scope.
        let verified = verified.ok_or(AdmissionRefused::SnapshotExpectation)?;
        if matches!(verified.resume(), SnapshotResume::Fast(_)) != (class == DeliveryClass::Fast) {
            return Err(VerifyError::SnapshotCoverage.into());
        }
        let (manifests, contents) = self.snapshots.into_iter().map(|it| (it.manifest, it.bytes)).unzip();
        Ok(VerifiedGeneration {
            scope: scope.clone(),
            anchor: verified.anchor().clone(),
            resume: verified.resume(),
            checks: verified.checks().to_vec(),
            manifests,
            contents,
        })
    }

    fn covers(&self, scope: &LaneScope, class: DeliveryClass) -> bool {
        if let [snapshot] = &self.snapshots[..] {
            if snapshot.lane_id.is_none() {
                return true;
            }
        }
        let Some(lanes) = scope.lanes().filter(|lanes| class == DeliveryClass::Fast || lanes.len() == 1) else {
            return false;
        };
        let mut covered: Vec<_> = self.snapshots.iter().map(|snapshot| snapshot.lane_id).collect();
        covered.sort_unstable();
        covered.into_iter().eq(lanes.iter().copied().map(Some))
    }
}
