//! Consumer groups (§11.2, §14.2): the chain is followed by its frames, decisions are sent until the chain shows them.

use alloc::rc::Rc;
use alloc::vec::Vec;

use remuda_position::PositionKey;
use remuda_session::ApiMisuse;
use remuda_verify::group::Applied;
use remuda_wire::{Bytes32, Remedy};

use super::Engine;
use crate::command::{Asker, CommandId, PendingRequest};
use crate::event::{Connection, Event};
use crate::failure::Failure;
use crate::group::{Decision, GroupNews, GroupUpdate};
use crate::subscription::SubscriptionState;
use crate::verifier::Verifier;
use crate::work::{Told, Work};

/// How much there may be to tell of a group before it is committed.
const MAX_WAITING_NEWS: usize = 1_024;

impl Engine {
    /// Decides what becomes of a lease: told once by [`GroupNews::Decided`]. It is sent until the group's chain shows what came
    /// of it, over any number of sessions.
    pub fn decide(&mut self, id: CommandId, key: PositionKey, lease_id: &Bytes32, decision: Decision, now_ms: u64) {
        let decided = match self.subscriptions.get_mut(&key) {
            _ if self.connection == Connection::Closed => Err(ApiMisuse::NotStarted.into()),
            Some(subscription) if subscription.state != SubscriptionState::Failed => {
                subscription.consumer.decide(id, lease_id, decision)
            }
            Some(_) | None => Err(Failure::lease_over()),
        };
        match decided {
            Ok(()) => self.send_decisions(key, now_ms),
            Err(failure) => self.tell_decided(key, id, failure),
        }
    }

    /// Sends what was decided, in the session that there is. It needs no open subscription, and one that holds every lease that it
    /// may is not opened before some are settled.
    fn send_decisions(&mut self, key: PositionKey, now_ms: u64) {
        let Some(subscription) = self.subscriptions.get_mut(&key).filter(|_| self.in_session) else { return };
        for (id, request) in subscription.consumer.take_unsent() {
            let asker = Asker::Lease(key, id);
            self.send_request(PendingRequest { asker, request, sent_again: false }, now_ms);
        }
        self.handle_channel(now_ms);
    }

    /// A session is open: whatever was not sent in the one before is sent in it.
    pub(super) fn send_all_decisions(&mut self, now_ms: u64) {
        for key in self.subscriptions.keys().copied().collect::<Vec<_>>() {
            self.send_decisions(key, now_ms);
        }
    }

    /// Sends again what was lost, once its time has come.
    pub(super) fn resend_decisions(&mut self, now_ms: u64) {
        let is_due = |at_ms: u64| at_ms <= now_ms;
        let due = self.subscriptions.iter().filter(|(_, it)| it.consumer.resends_at().is_some_and(is_due));
        for key in due.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.send_decisions(key, now_ms);
        }
    }

    /// A decision is sent again later: it was not sent, or what came of it is not known, since then the provider answers the same
    /// again.
    pub(super) fn send_decision_later(&mut self, key: PositionKey, id: CommandId, was_sent: bool, now_ms: u64) {
        let jitter = self.jitter();
        if let Some(subscription) = self.subscriptions.get_mut(&key) {
            subscription.consumer.send_later(id, was_sent, now_ms, |times| self.backoff.delay_ms(times, jitter));
        }
    }

    /// A decision was refused, and had no effect: for now, or for good.
    pub(super) fn decision_refused(&mut self, key: PositionKey, id: CommandId, failure: Failure, now_ms: u64) {
        if failure.remedy == Remedy::Retry {
            self.send_decision_later(key, id, false, now_ms);
        } else if self.subscriptions.get_mut(&key).is_some_and(|it| it.consumer.refused(id)) {
            self.tell_decided(key, id, failure);
        }
    }

    /// Nothing is asked any more.
    pub(super) fn abandon_all_decisions(&mut self) {
        for key in self.subscriptions.keys().copied().collect::<Vec<_>>() {
            self.abandon_decisions(key, &ApiMisuse::NotStarted.into());
        }
    }

    /// Nothing more is learnt of this group.
    pub(super) fn abandon_decisions(&mut self, key: PositionKey, failure: &Failure) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        let news = subscription.consumer.abandon(failure);
        if !news.is_empty() {
            self.tell(Event::Group { key, news });
        }
    }

    fn tell_decided(&mut self, key: PositionKey, id: CommandId, failure: Failure) {
        let news = alloc::vec![GroupNews::Decided { id, outcome: Err(failure) }];
        self.tell(Event::Group { key, news });
    }

    /// A link of a group's chain names no subscription: it is for the one that follows the group, if there still is one. What
    /// comes before the answer to its opening was for one before it.
    pub(super) fn queue_group_update(&mut self, update: GroupUpdate) {
        let receipt = update.receipt();
        let (lane_id, group_id) = (&receipt.lane_id, &receipt.group_id);
        let key = PositionKey::derive_group(&self.config.context, &self.config.stream_id, lane_id, group_id);
        let subscription = self.subscriptions.get(&key).filter(|it| it.state == SubscriptionState::Live);
        let subscription_id = subscription.and_then(|it| it.subscription_id);
        self.work.extend(subscription_id.map(|id| Work::Group(id, update)));
    }

    /// Judges a frame of a group.
    pub(super) fn apply_group(&mut self, key: PositionKey, work: Work) -> Result<(), Failure> {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return Ok(()) };
        let Some(Verifier::Group(verifier)) = &mut subscription.verifier else { return Ok(()) };
        let consumer = &mut subscription.consumer;
        match work {
            Work::Delivery(delivery) => {
                if verifier.handle_delivery(&delivery, &self.keys)? == Applied::Advanced {
                    consumer.leased(Rc::clone(&delivery));
                }
            }
            Work::Group(_, GroupUpdate::Group(update)) => {
                if verifier.handle_group_state(&update, &self.keys)? == Applied::Advanced {
                    consumer.configured(update.config);
                }
            }
            Work::Group(_, GroupUpdate::Record(update)) => {
                if verifier.handle_delivery_state(&update, &self.keys)? == Applied::Advanced {
                    consumer.stated(&update.state);
                }
            }
            Work::Ended(_, failure) => return Err(failure),
            Work::TooOld(subscription_id, too_old) => return Err(self.judge_floor(key, subscription_id, too_old)),
            // Of fast streams, and of no subscription.
            Work::Checkpoint(_) | Work::Transition(..) | Work::Adopt(..) | Work::Answer(..) | Work::Begin(..) => {
                return Ok(())
            }
        }
        self.close_group_segment(key)
    }

    /// Receipts are committed together as far as they have come.
    fn close_group_segment(&mut self, key: PositionKey) -> Result<(), Failure> {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return Ok(()) };
        let Some(Verifier::Group(verifier)) = &mut subscription.verifier else { return Ok(()) };
        let more_has_come = self.work.front().is_some_and(|next| {
            next.subscription_id() == subscription.subscription_id
                && !matches!(next, Work::Ended(..) | Work::TooOld(..))
        });
        if more_has_come && subscription.consumer.waiting() < MAX_WAITING_NEWS {
            return Ok(());
        }
        match subscription.consumer.offer(verifier.chain_mut()) {
            Some((segment, count)) => self.admit(key, segment, Told::Group(count)).map(|_| ()).map_err(Failure::from),
            None => Ok(()),
        }
    }
}
