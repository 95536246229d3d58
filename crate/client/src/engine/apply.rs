//! Frames become evidence, evidence becomes durable. Nothing is half applied: a refusal drops what waits and leaves F.

use alloc::boxed::Box;
use alloc::rc::Rc;

use remuda_position::{Committed, Evidence, PositionKey, StoreError};
use remuda_session::ErrorKind;
use remuda_verify::authentic::KeySource;
use remuda_verify::response::ResponseVerifier;
use remuda_verify::signature::PublicKey;
use remuda_wire::audit::HeldObject;
use remuda_wire::response::ResponseBody;
use remuda_wire::verdict::Refusal;
use remuda_wire::{Bytes32, Remedy};

use super::{Engine, Output};
use crate::answer_check::check_answer;
use crate::command::{Asker, CommandOutcome, PendingRequest};
use crate::event::{BatchSummary, Connection, Event, Hydrated, SegmentSummary, TransitionSummary};
use crate::failure::Failure;
use crate::group::GroupNews;
use crate::outbox::Writer;
use crate::subscription::{Load, Place, SubscriptionState};
use crate::verifier::Verifier;
use crate::work::{Begun, Told, Waiting, Work};

/// Records of a standard stream in one commit.
const MAX_SEGMENT_RECORDS: usize = 1_024;
/// Re-entries without progress before a failure is for good.
pub(super) const MAX_RE_ENTRIES: u32 = 4;

impl Engine {
    /// Applies frames in order until one must wait.
    pub(super) fn apply_work(&mut self, now_ms: u64) {
        while let (Waiting::Nothing, Some(work)) = (&self.waiting, self.work.front()) {
            let route = match work.subscription_id() {
                None => None,
                Some(id) => match self.routes.get(&id) {
                    Some(key) => Some((id, *key)),
                    // Of a subscription that has left meanwhile.
                    None => {
                        self.work.pop_front();
                        continue;
                    }
                },
            };
            let subscription = route.and_then(|(_, key)| self.subscriptions.get_mut(&key));
            let overdue = work.lineage().zip(subscription).and_then(|(lineage, it)| it.take_overdue(lineage));
            if let Some(((subscription_id, _), held)) = route.zip(overdue) {
                self.work.push_front(Work::Adopt(subscription_id, held));
                continue;
            }
            if let Some(view) = work.served_at().find(|view| !self.keys.knows(view)) {
                let view = view.clone();
                self.outputs.push_back(Output::ReadChain { view: Some(view.clone()) });
                self.waiting = Waiting::Key { view, retry_at_ms: None };
                return;
            }
            // What it shows of our own appends is written with it, after what is being written of them.
            if self.outbox.is_settling() && work.is_evidence() {
                return;
            }
            match (self.work.pop_front(), route) {
                (Some(Work::Answer(request, result)), _) => self.judge_answer(request, result, now_ms),
                (Some(Work::Begin(key, beginning)), _) => self.begin(key, *beginning, now_ms),
                (Some(work), Some((_, key))) => {
                    self.record_work(&key, &work);
                    if let Err(failure) = self.apply(key, work, now_ms) {
                        self.subscription_failed(key, failure, now_ms);
                    }
                }
                (Some(_) | None, _) => return,
            }
        }
        if self.work.is_empty() {
            self.work_bytes = 0;
        }
    }

    fn apply(&mut self, key: PositionKey, work: Work, now_ms: u64) -> Result<(), Failure> {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return Ok(()) };
        let Some(verifier) = &mut subscription.verifier else { return Ok(()) };
        match (work, verifier) {
            (work, Verifier::Group(_)) => self.apply_group(key, work),
            (Work::Delivery(delivery), verifier) => {
                verifier.handle_delivery(&delivery, &self.keys)?;
                if let Some(watermark) = &delivery.durable_watermark {
                    subscription.watermark = watermark.last_durable_sequence;
                }
                self.close_segment(key)?;
                Ok(())
            }
            // Frames of fast streams: the session lets none through to a replay, but a transition names no subscription.
            (Work::Checkpoint(_) | Work::Transition(..) | Work::Adopt(..), Verifier::Standard(_))
            | (Work::Group(..), _) => Ok(()),
            (Work::Checkpoint(frame), Verifier::Fast(verifier)) => {
                let batch = verifier.handle_checkpoint(frame, &self.keys)?;
                let receipt = batch.receipt();
                let summary = BatchSummary {
                    checkpoint: receipt.digest(),
                    broker_epoch: receipt.broker_epoch,
                    first_sequence: receipt.first_sequence,
                    last_sequence: receipt.last_sequence,
                    records: batch.records().len(),
                    lane_map_root: batch.lane_map_root(),
                    signing_key: self.keys.key_at(&receipt.served_at).map(PublicKey::bytes),
                    served_at_height: receipt.served_at.height,
                    committed_at_ms: receipt.committed_at_ms,
                    assurance: batch.assurance(),
                };
                let receipt = Box::new((**receipt).clone());
                self.recognise_appends(key, &batch, now_ms);
                self.admit(key, batch, Told::Batch(summary, receipt))?;
                self.adopt_reached(key);
                Ok(())
            }
            (Work::Transition(subscription_id, transition), Verifier::Fast(_)) => {
                match subscription.place(&transition) {
                    Place::Now => self.work.push_front(Work::Adopt(subscription_id, transition)),
                    Place::Later => subscription.hold(transition).map_err(Refusal::from)?,
                    Place::Past => {}
                }
                Ok(())
            }
            (Work::Ended(_, failure), _) => Err(failure),
            (Work::TooOld(subscription_id, too_old), _) => Err(self.judge_floor(key, subscription_id, too_old)),
            // Of no subscription: taken before this.
            (Work::Answer(..) | Work::Begin(..), _) => Ok(()),
            (Work::Adopt(_, transition), Verifier::Fast(verifier)) => {
                let adopted = verifier.handle_transition(Rc::unwrap_or_clone(transition), &self.keys)?;
                let transition = adopted.transition();
                let (kind, to_epoch) = (transition.kind, transition.replacement_broker_epoch);
                let from_epoch = transition.previous_lineage.map(|lineage| lineage.broker_epoch);
                let returned = from_epoch.map_or(0, |epoch| self.return_void_appends(key, epoch));
                let summary = TransitionSummary { kind, from_epoch, to_epoch, returned };
                self.admit(key, adopted, Told::Transition(summary))?;
                self.adopt_reached(key);
                Ok(())
            }
        }
    }

    /// A result that does not answer its request says nothing of it: it was sent, and its fate is unknown.
    fn judge_answer(&mut self, request: PendingRequest, result: ResponseBody, now_ms: u64) {
        let verifier = ResponseVerifier { context: &self.config.context, keys: &self.keys };
        let class = self.keys.stream().map(|stream| stream.delivery_class);
        let judged = verifier.verify_result(&request.request, result).and_then(|answered| {
            let granted = (!self.config.renews_grant).then_some(&self.config.grant.lane_scope);
            class.map_or(Ok(()), |class| check_answer(&answered, class, granted))?;
            Ok(answered)
        });
        if let Err(refusal) = &judged {
            self.fail(None, (*refusal).into());
        }
        match request.asker {
            Asker::Command(id) => {
                let outcome = judged.map_or(CommandOutcome::Unknown, CommandOutcome::Accepted);
                self.tell(Event::Settled { id, outcome });
            }
            Asker::Outbox(number) => self.append_answered(number, judged, now_ms),
            // The chain says what was done, whatever an answer says.
            Asker::Lease(..) => {}
        }
    }

    /// What was held until now is next.
    fn adopt_reached(&mut self, key: PositionKey) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        if let Some((subscription_id, reached)) = subscription.subscription_id.zip(subscription.take_reached()) {
            self.work.push_front(Work::Adopt(subscription_id, reached));
        }
    }

    /// Records of a standard stream are committed together as far as they have come: what comes while a commit is under way
    /// makes the next one.
    fn close_segment(&mut self, key: PositionKey) -> Result<(), Refusal> {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return Ok(()) };
        let Some(Verifier::Standard(verifier)) = &mut subscription.verifier else { return Ok(()) };
        let more_has_come = self.work.front().is_some_and(|next| match next {
            Work::Delivery(next) => Some(next.subscription_id) == subscription.subscription_id,
            _ => false,
        });
        if more_has_come && verifier.waiting() < MAX_SEGMENT_RECORDS {
            return Ok(());
        }
        let Some(segment) = verifier.take_segment() else { return Ok(()) };
        let summary = SegmentSummary {
            last_sequence: segment.end().last_sequence.unwrap_or_default(),
            receipt: segment.records().last().map_or(Bytes32::ZERO, |(receipt, _)| *receipt),
            records: segment.records().len(),
        };
        let last = segment.records().last().and_then(|(_, record)| record.delivery().append_receipt.clone());
        self.admit(key, segment, Told::Segment(summary, last.map(Box::new))).map(|_| ())
    }

    /// Asks for the commit of what `evidence` allows; false when it leads nowhere from what is durable.
    pub(super) fn admit(&mut self, key: PositionKey, evidence: impl Evidence, told: Told) -> Result<bool, Refusal> {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return Ok(false) };
        let Some(admission) = subscription.boundary.plan(evidence, self.config.fence, &self.config.budget)? else {
            return Ok(false);
        };
        let admission = match self.outbox.take_changes(Writer::Commit) {
            Some(changes) => admission.with_outbox(changes),
            None => admission,
        };
        self.outputs.push_back(Output::Commit(admission));
        self.waiting = Waiting::Commit { key, told };
        Ok(true)
    }

    /// The commit that was asked for is durable: the position has moved, with its rows.
    pub fn handle_committed(&mut self, committed: Committed, now_ms: u64) {
        let Waiting::Commit { key, told } = core::mem::replace(&mut self.waiting, Waiting::Nothing) else { return };
        self.outbox_written(Writer::Commit);
        if let Some(subscription) = self.subscriptions.get_mut(&key) {
            subscription.boundary = committed.into_boundary();
            subscription.failure = None;
            subscription.attempts = 0;
            let last_item = subscription.boundary.last_item();
            let event = match told {
                Told::Group(count) => {
                    let news = subscription.consumer.committed(count);
                    let leased = news.iter().filter(|news| matches!(news, GroupNews::Leased(_))).count();
                    subscription.verified_records += u64::try_from(leased).unwrap_or(u64::MAX);
                    subscription.verified_batches += 1;
                    Event::Group { key, news }
                }
                Told::Batch(batch, receipt) => {
                    self.receipts.entry(key).or_default().push(last_item, HeldObject::CheckpointReceipt(*receipt));
                    subscription.verified_records += u64::try_from(batch.records).unwrap_or(u64::MAX);
                    subscription.verified_batches += 1;
                    // What waited when a session ended has come again: nothing of it was withdrawn.
                    subscription.discarded = 0;
                    Event::Batch { key, batch, last_item }
                }
                Told::Segment(segment, receipt) => {
                    let receipt = receipt.map(|receipt| HeldObject::AppendReceipt(*receipt));
                    let receipts = self.receipts.entry(key).or_default();
                    receipt.into_iter().for_each(|receipt| receipts.push(last_item, receipt));
                    subscription.verified_records += u64::try_from(segment.records).unwrap_or(u64::MAX);
                    subscription.verified_batches += 1;
                    Event::Segment { key, segment, last_item }
                }
                Told::Transition(transition) => {
                    let discarded = core::mem::take(&mut subscription.discarded);
                    Event::Transition { key, transition, discarded, last_item }
                }
                Told::Begun(begun) => {
                    self.begun(key, now_ms);
                    match begun {
                        Begun::Gap => Event::Gap { key, last_item },
                        Begun::Snapshots { id, contents, checks } => {
                            Event::Hydrated { id, outcome: Ok(Hydrated { key, contents, checks, last_item }) }
                        }
                    }
                }
            };
            self.tell(event);
            self.tell(Event::StatusChanged);
        }
        self.open_due(now_ms);
        self.handle_channel(now_ms);
    }

    /// The commit that was asked for failed: nothing of it was kept, so its subscription starts again at what is durable.
    pub fn handle_store_error(&mut self, error: &StoreError, now_ms: u64) {
        let Waiting::Commit { key, told } = core::mem::replace(&mut self.waiting, Waiting::Nothing) else { return };
        self.outbox.not_written(Writer::Commit, |_| 0, now_ms);
        if let Told::Begun(Begun::Snapshots { id, .. }) = told {
            self.hydration_failed(id, Failure::from(error));
        }
        match error {
            StoreError::Conflict => self.reload(key, now_ms),
            StoreError::Fenced => self.fence_off(Some(key), now_ms),
            _ => self.subscription_failed(key, Failure::from(error), now_ms),
        }
        self.open_due(now_ms);
        self.handle_channel(now_ms);
    }

    /// Another owner writes now: nothing can be kept any more.
    pub(super) fn fence_off(&mut self, key: Option<PositionKey>, now_ms: u64) {
        self.fenced = true;
        self.fail(key, Failure::from(&StoreError::Fenced));
        self.halt(now_ms);
    }

    /// The position moved without us: it is read again, and a failure only when it keeps moving.
    fn reload(&mut self, key: PositionKey, now_ms: u64) {
        self.leave(key, now_ms);
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        subscription.load = Load::Needed;
        if subscription.attempts < MAX_RE_ENTRIES {
            subscription.attempts += 1;
            subscription.state = SubscriptionState::Due { attempt: subscription.attempts, at_ms: now_ms };
        } else {
            self.subscription_failed(key, Failure::from(&StoreError::Conflict), now_ms);
        }
    }

    /// Closes for good: nothing more is sent, and nothing that still comes counts.
    pub(super) fn halt(&mut self, now_ms: u64) {
        self.chain_retry_at_ms = None;
        self.abandon_renewal(now_ms);
        self.abandon_hydrations();
        self.channel.close(now_ms);
        self.handle_channel(now_ms);
        self.set_connection(Connection::Closed);
    }

    /// Takes a subscription out of the session by the remedy of what failed: for another try at its boundary, or for good.
    pub(super) fn subscription_failed(&mut self, key: PositionKey, failure: Failure, now_ms: u64) {
        self.leave(key, now_ms);
        let jitter = self.jitter();
        if let Some(subscription) = self.subscriptions.get_mut(&key) {
            let again =
                subscription.waits_for_leases(&failure) || may_help(&failure) && subscription.attempts < MAX_RE_ENTRIES;
            subscription.state = if again {
                let delay_ms = self.backoff.delay_ms(subscription.attempts, jitter);
                subscription.attempts = subscription.attempts.saturating_add(1);
                SubscriptionState::Due { attempt: subscription.attempts, at_ms: now_ms.saturating_add(delay_ms) }
            } else {
                SubscriptionState::Failed
            };
            subscription.failure = Some((failure.clone(), now_ms));
            if !again {
                self.abandon_decisions(key, &failure);
            }
        }
        self.fail(Some(key), failure);
        self.tell(Event::StatusChanged);
    }
}

/// Whether asking again at the same boundary may bring another answer. Behind the retention floor it cannot: the way back
/// in is a snapshot, and that is the application's to choose (§12.2.2).
pub(super) fn may_help(failure: &Failure) -> bool {
    matches!(failure.remedy, Remedy::Retry | Remedy::ReEnterAtBoundary)
        && failure.code != ErrorKind::CursorTooOld.code()
}
