//! One entry in memory, what it waits for, and why it ends otherwise.

use remuda_position::outbox::{AppendFailure, OutboxEntry, OutboxState};
use remuda_wire::request::AppendRequest;
use remuda_wire::Remedy;

use super::Writer;
use crate::failure::Failure;

/// How much longer than a batch may take its checkpoint is waited for, before a fast append of unknown outcome is sent
/// again: in milliseconds.
const RECONCILE_MARGIN_MS: u64 = 5_000;
/// How long it is waited for at most, while other batches come: in milliseconds.
const MAX_RECONCILE_MS: u64 = 60_000;

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) request: AppendRequest,
    pub(super) state: OutboxState,
    /// What the database holds.
    pub(super) saved: OutboxState,
    /// What is being written, and by which write.
    pub(super) writing: Option<(Writer, OutboxState)>,
    pub(super) is_in_flight: bool,
    /// Since when it is waited for what can be found out before it is sent again: it may have been taken without our knowing.
    pub(super) waits_since_ms: Option<u64>,
    /// The session that it was acknowledged in; 0 for one of another life.
    pub(super) session: u64,
    pub(super) false_answers: u32,
    pub(super) postponements: u32,
}

impl Entry {
    pub(super) fn read(entry: OutboxEntry) -> Self {
        let OutboxEntry { state, request, .. } = entry;
        // Sent in another life: whether it arrived nobody here knows.
        let waits_since_ms = (state == OutboxState::Sent).then_some(0);
        Self {
            request,
            saved: state.clone(),
            state,
            writing: None,
            is_in_flight: false,
            waits_since_ms,
            session: 0,
            false_answers: 0,
            postponements: 0,
        }
    }

    pub(super) fn fail(&mut self, failure: &Failure) {
        let Failure { code, remedy, rule, meaning } = failure;
        self.state = OutboxState::Failed(AppendFailure::new(code, *remedy, rule, meaning));
    }
}

/// Where a client stands that a fast append of unknown outcome waits for: what was taken comes back as a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reconciliation {
    /// How long the provider may take for a batch.
    pub(crate) batch_ms: u64,
    /// Since when a subscription that verifies the lane is open; `None` while it is being opened, or something of it waits
    /// to be judged.
    pub(crate) live_since_ms: Option<u64>,
}

impl Reconciliation {
    /// When what was taken would have come back, and has not: once the subscription was quiet for longer than a batch may
    /// take, or has been open for long enough.
    pub(super) fn over_at(self, since_ms: u64, last_batch_ms: u64) -> u64 {
        let Some(live_since_ms) = self.live_since_ms else { return u64::MAX };
        let began_ms = since_ms.max(live_since_ms);
        let window_ms = self.batch_ms.saturating_add(RECONCILE_MARGIN_MS);
        let quiet_ms = began_ms.max(last_batch_ms).saturating_add(window_ms);
        quiet_ms.min(began_ms.saturating_add(window_ms.max(MAX_RECONCILE_MS)))
    }
}

pub(super) fn expired() -> Failure {
    Failure {
        code: "outbox/expired".into(),
        remedy: Remedy::FixRequest,
        rule: "CIP-39 §10".into(),
        meaning: "the record expired before it could be sent: it was not appended".into(),
    }
}

pub(super) fn unverified_lane() -> Failure {
    Failure {
        code: "outbox/unverified".into(),
        remedy: Remedy::Surface,
        rule: "CIP-39 §12".into(),
        meaning: "the record was acknowledged, and no subscription of this client verifies where it would be".into(),
    }
}

pub(super) fn displaced() -> Failure {
    Failure {
        code: "outbox/displaced".into(),
        remedy: Remedy::Surface,
        rule: "CIP-39 §12".into(),
        meaning: "the provider acknowledged the record under a sequence that its own checkpoint gives to another"
            .into(),
    }
}
