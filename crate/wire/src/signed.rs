//! The signing registry (§14): 14 objects, one domain each, one way to their signing bytes.
//!
//! ```text
//! signing bytes = domain || canonical(context) || canonical(fields after context and before signature)
//! digest        = keccak256(signing bytes), what the signer signs
//! ```

use alloc::vec::Vec;

use crate::bytes::{Bytes32, Signature};
use crate::checkpoint::CheckpointReceipt;
use crate::codec::Canonical;
use crate::context::{FinalizedView, SigningContext};
use crate::error::DecodeError;
use crate::grant::StreamGrant;
use crate::group::DeliveryStateReceipt;
use crate::key_batch::{KeyBatchReceipt, KeyRotationBatch};
use crate::preimage::keccak256;
use crate::price::PriceQuote;
use crate::receipt::AppendReceipt;
use crate::retention::{FastRetentionAnchor, GroupRetentionAnchor, StandardRetentionAnchor};
use crate::session::{RequestProof, SessionProof};
use crate::snapshot::SnapshotManifest;
use crate::transition::BrokerEpochTransition;
use crate::writer::Writer;

/// An object with a context first and a signature last, of whatever kind.
pub trait Signed {
    /// The ASCII domain separator.
    fn domain(&self) -> &'static str;

    /// The chain that the object says it belongs to.
    fn context(&self) -> &SigningContext;

    /// The signature, not yet checked.
    fn signature(&self) -> &Signature;

    /// Appends its canonical bytes.
    fn write(&self, writer: &mut Writer);

    /// The bytes whose Keccak-256 digest is signed.
    fn signing_bytes(&self) -> Vec<u8>
    where
        Self: Sized,
    {
        signing_bytes(self)
    }

    /// The signing digest: what the signer signs, and how other objects name this one.
    fn digest(&self) -> Bytes32
    where
        Self: Sized,
    {
        digest(self)
    }
}

/// Most signed objects are shorter: what is reserved for their signing bytes.
const USUAL_BYTES: usize = 640;

/// [`Signed::signing_bytes`] of an object of any kind.
pub fn signing_bytes(object: &dyn Signed) -> Vec<u8> {
    let mut writer = Writer::with_capacity(USUAL_BYTES);
    writer.raw(object.domain().as_bytes());
    object.write(&mut writer);
    let mut bytes = writer.into_bytes();
    // Every signed object lists its signature last: the fields before it are all but its 64 bytes.
    bytes.truncate(bytes.len().saturating_sub(object.signature().0.len()));
    bytes
}

/// [`Signed::digest`] of an object of any kind.
pub fn digest(object: &dyn Signed) -> Bytes32 {
    keccak256(&signing_bytes(object))
}

/// A signed object of a provider: it also says at which finalized view it was authorised.
pub trait ProviderSigned: Signed {
    /// The view whose stream record holds the signing key.
    fn served_at(&self) -> &FinalizedView;

    /// The stream.
    fn stream_id(&self) -> &Bytes32;
}

/// One row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct SigningEntry {
    /// The specification's type name.
    pub name: &'static str,
    /// The domain separator.
    pub domain: &'static str,
    /// Every field in order; the signature is the last and not signed.
    pub fields: &'static [&'static str],
    /// Canonical object in, signing bytes out.
    pub signing_bytes: fn(&[u8]) -> Result<Vec<u8>, DecodeError>,
}

macro_rules! registry {
    ($($ty:ident = $name:literal, $domain:literal, $signature:ident;)+) => {
        $(impl Signed for $ty {
            fn domain(&self) -> &'static str {
                $domain
            }

            fn context(&self) -> &SigningContext {
                &self.context
            }

            fn signature(&self) -> &Signature {
                &self.$signature
            }

            fn write(&self, writer: &mut Writer) {
                self.encode(writer);
            }
        })+

        /// The complete v1 signing registry, in the order of §14.
        pub const SIGNING_REGISTRY: &[SigningEntry] = &[$(SigningEntry {
            name: $name,
            domain: $domain,
            fields: $ty::FIELDS,
            signing_bytes: |bytes| $ty::from_bytes(bytes).map(|object| object.signing_bytes()),
        },)+];
    };
}

registry! {
    PriceQuote = "PriceQuoteV1", "cbqs/price-quote/v1", signature;
    StreamGrant = "StreamGrantV1", "cbqs/stream-grant/v1", signature;
    SessionProof = "SessionProofV1", "cbqs/session/v1", signature;
    RequestProof = "RequestProofV1", "cbqs/request/v1", signature;
    KeyRotationBatch = "KeyRotationBatchV1", "cbqs/key-rotation-batch/v1", signature;
    KeyBatchReceipt = "KeyBatchReceiptV1", "cbqs/key-batch-receipt/v1", signature;
    BrokerEpochTransition = "BrokerEpochTransitionV1", "cbqs/broker-epoch-transition/v1", signature;
    CheckpointReceipt = "CheckpointReceiptV1", "cbqs/checkpoint-receipt/v1", signature;
    AppendReceipt = "AppendReceiptV1", "cbqs/append-receipt/v1", signature;
    DeliveryStateReceipt = "DeliveryStateReceiptV1", "cbqs/delivery-state-receipt/v1", signature;
    SnapshotManifest = "CbqsSnapshotManifestV1", "cbqs/snapshot-manifest/v1", application_signature;
    StandardRetentionAnchor = "StandardRetentionAnchorV1", "cbqs/standard-retention-anchor/v1", signature;
    GroupRetentionAnchor = "GroupRetentionAnchorV1", "cbqs/group-retention-anchor/v1", signature;
    FastRetentionAnchor = "FastRetentionAnchorV1", "cbqs/fast-retention-anchor/v1", signature;
}

macro_rules! provider_signed {
    ($($ty:ident . $stream:ident),+ $(,)?) => {$(
        impl ProviderSigned for $ty {
            fn served_at(&self) -> &FinalizedView {
                &self.served_at
            }

            fn stream_id(&self) -> &Bytes32 {
                &self.$stream
            }
        }
    )+};
}

provider_signed! {
    KeyBatchReceipt.key_stream_id,
    BrokerEpochTransition.stream_id,
    CheckpointReceipt.stream_id,
    AppendReceipt.stream_id,
    DeliveryStateReceipt.stream_id,
    StandardRetentionAnchor.stream_id,
    GroupRetentionAnchor.stream_id,
    FastRetentionAnchor.stream_id,
}
