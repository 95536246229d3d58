//! A signed batch on its way to the key stream (§13.1): begun, sent in chunks, committed.

use alloc::vec::Vec;

use remuda_verify::key_batch::VerifiedKeyBatch;
use remuda_verify::response::AnsweredResult;
use remuda_wire::key_batch::KeyBatchReceipt;
use remuda_wire::request::{BeginKeyBatchRequest, CommitKeyBatchRequest, PutKeyBatchChunkRequest, RequestBody};
use remuda_wire::verdict::Refusal;
use remuda_wire::{bound, List, Remedy};

use crate::command::CommandOutcome;
use crate::failure::Failure;

/// Sends one batch. Each request is answered the same however often it is sent, so one without an answer is sent again.
#[derive(Debug)]
pub struct KeyBatchUpload {
    batch: VerifiedKeyBatch,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    /// The chunk of this index.
    Put(u32),
    Commit,
}

/// What an answer makes of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "made once for each batch")]
pub enum UploadStep {
    /// Send [`KeyBatchUpload::request`]: the next one, or the last one again once there is a session.
    Send,
    /// The batch is durable, by this receipt: what the owner activates the generation with.
    Durable(KeyBatchReceipt),
    /// It is not, and sending the same again does not help.
    Failed(Failure),
}

impl KeyBatchUpload {
    pub(super) const fn new(batch: VerifiedKeyBatch) -> Self {
        Self { batch, stage: Stage::Begin }
    }

    /// The batch.
    pub const fn batch(&self) -> &VerifiedKeyBatch {
        &self.batch
    }

    fn total_chunks(&self) -> u32 {
        let chunks = self.batch.envelopes().len().div_ceil(bound::MAX_KEY_ENVELOPES_PER_CHUNK);
        u32::try_from(chunks).unwrap_or(u32::MAX)
    }

    /// What is to be sent now, in a session on the key stream.
    pub fn request(&self) -> RequestBody {
        let (key_stream_id, batch_digest) = (self.batch.key_stream_id(), self.batch.digest());
        match self.stage {
            Stage::Begin => RequestBody::BeginKeyBatch(BeginKeyBatchRequest {
                key_stream_id,
                batch: self.batch.batch().clone(),
                total_chunks: self.total_chunks(),
            }),
            Stage::Put(chunk_index) => {
                let index = usize::try_from(chunk_index).unwrap_or(usize::MAX);
                let chunk = self.batch.envelopes().chunks(bound::MAX_KEY_ENVELOPES_PER_CHUNK).nth(index);
                let envelopes: Vec<_> = chunk.unwrap_or_default().to_vec();
                RequestBody::PutKeyBatchChunk(PutKeyBatchChunkRequest {
                    key_stream_id,
                    batch_digest,
                    chunk_index,
                    // A chunk is cut to the bound.
                    envelopes: List::new(envelopes).unwrap_or(List::EMPTY),
                })
            }
            Stage::Commit => RequestBody::CommitKeyBatch(CommitKeyBatchRequest { key_stream_id, batch_digest }),
        }
    }

    /// What came of [`KeyBatchUpload::request`].
    pub fn handle(&mut self, outcome: &CommandOutcome) -> UploadStep {
        match (outcome, self.stage) {
            (CommandOutcome::Accepted(AnsweredResult::Staged(_)), Stage::Begin) => {
                self.stage = Stage::Put(0);
                UploadStep::Send
            }
            (CommandOutcome::Accepted(AnsweredResult::Staged(_)), Stage::Put(index)) => {
                let next = index.saturating_add(1);
                self.stage = if next < self.total_chunks() { Stage::Put(next) } else { Stage::Commit };
                UploadStep::Send
            }
            (CommandOutcome::Accepted(AnsweredResult::Committed(receipt)), Stage::Commit) => {
                match self.batch.check_receipt(receipt) {
                    Ok(()) => UploadStep::Durable(**receipt),
                    Err(refusal) => UploadStep::Failed(Refusal::from(refusal).into()),
                }
            }
            (CommandOutcome::Refused(failure), _) if failure.remedy != Remedy::Retry => {
                UploadStep::Failed(failure.clone())
            }
            // Refused for now, never sent, or of unknown outcome. The verifier lets nothing else answer these requests.
            (CommandOutcome::Refused(_) | CommandOutcome::Unknown | CommandOutcome::Accepted(_), _) => UploadStep::Send,
        }
    }
}
