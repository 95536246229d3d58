//! One `StandardGroup` subscription as its verifier, frame by frame.

use remuda_wire::delivery::{DeliveryOf, RecordDelivery};
use remuda_wire::group::{DeliveryLease, DeliveryStateReceipt, DeliveryStateUpdate, GroupStateUpdate};
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::verdict::{ProtocolViolation, Refusal, VerifyError};
use remuda_wire::Bytes32;

use super::{Applied, GroupChain};
use crate::authentic::{Authority, KeySource, Verified};
use crate::record_shape::{check_record, StreamShape};

/// What a group subscription is about; its group is its chain's.
#[derive(Clone, Debug)]
pub struct GroupSubscriptionConfig {
    /// What records look like.
    pub shape: StreamShape,
    /// The subscription.
    pub subscription_id: Bytes32,
    /// Our key's identifier; `None` for an observer, who holds no lease.
    pub holder_signing_key_id: Option<Bytes32>,
}

/// One group subscription as its verifier.
#[derive(Clone, Debug)]
pub struct GroupSubscription {
    config: GroupSubscriptionConfig,
    chain: GroupChain,
}

impl GroupSubscription {
    /// Starts where `chain` stands.
    pub const fn new(config: GroupSubscriptionConfig, chain: GroupChain) -> Self {
        Self { config, chain }
    }

    /// The group's chain.
    pub const fn chain(&self) -> &GroupChain {
        &self.chain
    }

    /// The group's chain, to take segments of it.
    pub const fn chain_mut(&mut self) -> &mut GroupChain {
        &mut self.chain
    }

    /// The group's chain, for the next subscription that goes on behind it.
    pub fn into_chain(self) -> GroupChain {
        self.chain
    }

    /// Takes a mutation of the group.
    ///
    /// # Errors
    /// [`ProtocolViolation::UnknownGroup`], authenticity, then [`GroupChain::apply_mutation`].
    pub fn handle_group_state(&mut self, update: &GroupStateUpdate, keys: &impl KeySource) -> Result<Applied, Refusal> {
        self.chain.admit(&update.receipt)?;
        let receipt = self.authority(keys).authenticate(update.receipt.clone())?;
        Ok(self.chain.apply_mutation(&receipt, update.config.as_ref())?)
    }

    /// Takes a mutation of one record's delivery.
    ///
    /// # Errors
    /// [`ProtocolViolation::UnknownGroup`], authenticity, then [`GroupChain::apply_record`].
    pub fn handle_delivery_state(
        &mut self,
        update: &DeliveryStateUpdate,
        keys: &impl KeySource,
    ) -> Result<Applied, Refusal> {
        self.chain.admit(&update.receipt)?;
        let receipt = self.authority(keys).authenticate(update.receipt.clone())?;
        Ok(self.chain.apply_record(&receipt, &update.state)?)
    }

    /// Takes a leased record.
    ///
    /// # Errors
    /// In this order: [`ProtocolViolation::UnknownSubscription`], [`ProtocolViolation::UnexpectedFrame`] (no lease),
    /// [`ProtocolViolation::UnknownGroup`], authenticity of the append receipt and of the state receipt,
    /// [`GroupChain::apply_record`], [`VerifyError::Holder`], [`VerifyError::RecordShape`], [`VerifyError::LaneEvent`].
    pub fn handle_delivery(&mut self, delivery: &RecordDelivery, keys: &impl KeySource) -> Result<Applied, Refusal> {
        let leased = self.config.admit(&self.chain, delivery)?;
        let authority = self.authority(keys);
        authority.authenticate(leased.append_receipt.clone())?;
        let receipt = authority.authenticate(leased.state_receipt.clone())?;
        Ok(self.config.apply(&mut self.chain, delivery, leased.lease, &receipt)?)
    }

    fn authority<'a, K>(&'a self, keys: &'a K) -> Authority<'a, K> {
        let name = self.chain.name();
        Authority { context: &name.context, stream_id: &name.stream_id, keys }
    }
}

/// The parts of a leased delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leased<'a> {
    pub append_receipt: &'a AppendReceipt,
    pub lease: &'a DeliveryLease,
    pub state_receipt: &'a DeliveryStateReceipt,
}

impl GroupSubscriptionConfig {
    /// Whether this delivery is legal now. Answers what is to be authenticated.
    ///
    /// # Errors
    /// The `protocol` part of [`GroupSubscription::handle_delivery`].
    pub(crate) fn admit<'d>(&self, chain: &GroupChain, delivery: &'d RecordDelivery) -> Result<Leased<'d>, Refusal> {
        if delivery.subscription_id != self.subscription_id {
            return Err(ProtocolViolation::UnknownSubscription.into());
        }
        let DeliveryOf::Standard { receipt, lease: Some((lease, state_receipt)), .. } = delivery.class()? else {
            return Err(ProtocolViolation::UnexpectedFrame.into());
        };
        chain.admit(state_receipt)?;
        Ok(Leased { append_receipt: receipt, lease, state_receipt })
    }

    /// The chain, then the record; nothing is applied unless both hold.
    ///
    /// # Errors
    /// The `verify` part of [`GroupSubscription::handle_delivery`] after authenticity.
    pub(crate) fn apply(
        &self,
        chain: &mut GroupChain,
        delivery: &RecordDelivery,
        lease: &DeliveryLease,
        state_receipt: &Verified<DeliveryStateReceipt>,
    ) -> Result<Applied, VerifyError> {
        let step = chain.judge_record(state_receipt, &lease.implied_state())?;
        if self.holder_signing_key_id.is_some_and(|holder| holder != lease.holder_signing_key_id) {
            return Err(VerifyError::Holder);
        }
        check_record(self.shape, &delivery.header, &delivery.payload)?;
        Ok(chain.commit(step))
    }
}
