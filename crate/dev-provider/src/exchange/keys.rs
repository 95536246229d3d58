//! `BeginKeyBatch`, `PutKeyBatchChunk`, `CommitKeyBatch` (§9.3), of a session on the key stream.

use std::sync::Arc;

use remuda_wire::grant::Verb;
use remuda_wire::request::RequestBody;
use remuda_wire::response::ResponseBody;

use super::Exchange;
use crate::refusal::{Code, Refusal};
use crate::session::Session;

impl Exchange {
    /// A request about a key batch.
    ///
    /// # Errors
    /// The outer when the store fails.
    pub(super) async fn about_keys(
        &self,
        body: RequestBody,
        session: &Session,
    ) -> anyhow::Result<Result<ResponseBody, Refusal>> {
        let grant = &session.admitted.grant;
        let keys = self.key_stream.as_ref().filter(|keys| keys.log().stream_id == grant.stream_id);
        let Some(keys) = keys else {
            return Ok(Err(Refusal::new(Code::InvalidKeyBatch, "only a key stream takes key batches")));
        };
        if !grant.verbs.contains(Verb::Append) {
            return Ok(Err(Refusal::new(Code::VerbDenied, "the grant lacks APPEND")));
        }
        let keys = Arc::clone(keys);
        let work = move || match body {
            RequestBody::BeginKeyBatch(body) => Ok(keys.begin(body)?.map(ResponseBody::BeginKeyBatch)),
            RequestBody::PutKeyBatchChunk(body) => Ok(keys.put(body)?.map(ResponseBody::PutKeyBatchChunk)),
            RequestBody::CommitKeyBatch(body) => Ok(keys.commit(&body.batch_digest)?.map(ResponseBody::CommitKeyBatch)),
            _ => anyhow::bail!("no request about a key batch"),
        };
        self.broker.chain.clock().write(work).await
    }
}
