//! The largest checkpoint frame that a subscription can be sent: 512 lanes, each proven by 256 siblings.

use remuda_verify::authentic::OneKey;
use remuda_verify::fast::{FastState, FastSubscription, FastSubscriptionConfig, Verification};
use remuda_verify::signature::PublicKey;
use remuda_wire::bound::{MAX_PROOF_LANES_PER_SUBSCRIPTION, MAX_PROOF_SIBLINGS};
use remuda_wire::checkpoint::{bit, CheckpointFrame, LaneProof};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::preimage::{empty_subtree, keccak256, merkle_node};
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::{Bytes32, List};

use super::Provider;

const SUBSCRIPTION: Bytes32 = Bytes32([1; 32]);

/// The frame, and whose it is.
#[derive(Clone, Debug)]
pub struct FullFrame {
    provider: Provider,
    lanes: Vec<Bytes32>,
    /// Its canonical bytes, more than four million.
    pub bytes: Vec<u8>,
}

impl FullFrame {
    /// A batch of one record in a lane that is not subscribed to: every lane of the scope is proven absent, from the
    /// deepest sibling on, in a map that is full beside every path.
    ///
    /// # Panics
    /// Never: all counts are the bounds.
    pub fn new() -> Self {
        let provider = Provider::new();
        let lanes = provider.lanes(u32::try_from(MAX_PROOF_LANES_PER_SUBSCRIPTION).expect("512"));
        let mut siblings = vec![vec![Bytes32::ZERO; MAX_PROOF_SIBLINGS]; lanes.len()];
        let root = fill(&lanes, &mut siblings, 0);
        let proofs = lanes.iter().zip(siblings).map(|(lane_id, siblings)| LaneProof {
            lane_id: *lane_id,
            payload: None,
            bitmap: Bytes32([0xff; 32]),
            siblings: List::new(siblings).expect("256"),
        });
        let frame = CheckpointFrame {
            subscription_id: SUBSCRIPTION,
            receipt: provider.checkpoint_of_one(&root),
            lanes: List::new(proofs.collect()).expect("512"),
        };
        let bytes = ServerFrame(ServerMessage::Checkpoint(frame)).to_bytes();
        Self { provider, lanes, bytes }
    }

    /// Decodes and verifies it.
    ///
    /// # Panics
    /// Where it does not verify.
    pub fn judge(&self) {
        let lanes = LaneSet::new(self.lanes.clone()).expect("512 lanes").expect("some lanes");
        let config = FastSubscriptionConfig {
            context: self.provider.context,
            stream_id: self.provider.stream_id,
            encrypted: false,
            subscription_id: SUBSCRIPTION,
            verification: Verification::ScopedProofs(LaneScope::Set(lanes)),
        };
        let keys = OneKey(PublicKey::from_signing_key(&self.provider.public_key()));
        let mut subscription = FastSubscription::<()>::new(config, FastState::default());
        let ServerMessage::Checkpoint(frame) = ServerFrame::from_bytes(&self.bytes).expect("a frame").0 else {
            panic!("another frame");
        };
        subscription.handle_checkpoint(frame, &keys).expect("an honest checkpoint");
    }
}

impl Default for FullFrame {
    fn default() -> Self {
        Self::new()
    }
}

/// The node at `depth` over all of `lanes`, which are absent, with something beside them wherever no other of them is.
fn fill(lanes: &[Bytes32], siblings: &mut [Vec<Bytes32>], depth: u16) -> Bytes32 {
    let Ok(at) = u8::try_from(depth) else { return empty_subtree(depth) };
    let middle = lanes.partition_point(|lane| !bit(lane, at));
    let (left, right) = lanes.split_at(middle);
    let (left_siblings, right_siblings) = siblings.split_at_mut(middle);
    let side = |lanes: &[Bytes32], siblings: &mut [Vec<Bytes32>]| {
        if lanes.is_empty() {
            keccak256(b"something else")
        } else {
            fill(lanes, siblings, depth + 1)
        }
    };
    let (left, right) = (side(left, left_siblings), side(right, right_siblings));
    left_siblings.iter_mut().for_each(|siblings| siblings[usize::from(at)] = right);
    right_siblings.iter_mut().for_each(|siblings| siblings[usize::from(at)] = left);
    merkle_node(&left, &right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use remuda_wire::bound::MAX_WIRE_FRAME_BYTES;

    #[test]
    fn it_is_as_large_as_can_be_and_verifies() {
        let frame = FullFrame::new();
        assert!((4_000_000..MAX_WIRE_FRAME_BYTES).contains(&frame.bytes.len()));
        frame.judge();
    }
}
