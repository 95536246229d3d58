//! Checkpoint receipts, lane proofs and the frame that carries them (§12.2, §13.2).

use crate::bound;
use crate::bytes::{Bytes32, Signature};
use crate::codec::{Canonical, List, ProviderEpoch};
use crate::context::{FinalizedView, SigningContext};
use crate::error::DecodeError;
use crate::preimage::empty_subtree;

object! {
    /// `CheckpointReceiptV1`: the signed commitment to one durable batch.
    #[derive(Copy)]
    pub struct CheckpointReceipt {
        context: SigningContext,
        served_at: FinalizedView,
        stream_id: Bytes32,
        provider_epoch: ProviderEpoch,
        broker_epoch: u64,
        first_sequence: u64,
        last_sequence: u64,
        ordered_range_root: Bytes32,
        previous_checkpoint: Bytes32,
        durable_high_water: u64,
        committed_at_ms: u64,
        signature: Signature,
    }
    check |receipt: &CheckpointReceipt| {
        if receipt.checked_record_count().is_none() {
            return Err(DecodeError::CheckpointShape);
        }
        if receipt.ordered_range_root.is_zero() || receipt.previous_checkpoint.is_zero() {
            return Err(DecodeError::ZeroDigest);
        }
        if receipt.durable_high_water == receipt.last_sequence { Ok(()) } else { Err(DecodeError::CheckpointShape) }
    };
}

impl CheckpointReceipt {
    fn checked_record_count(&self) -> Option<u32> {
        let count = self.last_sequence.checked_sub(self.first_sequence)?.checked_add(1)?;
        if count <= bound::MAX_BATCH_RECORDS {
            u32::try_from(count).ok()
        } else {
            None
        }
    }

    /// `record_count`: 1 to 65,536. Decoding refuses every other range, so the fallback is never taken.
    pub fn record_count(&self) -> u32 {
        self.checked_record_count().unwrap_or(0)
    }
}

object! {
    /// `LanePayloadV1`: what one lane carried in one batch.
    #[derive(Copy)]
    pub struct LanePayload {
        lane_sub_root: Bytes32,
        lane_record_count: u32,
        lane_first_sequence: u64,
        lane_last_sequence: u64,
    }
    check |payload: &LanePayload| {
        if payload.lane_record_count == 0 { Err(DecodeError::Empty) } else { Ok(()) }
    };
}

object! {
    /// `LaneProofV1`: one lane at its own key of the sparse map, present or absent, in one canonical encoding.
    pub struct LaneProof {
        lane_id: Bytes32,
        payload: Option<LanePayload>,
        bitmap: Bytes32,
        siblings: List<Bytes32, { bound::MAX_PROOF_SIBLINGS }>,
    }
    check |proof: &LaneProof| check_siblings(&proof.bitmap, &proof.siblings);
}

/// Bit `depth` of `key`, most significant bit of the most significant byte first (§12.2): the one bit order of
/// `lane_id` and `bitmap` alike.
pub fn bit(key: &Bytes32, depth: u8) -> bool {
    let byte = key.0[usize::from(depth / 8)];
    byte >> (7 - depth % 8) & 1 == 1
}

/// The set bits of a bitmap, ascending by depth.
pub fn set_bits(bitmap: &Bytes32) -> impl Iterator<Item = u8> + '_ {
    // Hardly any byte has one: of most lanes only the first few depths do.
    let bytes = (0..=u8::MAX).step_by(8).zip(&bitmap.0).filter(|(_, byte)| **byte != 0);
    bytes.flat_map(|(first, _)| first..=first | 7).filter(|depth| bit(bitmap, *depth))
}

/// The one canonical shape of a compact proof: as many siblings as set bits, none of them the default of its depth.
///
/// Admitting a default sibling would give one proof many encodings.
///
/// # Errors
/// [`DecodeError::ProofShape`].
pub fn check_siblings(bitmap: &Bytes32, siblings: &[Bytes32]) -> Result<(), DecodeError> {
    if set_bits(bitmap).count() != siblings.len() {
        return Err(DecodeError::ProofShape);
    }
    let default =
        set_bits(bitmap).zip(siblings).any(|(depth, sibling)| *sibling == empty_subtree(u16::from(depth) + 1));
    if default {
        Err(DecodeError::ProofShape)
    } else {
        Ok(())
    }
}

object! {
    /// `CheckpointFrameV1`: closes one batch of a verifying subscription.
    pub struct CheckpointFrame {
        subscription_id: Bytes32,
        receipt: CheckpointReceipt,
        lanes: List<LaneProof, { bound::MAX_PROOF_LANES_PER_SUBSCRIPTION }>,
    }
}

// The sizes that RESOLUTIONS §1 pins.
const _: () = assert!(LaneProof::MIN_BYTES == 32 + 1 + 32 + 4);
