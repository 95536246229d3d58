//! `Append` (§10): answered provisionally on a fast stream, with the durable watermark; durably on a standard one.

use std::sync::{Arc, PoisonError};

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
use crate::store::StoredRecord;

impl Exchange {
    /// The outer error is ours, the inner one the client's.
    pub(super) async fn append(
        &self,
        body: AppendRequest,
        session: &Session,
        state: &mut SessionState,
    ) -> anyhow::Result<Result<AppendResult, Refusal>> {
        let bytes = u64::try_from(body.payload.len())?;
        let admitted =
            self.check_append(&body, session).and_then(|class| self.spend_rate(session, state, bytes).map(|()| class));
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

    /// Takes a record of the provider's own writer.
    ///
    /// # Errors
    /// When the provider is closing, or its store fails.
    pub async fn write(&self, record: StoredRecord) -> anyhow::Result<()> {
        anyhow::ensure!(!*self.closing.borrow(), "the provider is closing");
        match self.broker.chain.records().stream.delivery_class {
            DeliveryClass::Fast => {
                let appended = self.broker.append(record).await;
                appended.map(drop).map_err(|_| anyhow::anyhow!("the broker is closed"))
            }
            DeliveryClass::Standard => {
                let log = Arc::clone(&self.log);
                let append = move || log.store.write(|transaction| log.append_in(transaction, record).map(drop));
                self.broker.chain.clock().write(append).await?;
                self.signal.raise();
                Ok(())
            }
        }
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

    /// The grant's bytes per second of this session and the stream's of all, by whole seconds.
    fn spend_rate(&self, session: &Session, state: &mut SessionState, bytes: u64) -> Result<(), Refusal> {
        let second = self.broker.chain.now_ms() / 1_000;
        let limit = self.broker.chain.records().stream.config.max_append_bytes_per_sec;
        let mut of_stream = self.append_window.lock().unwrap_or_else(PoisonError::into_inner);
        let total = spent(*of_stream, second).saturating_add(bytes);
        if total > limit {
            return Err(Refusal::new(Code::RateLimited, "the stream's append rate is used up for this second"));
        }
        let of_session = spent(state.append_window, second).saturating_add(bytes);
        if of_session > session.admitted.grant.max_append_bytes_per_sec {
            return Err(Refusal::new(Code::RateLimited, "the grant's append rate is used up for this second"));
        }
        *of_stream = (second, total);
        state.append_window = (second, of_session);
        Ok(())
    }
}

const fn spent(window: (u64, u64), second: u64) -> u64 {
    if window.0 == second {
        window.1
    } else {
        0
    }
}
