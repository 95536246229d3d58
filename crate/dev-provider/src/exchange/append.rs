//! `Append` (§10): answered provisionally on a fast stream, with the durable watermark; durably on a standard one.

use std::sync::Arc;

use remuda_wire::chain::{DeliveryClass, Purpose};
use remuda_wire::grant::Verb;
use remuda_wire::preimage::signing_key_id;
use remuda_wire::record::RecordId;
use remuda_wire::request::AppendRequest;
use remuda_wire::response::AppendResult;

use super::Exchange;
use crate::log::appended_record;
use crate::refusal::{Code, Refusal};
use crate::session::{Session, SessionState};

impl Exchange {
    /// The outer error is ours, the inner one the client's.
    pub(super) async fn append(
        &self,
        body: AppendRequest,
        session: &Session,
        state: &mut SessionState,
    ) -> anyhow::Result<Result<AppendResult, Refusal>> {
        let bytes = u64::try_from(body.payload.len())?;
        let admitted = self
            .check_append(&body, session)
            .and_then(|class| spend_rate(session, state, self.broker.chain.now_ms(), bytes).map(|()| class));
        match admitted {
            Ok(DeliveryClass::Fast) => self.append_fast(body).await,
            Ok(DeliveryClass::Standard) => {
                let log = Arc::clone(&self.log);
                let holder = signing_key_id(&session.admitted.grant.holder_signing_key);
                self.broker.chain.clock().write(move || log.append(body, &holder)).await
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    async fn append_fast(&self, body: AppendRequest) -> anyhow::Result<Result<AppendResult, Refusal>> {
        if let Err(refusal) = self.lanes.check_open(&body.lane_id)? {
            return Ok(Err(refusal));
        }
        let appended = self.broker.append(appended_record(body)).await;
        Ok(appended.map_err(|_| Refusal::new(Code::Backpressure, "the provider is closing")).map(|(id, watermark)| {
            AppendResult { record_id: RecordId::Fast(id), append_receipt: None, durable_watermark: Some(watermark) }
        }))
    }

    fn check_append(&self, body: &AppendRequest, session: &Session) -> Result<DeliveryClass, Refusal> {
        let (grant, records) = (&session.admitted.grant, self.broker.chain.records());
        let stream = &records.stream;
        if records.of(&body.stream_id).is_some_and(|stream| stream.purpose == Purpose::Key) {
            return Err(Refusal::new(Code::VerbDenied, "a key stream takes key batches alone"));
        }
        if !grant.verbs.contains(Verb::Append) {
            return Err(Refusal::new(Code::VerbDenied, "the grant lacks APPEND"));
        }
        if !grant.lane_scope.contains(&body.lane_id) {
            return Err(Refusal::new(Code::LaneScopeDenied, "the lane is outside the grant"));
        }
        if body.visible_after_ms != 0 || !(stream.encrypted || body.nonce.is_zero()) {
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
        Ok(stream.delivery_class)
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
