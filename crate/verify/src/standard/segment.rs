//! Consecutive records whose receipts link, from one place of the chains to another.

use alloc::vec::Vec;

use remuda_wire::delivery::RecordDelivery;
use remuda_wire::verdict::Refusal;
use remuda_wire::Bytes32;

use super::replay::{StandardReplay, StandardReplayConfig, StandardState};
use crate::authentic::KeySource;

/// A replay subscription that keeps something of each record, `R`, until a segment of them is taken.
#[derive(Clone, Debug)]
pub struct StandardSubscription<R> {
    replay: StandardReplay,
    start: StandardState,
    records: Vec<(Bytes32, R)>,
}

impl<R> StandardSubscription<R> {
    /// Starts at `state`.
    pub fn new(config: StandardReplayConfig, state: StandardState) -> Self {
        let replay = StandardReplay::new(config, state);
        Self { start: replay.state().clone(), replay, records: Vec::new() }
    }

    /// Takes one record with its receipt, and keeps `kept` of it.
    ///
    /// # Errors
    /// Those of [`StandardReplay::handle_delivery`]; nothing is kept then.
    pub fn handle_delivery(
        &mut self,
        delivery: &RecordDelivery,
        kept: R,
        keys: &impl KeySource,
    ) -> Result<(), Refusal> {
        let receipt = self.replay.handle_delivery(delivery, keys)?;
        if receipt.record_id.sequence() == 0 {
            self.replay.begins_at_genesis();
        }
        self.records.push((receipt.digest(), kept));
        Ok(())
    }

    /// Records since the last segment.
    pub const fn waiting(&self) -> usize {
        self.records.len()
    }

    /// Everything since the last segment; `None` when nothing came.
    pub fn take_segment(&mut self) -> Option<ReceiptChainSegment<R>> {
        if self.records.is_empty() {
            return None;
        }
        let end = self.replay.state().clone();
        let start = core::mem::replace(&mut self.start, end.clone());
        Some(ReceiptChainSegment { start, end, records: core::mem::take(&mut self.records) })
    }
}

/// Records whose receipts the provider signed and whose chains lead from `start` to `end`, none left out where a chain
/// would show it. Made only by [`StandardSubscription::take_segment`].
#[derive(Clone, Debug)]
pub struct ReceiptChainSegment<R> {
    start: StandardState,
    end: StandardState,
    records: Vec<(Bytes32, R)>,
}

impl<R> ReceiptChainSegment<R> {
    /// Where the chains stood before.
    pub const fn start(&self) -> &StandardState {
        &self.start
    }

    /// Where they stand after.
    pub const fn end(&self) -> &StandardState {
        &self.end
    }

    /// What was kept of each record, with the digest of its receipt, in order. Never empty.
    pub fn records(&self) -> &[(Bytes32, R)] {
        &self.records
    }

    /// The same, taken out.
    pub fn into_records(self) -> Vec<(Bytes32, R)> {
        self.records
    }
}
