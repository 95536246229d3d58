//! The audit file (`RESOLUTIONS.md` §8): what an auditor opens and a client records.
//!
//! ```text
//! "CBQSAUD1" || context || stream_id || u32 count || BrokerState… || u32 count || AuditItem…
//! ```
//! Only the head is a value; items are decoded one by one, so that a file of any size is judged in bounded memory.

use crate::bound;
use crate::bytes::Bytes32;
use crate::chain::BrokerState;
use crate::checkpoint::CheckpointReceipt;
use crate::codec::{Bytes, Canonical, List};
use crate::context::SigningContext;
use crate::error::DecodeError;
use crate::group::DeliveryStateReceipt;
use crate::key::SigningPublicKey;
use crate::key_batch::KeyBatchReceipt;
use crate::reader::Reader;
use crate::receipt::AppendReceipt;
use crate::request::OpenSubscriptionRequest;
use crate::retention::{FastRetentionAnchor, GroupRetentionAnchor, StandardRetentionAnchor};
use crate::signed::ProviderSigned;
use crate::snapshot::SnapshotManifest;
use crate::transition::BrokerEpochTransition;
use crate::writer::Writer;

union! {
    /// `HeldObjectV1`: a signed provider object on its own.
    #[derive(Copy)]
    pub enum HeldObject: u8 {
        AppendReceipt(object: AppendReceipt) = 1,
        CheckpointReceipt(object: CheckpointReceipt) = 2,
        BrokerEpochTransition(object: BrokerEpochTransition) = 3,
        DeliveryStateReceipt(object: DeliveryStateReceipt) = 4,
        StandardRetentionAnchor(object: StandardRetentionAnchor) = 5,
        GroupRetentionAnchor(object: GroupRetentionAnchor) = 6,
        FastRetentionAnchor(object: FastRetentionAnchor) = 7,
        KeyBatchReceipt(object: KeyBatchReceipt) = 8,
    }
}

macro_rules! held {
    ($($kind:ident),+ $(,)?) => {
        impl HeldObject {
            /// The object by what every signed provider object has.
            pub const fn signed(&self) -> &dyn ProviderSigned {
                match self { $(Self::$kind(object) => object,)+ }
            }
        }

        $(impl From<$kind> for HeldObject {
            fn from(object: $kind) -> Self {
                Self::$kind(object)
            }
        })+
    };
}

held! {
    AppendReceipt,
    CheckpointReceipt,
    BrokerEpochTransition,
    DeliveryStateReceipt,
    StandardRetentionAnchor,
    GroupRetentionAnchor,
    FastRetentionAnchor,
    KeyBatchReceipt,
}

object! {
    /// A snapshot with everything that a reader checks.
    pub struct AuditSnapshot {
        manifest: SnapshotManifest,
        receipt: HeldObject,
        bytes: Bytes<{ bound::MAX_AUDIT_SNAPSHOT_BYTES }>,
        application_key: SigningPublicKey,
    }
}

union! {
    /// `AuditItemV1`.
    pub enum AuditItem: u8 {
        Subscription(request: OpenSubscriptionRequest) = 1,
        ServerFrame(bytes: Bytes<{ bound::MAX_WIRE_FRAME_BYTES }>) = 2,
        Snapshot(snapshot: AuditSnapshot) = 3,
        Held(object: HeldObject) = 4,
    }
}

object! {
    /// The part of an audit file before its items.
    pub struct AuditHead {
        magic: AuditMagic,
        context: SigningContext,
        stream_id: Bytes32,
        chain: List<BrokerState, { bound::MAX_AUDIT_CHAIN_READS }>,
    }
    check |head: &AuditHead| {
        let mut views: alloc::vec::Vec<_> = head
            .chain
            .iter()
            .map(|read| (read.view.height, read.view.block_hash, read.view.chain_instance_id))
            .collect();
        views.sort_unstable();
        if views.windows(2).any(|pair| pair[0] == pair[1]) { Err(DecodeError::Duplicate) } else { Ok(()) }
    };
}

/// The eight bytes `CBQSAUD1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AuditMagic;

impl AuditMagic {
    const BYTES: [u8; 8] = *b"CBQSAUD1";
}

impl Canonical for AuditMagic {
    const MIN_BYTES: usize = 8;

    fn read(reader: &mut Reader<'_>) -> Self {
        let magic = reader.array();
        reader.require(magic == Self::BYTES, DecodeError::UnknownVersion);
        Self
    }

    fn encode(&self, writer: &mut Writer) {
        writer.raw(&Self::BYTES);
    }
}
