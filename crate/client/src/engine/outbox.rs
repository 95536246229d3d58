//! Appends: from the outbox of the database to the provider, and what came of them back.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use remuda_position::outbox::{DurableAppend, OutboxEntry, OutboxState, OutboxWrite};
use remuda_position::{DeliveredRecord, PositionKey, StoreError};
use remuda_session::{ErrorKind, ProviderError};
use remuda_verify::fast::VerifiedBatch;
use remuda_verify::response::AnsweredResult;
use remuda_wire::chain::DeliveryClass;
use remuda_wire::record::FastRecordId;
use remuda_wire::request::RequestBody;
use remuda_wire::verdict::Refusal;
use remuda_wire::{Bytes32, ProviderEpoch, Remedy};

use super::{Engine, Output};
use crate::append_check::check_append;
use crate::command::{Asker, PendingRequest};
use crate::event::{Connection, Event};
use crate::failure::Failure;
use crate::key_book::KeyBook;
use crate::outbox::{Reading, Reconciliation, Writer};
use crate::subscription::{Subscription, SubscriptionSpec, SubscriptionState};
use crate::work::Waiting;

impl Engine {
    /// The database has more to append: it is read, and sent as soon as it can be.
    pub fn handle_enqueued(&mut self) {
        self.read_outbox();
    }

    /// Forgets a failed append that the application has seen.
    pub fn dismiss(&mut self, number: u64, now_ms: u64) {
        self.outbox.dismiss(number);
        self.handle_channel(now_ms);
    }

    pub(super) fn read_outbox(&mut self) {
        match self.outbox.reading {
            Reading::Asked { .. } => self.outbox.reading = Reading::Asked { again: true },
            Reading::Needed { .. } | Reading::Done => {
                self.outbox.reading = Reading::Asked { again: false };
                self.ask_for_outbox();
            }
        }
    }

    pub(super) fn read_outbox_again(&mut self, now_ms: u64) {
        if matches!(self.outbox.reading, Reading::Needed { at_ms } if at_ms <= now_ms) {
            self.read_outbox();
        }
    }

    fn ask_for_outbox(&mut self) {
        self.outputs.push_back(Output::ReadOutbox { key: self.outbox.key(), after: self.outbox.last_number() });
    }

    /// A page of the outbox was read; an empty one when there was no more.
    pub fn handle_outbox(&mut self, entries: Vec<OutboxEntry>, now_ms: u64) {
        if !matches!(self.outbox.reading, Reading::Asked { .. }) {
            return;
        }
        if self.outbox.take(entries) {
            self.ask_for_outbox();
        } else {
            self.tell(Event::StatusChanged);
        }
        self.open_due(now_ms);
        self.handle_channel(now_ms);
    }

    /// The outbox could not be read: later again.
    pub fn handle_outbox_failed(&mut self, error: &StoreError, now_ms: u64) {
        let jitter = self.jitter();
        let delay_ms = self.backoff.delay_ms(self.outbox.read_attempts, jitter);
        self.outbox.read_attempts = self.outbox.read_attempts.saturating_add(1);
        self.outbox.reading = Reading::Needed { at_ms: now_ms.saturating_add(delay_ms) };
        self.fail(None, Failure::from(error));
    }

    /// The changes that were asked for are durable.
    pub fn handle_settled(&mut self, now_ms: u64) {
        self.outbox_written(Writer::Settle);
        self.handle_channel(now_ms);
    }

    /// The changes that were asked for were not kept, as far as is known: they are written again.
    pub fn handle_settle_failed(&mut self, error: &StoreError, now_ms: u64) {
        let (backoff, jitter) = (self.backoff, self.jitter());
        self.outbox.not_written(Writer::Settle, |attempt| backoff.delay_ms(attempt, jitter), now_ms);
        if *error == StoreError::Fenced {
            self.fence_off(None, now_ms);
        } else {
            self.fail(None, Failure::from(error));
        }
        self.handle_channel(now_ms);
    }

    pub(super) fn outbox_written(&mut self, writer: Writer) {
        let updates = self.outbox.written(writer);
        let is_news = !updates.is_empty();
        for update in updates {
            self.tell(Event::Append(update));
        }
        if is_news {
            self.tell(Event::StatusChanged);
        }
    }

    // --- sending

    fn can_send_appends(&self) -> bool {
        matches!(self.connection, Connection::Open { .. }) && self.outbox.is_ready() && !self.fenced
    }

    /// Whether everything that has come was judged, and is kept.
    fn is_idle(&self) -> bool {
        self.work.is_empty() && matches!(self.waiting, Waiting::Nothing)
    }

    pub(super) fn outbox_wake_at(&self) -> Option<u64> {
        if self.fenced {
            return None;
        }
        let is_idle = self.is_idle();
        let reconcile = |lane_id: &Bytes32| reconciliation(&self.subscriptions, &self.keys, is_idle, lane_id);
        self.outbox.wake_at(self.can_send_appends(), reconcile)
    }

    /// Writes and sends what is due. True when something was sent.
    pub(super) fn send_outbox(&mut self, now_ms: u64) -> bool {
        if self.fenced {
            return false;
        }
        let (can_send, is_idle) = (self.can_send_appends(), self.is_idle());
        let Self { outbox, subscriptions, keys, .. } = self;
        let check = |append: &_| keys.stream().map_or(Ok(()), |stream| check_append(append, stream, now_ms));
        outbox.let_go(|lane_id| verifies(subscriptions, lane_id), check, now_ms);
        let mut due = Vec::new();
        if can_send {
            due = outbox.due(|lane_id| reconciliation(subscriptions, keys, is_idle, lane_id), now_ms);
        }
        if let Some(changes) = self.outbox.next_write(now_ms) {
            self.outputs.push_back(Output::Settle(OutboxWrite { fence: self.config.fence, changes }));
        }
        let sends = !due.is_empty();
        for (number, request) in due {
            let (asker, request) = (Asker::Outbox(number), RequestBody::Append(request));
            self.send_request(PendingRequest { asker, request, sent_again: false }, now_ms);
        }
        sends
    }

    /// A session ended: what of the outbox was not sent in it is taken back, since what goes before it is decided anew.
    pub(super) fn withdraw_appends(&mut self) {
        let Self { requests, channel, outbox, .. } = self;
        requests.retain(|handle, request| match request.asker {
            Asker::Outbox(number) if channel.withdraw(*handle) => {
                outbox.not_taken(number);
                false
            }
            _ => true,
        });
    }

    // --- answers

    fn pause_outbox(&mut self, now_ms: u64) {
        let (backoff, jitter) = (self.backoff, self.jitter());
        self.outbox.pause(|attempt| backoff.delay_ms(attempt, jitter), now_ms);
    }

    /// It was not sent.
    pub(super) fn append_not_taken(&mut self, number: u64, now_ms: u64) {
        self.outbox.not_taken(number);
        self.pause_outbox(now_ms);
    }

    /// It was sent, and its answer never came.
    pub(super) fn append_unanswered(&mut self, number: u64, now_ms: u64) {
        self.outbox.unanswered(number, now_ms);
        self.pause_outbox(now_ms);
    }

    /// The provider refused it: later again, in another session, or never, by what it says.
    pub(super) fn append_refused(&mut self, number: u64, error: &ProviderError, now_ms: u64) {
        let kind = error.kind();
        if kind == ErrorKind::RequestReplay {
            // A copy of ours was faster, and its answer is lost.
            self.append_unanswered(number, now_ms);
        } else if kind.invalidates_session() {
            self.append_not_taken(number, now_ms);
        } else if kind.remedy() == Remedy::Retry {
            self.append_not_taken(number, now_ms);
            self.fail(None, Failure::from(error));
        } else if is_of_session(kind) {
            self.outbox.not_taken(number);
            let renews = self.refused_grant(error, now_ms);
            if self.outbox.hold() && !renews {
                self.fail(None, Failure::from(error));
            }
        } else {
            if kind == ErrorKind::EncryptionGenerationStale {
                // What is sealed from now on is to be under the generation that is active now.
                self.read_chain();
            }
            self.outbox.refused(number, &Failure::from(error));
        }
    }

    /// The provider answered, truly or not.
    pub(super) fn append_answered(&mut self, number: u64, judged: Result<AnsweredResult, Refusal>, now_ms: u64) {
        match judged {
            Ok(AnsweredResult::Provisional { record_id, .. }) => {
                self.outbox.accepted(number, OutboxState::Provisional(record_id));
            }
            Ok(AnsweredResult::Appended(receipt)) => {
                let durable = DurableAppend { record_id: receipt.record_id, evidence: receipt.digest() };
                self.outbox.accepted(number, OutboxState::Durable(durable));
            }
            // The verifier lets nothing else answer an append.
            Ok(_) => self.append_unanswered(number, now_ms),
            Err(refusal) => {
                self.outbox.answered_falsely(number, refusal, now_ms);
                self.pause_outbox(now_ms);
            }
        }
    }

    // --- evidence

    /// Our own records in a verified batch are durable, whatever was answered to them.
    pub(super) fn recognise_appends(&mut self, key: PositionKey, batch: &VerifiedBatch<DeliveredRecord>, now_ms: u64) {
        let receipt = batch.receipt();
        let evidence = receipt.digest();
        let mut shown = Vec::new();
        let mut sent = self.outbox.sent_by_message();
        for record in batch.records().iter().map(DeliveredRecord::delivery) {
            let Some(candidates) = sent.get_mut(&record.header.client_message_id) else { continue };
            let is_ours = candidates
                .iter()
                .position(|(_, request)| request.header() == record.header && request.payload == record.payload);
            if let Some(place) = is_ours {
                let (number, _) = candidates.remove(place);
                shown.push((number, DurableAppend { record_id: record.record_id, evidence }));
            }
        }
        for (number, durable) in shown {
            self.outbox.shown(number, OutboxState::Durable(durable));
        }
        let (broker_epoch, sequence) = (receipt.broker_epoch, receipt.first_sequence);
        let first = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch, sequence };
        if let Some(subscription) = self.subscriptions.get(&key) {
            let is_verified = |lane_id: &Bytes32| follows(subscription, lane_id);
            self.outbox.passed(first, receipt.last_sequence, is_verified, now_ms);
        }
    }

    /// A lineage has ended for this subscription: what it acknowledged of ours beyond what is durable is void (§12.1), and is
    /// sent again, as the same bytes. Gives how many.
    pub(super) fn return_void_appends(&mut self, key: PositionKey, broker_epoch: u64) -> usize {
        let Some(subscription) = self.subscriptions.get(&key) else { return 0 };
        self.outbox.lineage_ended(broker_epoch, |lane_id| follows(subscription, lane_id))
    }
}

type Subscriptions = BTreeMap<PositionKey, Subscription>;

/// Whether some subscription verifies this lane of a fast stream: its appends are shown durable, or void.
fn verifies(subscriptions: &Subscriptions, lane_id: &Bytes32) -> bool {
    subscriptions.values().any(|it| it.state != SubscriptionState::Failed && follows(it, lane_id))
}

/// What appends of unknown outcome wait for. A standard stream needs none: there a retry is answered by the first receipt
/// (§11.1). A fast one takes every append for a new one, so what can be seen is looked for first.
fn reconciliation(
    subscriptions: &Subscriptions,
    keys: &KeyBook,
    is_idle: bool,
    lane_id: &Bytes32,
) -> Option<Reconciliation> {
    let stream = keys.stream()?;
    if stream.delivery_class != DeliveryClass::Fast || !verifies(subscriptions, lane_id) {
        return None;
    }
    let live = subscriptions.values().filter(|it| it.state == SubscriptionState::Live && follows(it, lane_id));
    // What has come and is not judged yet may be it.
    let live_since_ms = live.map(|it| it.live_since_ms).min().filter(|_| is_idle);
    Some(Reconciliation { batch_ms: u64::from(stream.config.fast_batch_max_ms), live_since_ms })
}

/// Whether a subscription verifies every record of a lane of a fast stream.
fn follows(subscription: &Subscription, lane_id: &Bytes32) -> bool {
    match &subscription.spec {
        SubscriptionSpec::FullStream => true,
        SubscriptionSpec::ScopedProofs(scope) => scope.lanes().contains(lane_id),
        SubscriptionSpec::StandardReplay(_) | SubscriptionSpec::Group(_) => false,
    }
}

/// Errors of the credential or of the stream, not of the record: it had no effect, and may have one in another session.
const fn is_of_session(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::StreamNotActive
            | ErrorKind::StreamSuspended
            | ErrorKind::ProviderEpochStale
            | ErrorKind::AuthorizationGenerationStale
            | ErrorKind::InvalidGrant
            | ErrorKind::GrantExpired
            | ErrorKind::ChainUnreachable
            | ErrorKind::ChainViewInconsistent
    )
}
