//! STR-090 to STR-104.

use std::collections::BTreeSet;

use remuda_position::topic::consumer::{
    delivered, Consumer, DeliveryCursor, DeliveryError, DeliveryRefused, Handoff, HandoffToken, Scope,
};
use remuda_position::topic::limits::DEFAULT_CONSUMER_LEASE_DURATION_MS;
use remuda_position::topic::message::{delete, import, Message, NewMessage};
use remuda_position::topic::reader::{beginning, ReplayReader};
use remuda_position::StoreError;
use remuda_testkit::builder::rows::group;
use remuda_wire::Bytes32;

use crate::support::{
    message, now, receive_rows, stable_id, step, store, store_with_groups, FailingStore, Fault, DATABASE,
};

const OWNER: Bytes32 = Bytes32([1; 32]);
const OTHER: Bytes32 = Bytes32([2; 32]);

fn messages(store: &FailingStore, names: &[(u8, u64)]) {
    for (number, sequence_id) in names {
        let content = format!("{number}:{sequence_id}");
        let new = message(&group(*number), *sequence_id, content.as_bytes());
        assert_eq!(now(import(store, &[new])), Ok(1));
    }
}

fn consumer(store: &FailingStore, scope: Scope) -> Consumer {
    now(Consumer::acquire(store, OWNER, scope, 0)).expect("no other consumer")
}

fn only(number: u8) -> Scope {
    Scope::Groups(BTreeSet::from([group(number)]))
}

fn text(message: &Message) -> String {
    String::from_utf8(message.content.to_vec()).expect("text")
}

/// Pulls and acknowledges until nothing comes.
fn drain(store: &FailingStore, consumer: &mut Consumer) -> Vec<String> {
    let (mut seen, mut token) = (Vec::new(), None);
    while let Some(handoff) = pull(store, consumer, token) {
        seen.push(text(&handoff.delivery.message));
        token = Some(handoff.token);
    }
    seen
}

fn pull(store: &FailingStore, consumer: &mut Consumer, token: Option<HandoffToken>) -> Option<Handoff> {
    now(consumer.next(store, token, |_| true, 0)).expect("an owner")
}

fn d(store: &FailingStore, number: u8) -> u64 {
    now(delivered(store, &group(number))).expect("a store").number().get()
}

fn replay(store: &FailingStore, cursor: DeliveryCursor, scope: Scope) -> Vec<String> {
    let mut reader = now(ReplayReader::open(store, cursor, scope)).expect("a cursor of ours");
    std::iter::from_fn(|| now(reader.next(store, |_| true, 0)).expect("a store"))
        .map(|next| text(&next.message))
        .collect()
}

/// The document's example: A1 and B1 for all groups, then A2 for A alone while B2 is stored, then all groups again.
#[test]
fn what_was_out_of_scope_is_delivered_later_and_nothing_twice() {
    let store = store();
    messages(&store, &[(1, 1), (2, 1)]);
    let mut all = consumer(&store, Scope::AllGroups);
    assert_eq!(drain(&store, &mut all), ["1:1", "2:1"]);
    all.set_scope(only(1));
    messages(&store, &[(1, 2), (2, 2)]);
    assert_eq!(drain(&store, &mut all), ["1:2"]);
    assert_eq!(d(&store, 2), 2, "excluded by scope, D stays");
    all.set_scope(Scope::AllGroups);
    assert_eq!(drain(&store, &mut all), ["2:2"]);
    now(all.close(&store, 0)).expect("an owner");
    assert!(drain(&store, &mut consumer(&store, Scope::AllGroups)).is_empty(), "a later stream resumes from D");
}

#[test]
fn an_item_is_acknowledged_by_the_next_pull_and_by_nothing_else() {
    let store = store();
    messages(&store, &[(1, 1), (1, 2)]);
    let mut first = consumer(&store, Scope::AllGroups);
    let one = pull(&store, &mut first, None).expect("a message");
    assert_eq!(d(&store, 1), 0, "handed over is not acknowledged");
    let again = pull(&store, &mut first, None).expect("a message");
    assert_eq!(text(&again.delivery.message), "1:1", "without its token it comes again");
    now(first.close(&store, 0)).expect("an owner");
    // The page died after the application had handled it: the same item, under the same stable id.
    let mut second = consumer(&store, Scope::AllGroups);
    let repeated = pull(&store, &mut second, None).expect("a message");
    assert_eq!(repeated.delivery, one.delivery);
    let stale = now(second.next(&store, Some(one.token), |_| true, 0));
    assert_eq!(stale, Err(DeliveryRefused::Token.into()), "a token of the former owner");
    assert_eq!(text(&pull(&store, &mut second, Some(repeated.token)).expect("the next").delivery.message), "1:2");
    assert_eq!(d(&store, 1), 1);
    let replayed = now(second.next(&store, Some(repeated.token), |_| true, 0));
    assert_eq!(replayed, Err(DeliveryRefused::Token.into()), "a token acknowledges once");
}

#[test]
fn while_d_cannot_be_written_nothing_is_handed_over() {
    let store = store();
    messages(&store, &[(1, 1), (1, 2)]);
    let mut consumer = consumer(&store, Scope::AllGroups);
    let first = pull(&store, &mut consumer, None).expect("a message");
    for fault in [Fault::Aborts, Fault::Quota, Fault::Unheard] {
        store.fault.set(Some(fault));
        let failed = now(consumer.next(&store, Some(first.token), |_| true, 0));
        assert!(matches!(failed, Err(DeliveryError::Store(_))), "{fault:?}");
    }
    assert_eq!(text(&pull(&store, &mut consumer, Some(first.token)).expect("the next").delivery.message), "1:2");
}

#[test]
fn an_acknowledgement_that_was_written_unheard_is_one() {
    let store = store();
    messages(&store, &[(1, 1), (1, 2)]);
    let mut consumer = consumer(&store, Scope::AllGroups);
    let first = pull(&store, &mut consumer, None).expect("a message");
    store.fault.set(Some(Fault::Unheard));
    assert!(now(consumer.next(&store, Some(first.token), |_| true, 0)).is_err());
    assert_eq!(text(&pull(&store, &mut consumer, None).expect("the next").delivery.message), "1:2", "D says so");
}

#[test]
fn a_filter_passes_d_and_does_not_go_back() {
    let store = store();
    messages(&store, &[(1, 1), (2, 1), (1, 2), (1, 3)]);
    let mut consumer = consumer(&store, Scope::AllGroups);
    let even = |message: &Message| text(message).ends_with('2');
    let found = now(consumer.next(&store, None, even, 0)).expect("an owner").expect("a message");
    assert_eq!(text(&found.delivery.message), "1:2");
    assert_eq!((d(&store, 1), d(&store, 2)), (1, 2), "what was scanned is passed, the handed one is not");
    assert_eq!(drain(&store, &mut consumer), ["1:2", "1:3"], "another filter repeats nothing that was scanned");
}

#[test]
fn one_consumer_at_a_time_and_a_former_owner_moves_nothing() {
    let store = store();
    messages(&store, &[(1, 1), (1, 2)]);
    let mut first = consumer(&store, Scope::AllGroups);
    let handed = pull(&store, &mut first, None).expect("a message");
    let second = now(Consumer::acquire(&store, OTHER, Scope::AllGroups, DEFAULT_CONSUMER_LEASE_DURATION_MS - 1));
    assert_eq!(second.map(drop), Err(DeliveryRefused::AlreadyActive.into()));
    now(first.renew(&store, 20_000)).expect("an owner");
    let taken_at = 20_000 + DEFAULT_CONSUMER_LEASE_DURATION_MS;
    let early = now(Consumer::acquire(&store, OTHER, Scope::AllGroups, taken_at - 1));
    assert_eq!(early.map(drop), Err(DeliveryRefused::AlreadyActive.into()), "a renewed lease lasts longer");
    let mut second = now(Consumer::acquire(&store, OTHER, Scope::AllGroups, taken_at)).expect("expired");
    // The first was frozen in its callback; its clock even went back.
    for now_ms in [taken_at + 1, 0] {
        let late = now(first.next(&store, Some(handed.token), |_| true, now_ms));
        assert_eq!(late, Err(DeliveryRefused::NotOwner.into()));
        assert_eq!(now(first.renew(&store, now_ms)), Err(DeliveryRefused::NotOwner.into()));
    }
    assert_eq!(d(&store, 1), 0);
    let repeated = now(second.next(&store, None, |_| true, taken_at)).expect("an owner").expect("a message");
    assert_eq!(repeated.delivery, handed.delivery, "a duplicate is possible, a loss is not");
}

#[test]
fn a_lease_that_was_written_unheard_is_ours() {
    let store = store();
    store.fault.set(Some(Fault::Unheard));
    assert!(now(Consumer::acquire(&store, OWNER, Scope::AllGroups, 0)).is_err());
    let mut again = consumer(&store, Scope::AllGroups);
    store.fault.set(Some(Fault::Unheard));
    assert!(now(again.renew(&store, 20_000)).is_err());
    assert_eq!(now(again.next(&store, None, |_| true, 45_000)), Ok(None), "renewed, though nobody said so");
}

#[test]
fn an_owner_that_did_not_renew_stops_by_itself() {
    let store = store();
    messages(&store, &[(1, 1)]);
    let mut consumer = consumer(&store, Scope::AllGroups);
    let late = now(consumer.next(&store, None, |_| true, DEFAULT_CONSUMER_LEASE_DURATION_MS));
    assert_eq!(late, Err(DeliveryRefused::NotOwner.into()));
}

#[test]
fn numbers_are_given_once_in_order_and_never_again() {
    let store = store_with_groups(&[1]);
    receive_rows(&store, &group(1), 0, &[(5, b"a five"), (7, b"a seven")]);
    assert_eq!(now(import(&store, &[message(&group(2), 1, b"early")])), Ok(1));
    step(&store, &group(1));
    now(delete(&store, &stable_id(&group(1), 5))).expect("a store");
    step(&store, &group(1));
    assert_eq!(now(import(&store, &[message(&group(1), 5, b"a five"), message(&group(1), 7, b"again")])), Ok(0));
    let mut reader =
        now(ReplayReader::open(&store, now(beginning(&store)).expect("a store"), Scope::AllGroups)).expect("ours");
    let all: Vec<_> = std::iter::from_fn(|| now(reader.next(&store, |_| true, 0)).expect("a store"))
        .map(|next| (next.cursor.delivery_number.get(), text(&next.message)))
        .collect();
    assert_eq!(all, [(1, "early".into()), (3, "a seven".into())], "deleted is absent, and its number is not reused");
}

#[test]
fn a_cursor_is_of_this_database_and_not_above_its_head() {
    let store = store();
    messages(&store, &[(1, 1)]);
    for (cursor, refused) in [
        (DeliveryCursor::kept(Bytes32([9; 32]), 0), DeliveryRefused::CursorDatabase),
        (DeliveryCursor::kept(DATABASE, 2), DeliveryRefused::CursorRange),
        (DeliveryCursor::kept(DATABASE, u64::MAX), DeliveryRefused::CursorRange),
    ] {
        assert_eq!(now(ReplayReader::open(&store, cursor, Scope::AllGroups)).map(drop), Err(refused.into()));
    }
    assert!(replay(&store, DeliveryCursor::kept(DATABASE, 1), Scope::AllGroups).is_empty());
}

#[test]
fn replay_knows_no_d_and_history_ends_where_its_cursor_begins() {
    let store = store();
    messages(&store, &[(1, 1), (2, 1)]);
    let mut default = consumer(&store, Scope::AllGroups);
    pull(&store, &mut default, None);
    let start = now(beginning(&store)).expect("a store");
    assert_eq!(replay(&store, start, Scope::AllGroups), ["1:1", "2:1"]);
    assert_eq!(d(&store, 1), 0);
    let (mut history, cursor) = now(ReplayReader::history(&store, Scope::AllGroups)).expect("a store");
    messages(&store, &[(1, 2)]);
    let seen = std::iter::from_fn(|| now(history.next(&store, |_| true, 0)).expect("a store"));
    assert_eq!(seen.map(|next| text(&next.message)).collect::<Vec<_>>(), ["1:1", "2:1"]);
    assert_eq!(replay(&store, cursor, Scope::AllGroups), ["1:2"], "neither a gap nor a repeat");
    assert_eq!(replay(&store, start, only(2)), ["2:1"]);
}

#[test]
fn what_has_disappeared_is_not_delivered() {
    let store = store();
    let timed = NewMessage { disappears_at_ms: Some(500), ..message(&group(1), 1, b"1:1") };
    assert_eq!(now(import(&store, &[timed])), Ok(1));
    messages(&store, &[(1, 2)]);
    let mut early = consumer(&store, Scope::AllGroups);
    let next = |consumer: &mut Consumer, now_ms| now(consumer.next(&store, None, |_| true, now_ms)).expect("an owner");
    assert_eq!(text(&next(&mut early, 499).expect("a message").delivery.message), "1:1");
    assert_eq!(text(&next(&mut early, 500).expect("a message").delivery.message), "1:2");
}

#[test]
fn many_messages_out_of_scope_are_scanned_in_bounded_reads() {
    let store = store();
    let others: Vec<_> = (0..1_000).map(|place| message(&group(2), place, b"other")).collect();
    assert_eq!(now(import(&store, &others)), Ok(1_000));
    messages(&store, &[(1, 1)]);
    assert_eq!(drain(&store, &mut consumer(&store, only(1))), ["1:1"]);
}

#[test]
fn a_database_is_founded_once() {
    let store = store();
    assert_eq!(now(remuda_position::topic::message::found(&store, OTHER)), Ok(DATABASE));
    let unfounded = FailingStore::default();
    assert_eq!(now(import(&unfounded, &[message(&group(1), 1, b"")])), Err(StoreError::Unavailable));
}
