//! The floor of a log (§15): what lies before it is gone, and signed to be.
//!
//! ```text
//! log-floors       log          -> StandardRetentionAnchor of the whole stream
//! log-lane-floors  (log, lane)  -> StandardRetentionAnchor of one lane that lost records
//! ```

use std::collections::BTreeMap;

use redb::{ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use remuda_wire::preimage::stream_receipt_genesis;
use remuda_wire::retention::StandardRetentionAnchor;
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes32, Canonical, ProviderEpoch, Signature, Signed};

use super::{Log, LogRecord, LANES, LOG};
use crate::keys::sign;
use crate::refusal::{Code, Refusal};

const FLOORS: TableDefinition<'_, u8, &[u8]> = TableDefinition::new("log-floors");
const LANE_FLOORS: TableDefinition<'_, (u8, &[u8; 32]), &[u8]> = TableDefinition::new("log-lane-floors");

pub(super) fn create_tables(transaction: &WriteTransaction) -> anyhow::Result<()> {
    transaction.open_table(FLOORS)?;
    transaction.open_table(LANE_FLOORS)?;
    Ok(())
}

impl Log {
    /// Prunes every record that was committed before `before_ms`, up to the first that was not or that `is_pinned`; the
    /// floors and their anchors with it. Answers whether anything went.
    pub(crate) fn prune_in(
        &self,
        transaction: &WriteTransaction,
        before_ms: u64,
        is_pinned: impl Fn(u64) -> bool,
    ) -> anyhow::Result<bool> {
        let number = self.of.number();
        let mut state = self.state_in(transaction)?;
        let mut pruned: Vec<(u64, LogRecord)> = Vec::new();
        {
            let log = transaction.open_table(LOG)?;
            for row in log.range((number, state.first_retained)..=(number, u64::MAX))? {
                let (key, row) = row?;
                let (sequence, record) = (key.value().1, LogRecord::from_bytes(row.value())?);
                if record.receipt.committed_at_ms >= before_ms || is_pinned(sequence) {
                    break;
                }
                pruned.push((sequence, record));
            }
        }
        let Some((last, last_record)) = pruned.last() else { return Ok(false) };
        state.first_retained = last.saturating_add(1);
        let tail = last_record.receipt.digest();
        let mut lanes: BTreeMap<Bytes32, (u64, Bytes32)> = BTreeMap::new();
        for (sequence, record) in &pruned {
            let bytes = u64::try_from(record.payload.len())?;
            state.retained_bytes = state.retained_bytes.saturating_sub(bytes);
            transaction.open_table(LOG)?.remove((number, *sequence))?;
            transaction.open_table(LANES)?.remove((number, &record.header.lane_id.0, *sequence))?;
            lanes.insert(record.header.lane_id, (sequence.saturating_add(1), record.receipt.digest()));
        }
        let anchor = self.anchor(state.first_retained, tail, None);
        transaction.open_table(FLOORS)?.insert(number, anchor.to_bytes().as_slice())?;
        for (lane, (floor, lane_tail)) in lanes {
            let anchor = self.anchor(floor, tail, Some((lane, lane_tail)));
            transaction.open_table(LANE_FLOORS)?.insert((number, &lane.0), anchor.to_bytes().as_slice())?;
        }
        self.put_state_in(transaction, &state)?;
        Ok(true)
    }

    fn anchor(&self, floor: u64, tail: Bytes32, lane: Option<(Bytes32, Bytes32)>) -> StandardRetentionAnchor {
        let mut anchor = StandardRetentionAnchor {
            context: self.chain.context().clone(),
            served_at: self.chain.view(),
            stream_id: self.stream_id,
            provider_epoch: ProviderEpoch,
            lane_id: lane.map(|(lane, _)| lane),
            first_retained_sequence: floor,
            previous_global_receipt: tail,
            previous_lane_receipt: lane.map(|(_, tail)| tail),
            committed_at_ms: self.chain.now_ms(),
            signature: Signature::ZERO,
        };
        anchor.signature = sign(&self.keys.provider, &anchor);
        anchor
    }

    /// The signed floor of the stream as it is, also when nothing was pruned yet.
    ///
    /// # Errors
    /// When the store fails.
    pub fn floor(&self) -> anyhow::Result<StandardRetentionAnchor> {
        let stored = self.store.database().begin_read()?.open_table(FLOORS)?;
        match stored.get(self.of.number())? {
            Some(anchor) => Ok(StandardRetentionAnchor::from_bytes(anchor.value())?),
            None => Ok(self.anchor(0, stream_receipt_genesis(self.chain.context(), &self.stream_id), None)),
        }
    }

    /// The anchor behind whose floor the next record of `scope` lies, when it does.
    ///
    /// # Errors
    /// When the store fails.
    pub fn floor_above(
        &self,
        scope: &LaneScope,
        next_sequence: u64,
    ) -> anyhow::Result<Option<StandardRetentionAnchor>> {
        let transaction = self.store.database().begin_read()?;
        let number = self.of.number();
        let stream =
            transaction.open_table(FLOORS)?.get(number)?.map(|row| StandardRetentionAnchor::from_bytes(row.value()));
        let Some(stream) = stream.transpose()?.filter(|anchor| anchor.first_retained_sequence > next_sequence) else {
            return Ok(None);
        };
        let Some(lanes) = scope.lanes() else { return Ok(Some(stream)) };
        let floors = transaction.open_table(LANE_FLOORS)?;
        for lane in lanes {
            let Some(row) = floors.get((number, &lane.0))? else { continue };
            let anchor = StandardRetentionAnchor::from_bytes(row.value())?;
            if anchor.first_retained_sequence > next_sequence {
                // A lane's floor governs a scope of that lane alone.
                return Ok(Some(if lanes.len() == 1 { anchor } else { stream }));
            }
        }
        Ok(None)
    }
}

/// The refusal that such an anchor justifies.
pub fn cursor_too_old(anchor: &StandardRetentionAnchor) -> Refusal {
    Refusal::new(Code::CursorTooOld, "the position is behind the retention floor").with_details(anchor.to_bytes())
}
