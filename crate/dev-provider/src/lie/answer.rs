//! Lies in answers.

use remuda_wire::preimage::keccak256;
use remuda_wire::response::ResponseBody;

use super::{Liar, Lie};
use crate::keys::{sign, DevKeys};

impl Liar {
    /// Bends the answer to a request, and signs it again.
    pub fn bend_answer(&self, body: &mut ResponseBody, keys: &DevKeys) {
        match body {
            ResponseBody::Append(result) if self.tells(Lie::ForgeAppendReceipt) => {
                if let Some(receipt) = &mut result.append_receipt {
                    receipt.payload_hash = keccak256(&receipt.payload_hash.0);
                    receipt.signature = sign(&keys.provider, receipt);
                }
            }
            ResponseBody::CreateLane(mutation) if self.tells(Lie::ForgeLaneId) => {
                mutation.lane.lane_id = keccak256(&mutation.lane.lane_id.0);
            }
            ResponseBody::CommitKeyBatch(receipt) if self.tells(Lie::ForgeKeyReceipt) => {
                receipt.envelope_root = keccak256(&receipt.envelope_root.0);
                receipt.signature = sign(&keys.provider, receipt);
            }
            _ => {}
        }
    }
}
