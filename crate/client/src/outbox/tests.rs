//! What may be sent when, and what is kept of what has ended.

use alloc::string::ToString;
use alloc::vec;

use remuda_position::outbox::{AppendFailure, DurableAppend};
use remuda_wire::codec::VersionOne;
use remuda_wire::record::RecordId;
use remuda_wire::{Bytes, Bytes24, ProviderEpoch, Remedy};

use super::*;

const NEVER: fn(&Bytes32) -> Option<Reconciliation> = |_| None;

fn entry(number: u64, lane: u8, state: OutboxState) -> OutboxEntry {
    let request = AppendRequest {
        stream_id: Bytes32([1; 32]),
        lane_id: Bytes32([lane; 32]),
        client_message_id: Bytes32::ZERO,
        client_created_at_ms: 1,
        visible_after_ms: 0,
        expires_at_ms: 0,
        encryption_generation: 0,
        nonce: Bytes24::ZERO,
        payload: Bytes::default(),
    };
    OutboxEntry { version: VersionOne, number, state, request }
}

fn outbox(entries: Vec<OutboxEntry>) -> Outbox {
    let mut outbox = Outbox::new(OutboxKey(Bytes32([2; 32])));
    outbox.reading = Reading::Asked { again: false };
    assert!(outbox.take(entries), "there may be more");
    assert!(!outbox.is_known());
    assert!(!outbox.take(Vec::new()));
    assert!(outbox.is_known());
    outbox.session_opened();
    outbox
}

fn id(sequence: u64) -> FastRecordId {
    FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: 1, sequence }
}

/// What is sent at `now_ms`, after it was written that it may be.
fn send(outbox: &mut Outbox, reconcile: impl Fn(&Bytes32) -> Option<Reconciliation>, now_ms: u64) -> Vec<u64> {
    outbox.due(&reconcile, now_ms);
    if outbox.next_write(now_ms).is_some() {
        outbox.written(Writer::Settle);
    }
    let due: Vec<_> = outbox.due(reconcile, now_ms).into_iter().map(|(number, _)| number).collect();
    due.iter().for_each(|number| outbox.submitted(*number));
    due
}

#[test]
fn one_of_a_lane_is_on_its_way_and_only_after_the_database_knows() {
    let mut outbox = outbox((1..=6).map(|number| entry(number, u8::from(number > 3), OutboxState::Queued)).collect());
    assert_eq!(outbox.due(NEVER, 1_000), [], "nothing before it is written");
    let changes = outbox.next_write(1_000).expect("changes").changes;
    assert_eq!(changes.iter().map(OutboxChange::number).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(outbox.due(NEVER, 1_000), [], "nor while it is");
    assert_eq!(outbox.next_write(1_000), None, "one write at a time");
    outbox.not_written(Writer::Settle, |_| 50, 1_000);
    assert_eq!((outbox.next_write(1_049), outbox.wake_at(true, NEVER)), (None, Some(1_050)));
    assert_eq!(send(&mut outbox, NEVER, 1_050), [1, 4]);
    assert_eq!(send(&mut outbox, NEVER, 1_050), [0; 0], "the next of a lane waits for the one before it");
    outbox.accepted(4, OutboxState::Provisional(id(0)));
    assert_eq!(send(&mut outbox, NEVER, 1_050), [5]);
    outbox.not_taken(1);
    outbox.pause(|attempt| u64::from(attempt + 1) * 100, 1_050);
    outbox.not_taken(5);
    outbox.pause(|_| panic!("the same attempt"), 1_050);
    assert_eq!((send(&mut outbox, NEVER, 1_149), outbox.wake_at(true, NEVER)), (vec![], Some(1_150)));
    assert_eq!(send(&mut outbox, NEVER, 1_150), [1, 5], "and in the same order");
}

#[test]
fn what_was_sent_in_another_life_waits_for_what_can_be_seen_of_it() {
    let live = |_: &Bytes32| Some(Reconciliation { batch_ms: 100, live_since_ms: Some(2_000) });
    let opening = |_: &Bytes32| Some(Reconciliation { batch_ms: 100, live_since_ms: None });
    let mut outbox = outbox(vec![entry(1, 0, OutboxState::Sent), entry(2, 1, OutboxState::Queued)]);
    assert_eq!(send(&mut outbox, opening, 9_000), [2], "a subscription that is being opened may show it");
    assert_eq!(outbox.wake_at(true, live), Some(7_100));
    outbox.passed(id(0), 5, |_| true, 6_000);
    assert_eq!(outbox.wake_at(true, live), Some(11_100), "while batches come it may be in the next one");
    assert_eq!(send(&mut outbox, live, 11_099), [0; 0]);
    assert_eq!(send(&mut outbox, live, 20_000), [0; 0], "who slept has not looked");
    assert_eq!(send(&mut outbox, live, 25_100), [1]);
    assert_eq!(outbox.counts().sent, 2);
}

#[test]
fn what_was_acknowledged_before_the_session_goes_first_if_it_comes_back() {
    let live = |_: &Bytes32| Some(Reconciliation { batch_ms: 100, live_since_ms: Some(1_000) });
    let mut outbox = outbox(vec![entry(1, 0, OutboxState::Provisional(id(8))), entry(2, 0, OutboxState::Queued)]);
    assert_eq!(send(&mut outbox, live, 1_000), [0; 0]);
    assert_eq!(
        (send(&mut outbox, live, 1_000_000), outbox.wake_at(true, live)),
        (vec![], None),
        "however long it takes"
    );
    assert_eq!(outbox.lineage_ended(0, |_| true), 0, "of another lineage");
    assert_eq!(outbox.lineage_ended(1, |_| true), 1);
    assert_eq!(send(&mut outbox, live, 1_000), [1]);
}

#[test]
fn evidence_is_believed_over_answers_and_shows_what_was_not_kept() {
    let provisional = |number| entry(number, 0, OutboxState::Provisional(id(number)));
    let mut outbox = outbox(vec![provisional(1), provisional(5), provisional(9), entry(10, 1, OutboxState::Sent)]);
    let durable = OutboxState::Durable(DurableAppend { record_id: RecordId::Fast(id(4)), evidence: Bytes32([3; 32]) });
    outbox.shown(10, durable.clone());
    outbox.passed(id(3), 6, |_| true, 1_000);
    outbox.refused(10, &Failure { code: "late".into(), remedy: Remedy::Surface, rule: "".into(), meaning: "".into() });
    let codes: Vec<_> = (outbox.entries.values())
        .map(|entry| match &entry.state {
            OutboxState::Failed(failure) => failure.code.to_string(),
            other => alloc::format!("{}", *other == durable),
        })
        .collect();
    assert_eq!(codes, ["outbox/unverified", "outbox/displaced", "false", "true"]);
}

#[test]
fn outcomes_are_kept_for_a_while_and_failures_until_they_are_seen() {
    let failure = AppendFailure::new("provider/lane-closed", Remedy::Surface, "", "closed");
    let durable = DurableAppend { record_id: RecordId::Fast(id(4)), evidence: Bytes32([3; 32]) };
    let ended = |number| match number % 2 {
        0 => entry(number, 0, OutboxState::Durable(durable)),
        _ => entry(number, 0, OutboxState::Failed(failure.clone())),
    };
    let mut outbox = outbox((1..=600).map(ended).collect());
    assert_eq!(outbox.counts().failed, MAX_KEPT_FAILED);
    let forgotten = outbox.next_write(1_000).expect("changes").changes;
    assert_eq!(forgotten.len(), 600 - MAX_KEPT_FAILED - MAX_KEPT_DURABLE);
    outbox.not_written(Writer::Settle, |_| 0, 1_000);
    outbox.dismiss(599);
    outbox.dismiss(600);
    let again = outbox.next_write(1_000).expect("changes").changes;
    assert_eq!(again.len(), forgotten.len() + 1, "what was not written is written again, and a failure was dismissed");
    outbox.written(Writer::Settle);
    assert_eq!((outbox.next_write(1_000), outbox.counts().failed), (None, MAX_KEPT_FAILED - 1));
}
