//! The lanes of the stream (§8): which there are, who may make more, and the event that tells of each change.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use redb::{ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use remuda_wire::grant::StreamGrant;
use remuda_wire::lane::{LaneEvent, LaneRecord, LaneStatus};
use remuda_wire::preimage::{lane_event_message_id, lane_id};
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::record::{RecordHeader, RecordKind, RecordOrigin};
use remuda_wire::request::CreateLaneRequest;
use remuda_wire::response::LaneMutation;
use remuda_wire::{object, Bytes, Bytes24, Bytes32, Canonical};

use crate::refusal::{Code, Refusal};
use crate::store::{Store, StoredRecord};

const LANES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("lanes");
/// The window of `max_lane_creates_per_min`.
const MINUTE_MS: u64 = 60_000;

object! {
    /// A lane and the receipts of what was done to it. A demo lane was there from the start: it has none.
    pub struct LaneRow {
        lane: LaneRecord,
        created: Option<AppendReceipt>,
        closed: Option<AppendReceipt>,
    }
}

/// A change that may be made, or was made before.
#[derive(Clone, Debug)]
pub enum LaneChange {
    /// The answer to the first of these requests.
    Repeated(Box<LaneMutation>),
    /// The lane as it will be, and its event.
    New(Box<(LaneRecord, StoredRecord)>),
}

/// The lanes.
#[derive(Debug)]
pub struct LaneBook {
    store: Arc<Store>,
    /// By grant: when lanes were created in the last minute.
    creations: Mutex<HashMap<Bytes32, VecDeque<u64>>>,
}

impl LaneBook {
    /// The lanes of this store, with `demo` among them.
    ///
    /// # Errors
    /// When the store fails.
    pub fn open(store: Arc<Store>, stream_id: &Bytes32, demo: impl Iterator<Item = Bytes32>) -> anyhow::Result<Self> {
        store.write(|transaction| {
            let mut lanes = transaction.open_table(LANES)?;
            for lane_id in demo {
                if lanes.get(&lane_id.0)?.is_none() {
                    let lane = LaneRecord {
                        stream_id: *stream_id,
                        lane_id,
                        status: LaneStatus::Active,
                        created_at_ms: 0,
                        metadata_hash: Bytes32::ZERO,
                    };
                    let row = LaneRow { lane, created: None, closed: None };
                    lanes.insert(&lane_id.0, row.to_bytes().as_slice())?;
                }
            }
            Ok(())
        })?;
        Ok(Self { store, creations: Mutex::default() })
    }

    fn row(&self, lane_id: &Bytes32) -> anyhow::Result<Option<LaneRow>> {
        let table = self.store.database().begin_read()?.open_table(LANES)?;
        let row = table.get(&lane_id.0)?;
        Ok(row.map(|row| LaneRow::from_bytes(row.value())).transpose()?)
    }

    fn row_in(transaction: &WriteTransaction, lane_id: &Bytes32) -> anyhow::Result<Option<LaneRow>> {
        let table = transaction.open_table(LANES)?;
        let row = table.get(&lane_id.0)?;
        Ok(row.map(|row| LaneRow::from_bytes(row.value())).transpose()?)
    }

    /// Whether the lane takes records. The default lane always does.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3926, 3927.
    pub fn check_open(&self, lane_id: &Bytes32) -> anyhow::Result<Result<(), Refusal>> {
        Ok(if lane_id.is_zero() { Ok(()) } else { check_row(self.row(lane_id)?.as_ref()) })
    }

    /// The same within a transaction.
    pub(crate) fn check_open_in(
        transaction: &WriteTransaction,
        lane_id: &Bytes32,
    ) -> anyhow::Result<Result<(), Refusal>> {
        Ok(if lane_id.is_zero() { Ok(()) } else { check_row(Self::row_in(transaction, lane_id)?.as_ref()) })
    }

    /// True when the lane exists, open or closed.
    ///
    /// # Errors
    /// When the store fails.
    pub fn exists(&self, lane_id: &Bytes32) -> anyhow::Result<bool> {
        Ok(lane_id.is_zero() || self.row(lane_id)?.is_some())
    }

    /// The lanes after `after` that `listed` lets through, at most `limit`; and whether there are more.
    ///
    /// # Errors
    /// When the store fails.
    pub fn page(
        &self,
        after: Option<&Bytes32>,
        limit: usize,
        listed: impl Fn(&Bytes32) -> bool,
    ) -> anyhow::Result<(Vec<LaneRecord>, bool)> {
        let table = self.store.database().begin_read()?.open_table(LANES)?;
        let mut lanes = Vec::new();
        for row in table.range::<&[u8; 32]>(&after.unwrap_or(&Bytes32::ZERO).0..)? {
            let lane = LaneRow::from_bytes(row?.1.value())?.lane;
            if after.is_some_and(|after| lane.lane_id <= *after) || !listed(&lane.lane_id) {
                continue;
            }
            if lanes.len() == limit {
                return Ok((lanes, true));
            }
            lanes.push(lane);
        }
        Ok((lanes, false))
    }

    /// Whether a lane may be created, and what then is.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3915, 3927, 3929, 3913.
    pub fn plan_creation(
        &self,
        body: &CreateLaneRequest,
        (grant_id, grant): (&Bytes32, &StreamGrant),
        max_lanes: u32,
        now_ms: u64,
    ) -> anyhow::Result<Result<LaneChange, Refusal>> {
        let lane_id = lane_id(&body.stream_id, &body.lane_nonce);
        if let Some(row) = self.row(&lane_id)? {
            return Ok(match row {
                LaneRow { closed: Some(_), .. } => Err(Refusal::new(Code::LaneClosed, "this lane was closed")),
                LaneRow { lane, created: Some(receipt), .. } if lane.metadata_hash == body.metadata_hash => {
                    Ok(LaneChange::Repeated(Box::new(LaneMutation { lane, receipt })))
                }
                _ => Err(Refusal::new(Code::IdempotencyConflict, "this lane exists already")),
            });
        }
        let count = {
            use redb::ReadableTableMetadata;
            self.store.database().begin_read()?.open_table(LANES)?.len()?
        };
        // The default lane is counted and has no row.
        if count.saturating_add(1) >= u64::from(max_lanes) {
            return Ok(Err(Refusal::new(Code::LaneLimitExceeded, "the stream has as many lanes as it may")));
        }
        if let Err(refusal) = self.admit_creation(grant_id, grant.max_lane_creates_per_min, now_ms) {
            return Ok(Err(refusal));
        }
        let (status, created_at_ms, metadata_hash) = (LaneStatus::Active, now_ms, body.metadata_hash);
        let lane = LaneRecord { stream_id: body.stream_id, lane_id, status, created_at_ms, metadata_hash };
        let event = event(&lane, now_ms)?;
        Ok(Ok(LaneChange::New(Box::new((lane, event)))))
    }

    /// A rolling window of a minute for each grant, across its sessions. A clock that runs back admits nothing.
    fn admit_creation(&self, grant_id: &Bytes32, limit: u32, now_ms: u64) -> Result<(), Refusal> {
        let mut creations = self.creations.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = creations.entry(*grant_id).or_default();
        let refused = || Refusal::new(Code::RateLimited, "the grant's lane creations of this minute are used up");
        if recent.back().is_some_and(|last| *last > now_ms) {
            return Err(refused());
        }
        recent.retain(|at| at.saturating_add(MINUTE_MS) > now_ms);
        if u32::try_from(recent.len()).map_or(true, |count| count >= limit) {
            return Err(refused());
        }
        recent.push_back(now_ms);
        Ok(())
    }

    /// Whether a lane may be closed, and what then is.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3926.
    pub fn plan_closing(&self, lane_id: &Bytes32, now_ms: u64) -> anyhow::Result<Result<LaneChange, Refusal>> {
        // The default lane has no row: it cannot be closed.
        let Some(row) = self.row(lane_id)? else {
            return Ok(Err(Refusal::new(Code::LaneNotFound, "no such lane, or one that cannot be closed")));
        };
        if let LaneRow { lane, closed: Some(receipt), .. } = row {
            return Ok(Ok(LaneChange::Repeated(Box::new(LaneMutation { lane, receipt }))));
        }
        let lane = LaneRecord { status: LaneStatus::Closed, ..row.lane };
        let event = event(&lane, now_ms)?;
        Ok(Ok(LaneChange::New(Box::new((lane, event)))))
    }

    /// Keeps a lane with the receipt of its event.
    pub(crate) fn put_in(
        transaction: &WriteTransaction,
        lane: &LaneRecord,
        receipt: &AppendReceipt,
    ) -> anyhow::Result<()> {
        let before = Self::row_in(transaction, &lane.lane_id)?;
        let row = match lane.status {
            LaneStatus::Active => LaneRow { lane: lane.clone(), created: Some(receipt.clone()), closed: None },
            LaneStatus::Closed => {
                let created = before.and_then(|row| row.created);
                LaneRow { lane: lane.clone(), created, closed: Some(receipt.clone()) }
            }
        };
        transaction.open_table(LANES)?.insert(&lane.lane_id.0, row.to_bytes().as_slice())?;
        Ok(())
    }
}

fn check_row(row: Option<&LaneRow>) -> Result<(), Refusal> {
    match row.map(|row| row.lane.status) {
        Some(LaneStatus::Active) => Ok(()),
        Some(LaneStatus::Closed) => Err(Refusal::new(Code::LaneClosed, "the lane is closed")),
        None => Err(Refusal::new(Code::LaneNotFound, "no such lane")),
    }
}

/// The provider event of a lane that became what it is (§10).
fn event(lane: &LaneRecord, now_ms: u64) -> anyhow::Result<StoredRecord> {
    let event = LaneEvent {
        stream_id: lane.stream_id,
        lane_id: lane.lane_id,
        status: lane.status,
        metadata_hash: lane.metadata_hash,
        occurred_at_ms: now_ms,
    };
    let kind = match lane.status {
        LaneStatus::Active => RecordKind::LaneCreated,
        LaneStatus::Closed => RecordKind::LaneClosed,
    };
    Ok(StoredRecord {
        header: RecordHeader {
            stream_id: lane.stream_id,
            lane_id: Bytes32::ZERO,
            origin: RecordOrigin::ProviderEvent,
            kind,
            client_message_id: lane_event_message_id(&event),
            created_at_ms: now_ms,
            visible_after_ms: 0,
            expires_at_ms: 0,
            encryption_generation: 0,
            nonce: Bytes24::ZERO,
        },
        payload: Bytes::new(event.to_bytes())?,
    })
}
