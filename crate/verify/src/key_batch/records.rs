//! The one valid materialization of a batch on the key stream (§9.3): a header record, then each envelope in order.

use alloc::vec::Vec;

use remuda_wire::delivery::{DeliveryOf, RecordDelivery};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::key_batch::KeyBatchReceipt;
use remuda_wire::preimage::{lane_receipt_genesis, stream_receipt_genesis};
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::record::{RecordHeader, RecordKind, RecordOrigin};
use remuda_wire::verdict::{ProtocolViolation, Refusal, VerifyError};
use remuda_wire::{Bytes24, Bytes32, Canonical};

use super::VerifiedKeyBatch;
use crate::authentic::{Authority, KeySource, Verified};

/// One record of the run.
struct KeyRecord<'a> {
    record: MaterialisedRecord<'a>,
    receipt: Verified<AppendReceipt>,
}

/// A record of a key stream, whose place in its chains was judged elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct MaterialisedRecord<'a> {
    /// Its sequence.
    pub sequence: u64,
    /// Its header.
    pub header: &'a RecordHeader,
    /// Its payload.
    pub payload: &'a [u8],
}

impl VerifiedKeyBatch {
    /// Verifies the records of this batch, in record order, and answers the new tail of the key stream's append chain.
    ///
    /// `receipt` is the batch's, where it is at hand; `global_tail` is the last append receipt of the key stream before
    /// it, where it is known. What is absent is not checked.
    ///
    /// # Errors
    /// In this order, each over all records: [`ProtocolViolation::UnexpectedFrame`] for what is no delivery of a
    /// standard record without a lease; [`Authority::authenticate`]; [`VerifyError::GlobalChain`] and
    /// [`VerifyError::LaneChain`] from record to record; [`VerifyError::KeyMaterialization`];
    /// [`VerifyError::FinalAppendReceipt`].
    pub fn verify_records(
        &self,
        frames: &[ServerFrame],
        receipt: Option<&Verified<KeyBatchReceipt>>,
        global_tail: Option<Bytes32>,
        keys: &impl KeySource,
    ) -> Result<Bytes32, Refusal> {
        let replayed: Result<Vec<_>, _> = frames.iter().map(replayed_record).collect();
        let authority = Authority { context: &self.batch.context, stream_id: &self.key_stream_id, keys };
        let records: Result<Vec<_>, VerifyError> = replayed?
            .into_iter()
            .map(|(delivery, sequence, receipt)| {
                let record = MaterialisedRecord { sequence, header: &delivery.header, payload: &delivery.payload };
                Ok(KeyRecord { record, receipt: authority.authenticate(receipt.clone())? })
            })
            .collect();
        let records = records?;
        self.check_chain(&records, receipt, global_tail)?;
        let materialised: Vec<_> = records.iter().map(|record| record.record).collect();
        if receipt.is_some_and(|receipt| materialised.first().is_some_and(|it| it.sequence != receipt.first_sequence)) {
            return Err(VerifyError::KeyMaterialization.into());
        }
        self.verify_layout(&materialised)?;
        let last = records.last().ok_or(VerifyError::KeyMaterialization)?.receipt.digest();
        if receipt.is_some_and(|receipt| receipt.final_append_receipt != last) {
            return Err(VerifyError::FinalAppendReceipt.into());
        }
        Ok(last)
    }

    fn check_chain(
        &self,
        records: &[KeyRecord<'_>],
        receipt: Option<&Verified<KeyBatchReceipt>>,
        global_tail: Option<Bytes32>,
    ) -> Result<(), VerifyError> {
        if let Some(first) = records.first() {
            self.check_first(first, receipt, global_tail)?;
        }
        for (record, next) in records.iter().zip(records.iter().skip(1)) {
            let tail = record.receipt.digest();
            if next.receipt.previous_global_receipt != tail {
                return Err(VerifyError::GlobalChain);
            }
            // The whole run is of one lane, so both chains are the same from the second record on.
            if next.receipt.previous_lane_receipt != tail {
                return Err(VerifyError::LaneChain);
            }
        }
        Ok(())
    }

    fn check_first(
        &self,
        first: &KeyRecord<'_>,
        receipt: Option<&Verified<KeyBatchReceipt>>,
        global_tail: Option<Bytes32>,
    ) -> Result<(), VerifyError> {
        let context = &self.batch.context;
        let is_first_of_stream = first.record.sequence == 0;
        let genesis = is_first_of_stream.then(|| stream_receipt_genesis(context, &self.key_stream_id));
        let named = [global_tail, receipt.map(|receipt| receipt.previous_global_receipt), genesis];
        if named.iter().flatten().any(|tail| *tail != first.receipt.previous_global_receipt) {
            return Err(VerifyError::GlobalChain);
        }
        let lane_genesis = || lane_receipt_genesis(context, &self.key_stream_id, &first.receipt.lane_id);
        if is_first_of_stream && first.receipt.previous_lane_receipt != lane_genesis() {
            return Err(VerifyError::LaneChain);
        }
        Ok(())
    }

    /// Verifies that these are the records of this batch, header first, whose receipts were judged already.
    ///
    /// # Errors
    /// [`VerifyError::KeyMaterialization`].
    pub fn verify_layout(&self, records: &[MaterialisedRecord<'_>]) -> Result<(), VerifyError> {
        let (header, envelopes) = records.split_first().ok_or(VerifyError::KeyMaterialization)?;
        let contiguous = records.iter().zip(header.sequence..).all(|(record, sequence)| record.sequence == sequence);
        let complete = envelopes.len() == self.envelopes.len();
        let generation = self.batch.encryption_generation;
        let header_fits = header.holds(RecordKind::KeyBatchHeader, &self.digest, generation, &self.batch);
        let listed = self.envelopes.iter().zip(self.batch.sorted_envelope_digests.iter());
        let envelopes_fit = envelopes
            .iter()
            .zip(listed)
            .all(|(record, (envelope, digest))| record.holds(RecordKind::KeyEnvelope, digest, generation, envelope));
        if contiguous && complete && header_fits && envelopes_fit {
            Ok(())
        } else {
            Err(VerifyError::KeyMaterialization)
        }
    }
}

impl MaterialisedRecord<'_> {
    /// True when this record is `content`, framed as §9.3 says. Only its `created_at_ms` is the provider's to choose.
    fn holds(&self, kind: RecordKind, message_id: &Bytes32, generation: u64, content: &impl Canonical) -> bool {
        let header = self.header;
        let framed = RecordHeader {
            stream_id: header.stream_id,
            lane_id: Bytes32::ZERO,
            origin: RecordOrigin::ProviderEvent,
            kind,
            client_message_id: *message_id,
            created_at_ms: header.created_at_ms,
            visible_after_ms: 0,
            expires_at_ms: 0,
            encryption_generation: generation,
            nonce: Bytes24::ZERO,
        };
        *header == framed && *self.payload == *content.to_bytes()
    }
}

fn replayed_record(frame: &ServerFrame) -> Result<(&RecordDelivery, u64, &AppendReceipt), ProtocolViolation> {
    let ServerMessage::Delivery(delivery) = &frame.0 else { return Err(ProtocolViolation::UnexpectedFrame) };
    match delivery.class() {
        Ok(DeliveryOf::Standard { id, receipt, lease: None }) => Ok((delivery, id.sequence, receipt)),
        _ => Err(ProtocolViolation::UnexpectedFrame),
    }
}
