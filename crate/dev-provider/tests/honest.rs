//! An honest provider verifies, in every mode, across restarts, under every credit.

mod common;

use common::{batches, fresh_directory, records, Event, Provider, Session, Subscriber};
use remuda_verify::fast::{FastState, Verification};
use remuda_wire::chain::DeliveryClass;
use remuda_wire::record::RecordId;
use remuda_wire::scope::LaneScope;
use remuda_wire::transition::{FastLineage, TransitionKind};

fn subscribe(session: Session, verification: Verification) -> Subscriber {
    Subscriber::open(session, verification, None, FastState::default()).unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

#[test]
fn scoped_proofs_verify_and_views_stay_servable() {
    let data = fresh_directory("scoped");
    let provider = Provider::start(&data, &["--writer", "400", "--block-ms", "50"]);
    let scope = provider.stream().scope(3);
    let mut subscriber = subscribe(Session::open(&provider, 1), Verification::ScopedProofs(scope));
    let events = subscriber.poll_until(|events| batches(events).len() >= 8 && records(events) > 50).expect("honest");
    for batch in batches(&events) {
        let view = &batch.receipt().served_at;
        let state =
            provider.broker_state(&subscriber.session.stream.stream_id, Some(&view.block_hash)).expect("a read");
        assert_eq!(&state.view, view);
        let stream = state.stream.expect("the stream");
        assert_eq!(stream.provider_signing_key.0, subscriber.session.stream.provider_key);
        assert_eq!(stream.delivery_class, DeliveryClass::Fast);
    }
    let first = batches(&events)[0].receipt().served_at.clone();
    let before = provider.broker_state(&subscriber.session.stream.stream_id, Some(&first.block_hash)).expect("a read");
    provider.kill();
    let provider = Provider::start(&data, &[]);
    let stream_id = provider.stream().stream_id;
    assert_eq!(
        provider.broker_state(&stream_id, Some(&first.block_hash)),
        Ok(before),
        "the same bytes after a restart"
    );
    assert!(provider.broker_state(&stream_id, None).expect("latest").view.height > first.height);
    assert_eq!(provider.broker_state(&stream_id, Some(&stream_id)), Err(410));
    assert_eq!(provider.broker_state(&first.block_hash, None), Err(404));
}

#[test]
fn full_stream_verifies() {
    let provider = Provider::start(&fresh_directory("full"), &["--writer", "300"]);
    let mut subscriber = subscribe(Session::open(&provider, 1), Verification::FullStream);
    subscriber.poll_until(|events| batches(events).len() >= 5 && records(events) > 50).expect("honest");
}

#[test]
fn a_batch_without_an_in_scope_record_still_closes() {
    let provider = Provider::start(&fresh_directory("absent"), &[]);
    let mut writer = Session::open(&provider, 2);
    let lanes = writer.stream.lanes.clone();
    let mut subscriber = subscribe(Session::open(&provider, 1), Verification::ScopedProofs(LaneScope::Exact(lanes[0])));
    writer.append(lanes[1], "elsewhere");
    let events = subscriber.poll_until(|events| !events.is_empty()).expect("honest");
    assert_eq!((batches(&events).len(), records(&events)), (1, 0));
    writer.append(lanes[0], "here");
    let events = subscriber.poll_until(|events| !events.is_empty()).expect("honest");
    assert_eq!((batches(&events).len(), records(&events)), (1, 1));
}

#[test]
fn credit_bounds_each_response_and_nothing_is_lost() {
    let provider = Provider::start(&fresh_directory("credit"), &["--batch-ms", "1000"]);
    let mut writer = Session::open(&provider, 2);
    let lane = writer.stream.lanes[0];
    let mut subscriber = subscribe(Session::open(&provider, 1), Verification::ScopedProofs(LaneScope::Exact(lane)));
    for number in 0..10 {
        writer.append(lane, &format!("record {number}"));
    }
    // Eight bytes of payload each: two records, then a byte credit for one, then the rest.
    assert_eq!(records(&subscriber.poll(2, 1_000).expect("honest")), 0);
    assert_eq!(subscriber.verifier.waiting(), 2);
    for (records, waiting) in [(1, 3), (3, 6), (4, 0)] {
        subscriber.poll(records, 1_000).expect("honest");
        assert_eq!(subscriber.verifier.waiting(), waiting);
    }
}

#[test]
fn an_idle_poll_ends_with_its_credit() {
    let provider = Provider::start(&fresh_directory("idle"), &["--poll-ms", "200"]);
    let scope = provider.stream().scope(2);
    let mut subscriber = subscribe(Session::open(&provider, 1), Verification::ScopedProofs(scope));
    let began = std::time::Instant::now();
    assert!(subscriber.poll(10, 100).expect("honest").is_empty());
    assert!(began.elapsed().as_millis() >= 200);
}

#[test]
fn none_tails_what_is_durable() {
    let provider = Provider::start(&fresh_directory("tail"), &["--writer", "200"]);
    let scope = provider.stream().scope(2);
    let mut subscriber = subscribe(Session::open(&provider, 1), Verification::None(scope));
    for _ in 0..5 {
        assert!(subscriber.poll(64, 1 << 20).expect("honest").is_empty());
    }
    assert!(subscriber.verifier.state().next_sequence.is_some());
}

#[test]
fn a_kill_is_a_void_and_a_signal_is_clean() {
    let data = fresh_directory("restart");
    let provider = Provider::start(&data, &["--batch-ms", "50"]);
    let mut session = Session::open(&provider, 1);
    let lane = session.stream.lanes[0];
    let result = session.append(lane, "one");
    assert!(matches!(result.record_id, RecordId::Fast(id) if id.broker_epoch == 0 && id.sequence == 0));
    let verification = Verification::ScopedProofs(LaneScope::Exact(lane));
    let mut subscriber = subscribe(session, verification.clone());
    if subscriber.verifier.state().tail.is_none() {
        subscriber.session.append(lane, "two");
        subscriber.poll_until(|events| !events.is_empty()).expect("honest");
    }
    let mut known = (subscriber.boundary(), subscriber.verifier.state().clone());
    let mut stop: Box<dyn FnOnce()> = Box::new(move || provider.kill());
    for (epoch, kind) in [(1, TransitionKind::Void), (2, TransitionKind::Clean), (3, TransitionKind::Void)] {
        stop();
        let provider = Provider::start(&data, &["--batch-ms", "50"]);
        let mut session = Session::open(&provider, 1);
        assert!(
            matches!(session.append(lane, "next").record_id, RecordId::Fast(id) if (id.broker_epoch, id.sequence) == (epoch, 0))
        );
        let opened = Subscriber::open_with_events(session, verification.clone(), Some(known.0), known.1);
        let (mut subscriber, mut events) = opened.unwrap_or_else(|refusal| panic!("{refusal:?}"));
        if batches(&events).is_empty() {
            events.extend(subscriber.poll_until(|events| !batches(events).is_empty()).expect("honest"));
        }
        let Event::Transition(transition) = &events[0] else { panic!("{events:?}") };
        assert_eq!((transition.kind, transition.replacement_broker_epoch), (kind, epoch));
        assert_eq!(transition.previous_lineage, Some(FastLineage::new(epoch - 1)));
        assert_eq!(transition.last_durable_sequence, Some(known.0.sequence));
        assert_eq!(records(&events), 1);
        known = (subscriber.boundary(), subscriber.verifier.state().clone());
        stop = if epoch == 1 { Box::new(move || provider.terminate()) } else { Box::new(move || provider.kill()) };
    }
}

#[test]
fn what_was_only_provisional_is_void_after_a_kill() {
    let data = fresh_directory("provisional");
    let provider = Provider::start(&data, &["--batch-ms", "1000", "--batch-records", "2"]);
    let mut session = Session::open(&provider, 1);
    let lane = session.stream.lanes[0];
    let verification = Verification::ScopedProofs(LaneScope::Exact(lane));
    session.append(lane, "durable");
    session.append(lane, "durable too");
    // Answered, but in a batch that stays open for a second.
    session.append(lane, "provisional");
    provider.kill();
    let provider = Provider::start(&data, &[]);
    let session = Session::open(&provider, 1);
    let (mut subscriber, events) = Subscriber::open_with_events(session, verification, None, FastState::default())
        .unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let [Event::Transition(transition)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((transition.kind, transition.last_durable_sequence), (TransitionKind::Void, Some(1)));
    assert_eq!(transition.last_provisional_sequence, None);
    subscriber.session.append(lane, "again");
    let events = subscriber.poll_until(|events| !events.is_empty()).expect("honest");
    assert_eq!((batches(&events)[0].receipt().broker_epoch, records(&events)), (1, 1));
}
