//! A position begins anew: at a signed floor, with a hole before it, or behind snapshots that stand for what was (§15).
//!
//! ```text
//!  CursorTooOld ──its anchor judged──▶ failed, with a floor ──accept_gap──▶ commit: the hole, and the place behind it
//!  hydrate ──the receipt's key──▶ every check of §15 ──────────────────────▶ commit: the snapshots, and their place
//! ```
//! Either is the application's to choose, and neither moves a position backwards. What was hashed is what is given back.

use alloc::boxed::Box;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;

use remuda_position::{AcceptedGap, PositionKey};
use remuda_session::{CloseCause, ProviderError};
use remuda_verify::authentic::Authority;
use remuda_verify::retention::{decode_anchor, judge_cursor_too_old};
use remuda_verify::snapshot_generation::{SnapshotGeneration, VerifiedGeneration};
use remuda_wire::chain::DeliveryClass;
use remuda_wire::context::FinalizedView;
use remuda_wire::verdict::Refusal;
use remuda_wire::{Bytes32, Remedy};

use super::{Engine, Output};
use crate::command::CommandId;
use crate::event::Event;
use crate::failure::Failure;
use crate::subscription::{Load, Subscription, SubscriptionSpec, SubscriptionState};
use crate::work::{Begun, Told, TooOld, Work};

/// What a position begins anew with.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// The floor, as the application accepted it.
    Gap(AcceptedGap),
    /// Snapshots, asked for under this id.
    Snapshots(CommandId, VerifiedGeneration),
}

/// Snapshots whose receipt's key, or whose position, is being read.
#[derive(Debug)]
pub(super) struct Hydration {
    id: CommandId,
    generation: SnapshotGeneration,
    has_asked: bool,
}

impl Engine {
    /// Has a position begin anew behind snapshots that are verified here; settled by exactly one [`Event::Hydrated`]. While
    /// that goes on, its subscription is not opened: subscribe first and then hydrate, in one turn, to begin with snapshots.
    pub fn hydrate(&mut self, id: CommandId, key: PositionKey, generation: SnapshotGeneration, now_ms: u64) {
        let Some(subscription) = self.subscriptions.get(&key) else {
            self.hydration_failed(id, Failure::not_subscribed());
            return;
        };
        let is_unread = subscription.load == Load::Needed;
        let Entry::Vacant(entry) = self.hydrations.entry(key) else {
            self.hydration_failed(id, Failure::hydrating());
            return;
        };
        entry.insert(Hydration { id, generation, has_asked: false });
        if is_unread {
            self.ask_load(key);
        }
        self.advance_hydrations(now_ms);
    }

    /// Goes on from the signed floor of a subscription that failed behind it: the hole becomes an item of its position, told
    /// by [`Event::Gap`]. False when it has no such floor.
    pub fn accept_gap(&mut self, key: PositionKey, now_ms: u64) -> bool {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return false };
        let Some(refusal) = subscription.floor.take() else { return false };
        let gap = AcceptedGap::new(refusal, subscription.spec.scope());
        subscription.state = SubscriptionState::Opening;
        self.work.push_back(Work::Begin(key, Box::new(Beginning::Gap(gap))));
        self.handle_channel(now_ms);
        true
    }

    /// Takes the hydrations on whose position and key are known now.
    pub(super) fn advance_hydrations(&mut self, now_ms: u64) {
        let keys: Vec<_> = self.hydrations.keys().copied().collect();
        for key in &keys {
            self.advance_hydration(*key, now_ms);
        }
        if !keys.is_empty() {
            self.handle_channel(now_ms);
        }
    }

    fn advance_hydration(&mut self, key: PositionKey, now_ms: u64) {
        let Some(subscription) = self.subscriptions.get(&key) else { return };
        let is_ready = subscription.load == Load::Done;
        let (scope, class) = (subscription.spec.scope(), class_of(&subscription.spec));
        let Some(hydration) = self.hydrations.get_mut(&key) else { return };
        let view = hydration.generation.served_at();
        if !self.keys.knows(view) {
            if !core::mem::replace(&mut hydration.has_asked, true) {
                self.outputs.push_back(Output::ReadChain { view: Some(view.clone()) });
            }
            return;
        }
        if !is_ready {
            return;
        }
        let Some(Hydration { id, generation, .. }) = self.hydrations.remove(&key) else { return };
        match generation.verify(&self.config.context, &self.config.stream_id, &scope, class, &self.keys) {
            Ok(verified) => self.work.push_back(Work::Begin(key, Box::new(Beginning::Snapshots(id, verified)))),
            Err(refusal) => self.not_hydrated(key, id, refusal.into(), now_ms),
        }
    }

    /// The hydrations that wait for a read of this view end with why it failed: only their callers know whether to try again.
    pub(super) fn hydrations_unread(&mut self, view: &FinalizedView, failure: &Failure, now_ms: u64) {
        let waits = |hydration: &Hydration| hydration.has_asked && hydration.generation.served_at() == view;
        let unread: Vec<_> = self.hydrations.extract_if(.., |_, hydration| waits(hydration)).collect();
        for (key, hydration) in unread {
            self.not_hydrated(key, hydration.id, failure.clone(), now_ms);
        }
    }

    /// The hydration of a subscription that is gone, or whose position cannot be read.
    pub(super) fn abandon_hydration(&mut self, key: &PositionKey, failure: &Failure) {
        if let Some(hydration) = self.hydrations.remove(key) {
            self.hydration_failed(hydration.id, failure.clone());
        }
    }

    /// Nothing is hydrated any more.
    pub(super) fn abandon_hydrations(&mut self) {
        for (_, hydration) in core::mem::take(&mut self.hydrations) {
            self.hydration_failed(hydration.id, Failure::from(&CloseCause::Requested));
        }
    }

    /// A position that was to begin with snapshots begins nowhere else by itself (`SNP-16`); any other stays where it is.
    fn not_hydrated(&mut self, key: PositionKey, id: CommandId, failure: Failure, now_ms: u64) {
        let is_empty = |it: &Subscription| it.load == Load::Done && it.boundary.revision().is_none();
        if self.subscriptions.get(&key).is_some_and(is_empty) {
            self.subscription_failed(key, Failure { remedy: Remedy::Surface, ..failure.clone() }, now_ms);
        }
        self.hydration_failed(id, failure);
    }

    pub(super) fn hydration_failed(&mut self, id: CommandId, failure: Failure) {
        self.tell(Event::Hydrated { id, outcome: Err(failure) });
    }

    /// The place to begin at is planned, and the subscription leaves the session for it.
    pub(super) fn begin(&mut self, key: PositionKey, beginning: Beginning, now_ms: u64) {
        match beginning {
            Beginning::Gap(gap) => {
                let gap_told = Told::Begun(Begun::Gap);
                match self.admit(key, gap, gap_told) {
                    Ok(true) => {}
                    Ok(false) => self.begun(key, now_ms),
                    Err(refusal) => self.subscription_failed(key, refusal.into(), now_ms),
                }
            }
            Beginning::Snapshots(id, mut verified) => {
                let told = Told::Begun(Begun::Snapshots {
                    id,
                    contents: verified.take_contents(),
                    checks: verified.checks().to_vec(),
                });
                match self.admit(key, verified, told) {
                    Ok(true) => {}
                    Ok(false) if self.subscriptions.contains_key(&key) => {
                        self.hydration_failed(id, Failure::snapshot_rollback());
                    }
                    Ok(false) => self.hydration_failed(id, Failure::not_subscribed()),
                    Err(refusal) => self.not_hydrated(key, id, refusal.into(), now_ms),
                }
            }
        }
        // Only now: what else waits must not be committed before it.
        if self.is_committing(&key) {
            self.leave(key, now_ms);
            if let Some(subscription) = self.subscriptions.get_mut(&key) {
                subscription.state = SubscriptionState::Opening;
            }
        }
    }

    /// The position begins anew: its subscription opens there.
    pub(super) fn begun(&mut self, key: PositionKey, now_ms: u64) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        // What waited is either superseded or comes again.
        subscription.discarded = 0;
        subscription.floor = None;
        subscription.state = SubscriptionState::Due { attempt: 0, at_ms: now_ms };
        self.tell(Event::StatusChanged);
    }

    /// A refusal of a cursor as what waits to be judged, or as the failure that it is without its anchor.
    pub(super) fn refused_cursor(&self, key: PositionKey, subscription_id: Bytes32, error: &ProviderError) -> Work {
        let judged = self.subscriptions.get(&key).map(|subscription| {
            let request = subscription.request(self.config.stream_id, subscription_id);
            decode_anchor(&request.source, &error.details)
        });
        match judged {
            Some(Ok(anchor)) => {
                let details = error.details.clone();
                Work::TooOld(subscription_id, TooOld { anchor, details, failure: Failure::from(error) })
            }
            Some(Err(violation)) => Work::Ended(subscription_id, Refusal::from(violation).into()),
            None => Work::Ended(subscription_id, Failure::from(error)),
        }
    }

    /// Whether the position is behind the floor that the provider signed. Either way its subscription fails.
    pub(super) fn judge_floor(&mut self, key: PositionKey, subscription_id: Bytes32, too_old: TooOld) -> Failure {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return too_old.failure };
        let request = subscription.request(self.config.stream_id, subscription_id);
        let authority =
            Authority { context: &self.config.context, stream_id: &self.config.stream_id, keys: &self.keys };
        match judge_cursor_too_old(&request, &too_old.details, &authority) {
            Ok(refusal) => {
                if matches!(subscription.spec, SubscriptionSpec::Group(_)) {
                    // What a group did before its floor is in no position, so there is nothing to accept.
                    return too_old.failure;
                }
                let failure = Failure::behind_floor(too_old.failure, refusal.floor());
                subscription.floor = Some(refusal);
                failure
            }
            Err(refusal) => refusal.into(),
        }
    }
}

/// The class that a subscription is of: the provider refuses one of the other.
const fn class_of(spec: &SubscriptionSpec) -> DeliveryClass {
    match spec {
        SubscriptionSpec::ScopedProofs(_) | SubscriptionSpec::FullStream => DeliveryClass::Fast,
        SubscriptionSpec::StandardReplay(_) | SubscriptionSpec::Group(_) => DeliveryClass::Standard,
    }
}
