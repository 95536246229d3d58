//! F: the durable boundary of one subscription, and how it is stored.

use remuda_verify::fast::FastState;
use remuda_verify::standard::{NewLanes, StandardState};
use remuda_wire::codec::{Canonical, List};
use remuda_wire::context::SigningContext;
use remuda_wire::preimage::keccak256;
use remuda_wire::record::{FastRecordId, RecordId, StandardRecordId};
use remuda_wire::request::VerificationMode;
use remuda_wire::scope::LaneScope;
use remuda_wire::{object, tags, union, Bytes32, ProviderEpoch, Writer};

/// The lanes whose chains one position follows: the governance ceiling of lanes per stream (§18).
const MAX_LANE_TAILS: usize = 65_536;

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

    /// The position of a standard replay: `keccak("remuda/position/standard/v1" || context || stream_id || scope)`.
    pub fn derive_standard(context: &SigningContext, stream_id: &Bytes32, scope: &LaneScope) -> Self {
        let mut writer = Writer::new();
        writer.raw(b"remuda/position/standard/v1");
        context.encode(&mut writer);
        stream_id.encode(&mut writer);
        scope.encode(&mut writer);
        Self(keccak256(writer.as_slice()))
    }
}

impl PositionKey {
    /// The position in the receipts of a consumer group:
    /// `keccak("remuda/position/group/v1" || context || stream_id || lane_id || group_id)`.
    pub fn derive_group(context: &SigningContext, stream_id: &Bytes32, lane_id: &Bytes32, group_id: &Bytes32) -> Self {
        let mut writer = Writer::new();
        writer.raw(b"remuda/position/group/v1");
        context.encode(&mut writer);
        [stream_id, lane_id, group_id].into_iter().for_each(|id| id.encode(&mut writer));
        Self(keccak256(writer.as_slice()))
    }
}

tags! {
    /// What the start of a position rests on (`RESOLUTIONS.md` §5).
    pub enum Anchor: u8 {
        /// The first checkpoint that the provider chose to show: its own word.
        Provider = 1,
        /// The first record of the stream: there is nothing before it.
        Genesis = 2,
        /// A signed retention floor behind which nothing was seen: there is a hole before it.
        Retention = 3,
        /// A snapshot bound to an authentic receipt.
        Snapshot = 4,
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
    /// A lineage that was adopted since the last checkpoint, before any checkpoint of its own. Without a checkpoint before it,
    /// it is the floor from which the next checkpoint is taken as it comes.
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
    /// The last receipt of one lane's chain.
    #[derive(Copy)]
    pub struct LaneTail {
        lane_id: Bytes32,
        receipt: Bytes32,
    }
}

object! {
    /// A place in the receipt chains of a standard stream: after the record of `last_sequence`.
    pub struct ReceiptChainEnd {
        last_sequence: u64,
        /// The last receipt of the stream; `None` for a scope of lanes, which follows no global chain.
        global_tail: Option<Bytes32>,
        /// The lanes that were met, ascending.
        lane_tails: List<LaneTail, MAX_LANE_TAILS>,
        /// Whether the first record of the stream was seen, so that every lane begins at its genesis.
        from_genesis: bool,
    }
}

object! {
    /// A position in a fast stream, as it is stored.
    pub struct FastPosition {
        revision: u64,
        anchor: Anchor,
        checkpoint: Option<CheckpointEnd>,
        adopted: Option<AdoptedLineage>,
        last_item: u64,
    }
}

object! {
    /// A position in a standard stream, as it is stored.
    pub struct StandardPosition {
        revision: u64,
        anchor: Anchor,
        end: ReceiptChainEnd,
        last_item: u64,
    }
}

object! {
    /// A position in the receipts of a consumer group, as it is stored. It has no rows: what was delivered is delivered again
    /// until the application has settled it (§11.2).
    pub struct GroupPosition {
        revision: u64,
        anchor: Anchor,
        /// The last verified receipt of the group.
        receipt: Bytes32,
    }
}

union! {
    /// A position as it is stored.
    pub enum StoredPosition: u8 {
        Fast(fast: FastPosition) = 1,
        Standard(standard: StandardPosition) = 2,
        Group(group: GroupPosition) = 3,
    }
}

impl StoredPosition {
    /// What the store compares before it lets the position move.
    pub const fn revision(&self) -> u64 {
        match self {
            Self::Fast(fast) => fast.revision,
            Self::Standard(standard) => standard.revision,
            Self::Group(group) => group.revision,
        }
    }

    /// What its start rests on.
    pub const fn anchor(&self) -> Anchor {
        match self {
            Self::Fast(fast) => fast.anchor,
            Self::Standard(standard) => standard.anchor,
            Self::Group(group) => group.anchor,
        }
    }

    /// The number of its last item.
    pub const fn last_item(&self) -> u64 {
        match self {
            Self::Fast(fast) => fast.last_item,
            Self::Standard(standard) => standard.last_item,
            Self::Group(_) => 0,
        }
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        match self {
            Self::Fast(fast) => Place::Fast { checkpoint: fast.checkpoint, adopted: fast.adopted },
            Self::Standard(standard) => Place::Standard(standard.end.clone()),
            Self::Group(group) => Place::Group(group.receipt),
        }
    }

    /// A position at `place`.
    pub(crate) fn at(place: Place, revision: u64, anchor: Anchor, last_item: u64) -> Self {
        match place {
            Place::Fast { checkpoint, adopted } => {
                Self::Fast(FastPosition { revision, anchor, checkpoint, adopted, last_item })
            }
            Place::Standard(end) => Self::Standard(StandardPosition { revision, anchor, end, last_item }),
            Place::Group(receipt) => Self::Group(GroupPosition { revision, anchor, receipt }),
        }
    }
}

/// A place in a stream of either class, or in a group of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// After a checkpoint, and after a transition that was adopted since.
    Fast {
        /// The last verified checkpoint.
        checkpoint: Option<CheckpointEnd>,
        /// The lineage that was adopted since.
        adopted: Option<AdoptedLineage>,
    },
    /// After a record and its receipts.
    Standard(ReceiptChainEnd),
    /// After a receipt of a group.
    Group(Bytes32),
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

    const fn fast(&self) -> Option<&FastPosition> {
        match &self.stored {
            Some(StoredPosition::Fast(fast)) => Some(fast),
            Some(StoredPosition::Standard(_) | StoredPosition::Group(_)) | None => None,
        }
    }

    /// The end of what is durable of a standard stream.
    pub const fn receipt_chain_end(&self) -> Option<&ReceiptChainEnd> {
        match &self.stored {
            Some(StoredPosition::Standard(standard)) => Some(&standard.end),
            Some(StoredPosition::Fast(_) | StoredPosition::Group(_)) | None => None,
        }
    }

    /// The last durable receipt of a group, as `after_group_receipt` of a new subscription.
    pub const fn group_receipt(&self) -> Option<Bytes32> {
        match &self.stored {
            Some(StoredPosition::Group(group)) => Some(group.receipt),
            Some(StoredPosition::Fast(_) | StoredPosition::Standard(_)) | None => None,
        }
    }

    /// The last durable record of a standard stream, as the cursor of a new subscription.
    pub fn standard_cursor(&self) -> Option<StandardRecordId> {
        let sequence = self.receipt_chain_end()?.last_sequence;
        Some(StandardRecordId { provider_epoch: ProviderEpoch, sequence })
    }

    /// The state to verify from after asking for what follows [`Boundary::standard_cursor`]. Without one nothing is known:
    /// the first record is taken as it comes, and shows by itself whether it is the first of its stream.
    pub fn receipt_chain_state(&self) -> StandardState {
        self.receipt_chain_end().map_or_else(
            || StandardState::after(None),
            |end| StandardState {
                global_tail: end.global_tail,
                last_sequence: Some(end.last_sequence),
                lane_tails: end.lane_tails.iter().map(|tail| (tail.lane_id, tail.receipt)).collect(),
                new_lanes: if end.from_genesis { NewLanes::Genesis } else { NewLanes::Unknown },
            },
        )
    }

    /// Its name.
    pub const fn key(&self) -> PositionKey {
        self.key
    }

    /// What the store compares before it lets the position move; `None` when there is no row.
    pub fn revision(&self) -> Option<u64> {
        self.stored.as_ref().map(StoredPosition::revision)
    }

    /// What its start rests on; `None` before anything is durable.
    pub fn anchor(&self) -> Option<Anchor> {
        self.stored.as_ref().map(StoredPosition::anchor)
    }

    /// The number of the last durable item; 0 before the first.
    pub fn last_item(&self) -> u64 {
        self.stored.as_ref().map_or(0, StoredPosition::last_item)
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

    /// The last durable record, of either class; `None` where no cursor names it.
    pub fn last_record(&self) -> Option<RecordId> {
        self.cursor().map(RecordId::Fast).or(self.standard_cursor().map(RecordId::Standard))
    }

    /// Whether it begins in a lineage of which no checkpoint is known: the next one is taken as it comes.
    pub fn is_unanchored(&self) -> bool {
        self.fast().is_some_and(|fast| fast.checkpoint.is_none())
    }

    /// The last verified checkpoint.
    pub fn checkpoint(&self) -> Option<CheckpointEnd> {
        self.fast().and_then(|fast| fast.checkpoint)
    }

    /// What a transition that continues from here names as the last durable checkpoint. A transition that is adopted names
    /// ours, or, when we have none yet, the one that we began behind.
    pub fn last_durable_checkpoint(&self) -> Option<Bytes32> {
        let stored = self.fast()?;
        stored.adopted.map(|adopted| adopted.last_durable_checkpoint).or(stored.checkpoint.map(|end| end.digest))
    }

    /// The lineage in force: that of an adopted transition, else the checkpoint's.
    pub fn broker_epoch(&self) -> Option<u64> {
        let stored = self.fast()?;
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
        let stored = self.fast()?;
        stored.adopted.map(StreamPoint::from).or(stored.checkpoint.map(StreamPoint::from))
    }

    /// The digest at the end of what is durable: the adopted transition's, else the checkpoint's.
    pub fn tail(&self) -> Option<Bytes32> {
        let stored = self.fast()?;
        stored.adopted.map(|adopted| adopted.transition).or(stored.checkpoint.map(|end| end.digest))
    }
}
