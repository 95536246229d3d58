//! The receipts of one consumer group: it is created, then changed again and again.

use remuda_verify::authentic::{Authority, OneKey, Verified};
use remuda_verify::group::GroupName;
use remuda_verify::signature::PublicKey;
use remuda_wire::group::{DeliveryStateAction, DeliveryStateReceipt, GroupConfig, GroupMode, GroupStart};
use remuda_wire::preimage::{group_config_state, group_genesis, keccak256, GroupKey};
use remuda_wire::verdict::Refusal;
use remuda_wire::{Bytes32, ProviderEpoch, Signature};

use super::Provider;

/// The chain of a group in the first lane of a provider.
#[derive(Debug)]
pub struct GroupReceipts {
    provider: Provider,
    group_id: Bytes32,
    tail: Option<Bytes32>,
}

impl GroupReceipts {
    /// Before its creation.
    pub const fn new(provider: Provider, group_id: Bytes32) -> Self {
        Self { provider, group_id, tail: None }
    }

    /// The group.
    pub fn name(&self) -> GroupName {
        let Provider { context, stream_id, .. } = &self.provider;
        let (lane_id, group_id) = (self.provider.lane(0), self.group_id);
        GroupName { context: context.clone(), stream_id: *stream_id, lane_id, group_id }
    }

    /// The next receipt, and the configuration that it commits.
    ///
    /// # Errors
    /// Never: it is signed by the stream's own key.
    pub fn advance(&mut self) -> Result<(Verified<DeliveryStateReceipt>, GroupConfig), Refusal> {
        let GroupName { context, stream_id, lane_id, group_id } = self.name();
        let config = GroupConfig {
            group_id,
            lane_id,
            mode: GroupMode::Concurrent,
            start: GroupStart::Head,
            visibility_timeout_ms: 1_000,
            max_visibility_ms: 1_000,
            max_in_flight: 1,
            max_attempts: 1,
            record_deadline_ms: 1_000,
            dead_letter_ttl_ms: 1_000,
            retention_pin_until_ms: 0,
        };
        let key = GroupKey { context: &context, stream_id: &stream_id, lane_id: &lane_id, group_id: &group_id };
        let mut receipt = DeliveryStateReceipt {
            served_at: self.provider.view.clone(),
            stream_id,
            lane_id,
            group_id,
            provider_epoch: ProviderEpoch,
            action: self.tail.map_or(DeliveryStateAction::GroupCreate, |_| DeliveryStateAction::GroupUpdate),
            record_id: None,
            lease_id: None,
            resulting_state_digest: group_config_state(&context, &stream_id, &config),
            previous_group_receipt: self.tail.unwrap_or_else(|| group_genesis(&key)),
            committed_at_ms: 1,
            context: context.clone(),
            signature: Signature::ZERO,
        };
        receipt.signature = self.provider.sign(&receipt);
        let keys = OneKey(PublicKey::from_signing_key(&self.provider.public_key()));
        let receipt = Authority { context: &context, stream_id: &stream_id, keys: &keys }.authenticate(receipt)?;
        self.tail = Some(receipt.digest());
        Ok((receipt, config))
    }

    /// Another history from here on.
    pub fn fork(&mut self) {
        self.tail = self.tail.map(|tail| keccak256(&tail.0));
    }
}
