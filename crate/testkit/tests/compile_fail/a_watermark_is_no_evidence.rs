//! What a provider says is durable moves no position.

use remuda_position::{AdmissionBudget, Boundary, Fence};
use remuda_wire::response::DurableWatermark;

fn advance(boundary: &Boundary, watermark: DurableWatermark) {
    let _ = boundary.plan(watermark, Fence(1), &AdmissionBudget::default());
}

fn main() {}
