//! Deliveries by recipe: batches that would be huge as bytes.

use remuda_wire::delivery::RecordDelivery;
use remuda_wire::preimage::keccak256;
use remuda_wire::record::{FastRecordId, RecordHeader, RecordId, RecordKind, RecordOrigin};
use remuda_wire::response::DurableWatermark;
use remuda_wire::{Bytes, Bytes24, Bytes32, ProviderEpoch};

use crate::vector::input::{Input, Refused};

/// A run of fast deliveries, record by record derived from its sequence.
pub struct Recipe {
    stream_id: Bytes32,
    subscription_id: Bytes32,
    broker_epoch: u64,
    first_sequence: u64,
    count: u64,
    lanes: Vec<Bytes32>,
    created_at_ms: u64,
    encryption_generation: u64,
    watermark: DurableWatermark,
    only: Option<Vec<Bytes32>>,
}

impl Recipe {
    /// Reads a recipe; `None` for null.
    pub fn read(input: Input<'_>) -> Result<Option<Self>, Refused> {
        input.optional(|input| {
            Ok(Self {
                stream_id: input.at("stream_id").digest()?,
                subscription_id: input.at("subscription_id").digest()?,
                broker_epoch: input.at("broker_epoch").u64()?,
                first_sequence: input.at("first_sequence").u64()?,
                count: input.at("count").number()?,
                lanes: input.at("lanes").digests()?,
                created_at_ms: input.at("created_at_ms").u64()?,
                encryption_generation: input.at("encryption_generation").u64()?,
                watermark: input.at("watermark").object()?,
                only: input.at("only").optional(Input::digests)?,
            })
        })
    }

    /// The deliveries, in order.
    pub fn deliveries(&self) -> Result<impl Iterator<Item = RecordDelivery> + '_, Refused> {
        let lane_count = u64::try_from(self.lanes.len()).ok().filter(|count| *count > 0);
        let lane_count = lane_count.ok_or_else(|| Refused::Malformed("a recipe without lanes".into()))?;
        let sequences = (0..self.count).map(|offset| self.first_sequence.wrapping_add(offset));
        Ok(sequences.filter_map(move |sequence| {
            let lane_id = self.lanes[usize::try_from(sequence % lane_count).ok()?];
            let included = self.only.as_ref().is_none_or(|only| only.contains(&lane_id));
            if included {
                self.delivery(sequence, lane_id)
            } else {
                None
            }
        }))
    }

    fn delivery(&self, sequence: u64, lane_id: Bytes32) -> Option<RecordDelivery> {
        let bytes = sequence.to_be_bytes();
        let id = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: self.broker_epoch, sequence };
        Some(RecordDelivery {
            subscription_id: self.subscription_id,
            record_id: RecordId::Fast(id),
            header: RecordHeader {
                stream_id: self.stream_id,
                lane_id,
                origin: RecordOrigin::Client,
                kind: RecordKind::Application,
                client_message_id: keccak256(&[&b"recipe"[..], &bytes].concat()),
                created_at_ms: self.created_at_ms.wrapping_add(sequence),
                visible_after_ms: 0,
                expires_at_ms: 0,
                encryption_generation: self.encryption_generation,
                nonce: Bytes24::ZERO,
            },
            payload: Bytes::new(bytes.to_vec()).ok()?,
            append_receipt: None,
            lease: None,
            delivery_state_receipt: None,
            durable_watermark: Some(self.watermark.clone()),
        })
    }
}
