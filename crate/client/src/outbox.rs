//! The outbox of one stream in memory: what the database holds of it, what is to be written, and what may be sent now.
//!
//! ```text
//! loaded ─▶ due ─▶ Sent is written ─▶ submitted ─▶ answered ─▶ its new state is written ─▶ told
//! ```
//! Nothing is sent before the database says that it may have been, and nothing is told before the database holds it. One
//! entry of a lane is on its way at a time, so that a lane has its records in the order in which they were enqueued.

mod entry;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use remuda_position::outbox::{OutboxChange, OutboxChanges, OutboxEntry, OutboxKey, OutboxState};
use remuda_wire::record::FastRecordId;
use remuda_wire::request::AppendRequest;
use remuda_wire::verdict::Refusal;
use remuda_wire::Bytes32;

use crate::failure::Failure;

pub(crate) use entry::Reconciliation;
use entry::{displaced, expired, unverified_lane, Entry};

/// Entries that are on their way at a time.
const MAX_IN_FLIGHT: usize = 16;
/// Acknowledged entries of lanes that no subscription verifies: beyond them the oldest is let go.
const MAX_UNVERIFIED: usize = 512;
/// Durable outcomes that are kept, without their payloads, for whoever asks late.
const MAX_KEPT_DURABLE: usize = 256;
/// Failures that are kept, with their payloads, until they are dismissed.
const MAX_KEPT_FAILED: usize = 64;
/// False answers to one entry before it is given up.
const MAX_FALSE_ANSWERS: u32 = 4;
/// Later than this the machine slept, and what was waited for may have come meanwhile and not been read: in milliseconds.
const LATE_MS: u64 = 1_000;
/// How often one entry is waited for again for that.
const MAX_POSTPONEMENTS: u32 = 2;

/// What the database holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It is to be read, not before this time.
    Needed { at_ms: u64 },
    /// It is being read; `again` when more was added meanwhile.
    Asked { again: bool },
    /// It is known up to the last number.
    Done,
}

/// A write that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// By itself.
    Settle,
    /// With the rows of a commit.
    Commit,
}

/// An entry that is the next of its lane.
struct Candidate<'a> {
    number: u64,
    entry: &'a Entry,
    /// From when it may be sent.
    at_ms: u64,
    /// Until when its unknown outcome was waited for, where it was.
    reconciled_ms: Option<u64>,
}

/// What became of an entry, and is in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendUpdate {
    /// Which entry.
    pub number: u64,
    /// The application's id of it.
    pub client_message_id: Bytes32,
    /// Its state.
    pub state: OutboxState,
}

/// How many entries stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxCounts {
    /// Never sent.
    pub queued: usize,
    /// On their way, or of unknown outcome.
    pub sent: usize,
    /// Acknowledged, and not shown durable.
    pub provisional: usize,
    /// Failed, and kept to be seen.
    pub failed: usize,
}

#[derive(Debug)]
pub(crate) struct Outbox {
    key: OutboxKey,
    pub(crate) reading: Reading,
    pub(crate) read_attempts: u32,
    is_known: bool,
    last_number: u64,
    entries: BTreeMap<u64, Entry>,
    kept_durable: VecDeque<u64>,
    kept_failed: VecDeque<u64>,
    /// Outcomes that are to be forgotten.
    forgotten: BTreeSet<u64>,
    /// Those whose forgetting is being written.
    forgetting: BTreeSet<u64>,
    is_settling: bool,
    write_attempts: u32,
    write_not_before_ms: u64,
    /// Sending pauses until this time.
    not_before_ms: u64,
    attempts: u32,
    /// Sessions so far, of either kind.
    sessions: u64,
    /// What was refused is of the credential or of the stream: the next session may be given another answer.
    held: bool,
    last_batch_ms: u64,
}

impl Outbox {
    pub(crate) const fn new(key: OutboxKey) -> Self {
        Self {
            key,
            reading: Reading::Needed { at_ms: 0 },
            read_attempts: 0,
            is_known: false,
            last_number: 0,
            entries: BTreeMap::new(),
            kept_durable: VecDeque::new(),
            kept_failed: VecDeque::new(),
            forgotten: BTreeSet::new(),
            forgetting: BTreeSet::new(),
            is_settling: false,
            write_attempts: 0,
            write_not_before_ms: 0,
            not_before_ms: 0,
            attempts: 0,
            sessions: 0,
            held: false,
            last_batch_ms: 0,
        }
    }

    pub(crate) const fn key(&self) -> OutboxKey {
        self.key
    }

    pub(crate) const fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Whether everything was read once: no record of ours can come without being recognised.
    pub(crate) const fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether a write by itself is under way.
    pub(crate) const fn is_settling(&self) -> bool {
        self.is_settling
    }

    pub(crate) fn counts(&self) -> OutboxCounts {
        let mut counts = OutboxCounts { failed: self.kept_failed.len(), ..OutboxCounts::default() };
        for entry in self.entries.values() {
            match entry.saved {
                OutboxState::Queued => counts.queued += 1,
                OutboxState::Sent => counts.sent += 1,
                OutboxState::Provisional(_) => counts.provisional += 1,
                OutboxState::Durable(_) | OutboxState::Failed(_) => {}
            }
        }
        counts
    }

    // --- what the database holds

    /// Takes a page that was read. True when the next one is to be read.
    pub(crate) fn take(&mut self, entries: Vec<OutboxEntry>) -> bool {
        let more = !entries.is_empty() || self.reading == Reading::Asked { again: true };
        self.is_known |= entries.is_empty();
        self.reading = if more { Reading::Asked { again: false } } else { Reading::Done };
        self.read_attempts = 0;
        for entry in entries {
            let number = entry.number;
            self.last_number = self.last_number.max(number);
            match &entry.state {
                OutboxState::Durable(_) => self.kept_durable.push_back(number),
                OutboxState::Failed(_) => self.kept_failed.push_back(number),
                _ => drop(self.entries.insert(number, Entry::read(entry))),
            }
        }
        self.forget_oldest();
        more
    }

    fn forget_oldest(&mut self) {
        let kept = [(&mut self.kept_durable, MAX_KEPT_DURABLE), (&mut self.kept_failed, MAX_KEPT_FAILED)];
        for (kept, most) in kept {
            while kept.len() > most {
                self.forgotten.extend(kept.pop_front());
            }
        }
    }

    /// Forgets a failure that was seen.
    pub(crate) fn dismiss(&mut self, number: u64) {
        if let Ok(place) = self.kept_failed.binary_search(&number) {
            self.forgotten.extend(self.kept_failed.remove(place));
        }
    }

    /// What is to be written and is not being written, for `writer`; `None` for nothing.
    pub(crate) fn take_changes(&mut self, writer: Writer) -> Option<OutboxChanges> {
        let mut changes = Vec::new();
        for (number, entry) in &mut self.entries {
            if entry.writing.is_none() && entry.state != entry.saved {
                entry.writing = Some((writer, entry.state.clone()));
                changes.push(OutboxChange::Become { number: *number, state: entry.state.clone() });
            }
        }
        if writer == Writer::Settle {
            self.forgetting = core::mem::take(&mut self.forgotten);
            changes.extend(self.forgetting.iter().map(|number| OutboxChange::Forget { number: *number }));
            self.is_settling = !changes.is_empty();
        }
        (!changes.is_empty()).then_some(OutboxChanges { key: self.key, changes })
    }

    /// The next write by itself, when its time has come.
    pub(crate) fn next_write(&mut self, now_ms: u64) -> Option<OutboxChanges> {
        if self.is_settling || self.write_not_before_ms > now_ms {
            return None;
        }
        self.take_changes(Writer::Settle)
    }

    /// A write is durable. Gives what there is to tell.
    pub(crate) fn written(&mut self, writer: Writer) -> Vec<AppendUpdate> {
        let mut updates = Vec::new();
        for (number, entry) in &mut self.entries {
            if entry.writing.as_ref().is_some_and(|(by, _)| *by == writer) {
                if let Some((_, state)) = entry.writing.take() {
                    entry.saved = state.clone();
                    let client_message_id = entry.request.client_message_id;
                    updates.push(AppendUpdate { number: *number, client_message_id, state });
                }
            }
        }
        for update in &updates {
            let kept = match update.state {
                OutboxState::Durable(_) => &mut self.kept_durable,
                OutboxState::Failed(_) => &mut self.kept_failed,
                _ => continue,
            };
            self.entries.remove(&update.number);
            let place = kept.partition_point(|number| *number < update.number);
            kept.insert(place, update.number);
        }
        if writer == Writer::Settle {
            self.is_settling = false;
            self.write_attempts = 0;
            self.forgetting.clear();
        }
        self.forget_oldest();
        updates
    }

    /// A write failed, as far as is known: it is written again, by itself, `delay_ms` of the attempt later.
    pub(crate) fn not_written(&mut self, writer: Writer, delay_ms: impl FnOnce(u32) -> u64, now_ms: u64) {
        for entry in self.entries.values_mut() {
            if entry.writing.as_ref().is_some_and(|(by, _)| *by == writer) {
                entry.writing = None;
            }
        }
        if writer == Writer::Settle {
            self.is_settling = false;
            self.forgotten.append(&mut self.forgetting);
            self.write_not_before_ms = now_ms.saturating_add(delay_ms(self.write_attempts));
            self.write_attempts = self.write_attempts.saturating_add(1);
        }
    }

    // --- sending

    /// Lets what nobody can wait for any more end: what expired before it was sent, or that `check` says no broker would take,
    /// and acknowledged entries that no subscription verifies, once there are too many.
    pub(crate) fn let_go(
        &mut self,
        is_verified: impl Fn(&Bytes32) -> bool,
        check: impl Fn(&AppendRequest) -> Result<(), Failure>,
        now_ms: u64,
    ) {
        let mut unverified = Vec::new();
        for (number, entry) in &mut self.entries {
            let expires_at_ms = entry.request.expires_at_ms;
            match entry.state {
                OutboxState::Queued if expires_at_ms != 0 && expires_at_ms <= now_ms => entry.fail(&expired()),
                OutboxState::Queued => {
                    if let Err(failure) = check(&entry.request) {
                        entry.fail(&failure);
                    }
                }
                OutboxState::Provisional(_) if !is_verified(&entry.request.lane_id) => unverified.push(*number),
                _ => {}
            }
        }
        let too_many = unverified.len().saturating_sub(MAX_UNVERIFIED);
        for number in unverified.into_iter().take(too_many) {
            self.fail(number, &unverified_lane());
        }
    }

    /// The first open entry of every lane that has none on its way, with the time from which it may be sent.
    /// `reconcile` says of a lane what its unknown outcomes wait for.
    fn candidates(
        &self,
        reconcile: impl Fn(&Bytes32) -> Option<Reconciliation>,
    ) -> impl Iterator<Item = Candidate<'_>> {
        let mut lanes = BTreeSet::new();
        let mut left_behind = BTreeSet::new();
        self.entries.iter().filter_map(move |(number, entry)| {
            let lane_id = entry.request.lane_id;
            // Acknowledged in a session that is gone: should it be void, it goes before what follows it.
            if matches!(entry.state, OutboxState::Provisional(_)) && entry.session != self.sessions {
                left_behind.insert(lane_id);
            }
            let is_open = matches!(entry.state, OutboxState::Queued | OutboxState::Sent);
            if !is_open || !lanes.insert(lane_id) || entry.is_in_flight {
                return None;
            }
            let reconciliation = reconcile(&lane_id);
            // Evidence will say what became of it, and then of this.
            if left_behind.contains(&lane_id) && reconciliation.is_some() {
                return None;
            }
            let waits_for = entry.waits_since_ms.zip(reconciliation);
            let reconciled_ms = waits_for.map(|(since_ms, it)| it.over_at(since_ms, self.last_batch_ms));
            let at_ms = reconciled_ms.unwrap_or(0).max(self.not_before_ms);
            Some(Candidate { number: *number, entry, at_ms, reconciled_ms })
        })
    }

    /// How many more may be on their way.
    fn room(&self) -> usize {
        MAX_IN_FLIGHT.saturating_sub(self.entries.values().filter(|entry| entry.is_in_flight).count())
    }

    /// Marks what is to be sent next, and gives what may be sent at once: what the database says may have been sent.
    pub(crate) fn due(
        &mut self,
        reconcile: impl Fn(&Bytes32) -> Option<Reconciliation>,
        now_ms: u64,
    ) -> Vec<(u64, AppendRequest)> {
        let due: Vec<_> = self
            .candidates(reconcile)
            .filter(|it| it.at_ms <= now_ms)
            .map(|it| (it.number, it.reconciled_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) > LATE_MS)))
            .take(self.room())
            .collect();
        let mut now = Vec::new();
        for (number, is_late) in due {
            let Some(entry) = self.entries.get_mut(&number) else { continue };
            if is_late && entry.postponements < MAX_POSTPONEMENTS {
                entry.waits_since_ms = Some(now_ms);
                entry.postponements += 1;
                continue;
            }
            entry.state = OutboxState::Sent;
            if entry.saved == OutboxState::Sent && entry.writing.is_none() {
                now.push((number, entry.request.clone()));
            }
        }
        now
    }

    /// When there is something to write or, where it can be sent, to send.
    pub(crate) fn wake_at(
        &self,
        can_send: bool,
        reconcile: impl Fn(&Bytes32) -> Option<Reconciliation>,
    ) -> Option<u64> {
        let read = match self.reading {
            Reading::Needed { at_ms } => Some(at_ms),
            Reading::Asked { .. } | Reading::Done => None,
        };
        let is_unsaved = |entry: &Entry| entry.writing.is_none() && entry.state != entry.saved;
        let unsaved = self.entries.values().any(is_unsaved) || !self.forgotten.is_empty();
        let write = (unsaved && !self.is_settling).then_some(self.write_not_before_ms);
        let sends = can_send && self.room() > 0;
        // What waits for a write is woken by its end.
        let is_ready = |it: &Candidate<'_>| it.entry.writing.is_none() && it.entry.state == it.entry.saved;
        let times = self.candidates(reconcile).filter(is_ready).map(|it| it.at_ms);
        let send = times.filter(|at_ms| *at_ms < u64::MAX).min().filter(|_| sends);
        [read, write, send].into_iter().flatten().min()
    }

    pub(crate) fn submitted(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.is_in_flight = true;
        }
    }

    /// Sending pauses: `delay_ms` of the attempt, or until the network is said to be back. What was on its way with the
    /// first that was refused is the same attempt.
    pub(crate) fn pause(&mut self, delay_ms: impl FnOnce(u32) -> u64, now_ms: u64) {
        if self.not_before_ms > now_ms {
            return;
        }
        self.not_before_ms = now_ms.saturating_add(delay_ms(self.attempts));
        self.attempts = self.attempts.saturating_add(1);
    }

    /// What waits for its time is tried now.
    pub(crate) const fn resume(&mut self) {
        (self.not_before_ms, self.held) = (0, false);
    }

    /// A session is open.
    pub(crate) const fn session_opened(&mut self) {
        self.sessions = self.sessions.saturating_add(1);
        self.resume();
    }

    /// Sends nothing before the next session, or a word of the network. True when it did before.
    pub(crate) const fn hold(&mut self) -> bool {
        !core::mem::replace(&mut self.held, true)
    }

    /// Whether everything was read and nothing holds it back.
    pub(crate) const fn is_ready(&self) -> bool {
        self.is_known && !self.held
    }

    // --- answers

    fn landed(&mut self, number: u64) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&number)?;
        entry.is_in_flight = false;
        // Evidence may have been faster than its answer.
        (entry.state == OutboxState::Sent).then_some(entry)
    }

    /// It was taken.
    pub(crate) fn accepted(&mut self, number: u64, state: OutboxState) {
        self.attempts = 0;
        let session = self.sessions;
        if let Some(entry) = self.landed(number) {
            (entry.state, entry.session) = (state, session);
        }
    }

    /// It was not sent, or had no effect: it is sent again.
    pub(crate) fn not_taken(&mut self, number: u64) {
        let _ = self.landed(number);
    }

    /// It was sent, and nobody knows what came of it: it is sent again, unchanged.
    pub(crate) fn unanswered(&mut self, number: u64, now_ms: u64) {
        if let Some(entry) = self.landed(number) {
            entry.waits_since_ms = Some(now_ms);
        }
    }

    /// Its answer was false: as if there was none, until there were too many.
    pub(crate) fn answered_falsely(&mut self, number: u64, refusal: Refusal, now_ms: u64) {
        if let Some(entry) = self.landed(number) {
            entry.waits_since_ms = Some(now_ms);
            entry.false_answers += 1;
            if entry.false_answers >= MAX_FALSE_ANSWERS {
                entry.fail(&refusal.into());
            }
        }
    }

    /// It was refused for good.
    pub(crate) fn refused(&mut self, number: u64, failure: &Failure) {
        self.attempts = 0;
        if let Some(entry) = self.landed(number) {
            entry.fail(failure);
        }
    }

    fn fail(&mut self, number: u64, failure: &Failure) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.fail(failure);
        }
    }

    // --- evidence

    /// Entries that a record may be of, by the application's id: those that were sent.
    pub(crate) fn sent_by_message(&self) -> BTreeMap<Bytes32, Vec<(u64, &AppendRequest)>> {
        let mut sent = BTreeMap::<_, Vec<_>>::new();
        for (number, entry) in &self.entries {
            if matches!(entry.state, OutboxState::Sent | OutboxState::Provisional(_)) {
                sent.entry(entry.request.client_message_id).or_default().push((*number, &entry.request));
            }
        }
        sent
    }

    /// Verified evidence shows it durable, whatever was answered.
    pub(crate) fn shown(&mut self, number: u64, state: OutboxState) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.state = state;
        }
    }

    /// A batch of `broker_epoch` that ends at `last_sequence` was verified, and what it shows of ours was taken: what was
    /// acknowledged in it and is not there was not kept; what lies before all that is verified here cannot be shown.
    pub(crate) fn passed(
        &mut self,
        first: FastRecordId,
        last_sequence: u64,
        is_verified: impl Fn(&Bytes32) -> bool,
        now_ms: u64,
    ) {
        self.last_batch_ms = now_ms;
        for entry in self.entries.values_mut() {
            let OutboxState::Provisional(id) = entry.state else { continue };
            let end = (first.broker_epoch, last_sequence);
            if (id.broker_epoch, id.sequence) > end || !is_verified(&entry.request.lane_id) {
                continue;
            }
            if (id.broker_epoch, id.sequence) < (first.broker_epoch, first.sequence) {
                entry.fail(&unverified_lane());
            } else {
                entry.fail(&displaced());
            }
        }
    }

    /// The lineage `broker_epoch` has ended, and everything durable of it was seen: what it acknowledged beyond that is
    /// void, and is sent again. Gives how many.
    pub(crate) fn lineage_ended(&mut self, broker_epoch: u64, is_verified: impl Fn(&Bytes32) -> bool) -> usize {
        let mut returned = 0;
        for entry in self.entries.values_mut() {
            let OutboxState::Provisional(id) = entry.state else { continue };
            if id.broker_epoch <= broker_epoch && is_verified(&entry.request.lane_id) {
                entry.state = OutboxState::Queued;
                entry.waits_since_ms = None;
                returned += 1;
            }
        }
        returned
    }
}
