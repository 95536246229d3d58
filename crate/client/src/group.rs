//! A consumer of a group (§11.2): the leases that it holds, what the application decided of each, and what is to be told.
//!
//! ```text
//!  leased ─▶ (told) ─▶ held ──decide──▶ decided ──sent, answered──▶ its receipt in the group's chain ─▶ held again (Extend)
//!                       └──── LeaseExpire, RecordExpire, AttemptsExhaust, GroupDelete in the chain ───▶ over
//! ```
//! Only the chain ends a lease or a decision: an answer is checked, and says when nothing was done. Everything is told once
//! it is durable, and once, over any number of sessions.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;

use remuda_verify::group::{GroupChain, GroupName, GroupSegment, GroupSubscription, GroupSubscriptionConfig};
use remuda_verify::record_shape::StreamShape;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::group::{
    DeliveryLeaseRef, DeliveryResultState, DeliveryStateAction, DeliveryStateReceipt, DeliveryStateUpdate, GroupConfig,
    GroupStateUpdate,
};
use remuda_wire::preimage::keccak256;
use remuda_wire::request::{
    AckRequest, ExtendRequest, NackRequest, RejectRequest, RequestBody, StandardGroupSource, SubscriptionSource,
};
use remuda_wire::Bytes32;

use crate::command::CommandId;
use crate::failure::Failure;
use crate::keyring::OpenedPayload;
use crate::verifier::StreamFacts;

/// After this long a record is given again whose key was not here.
const NO_KEY_RETRY_MS: u64 = 30_000;
/// Cycles whose history is remembered, of a group that has ever more of them.
const MAX_CYCLES: usize = 65_536;

/// A group of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId {
    /// Its lane.
    pub lane_id: Bytes32,
    /// The group.
    pub group_id: Bytes32,
}

impl GroupId {
    pub(crate) const fn source(self) -> SubscriptionSource {
        SubscriptionSource::StandardGroup(StandardGroupSource { lane_id: self.lane_id, group_id: self.group_id })
    }
}

/// What a consumer says of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is done.
    Ack,
    /// Not now.
    Nack {
        /// Not before so long from now; the group bounds it.
        retry_after_ms: u64,
    },
    /// It takes longer.
    Extend {
        /// For so long from now; the group bounds it.
        extend_by_ms: u64,
    },
    /// Never.
    Reject {
        /// Why, by a hash that means something to the application; zero for unspecified.
        reason_hash: Bytes32,
    },
}

impl Decision {
    /// What becomes of a delivery whose payload cannot be read, which is never acknowledged (§11.2): without its key it is
    /// given back, since the key may come; what does not open under its key is rejected. `None` when it can be read.
    pub fn of_payload(opened: &OpenedPayload) -> Option<Self> {
        match opened {
            OpenedPayload::Clear | OpenedPayload::Opened(_) => None,
            OpenedPayload::Sealed => Some(Self::Nack { retry_after_ms: NO_KEY_RETRY_MS }),
            OpenedPayload::Unreadable(_) => Some(Self::Reject { reason_hash: undecryptable() }),
        }
    }

    const fn action(self) -> DeliveryStateAction {
        match self {
            Self::Ack => DeliveryStateAction::Ack,
            Self::Nack { .. } => DeliveryStateAction::Nack,
            Self::Extend { .. } => DeliveryStateAction::Extend,
            Self::Reject { .. } => DeliveryStateAction::Reject,
        }
    }

    const fn request(self, lease: DeliveryLeaseRef) -> RequestBody {
        match self {
            Self::Ack => RequestBody::Ack(AckRequest { lease }),
            Self::Nack { retry_after_ms } => RequestBody::Nack(NackRequest { lease, retry_after_ms }),
            Self::Extend { extend_by_ms } => RequestBody::Extend(ExtendRequest { lease, extend_by_ms }),
            Self::Reject { reason_hash } => RequestBody::Reject(RejectRequest { lease, reason_hash }),
        }
    }
}

/// The reason of a rejection because of what does not open: `keccak("remuda/reject/undecryptable/v1")`.
pub fn undecryptable() -> Bytes32 {
    keccak256(b"remuda/reject/undecryptable/v1")
}

/// What is told of a group, by its verified chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupNews {
    /// A record under a lease of ours, until it expires or is decided.
    Leased(Rc<RecordDelivery>),
    /// What became of a lease of ours, or of a record that died, expired or was brought back.
    State(DeliveryResultState),
    /// The group was created, or changed; `None` when it was deleted, and every lease with it.
    Config(Option<GroupConfig>),
    /// What came of a decision: the state that it led to.
    Decided {
        /// Which.
        id: CommandId,
        /// The state; or why nothing was done, or nobody knows.
        outcome: Result<DeliveryResultState, Failure>,
    },
}

/// A frame of a group's chain that is no delivery.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "as large as the frame that it is, for as long as it is judged")]
pub(crate) enum GroupUpdate {
    Group(GroupStateUpdate),
    Record(DeliveryStateUpdate),
}

#[derive(Debug)]
struct Lease {
    reference: DeliveryLeaseRef,
    decided: Option<Decided>,
}

#[derive(Clone, Copy, Debug)]
struct Decided {
    id: CommandId,
    decision: Decision,
    /// Whether it was given to a session and is not known to be lost with it.
    sent: bool,
    /// Whether it was sent before, and what came of that is not known.
    sent_before: bool,
}

/// What one consumer keeps of its group, over sessions.
#[derive(Debug, Default)]
pub(crate) struct Consumer {
    /// The chain, while no session has it.
    chain: Option<GroupChain>,
    /// Where the segments began that were to become durable since one did.
    offered: Vec<Option<Bytes32>>,
    leases: BTreeMap<Bytes32, Lease>,
    /// What is to be told, in order.
    news: Vec<GroupNews>,
    /// When decisions that were not sent, or lost, are sent again while it is live.
    resend_at_ms: Option<u64>,
    resends: u32,
}

impl GroupUpdate {
    pub(crate) const fn receipt(&self) -> &DeliveryStateReceipt {
        match self {
            Self::Group(update) => &update.receipt,
            Self::Record(update) => &update.receipt,
        }
    }
}

impl Consumer {
    /// The verifier of a new session: behind everything that was verified, or behind what is durable when that is all that
    /// is certain.
    pub(crate) fn open(
        &mut self,
        group: GroupId,
        stream: &StreamFacts,
        subscription_id: Bytes32,
        durable: Option<Bytes32>,
    ) -> GroupSubscription {
        let chain = self.chain_behind(durable).unwrap_or_else(|| {
            // What is read again is told when it is; a delivery or an outcome does not come again.
            self.news.retain(|news| matches!(news, GroupNews::Leased(_) | GroupNews::Decided { .. }));
            let GroupId { lane_id, group_id } = group;
            let name = GroupName { context: stream.context.clone(), stream_id: stream.stream_id, lane_id, group_id };
            GroupChain::new(name, durable)
        });
        let config = GroupSubscriptionConfig {
            shape: StreamShape { encrypted: stream.encrypted, purpose: stream.purpose },
            subscription_id,
            holder_signing_key_id: Some(stream.holder_signing_key_id),
        };
        GroupSubscription::new(config, chain)
    }

    /// The chain, with everything above `durable` still to become so.
    fn chain_behind(&mut self, durable: Option<Bytes32>) -> Option<GroupChain> {
        let mut chain = self.chain.take()?;
        if chain.segment_after() != durable {
            if !self.offered.contains(&durable) {
                return None;
            }
            chain.reopen_segment(durable);
        }
        Some(chain)
    }

    /// A segment that is to become durable now, and how much there is to tell when it has.
    pub(crate) fn offer(&mut self, chain: &mut GroupChain) -> Option<(GroupSegment, usize)> {
        let segment = chain.take_segment()?;
        self.offered.push(segment.after());
        if chain.cycles() > MAX_CYCLES {
            chain.forget_cycles();
        }
        Some((segment, self.news.len()))
    }

    /// It is durable. Gives the first `count` of what there was to tell.
    pub(crate) fn committed(&mut self, count: usize) -> Vec<GroupNews> {
        self.offered.clear();
        self.resends = 0;
        self.news.drain(..count.min(self.news.len())).collect()
    }

    /// The session is over.
    pub(crate) fn close(&mut self, verifier: GroupSubscription) {
        self.chain = Some(verifier.into_chain());
    }

    /// A verified delivery.
    pub(crate) fn leased(&mut self, delivery: Rc<RecordDelivery>) {
        let Some(lease) = &delivery.lease else { return };
        self.leases.insert(lease.reference.lease_id, Lease { reference: lease.reference, decided: None });
        self.news.push(GroupNews::Leased(delivery));
    }

    /// A verified mutation of the group.
    pub(crate) fn configured(&mut self, config: Option<GroupConfig>) {
        if config.is_none() {
            let leases = core::mem::take(&mut self.leases).into_values();
            let over = |Decided { id, .. }| GroupNews::Decided { id, outcome: Err(Failure::lease_over()) };
            self.news.extend(leases.filter_map(|lease| lease.decided).map(over));
        }
        self.news.push(GroupNews::Config(config));
    }

    /// A verified mutation of a record's delivery, by whoever made it.
    pub(crate) fn stated(&mut self, state: &DeliveryResultState) {
        use DeliveryStateAction as Action;
        let lease = state.lease_id.and_then(|lease_id| self.leases.get_mut(&lease_id).map(|lease| (lease_id, lease)));
        let is_of_all =
            state.terminal_expires_at_ms.is_some() || matches!(state.action, Action::RecordExpire | Action::Redrive);
        let is_issue = state.action == Action::LeaseIssue;
        if (lease.is_some() && !is_issue) || is_of_all {
            self.news.push(GroupNews::State(*state));
        }
        let Some((lease_id, lease)) = lease else { return };
        let is_over = !is_issue && state.action != Action::Extend;
        if let Some(decided) = lease.decided {
            let is_ours = decided.decision.action() == state.action;
            if is_ours || is_over {
                lease.decided = None;
                let outcome = if is_ours { Ok(*state) } else { Err(Failure::lease_over()) };
                self.news.push(GroupNews::Decided { id: decided.id, outcome });
            }
        }
        if is_over {
            self.leases.remove(&lease_id);
        }
    }

    /// How much there is to tell.
    pub(crate) fn waiting(&self) -> usize {
        self.news.len()
    }

    /// Takes a decision.
    ///
    /// # Errors
    /// `group/lease-over`, `group/decision-outstanding`.
    pub(crate) fn decide(&mut self, id: CommandId, lease_id: &Bytes32, decision: Decision) -> Result<(), Failure> {
        let lease = self.leases.get_mut(lease_id).ok_or_else(Failure::lease_over)?;
        if lease.decided.is_some() {
            return Err(Failure::decision_outstanding());
        }
        lease.decided = Some(Decided { id, decision, sent: false, sent_before: false });
        Ok(())
    }

    /// The decisions that are to be sent now.
    pub(crate) fn take_unsent(&mut self) -> Vec<(CommandId, RequestBody)> {
        self.resend_at_ms = None;
        let unsent = |lease: &mut Lease| {
            let decided = lease.decided.as_mut().filter(|decided| !decided.sent)?;
            decided.sent = true;
            Some((decided.id, decided.decision.request(lease.reference)))
        };
        self.leases.values_mut().filter_map(unsent).collect()
    }

    /// When what was lost is sent again, where it is still to be.
    pub(crate) fn resends_at(&self) -> Option<u64> {
        let is_unsent = |lease: &Lease| lease.decided.is_some_and(|decided| !decided.sent);
        self.resend_at_ms.filter(|_| self.leases.values().any(is_unsent))
    }

    fn decided(&mut self, id: CommandId) -> Option<&mut Option<Decided>> {
        let decisions = self.leases.values_mut().map(|lease| &mut lease.decided);
        decisions.into_iter().find(|decided| decided.is_some_and(|decided| decided.id == id))
    }

    /// A decision is sent again, after `delay_ms` of the number of times that this happened.
    pub(crate) fn send_later(&mut self, id: CommandId, was_sent: bool, now_ms: u64, delay_ms: impl FnOnce(u32) -> u64) {
        let Some(Some(decided)) = self.decided(id) else { return };
        decided.sent = false;
        decided.sent_before |= was_sent;
        self.resend_at_ms = Some(now_ms.saturating_add(delay_ms(self.resends)));
        self.resends = self.resends.saturating_add(1);
    }

    /// A decision was refused. True when nothing was done, and it is over; what was sent before may have been done then, which the
    /// chain shows, or shows the end of the lease.
    pub(crate) fn refused(&mut self, id: CommandId) -> bool {
        let decided = self.decided(id);
        decided.is_some_and(|decided| decided.take_if(|decided| !decided.sent_before).is_some())
    }

    /// No more will be learnt: gives the outcomes that there are, and that nobody knows of what was sent, and `failure` of what was
    /// not.
    pub(crate) fn abandon(&mut self, failure: &Failure) -> Vec<GroupNews> {
        let is_outcome = |news: &GroupNews| matches!(news, GroupNews::Decided { .. });
        let (known, rest): (Vec<_>, Vec<_>) = core::mem::take(&mut self.news).into_iter().partition(is_outcome);
        self.news = rest;
        let decided = self.leases.values_mut().filter_map(|lease| lease.decided.take());
        let unknown = decided.map(|Decided { id, sent, sent_before, .. }| {
            let failure = if sent || sent_before { Failure::outcome_unknown() } else { failure.clone() };
            GroupNews::Decided { id, outcome: Err(failure) }
        });
        known.into_iter().chain(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn what_cannot_be_read_is_given_back_or_rejected_by_the_reason_that_is_published() {
        let unreadable = OpenedPayload::Unreadable(remuda_wire::verdict::VerifyError::Aead);
        let Some(Decision::Reject { reason_hash }) = Decision::of_payload(&unreadable) else { panic!("rejected") };
        // `UNDECRYPTABLE` of the package.
        assert_eq!(reason_hash.to_string(), "3e32af291e2542d406bdf4104c4fc8ddb8b99b9a8de8e3a92756c7d532065a07");
        assert!(matches!(Decision::of_payload(&OpenedPayload::Sealed), Some(Decision::Nack { .. })));
        let readable = [OpenedPayload::Clear, OpenedPayload::Opened(Vec::new())];
        assert!(readable.iter().all(|opened| Decision::of_payload(opened).is_none()));
    }
}
