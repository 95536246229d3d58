//! A grant that ends, or that the stream's admin withdrew, is replaced by a new one of the application (§7, §17).
//!
//! ```text
//!  before it ends ─────────▶ asked ──a new grant──▶ the next handshake presents it
//!  refused (3904, 3906, 3907) ──▶ nothing is sent, asked ──a new grant──▶ chain read, handshake, once more what was refused
//!                                                  ▲  └─none, or the same again─┐
//!                                                  └────────── backoff ◀────────┘ MAX_ATTEMPTS within an hour, then closed
//! ```
//! Whoever needs it, the application is asked once at a time. That a grant was refused is no failure while this goes on.

use alloc::vec::Vec;

use remuda_session::{CloseCause, ErrorKind, HandshakeConfig, ProviderError};
use remuda_wire::grant::StreamGrant;
use remuda_wire::{bound, Signed};

use super::{Engine, Output};
use crate::command::{Asker, PendingRequest};
use crate::event::Connection;
use crate::failure::Failure;

/// A grant is replaced this long before its end, or halfway through a shorter life: clocks differ by so much at most (§18).
const RENEW_BEFORE_MS: u64 = bound::MAX_CLOCK_SKEW_MS;
/// Grants that are asked for within [`ATTEMPTS_SPAN_MS`] because of refusals.
const MAX_ATTEMPTS: u32 = 6;
/// After this long without one, a refusal is the first again.
const ATTEMPTS_SPAN_MS: u64 = 3_600_000;
/// An application that has no grant yet, while the one in force is still good, is asked again after this long.
const ASK_AGAIN_MS: u64 = 30_000;

/// What is known of the next grant.
#[derive(Debug, Default)]
pub(super) struct GrantRenewal {
    /// The application was asked and has not answered.
    asked: bool,
    /// The provider refused the grant: nothing is sent until there is another.
    needed: bool,
    /// When it is asked without need, or again.
    due_at_ms: Option<u64>,
    attempts: u32,
    last_attempt_ms: u64,
    /// Commands that the grant was refused for. They had no effect.
    refused: Vec<PendingRequest>,
}

impl GrantRenewal {
    pub(super) const fn is_needed(&self) -> bool {
        self.needed
    }

    pub(super) fn wake_at(&self) -> Option<u64> {
        self.due_at_ms.filter(|_| !self.asked)
    }
}

impl Engine {
    /// Plans the replacement of the grant in force; none of one that ended by our clock, which may be wrong.
    pub(super) fn plan_renewal(&mut self, now_ms: u64) {
        let StreamGrant { not_before_ms, expires_at_ms, .. } = self.config.grant;
        let life_ms = expires_at_ms.saturating_sub(not_before_ms);
        let due_at_ms = expires_at_ms.saturating_sub(RENEW_BEFORE_MS.min(life_ms / 2));
        self.renewal.due_at_ms = Some(due_at_ms).filter(|due_at_ms| self.config.renews_grant && *due_at_ms > now_ms);
    }

    /// Takes a refusal that another grant would not meet. False for any other, and where the application has no other.
    pub(super) fn refused_grant(&mut self, error: &ProviderError, now_ms: u64) -> bool {
        // A key that signs grants no longer makes them invalid rather than stale (§7).
        let is_ours = matches!(
            error.kind(),
            ErrorKind::AuthorizationGenerationStale | ErrorKind::GrantExpired | ErrorKind::InvalidGrant
        );
        if !is_ours || !self.config.renews_grant {
            return false;
        }
        if !self.renewal.needed {
            self.renewal.needed = true;
            self.channel.close(now_ms);
            self.set_connection(Connection::Connecting);
            self.ask_after_delay(now_ms);
        }
        true
    }

    /// The close of a session, when it closed for the grant.
    pub(super) fn closed_for_grant(&mut self, cause: &CloseCause, now_ms: u64) {
        if let CloseCause::Provider(error) = cause {
            self.refused_grant(error, now_ms);
        }
    }

    /// Has a command sent again once there is a new grant. Gives it back when none is awaited; appends wait in the outbox.
    #[allow(clippy::result_large_err, reason = "what is given back is what was given")]
    pub(super) fn keep_for_grant(&mut self, request: PendingRequest) -> Result<(), PendingRequest> {
        if self.renewal.needed && matches!(request.asker, Asker::Command(_)) {
            self.renewal.refused.push(request);
            Ok(())
        } else {
            Err(request)
        }
    }

    /// Asks the application when it is time.
    pub(super) fn renew_when_due(&mut self, now_ms: u64) {
        if self.renewal.wake_at().is_some_and(|at_ms| at_ms <= now_ms) {
            self.renewal.due_at_ms = None;
            self.renewal.asked = true;
            self.outputs.push_back(Output::RenewGrant);
        }
    }

    /// The first time at once, then with backoff, and not for ever.
    fn ask_after_delay(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.renewal.last_attempt_ms) >= ATTEMPTS_SPAN_MS {
            self.renewal.attempts = 0;
        }
        let attempts = self.renewal.attempts;
        if attempts >= MAX_ATTEMPTS {
            self.fail(None, Failure::grant_not_renewed());
            self.halt(now_ms);
            return;
        }
        let jitter = self.jitter();
        let delay_ms = if attempts == 0 { 0 } else { self.backoff.delay_ms(attempts, jitter) };
        (self.renewal.attempts, self.renewal.last_attempt_ms) = (attempts + 1, now_ms);
        self.renewal.due_at_ms = Some(now_ms.saturating_add(delay_ms));
        self.renew_when_due(now_ms);
    }

    /// There is no other grant yet.
    fn not_renewed(&mut self, now_ms: u64) {
        if self.renewal.needed {
            self.ask_after_delay(now_ms);
        } else {
            let again_at_ms = now_ms.saturating_add(ASK_AGAIN_MS);
            self.renewal.due_at_ms = Some(again_at_ms).filter(|at_ms| *at_ms < self.config.grant.expires_at_ms);
        }
    }

    /// The application's answer: a grant, or `None` when it has none for now. Only what was asked for is taken.
    pub fn handle_grant(&mut self, grant: Option<StreamGrant>, now_ms: u64) {
        if !core::mem::take(&mut self.renewal.asked) {
            return;
        }
        let unchanged = |grant: &StreamGrant| grant.digest() == self.config.grant.digest();
        let Some(grant) = grant.filter(|grant| !unchanged(grant)) else {
            self.not_renewed(now_ms);
            return;
        };
        match HandshakeConfig::new(self.config.context.clone(), self.config.stream_id, grant.clone()) {
            Err(misuse) => {
                self.fail(None, misuse.into());
                self.not_renewed(now_ms);
            }
            Ok(_) if !self.is_for_holder(&grant) => {
                self.fail(None, Failure::holder_mismatch());
                self.not_renewed(now_ms);
            }
            Ok(handshake) => {
                self.channel.set_handshake(handshake);
                self.config.grant = grant;
                self.plan_renewal(now_ms);
                if core::mem::take(&mut self.renewal.needed) {
                    // As at the start: what the chain says may be why the old one was refused.
                    self.outputs.push_back(Output::ReadChain { view: None });
                }
            }
        }
    }

    /// The conversation goes on: what the grant was refused for is asked once more.
    pub(super) fn resend_refused(&mut self, now_ms: u64) {
        for request in core::mem::take(&mut self.renewal.refused) {
            self.send_request(PendingRequest { sent_again: true, ..request }, now_ms);
        }
    }

    /// There will be no other grant.
    pub(super) fn abandon_renewal(&mut self, now_ms: u64) {
        let renewal = core::mem::take(&mut self.renewal);
        for request in renewal.refused {
            self.settle_refused(request.asker, Failure::grant_not_renewed(), now_ms);
        }
    }
}
