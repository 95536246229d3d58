//! Standard replay (§14.1): append receipts in their two chains, one of the stream and one of each lane.
//!
//! ```text
//! global chain:  genesis <- r0 <- r1 <- r2 <- r3          every record; followed when the scope is `Any`
//! lane chains:   genesis <- r0 <------- r2                every record of the lane; followed for every lane in scope
//! ```
//! A refusal changes nothing: the state after it is the state before it. Sequences rise; that they start at zero or
//! leave none out is not assumed: the chains say what is missing, numbers do not.

use remuda_wire::context::SigningContext;
use remuda_wire::delivery::{DeliveryOf, RecordDelivery};
use remuda_wire::preimage::{lane_receipt_genesis, stream_receipt_genesis};
use remuda_wire::receipt::AppendReceipt;
use remuda_wire::retention::StandardRetentionAnchor;
use remuda_wire::scope::LaneScope;
use remuda_wire::verdict::{ProtocolViolation, Refusal, VerifyError};
use remuda_wire::Bytes32;

use crate::authentic::{Authority, KeySource, Verified};
use crate::record_shape::{check_record, StreamShape};
use crate::sorted::SortedMap;

/// What a replay subscription is about.
#[derive(Clone, Debug)]
pub struct StandardReplayConfig {
    /// The chain.
    pub context: SigningContext,
    /// The stream.
    pub stream_id: Bytes32,
    /// What its records look like.
    pub shape: StreamShape,
    /// The subscription.
    pub subscription_id: Bytes32,
    /// The lanes that were asked for.
    pub scope: LaneScope,
}

/// What holds for a lane whose chain was not met yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewLanes {
    /// Its first receipt names the lane genesis: nothing of it lies before our start.
    Genesis,
    /// Its first receipt is taken as the anchor.
    Unknown,
}

/// Where the chains stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandardState {
    /// The last receipt; `None` is not known, and stays so when the scope is not `Any`.
    pub global_tail: Option<Bytes32>,
    /// The last sequence seen.
    pub last_sequence: Option<u64>,
    /// The last receipt of each lane that was met.
    pub lane_tails: SortedMap<Bytes32, Bytes32>,
    /// What holds for every other lane.
    pub new_lanes: NewLanes,
}

impl StandardState {
    /// From the stream's first record.
    pub fn genesis(context: &SigningContext, stream_id: &Bytes32, scope: &LaneScope) -> Self {
        let global_tail = matches!(scope, LaneScope::Any).then(|| stream_receipt_genesis(context, stream_id));
        Self { global_tail, last_sequence: None, lane_tails: SortedMap::new(), new_lanes: NewLanes::Genesis }
    }

    /// After a position whose receipts are not known: the next ones are taken as anchors.
    pub const fn after(last_sequence: Option<u64>) -> Self {
        Self { global_tail: None, last_sequence, lane_tails: SortedMap::new(), new_lanes: NewLanes::Unknown }
    }

    /// From a signed retention floor (§15): the chains start again from its embedded predecessors.
    ///
    /// What lies before the floor is a hole in the history, and stays one.
    pub fn from_anchor(anchor: &Verified<StandardRetentionAnchor>, scope: &LaneScope) -> Self {
        let is_global = matches!(scope, LaneScope::Any) && anchor.lane_id.is_none();
        Self {
            global_tail: is_global.then_some(anchor.previous_global_receipt),
            last_sequence: anchor.first_retained_sequence.checked_sub(1),
            lane_tails: anchor.lane_id.into_iter().zip(anchor.previous_lane_receipt).collect(),
            new_lanes: NewLanes::Unknown,
        }
    }
}

/// One `StandardReplay` subscription as its verifier.
#[derive(Clone, Debug)]
pub struct StandardReplay {
    config: StandardReplayConfig,
    state: StandardState,
}

impl StandardReplay {
    /// Starts at `state`. A scope of lanes has gaps in the global chain by right, so it follows none.
    pub fn new(config: StandardReplayConfig, mut state: StandardState) -> Self {
        if !matches!(config.scope, LaneScope::Any) {
            state.global_tail = None;
        }
        Self { config, state }
    }

    /// Where the chains stand.
    pub const fn state(&self) -> &StandardState {
        &self.state
    }

    /// Takes one record with its receipt.
    ///
    /// # Errors
    /// In this order: [`ProtocolViolation::UnknownSubscription`], [`ProtocolViolation::UnexpectedFrame`] (a fast
    /// record, a lease), [`ProtocolViolation::RecordOrder`], [`ProtocolViolation::OutOfScopeRecord`], authenticity
    /// ([`Authority::authenticate`]), [`VerifyError::GlobalChain`], [`VerifyError::LaneChain`],
    /// [`VerifyError::RecordShape`], [`VerifyError::LaneEvent`].
    pub fn handle_delivery(
        &mut self,
        delivery: &RecordDelivery,
        keys: &impl KeySource,
    ) -> Result<Verified<AppendReceipt>, Refusal> {
        let receipt = self.admit(delivery)?.clone();
        let authority = Authority { context: &self.config.context, stream_id: &self.config.stream_id, keys };
        let receipt = authority.authenticate(receipt)?;
        self.link(delivery, &receipt)?;
        Ok(receipt)
    }

    /// The conversation's rules: whether this delivery is legal now. Answers the receipt to authenticate.
    ///
    /// # Errors
    /// The `protocol` part of [`Self::handle_delivery`].
    pub(crate) fn admit<'d>(&self, delivery: &'d RecordDelivery) -> Result<&'d AppendReceipt, Refusal> {
        if delivery.subscription_id != self.config.subscription_id {
            return Err(ProtocolViolation::UnknownSubscription.into());
        }
        let DeliveryOf::Standard { id, receipt, lease: None } = delivery.class()? else {
            return Err(ProtocolViolation::UnexpectedFrame.into());
        };
        if self.state.last_sequence.is_some_and(|last| id.sequence <= last) {
            return Err(ProtocolViolation::RecordOrder.into());
        }
        if self.config.scope.contains(&delivery.header.lane_id) {
            Ok(receipt)
        } else {
            Err(ProtocolViolation::OutOfScopeRecord.into())
        }
    }

    /// The chains and the record's shape, then the new tails.
    ///
    /// # Errors
    /// The `verify` part of [`Self::handle_delivery`] after authenticity.
    pub(crate) fn link(
        &mut self,
        delivery: &RecordDelivery,
        receipt: &Verified<AppendReceipt>,
    ) -> Result<(), VerifyError> {
        let sequence = receipt.record_id.sequence();
        self.check_global(receipt, sequence)?;
        self.check_lane(receipt, sequence)?;
        check_record(self.config.shape, &delivery.header, &delivery.payload)?;
        if matches!(self.config.scope, LaneScope::Any) {
            self.state.global_tail = Some(receipt.digest());
        }
        self.state.last_sequence = Some(sequence);
        self.state.lane_tails.insert(receipt.lane_id, receipt.digest());
        Ok(())
    }

    /// A record of sequence zero can only be the first of its stream, whatever else is known.
    fn check_global(&self, receipt: &AppendReceipt, sequence: u64) -> Result<(), VerifyError> {
        let named = receipt.previous_global_receipt;
        let follows = self.state.global_tail.is_none_or(|tail| tail == named)
            && (sequence != 0 || named == stream_receipt_genesis(&self.config.context, &self.config.stream_id));
        if follows {
            Ok(())
        } else {
            Err(VerifyError::GlobalChain)
        }
    }

    fn check_lane(&self, receipt: &AppendReceipt, sequence: u64) -> Result<(), VerifyError> {
        let named = receipt.previous_lane_receipt;
        let tail = self.state.lane_tails.get(&receipt.lane_id);
        let from_genesis = sequence == 0 || (tail.is_none() && self.state.new_lanes == NewLanes::Genesis);
        let genesis = || lane_receipt_genesis(&self.config.context, &self.config.stream_id, &receipt.lane_id);
        let follows = tail.is_none_or(|tail| *tail == named) && (!from_genesis || named == genesis());
        if follows {
            Ok(())
        } else {
            Err(VerifyError::LaneChain)
        }
    }
}
