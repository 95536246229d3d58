//! F: the durable boundary of one subscription, and how it is stored.

use remuda_verify::fast::FastState;
use remuda_wire::codec::{Canonical, VersionOne};
use remuda_wire::context::SigningContext;
use remuda_wire::preimage::keccak256;
use remuda_wire::record::FastRecordId;
use remuda_wire::request::VerificationMode;
use remuda_wire::scope::LaneScope;
use remuda_wire::{object, tags, Bytes32, ProviderEpoch, Writer};

/// Names a position: one chain, one stream, one mode, one scope. Another scope has another position, since what is
/// complete for some lanes says nothing of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PositionKey(pub Bytes32);

impl PositionKey {
    /// `keccak("remuda/position/v1" || context || stream_id || mode || scope)`.
    pub fn derive(context: &SigningContext, stream_id: &Bytes32, mode: VerificationMode, scope: &LaneScope) -> Self {
        let mut writer = Writer::new();
        writer.raw(b"remuda/position/v1");
        context.encode(&mut writer);
        stream_id.encode(&mut writer);
        mode.encode(&mut writer);
        scope.encode(&mut writer);
        Self(keccak256(writer.as_slice()))
    }
}

tags! {
    /// What the start of a position rests on (`RESOLUTIONS.md` §5).
    pub enum Anchor: u8 {
        /// The first checkpoint that the provider chose to show: its own word.
        Provider = 1,
    }
}

object! {
    /// The end of a verified checkpoint.
    #[derive(Copy)]
    pub struct CheckpointEnd {
        broker_epoch: u64,
        last_sequence: u64,
        digest: Bytes32,
    }
}

object! {
    /// A lineage that was adopted since the last checkpoint, before any checkpoint of its own.
    #[derive(Copy)]
    pub struct AdoptedLineage {
        broker_epoch: u64,
        transition: Bytes32,
        /// What the transition names: the next one names it too when no checkpoint comes between.
        last_durable_checkpoint: Bytes32,
    }
}

/// A place in the total order of one stream: lineage first, then the sequence that comes next in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamPoint {
    /// The lineage.
    pub broker_epoch: u64,
    /// The next sequence of that lineage.
    pub next_sequence: u64,
}

impl From<CheckpointEnd> for StreamPoint {
    fn from(end: CheckpointEnd) -> Self {
        Self { broker_epoch: end.broker_epoch, next_sequence: end.last_sequence.saturating_add(1) }
    }
}

impl From<AdoptedLineage> for StreamPoint {
    fn from(adopted: AdoptedLineage) -> Self {
        Self { broker_epoch: adopted.broker_epoch, next_sequence: 0 }
    }
}

object! {
    /// A position as it is stored.
    pub struct StoredPosition {
        version: VersionOne,
        revision: u64,
        anchor: Anchor,
        checkpoint: Option<CheckpointEnd>,
        adopted: Option<AdoptedLineage>,
        last_item: u64,
    }
}

/// F: everything at and below it is durable here, nothing above it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    pub(crate) key: PositionKey,
    pub(crate) stored: Option<StoredPosition>,
}

impl Boundary {
    /// A subscription that has nothing durable yet.
    pub const fn empty(key: PositionKey) -> Self {
        Self { key, stored: None }
    }

    /// The boundary that a store holds.
    pub const fn stored(key: PositionKey, stored: StoredPosition) -> Self {
        Self { key, stored: Some(stored) }
    }

    /// Its name.
    pub const fn key(&self) -> PositionKey {
        self.key
    }

    /// What the store compares before it lets the position move; `None` when there is no row.
    pub fn revision(&self) -> Option<u64> {
        self.stored.as_ref().map(|stored| stored.revision)
    }

    /// What its start rests on; `None` before anything is durable.
    pub fn anchor(&self) -> Option<Anchor> {
        self.stored.as_ref().map(|stored| stored.anchor)
    }

    /// The number of the last durable item; 0 before the first.
    pub fn last_item(&self) -> u64 {
        self.stored.as_ref().map_or(0, |stored| stored.last_item)
    }

    /// The last durable record boundary, as the cursor of a new subscription: it always names a checkpoint's end.
    pub fn cursor(&self) -> Option<FastRecordId> {
        let checkpoint = self.checkpoint()?;
        Some(FastRecordId {
            provider_epoch: ProviderEpoch,
            broker_epoch: checkpoint.broker_epoch,
            sequence: checkpoint.last_sequence,
        })
    }

    /// The last verified checkpoint.
    pub fn checkpoint(&self) -> Option<CheckpointEnd> {
        self.stored.as_ref().and_then(|stored| stored.checkpoint)
    }

    /// What a transition that continues from here names as the last durable checkpoint. A transition that is adopted names
    /// ours, or, when we have none yet, the one that we began behind.
    pub fn last_durable_checkpoint(&self) -> Option<Bytes32> {
        let stored = self.stored.as_ref()?;
        stored.adopted.map(|adopted| adopted.last_durable_checkpoint).or(stored.checkpoint.map(|end| end.digest))
    }

    /// The lineage in force: that of an adopted transition, else the checkpoint's.
    pub fn broker_epoch(&self) -> Option<u64> {
        let stored = self.stored.as_ref()?;
        stored.adopted.map(|adopted| adopted.broker_epoch).or(stored.checkpoint.map(|end| end.broker_epoch))
    }

    /// The state to verify from after asking for what follows [`Boundary::cursor`]: that of the checkpoint itself, since
    /// the provider serves a transition after it again.
    pub fn resume_state(&self) -> FastState {
        self.checkpoint().map_or_else(FastState::default, |end| FastState {
            broker_epoch: Some(end.broker_epoch),
            next_sequence: Some(end.last_sequence.saturating_add(1)),
            tail: Some(end.digest),
            last_checkpoint: Some(end.digest),
            last_durable_sequence: Some(end.last_sequence),
        })
    }

    /// Where it stands in the order of the stream; `None` before anything is durable.
    pub fn point(&self) -> Option<StreamPoint> {
        let stored = self.stored.as_ref()?;
        stored.adopted.map(StreamPoint::from).or(stored.checkpoint.map(StreamPoint::from))
    }

    /// The digest at the end of what is durable: the adopted transition's, else the checkpoint's.
    pub fn tail(&self) -> Option<Bytes32> {
        let stored = self.stored.as_ref()?;
        stored.adopted.map(|adopted| adopted.transition).or(stored.checkpoint.map(|end| end.digest))
    }
}
