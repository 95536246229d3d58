//! Beginning a broker epoch (§12.1): the signed transition is durable before the first append is accepted.
//!
//! ```text
//! new stream            -> genesis, Clean, epoch 0, anchored to checkpoint genesis
//! clean marker present  -> Clean, provisional = durable
//! otherwise             -> Void, the provisional end unknown: a killed process cannot say it
//! ```

use ed25519_dalek::SigningKey;
use remuda_wire::preimage::checkpoint_genesis;
use remuda_wire::transition::{BrokerEpochTransition, FastLineage, TransitionKind};
use remuda_wire::{Bytes32, ProviderEpoch, Signature, Signed};

use crate::chain::Chain;
use crate::keys::sign;
use crate::store::Store;

/// What is durable, as a reader of the stream sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The adopted broker epoch.
    pub epoch: u64,
    /// The sequence after the last durable one of that epoch.
    pub next_sequence: u64,
    /// What the next checkpoint names as its predecessor.
    pub tail: Bytes32,
    /// The last checkpoint of any epoch, or checkpoint genesis.
    pub checkpoint: Bytes32,
    /// The last sequence of that checkpoint; `None` for genesis.
    pub last_durable_sequence: Option<u64>,
}

/// Durably begins the next epoch.
///
/// # Errors
/// When the store fails.
pub fn begin(store: &Store, chain: &Chain, key: &SigningKey) -> anyhow::Result<Head> {
    let (context, stream_id) = (chain.context(), chain.stream_id());
    let last_run = store.last_run()?;
    let last = store.last_checkpoint()?;
    let checkpoint = last.as_ref().map_or_else(|| checkpoint_genesis(context, &stream_id), Signed::digest);
    let last_durable_sequence = last.map(|receipt| receipt.last_sequence);
    let clean = last_run.is_none_or(|run| run.clean);
    let epoch = last_run.map_or(0, |run| run.epoch.saturating_add(1));
    let mut transition = BrokerEpochTransition {
        context: context.clone(),
        served_at: chain.view(),
        stream_id,
        provider_epoch: ProviderEpoch,
        previous_lineage: last_run.map(|run| FastLineage::new(run.epoch)),
        replacement_broker_epoch: epoch,
        kind: if clean { TransitionKind::Clean } else { TransitionKind::Void },
        last_durable_checkpoint: checkpoint,
        last_durable_sequence,
        last_provisional_sequence: if clean { last_durable_sequence } else { None },
        created_at_ms: chain.now_ms(),
        signature: Signature::ZERO,
    };
    transition.signature = sign(key, &transition);
    store.begin_epoch(&transition)?;
    tracing::info!(epoch, kind = transition.kind.name(), "broker epoch begins");
    Ok(Head { epoch, next_sequence: 0, tail: transition.digest(), checkpoint, last_durable_sequence })
}
