//! An honest audit file of any number of records, made piece by piece: it is never whole in memory.

use remuda_wire::audit::{AuditHead, AuditItem, AuditMagic};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::{Bytes, Bytes32, Canonical, List};

use super::provider::Provider;

const SUBSCRIPTION: Bytes32 = Bytes32([0x53; 32]);
const RECORDS_PER_BATCH: u32 = 1_024;
const LANES: u32 = 8;

/// The pieces of a file: its head, then one piece for each batch.
#[derive(Debug)]
pub struct AuditFile {
    provider: Provider,
    lanes: Vec<Bytes32>,
    head: Option<Vec<u8>>,
    left: u32,
    payload_bytes: usize,
}

impl AuditFile {
    /// A file of `records` records of `payload_bytes` bytes on eight lanes, under one `ScopedProofs` subscription.
    ///
    /// # Panics
    /// Where the items do not fit a `u32`.
    pub fn new(records: u32, payload_bytes: usize) -> Self {
        let provider = Provider::new();
        let lanes = provider.lanes(LANES);
        // A subscription, the genesis transition, the records, and a checkpoint for each batch.
        let items = 2 + records + records.div_ceil(RECORDS_PER_BATCH);
        let head = AuditHead {
            magic: AuditMagic,
            context: provider.context.clone(),
            stream_id: provider.stream_id,
            chain: List::new(vec![provider.broker_state()]).expect("one read"),
        };
        let transition = ServerFrame(ServerMessage::BrokerEpochTransition(provider.genesis_transition()));
        let mut bytes = head.to_bytes();
        bytes.extend(items.to_be_bytes());
        bytes.extend(AuditItem::Subscription(provider.open_scoped(SUBSCRIPTION, lanes.clone())).to_bytes());
        bytes.extend(frame_item(transition.to_bytes()));
        Self { provider, lanes, head: Some(bytes), left: records, payload_bytes }
    }
}

impl Iterator for AuditFile {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(head) = self.head.take() {
            return Some(head);
        }
        let count = self.left.min(RECORDS_PER_BATCH);
        if count == 0 {
            return None;
        }
        self.left -= count;
        let batch = self.provider.commit(self.provider.records(count, self.payload_bytes, LANES));
        Some(batch.frames(SUBSCRIPTION, &self.lanes).flat_map(frame_item).collect())
    }
}

fn frame_item(frame: Vec<u8>) -> Vec<u8> {
    AuditItem::ServerFrame(Bytes::new(frame).expect("a frame within its bound")).to_bytes()
}

#[cfg(test)]
mod tests {
    use remuda_verify::audit::{AuditVerdict, Auditor};

    use super::AuditFile;

    #[test]
    fn a_made_file_is_consistent_and_all_of_it_is_verified() {
        let mut auditor = Auditor::new();
        AuditFile::new(2_500, 64).for_each(|piece| auditor.push(&piece));
        let report = auditor.finish();
        assert_eq!(report.verdict, AuditVerdict::Consistent, "{report:?}");
        assert_eq!((report.records, report.signatures, report.assurance[0].verified), (2_500, 4, 2_500));
    }
}
