//! What a test or a demo may have happen on the chain: each is one more finalized block.

use clap::ValueEnum;
use remuda_wire::chain::{StreamRecord, StreamStatus};
use serde::Deserialize;

use super::{Chain, Records};
use crate::keys::{public_key, DevKeys};

/// `cbqs.suspend_grace_blocks`, default.
const SUSPEND_GRACE_BLOCKS: u64 = 604_800;

/// A change of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Nothing but a block.
    Advance,
    /// The next admin key signs grants: every older one is void.
    RotateAdmin,
    /// The provider record names another signing key; a stream keeps the one that it was created with (§4.1).
    RotateProvider,
    /// Every grant issued before is void.
    BumpAuthorization,
    /// The next encryption generation is active, and every grant issued before is void (§9.4).
    ActivateGeneration,
    /// The escrow is used up.
    Suspend,
    /// Rent was paid again.
    Resume,
    /// The owner closed the stream.
    Close,
    /// The grace of a suspended stream is over.
    Expire,
}

impl Chain {
    /// Finalizes one more block with this change.
    ///
    /// # Errors
    /// When the store fails.
    pub fn perform(&self, operation: Operation, keys: &DevKeys) -> anyhow::Result<()> {
        let height = self.node_height().saturating_add(1);
        self.change(|records| apply(records, operation, keys, height))
    }
}

fn apply(records: &mut Records, operation: Operation, keys: &DevKeys, height: u64) {
    let bump = |stream: &mut StreamRecord| {
        stream.authorization_generation = stream.authorization_generation.saturating_add(1);
    };
    match operation {
        Operation::Advance => {}
        Operation::RotateAdmin => {
            records.admin_number = records.admin_number.saturating_add(1);
            let admin_key = public_key(&keys.admin(records.admin_number));
            records.both(|stream| {
                stream.admin_key = admin_key;
                bump(stream);
            });
        }
        Operation::RotateProvider => records.provider.signing_key = public_key(&keys.stranger),
        Operation::BumpAuthorization => records.both(bump),
        Operation::ActivateGeneration => {
            records.stream.encryption_generation = records.stream.encryption_generation.saturating_add(1);
            records.both(bump);
        }
        Operation::Suspend => records.both(|stream| {
            stream.status = StreamStatus::Suspended;
            stream.suspended_at_block = Some(height);
            stream.suspension_grace_deadline_block = Some(height.saturating_add(SUSPEND_GRACE_BLOCKS));
        }),
        Operation::Resume => records.both(|stream| end_suspension(stream, StreamStatus::Active)),
        Operation::Close => records.both(|stream| end_suspension(stream, StreamStatus::Closed)),
        Operation::Expire => records.both(|stream| {
            end_suspension(stream, StreamStatus::DataExpired);
            stream.escrow_balance = 0;
        }),
    }
}

fn end_suspension(stream: &mut StreamRecord, status: StreamStatus) {
    stream.status = status;
    (stream.suspended_at_block, stream.suspension_grace_deadline_block) = (None, None);
}
