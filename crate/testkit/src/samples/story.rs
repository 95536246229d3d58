//! An honest fast stream of three epochs, as one subscription to eight lanes was sent it.

use remuda_wire::audit::{AuditHead, AuditItem, AuditMagic};
use remuda_wire::checkpoint::CheckpointReceipt;
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::preimage::keccak256;
use remuda_wire::record::FastRecordId;
use remuda_wire::request::SubscriptionSource;
use remuda_wire::{Bytes, Bytes32, Canonical, List, ProviderEpoch};

use crate::builder::{Batch, Provider, Record};

/// The lanes that the subscription names; the provider's writers use some more.
const LANES: u32 = 8;
const OTHER_LANES: u32 = 24;
const SUBSCRIPTION: Bytes32 = Bytes32([0x53; 32]);

/// The story: its items, and where in them the parts are that lies bend.
#[derive(Clone, Debug)]
pub(super) struct Story {
    pub provider: Provider,
    pub lanes: Vec<Bytes32>,
    pub items: Vec<AuditItem>,
    /// Every batch, and the items of it: its records, then its checkpoint.
    pub batches: Vec<(Batch, core::ops::Range<usize>)>,
    /// The items that are transitions.
    pub transitions: Vec<usize>,
    /// The provider before each batch.
    pub before: Vec<Provider>,
}

impl Story {
    /// Fourteen batches in three epochs, the second of which began by withdrawing three records.
    pub fn new() -> Self {
        let provider = Provider::new();
        let lanes = provider.lanes(LANES);
        let subscription = AuditItem::Subscription(provider.open_scoped(SUBSCRIPTION, lanes.clone()));
        let genesis = ServerMessage::BrokerEpochTransition(provider.genesis_transition());
        let mut story = Self {
            provider,
            lanes,
            items: vec![subscription, frame(&genesis)],
            batches: Vec::new(),
            transitions: vec![1],
            before: Vec::new(),
        };
        for size in [9, 14, 6, 22, 11] {
            story.batch(size);
        }
        story.withdraw(3);
        for size in [17, 8, 12, 30] {
            story.batch(size);
        }
        story.restart(0);
        for size in [10, 7, 19, 13, 5] {
            story.batch(size);
        }
        let floors: Vec<_> = [1, 3].map(|batch| story.floor_after(batch)).into();
        story.items.extend(floors);
        story
    }

    /// The head of its files.
    pub fn head(&self) -> AuditHead {
        AuditHead {
            magic: AuditMagic,
            context: self.provider.context,
            stream_id: self.provider.stream_id,
            chain: List::new(vec![self.provider.broker_state(), self.later().broker_state()]).expect("two reads"),
        }
    }

    /// The provider a while later, at a higher view.
    pub fn later(&self) -> Provider {
        let mut later = self.provider.clone();
        later.wait(900_000);
        later.view.height += 50;
        later.view.block_hash = keccak256(b"block 150");
        later
    }

    /// The floor behind a batch, held.
    pub fn floor_after(&self, batch: usize) -> AuditItem {
        let mut provider = self.provider.clone();
        provider.wait(u64::try_from(batch).expect("a few") * 60_000);
        AuditItem::Held(provider.floor(self.batches[batch].0.receipt()).into())
    }

    /// The frames of a batch, as this subscription is sent them.
    pub fn frames(&self, batch: &Batch) -> Vec<AuditItem> {
        batch.frames(SUBSCRIPTION, &self.lanes).map(frame_of).collect()
    }

    /// A batch's checkpoint frame with another receipt.
    pub fn checkpoint_with(&self, batch: &Batch, receipt: CheckpointReceipt) -> AuditItem {
        let mut checkpoint = batch.checkpoint(SUBSCRIPTION, &self.lanes);
        checkpoint.receipt = receipt;
        frame(&ServerMessage::Checkpoint(checkpoint))
    }

    fn batch(&mut self, size: u64) {
        self.provider.wait(41_000 + size * 1_700);
        self.before.push(self.provider.clone());
        let records = self.records(size);
        let batch = self.provider.commit(records);
        let frames = self.frames(&batch);
        let first = self.items.len();
        self.items.extend(frames);
        self.batches.push((batch, first..self.items.len()));
    }

    /// A few lanes are in each batch, so that some proofs are of absence.
    fn records(&self, size: u64) -> Vec<Record> {
        let record = |number: u64| {
            let drawn = (number * 7 + size * 3) % u64::from(OTHER_LANES);
            let lane_id = self.provider.lane(u32::try_from(drawn).expect("a lane"));
            Record { lane_id, payload: format!("measured {}", number * size).into_bytes() }
        };
        (0..size).map(record).collect()
    }

    /// Records that are sent and never become durable: the broker dies, and the subscriber asks again from its position.
    fn withdraw(&mut self, count: u64) {
        let records = (0..count).map(|_| Record { lane_id: self.lanes[0], payload: b"never durable".to_vec() });
        let provisional = self.provider.clone().commit(records.collect());
        let mut frames = self.frames(&provisional);
        frames.pop();
        self.items.extend(frames);
        let mut again = self.provider.open_scoped(SUBSCRIPTION, self.lanes.clone());
        if let (SubscriptionSource::Fast(fast), Some((batch, _))) = (&mut again.source, self.batches.last()) {
            let CheckpointReceipt { broker_epoch, last_sequence: sequence, .. } = *batch.receipt();
            fast.after = Some(FastRecordId { provider_epoch: ProviderEpoch, broker_epoch, sequence });
        }
        self.items.push(AuditItem::Subscription(again));
        self.restart(count);
    }

    fn restart(&mut self, withdrawn: u64) {
        self.provider.wait(90_000);
        let transition = self.provider.restart(withdrawn);
        self.transitions.push(self.items.len());
        self.items.push(frame(&ServerMessage::BrokerEpochTransition(transition)));
    }
}

/// A frame as an item.
pub(super) fn frame(message: &ServerMessage) -> AuditItem {
    frame_of(ServerFrame(message.clone()).to_bytes())
}

fn frame_of(bytes: Vec<u8>) -> AuditItem {
    AuditItem::ServerFrame(Bytes::new(bytes).expect("a frame within its bound"))
}

/// The message of an item that is a frame.
pub(super) fn message(item: &AuditItem) -> ServerMessage {
    let AuditItem::ServerFrame(bytes) = item else { panic!("no frame") };
    ServerFrame::from_bytes(bytes).expect("a frame").0
}

/// The length of an item, for whoever cuts a file inside it.
pub(super) fn length(item: &AuditItem) -> usize {
    item.to_bytes().len()
}
