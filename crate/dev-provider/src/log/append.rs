//! Idempotent append (§11.1): one message of one holder is appended once, whatever is retried.

use redb::{ReadableTable, TableDefinition, WriteTransaction};
use remuda_wire::preimage::request_body_hash;
use remuda_wire::request::{AppendRequest, RequestBody};
use remuda_wire::response::AppendResult;
use remuda_wire::{object, Bytes32, Canonical};

use super::Log;
use crate::grant::MAX_CLOCK_SKEW_MS;
use crate::lane_book::LaneBook;
use crate::refusal::{Code, Refusal};
use crate::store::StoredRecord;

/// (holder key id, client message id) -> Accepted
const ACCEPTED: TableDefinition<'_, (&[u8; 32], &[u8; 32]), &[u8]> = TableDefinition::new("accepted");

object! {
    /// What was answered to a message, and when it was first received.
    pub struct Accepted {
        body_hash: Bytes32,
        received_at_ms: u64,
        result: AppendResult,
    }
}

pub(super) fn create_tables(transaction: &WriteTransaction) -> anyhow::Result<()> {
    transaction.open_table(ACCEPTED)?;
    Ok(())
}

/// The record of an append, before it has an id.
pub fn appended_record(body: AppendRequest) -> StoredRecord {
    StoredRecord { header: body.header(), payload: body.payload }
}

impl Log {
    /// Appends a client's message for the holder of this key id, or answers what was answered before. Record, receipt,
    /// tails, request digest and answer are one transaction.
    ///
    /// # Errors
    /// The outer when the store fails; the inner: 3915, 3916, 3926, 3927, 3914.
    pub fn append(&self, body: AppendRequest, holder: &Bytes32) -> anyhow::Result<Result<AppendResult, Refusal>> {
        let body = RequestBody::Append(body);
        let body_hash = request_body_hash(&body);
        let RequestBody::Append(body) = body else { anyhow::bail!("an append is an append") };
        let appended = self.store.decide(|transaction| {
            let (received_at_ms, config) = (self.chain.now_ms(), self.chain.records().stream.config.clone());
            let key = (&holder.0, &body.client_message_id.0);
            let before = {
                let accepted = transaction.open_table(ACCEPTED)?;
                let row = accepted.get(key)?;
                row.map(|row| Accepted::from_bytes(row.value())).transpose()?
            };
            let horizon = config.idempotency_horizon_ms;
            if let Some(before) = before {
                return Ok(judge_retry(before, &body_hash, received_at_ms, horizon));
            }
            if let Err(refusal) = check_created(&body, received_at_ms, horizon) {
                return Ok(Err(refusal));
            }
            if let Err(refusal) = LaneBook::check_open_in(transaction, &body.lane_id)? {
                return Ok(Err(refusal));
            }
            let bytes = u64::try_from(body.payload.len())?;
            if self.state_in(transaction)?.retained_bytes.saturating_add(bytes) > config.retained_bytes_limit {
                // Live records are never evicted for room (§11.2).
                return Ok(Err(Refusal::new(Code::Backpressure, "the stream's retained bytes are used up")));
            }
            let receipt = self.append_in(transaction, appended_record(body.clone()))?;
            let record_id = receipt.record_id;
            let result = AppendResult { record_id, append_receipt: Some(receipt), durable_watermark: None };
            let row = Accepted { body_hash, received_at_ms, result: result.clone() };
            transaction.open_table(ACCEPTED)?.insert(key, row.to_bytes().as_slice())?;
            Ok(Ok(result))
        })?;
        if appended.is_ok() {
            self.signal.raise();
        }
        Ok(appended)
    }

    /// Forgets what no retry can name any more: a message that old is refused by its own time.
    pub(crate) fn forget_accepted_in(&self, transaction: &WriteTransaction) -> anyhow::Result<()> {
        let horizon = self.chain.records().stream.config.idempotency_horizon_ms;
        let kept = horizon.saturating_mul(2).saturating_add(2 * MAX_CLOCK_SKEW_MS);
        let oldest = self.chain.now_ms().saturating_sub(kept);
        transaction
            .open_table(ACCEPTED)?
            .retain(|_, row| Accepted::from_bytes(row).is_ok_and(|accepted| accepted.received_at_ms >= oldest))?;
        Ok(())
    }
}

fn judge_retry(before: Accepted, body_hash: &Bytes32, now_ms: u64, horizon_ms: u64) -> Result<AppendResult, Refusal> {
    if now_ms > before.received_at_ms.saturating_add(horizon_ms) {
        return Err(Refusal::new(Code::IdempotencyExpired, "this message was first received before the horizon"));
    }
    if before.body_hash == *body_hash {
        Ok(before.result)
    } else {
        Err(Refusal::new(Code::IdempotencyConflict, "another message of this holder has this id"))
    }
}

/// A message too old cannot be known to be new, and one from the future would outlive its entry.
fn check_created(body: &AppendRequest, received_at_ms: u64, horizon_ms: u64) -> Result<(), Refusal> {
    let oldest = received_at_ms.saturating_sub(horizon_ms.saturating_add(MAX_CLOCK_SKEW_MS));
    let latest = received_at_ms.saturating_add(MAX_CLOCK_SKEW_MS);
    if (oldest..=latest).contains(&body.client_created_at_ms) {
        Ok(())
    } else {
        Err(Refusal::new(Code::IdempotencyExpired, "client_created_at_ms is outside the idempotency horizon"))
    }
}
