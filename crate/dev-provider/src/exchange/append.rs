//! `Append` on a fast stream (§10, §12): answered provisionally, with the durable watermark.

use remuda_wire::grant::Verb;
use remuda_wire::record::{RecordHeader, RecordId, RecordKind, RecordOrigin};
use remuda_wire::request::AppendRequest;
use remuda_wire::response::AppendResult;

use super::Exchange;
use crate::refusal::{Code, Refusal};
use crate::session::{Session, SessionState};
use crate::store::StoredRecord;

impl Exchange {
    pub(super) async fn append(
        &self,
        body: AppendRequest,
        session: &Session,
        state: &mut SessionState,
    ) -> Result<AppendResult, Refusal> {
        self.check_append(&body, session)?;
        spend_rate(session, state, self.broker.chain.now_ms(), u64::try_from(body.payload.len()).unwrap_or(u64::MAX))?;
        let record = StoredRecord {
            header: RecordHeader {
                stream_id: body.stream_id,
                lane_id: body.lane_id,
                origin: RecordOrigin::Client,
                kind: RecordKind::Application,
                client_message_id: body.client_message_id,
                created_at_ms: body.client_created_at_ms,
                visible_after_ms: 0,
                expires_at_ms: body.expires_at_ms,
                encryption_generation: body.encryption_generation,
                nonce: body.nonce,
            },
            payload: body.payload,
        };
        let (id, watermark) = self
            .broker
            .append(record)
            .await
            .map_err(|_| Refusal::new(Code::Backpressure, "the provider is closing"))?;
        Ok(AppendResult { record_id: RecordId::Fast(id), append_receipt: None, durable_watermark: Some(watermark) })
    }

    fn check_append(&self, body: &AppendRequest, session: &Session) -> Result<(), Refusal> {
        let (grant, stream) = (&session.admitted.grant, self.broker.chain.stream());
        if !grant.verbs.contains(Verb::Append) {
            return Err(Refusal::new(Code::VerbDenied, "the grant lacks APPEND"));
        }
        if !grant.lane_scope.contains(&body.lane_id) {
            return Err(Refusal::new(Code::LaneScopeDenied, "the lane is outside the grant"));
        }
        if self.lanes.binary_search(&body.lane_id).is_err() {
            return Err(Refusal::new(Code::LaneNotFound, "no such lane"));
        }
        if body.visible_after_ms != 0 || !body.nonce.is_zero() {
            return Err(Refusal::new(
                Code::UnsupportedVersion,
                "visible_after_ms and an unencrypted stream's nonce are zero",
            ));
        }
        if body.encryption_generation != stream.encryption_generation {
            return Err(Refusal::new(Code::EncryptionGenerationStale, "another encryption generation is active"));
        }
        let limit = stream.config.max_message_bytes.min(grant.max_message_bytes);
        if u32::try_from(body.payload.len()).map_or(true, |length| length > limit) {
            return Err(Refusal::new(Code::MessageTooLarge, format!("a payload has at most {limit} bytes")));
        }
        Ok(())
    }
}

/// The grant's bytes per second, by whole seconds of this session.
fn spend_rate(session: &Session, state: &mut SessionState, now_ms: u64, bytes: u64) -> Result<(), Refusal> {
    let (second, spent) = (now_ms / 1_000, state.append_window.1);
    let spent = if state.append_window.0 == second { spent } else { 0 };
    let total = spent.saturating_add(bytes);
    if total > session.admitted.grant.max_append_bytes_per_sec {
        return Err(Refusal::new(Code::RateLimited, "the grant's append rate is used up for this second"));
    }
    state.append_window = (second, total);
    Ok(())
}
