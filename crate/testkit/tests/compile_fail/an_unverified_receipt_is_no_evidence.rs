//! A checkpoint receipt moves no position before its batch is verified, not even an authentic one.

use remuda_position::{AdmissionBudget, Boundary, Fence};
use remuda_verify::authentic::Verified;
use remuda_wire::checkpoint::CheckpointReceipt;

fn advance(boundary: &Boundary, receipt: Verified<CheckpointReceipt>) {
    let _ = boundary.plan(receipt, Fence(1), &AdmissionBudget::default());
}

fn main() {}
