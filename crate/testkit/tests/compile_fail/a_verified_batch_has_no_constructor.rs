//! `VerifiedBatch` is made by the checkpoint that closes it, so its assurance is that of its subscription.

use remuda_verify::fast::{Assurance, VerifiedBatch};

fn strengthen(batch: &mut VerifiedBatch<()>) {
    batch.assurance = Assurance::FullBatch;
}

fn main() {}
