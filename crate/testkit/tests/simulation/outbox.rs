//! Appends through the outbox: whatever breaks, nothing is lost, nothing is repeated, and every lane keeps its order.

use remuda_client::{Append, Connection, Event, SubscriptionSpec};
use remuda_dev_provider::refusal::Code;
use remuda_dev_provider::settings::{Class, Settings};
use remuda_position::outbox::OutboxState;
use remuda_session::Transports;
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes, Bytes32};

use crate::provider::settings;
use crate::weather::Weather;
use crate::world::{simulate, CrashAt, World};

const HOUR_MS: u64 = 3_600_000;
const CLASSES: [Class; 2] = [Class::Standard, Class::Fast];
const TRANSPORTS: [Transports; 2] = [Transports::LongPoll, Transports::WebSocket];

fn of(class: Class) -> Settings {
    Settings { class, poll_ms: 5_000, retention_ms: Some(7 * 24 * HOUR_MS), ..settings() }
}

fn everything(class: Class) -> SubscriptionSpec {
    match class {
        Class::Fast => SubscriptionSpec::FullStream,
        Class::Standard => SubscriptionSpec::StandardReplay(LaneScope::Any),
    }
}

/// A client that has begun: what comes from here on is linked to what it has.
async fn begun(world: &mut World, class: Class) -> usize {
    let client = world.open_client(vec![everything(class)]);
    world.run_for(500).await;
    let first = world.append(client, world.lanes[0]);
    assert!(world.run_until(10_000, |world| world.has_ended(first)).await, "{:?}", world.failures(client));
    client
}

/// Appends to three lanes, in turn.
fn append_some(world: &mut World, client: usize, times: usize) {
    for place in 0..3 * times {
        world.append(client, world.lanes[place % 3]);
    }
}

async fn all_end(world: &mut World, client: usize) {
    let ended = |world: &mut World| world.appended.keys().all(|entry| world.has_ended(*entry));
    let there = world.run_until(300_000, ended).await;
    let open: Vec<_> = world.appended.keys().filter(|entry| !world.has_ended(**entry)).collect();
    assert!(there, "{open:?} wait: {:?}", world.failures(client));
    // What is in the database is told.
    world.run_for(200).await;
}

#[test]
fn offline_for_a_day_and_back() {
    for class in CLASSES {
        simulate(of(class), 30, async |world| {
            let client = begun(world, class).await;
            world.provider.stop().await;
            append_some(world, client, 3);
            world.run_for(12 * HOUR_MS).await;
            append_some(world, client, 3);
            world.run_for(11 * HOUR_MS).await;
            let posts = world.clients[client].posts;
            assert!(posts < 20_000, "{posts} frames in a day: what cannot be sent is not tried without end");
            world.provider.restart();
            // The grant of yesterday has an hour left.
            all_end(world, client).await;
            assert_eq!(world.check_appends(), Vec::<String>::new());
            // Beyond the grant the page is opened anew, with another.
            world.provider.stop().await;
            append_some(world, client, 2);
            world.run_for(6 * HOUR_MS).await;
            world.provider.restart();
            world.crash(client);
            all_end(world, client).await;
            assert_eq!(world.check_appends(), Vec::<String>::new());
        });
    }
}

/// One life with appends in foul and fair weather, a killed provider in the middle, and a crash where it is said.
async fn life(world: &mut World, class: Class, crash_at: Option<CrashAt>) -> u64 {
    let client = begun(world, class).await;
    world.storage_steps = 0;
    world.crash_at = crash_at;
    append_some(world, client, 1);
    world.run_for(60).await;
    append_some(world, client, 1);
    world.run_for(400).await;
    world.provider.kill().await;
    append_some(world, client, 1);
    world.run_for(1_000).await;
    world.provider.restart();
    world.run_for(2_000).await;
    let steps = world.storage_steps;
    world.crash_at = None;
    all_end(world, client).await;
    assert_eq!(world.check_appends(), Vec::<String>::new(), "{crash_at:?}");
    steps
}

#[test]
fn a_crash_at_every_storage_step() {
    for class in CLASSES {
        let run = |crash_at| simulate(of(class), 31, async |world| life(world, class, crash_at).await);
        let steps = run(None);
        assert!(steps >= 20, "{steps} steps");
        for step in 1..=steps {
            run(Some(CrashAt(step)));
        }
    }
}

#[test]
fn a_crash_at_every_moment_between_sending_and_its_answer() {
    for (class, transports) in CLASSES.into_iter().zip(TRANSPORTS) {
        for step in 0..24 {
            simulate(of(class), 100 + step, async |world| {
                world.transports = transports;
                let client = begun(world, class).await;
                append_some(world, client, 1);
                world.run_for(step * 5).await;
                world.crash(client);
                append_some(world, client, 1);
                all_end(world, client).await;
                assert_eq!(world.check_appends(), Vec::<String>::new(), "in step {step}");
            });
        }
    }
}

#[test]
fn what_one_tab_queued_the_next_owner_sends() {
    for class in CLASSES {
        simulate(of(class), 33, async |world| {
            let first = begun(world, class).await;
            append_some(world, first, 2);
            world.run_for(30).await;
            let second = world.open_client(vec![everything(class)]);
            append_some(world, second, 1);
            // The first still appends: it owns nothing, and its rows are as good.
            append_some(world, first, 1);
            world.with_engine(second, |engine, _| engine.handle_enqueued());
            all_end(world, second).await;
            assert_eq!(world.check_appends(), Vec::<String>::new());
            assert_eq!(*world.clients[first].engine.connection(), Connection::Closed);
        });
    }
}

#[test]
fn what_a_void_takes_back_is_sent_again_as_the_same_bytes_and_said() {
    let mut settings = of(Class::Fast);
    settings.batch_ms = 1_000;
    simulate(settings, 34, async |world| {
        let client = begun(world, Class::Fast).await;
        append_some(world, client, 1);
        let provisional = |world: &mut World| {
            let open = world.appended.keys().filter(|entry| !world.has_ended(**entry));
            open.into_iter().all(|entry| matches!(world.state(*entry), Some(OutboxState::Provisional(_))))
        };
        assert!(world.run_until(900, provisional).await, "acknowledged before their batch");
        world.provider.kill().await;
        world.run_for(2_000).await;
        world.provider.restart();
        all_end(world, client).await;
        assert_eq!(world.check_appends(), Vec::<String>::new());
        let told = world.clients[client].events.iter().filter_map(|(_, event)| match event {
            Event::Transition { transition, .. } => Some(transition.returned),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [3], "a void is never silent");
        for (entry, appended) in world.appended.iter().skip(1) {
            let told = world.clients[client].events.iter().filter_map(|(_, event)| match event {
                Event::Append(update) if update.number == *entry => Some(update.state.clone()),
                _ => None,
            });
            let told: Vec<_> = told.collect();
            let [.., OutboxState::Provisional(first), OutboxState::Queued, OutboxState::Sent, _, OutboxState::Durable(_)] =
                &told[..]
            else {
                panic!("{told:?}")
            };
            assert_eq!(first.broker_epoch, 0);
            let records = world.provider.durable(&LaneScope::Any);
            let record = records.iter().find(|(_, it)| it.header.client_message_id == appended.client_message_id);
            let (id, record) = record.expect("a record");
            assert_eq!((id.broker_epoch, record.header), (1, appended.header()));
            assert_eq!(record.payload, appended.payload, "byte for byte");
        }
    });
}

fn message(world: &World, id: u8, lane: usize, payload: &str) -> Append {
    Append {
        lane_id: world.lanes[lane],
        client_message_id: Bytes32([id; 32]),
        client_created_at_ms: world.now_ms(),
        expires_at_ms: 0,
        payload: Bytes::new(payload.as_bytes().to_vec()).expect("short"),
    }
}

/// The code and the remedy that an entry failed with.
fn failure(world: &World, entry: u64) -> (String, String) {
    match world.state(entry) {
        Some(OutboxState::Failed(failure)) => (failure.code.to_string(), failure.remedy.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_id_used_for_two_messages_ends_the_second_and_blocks_nothing() {
    simulate(of(Class::Standard), 35, async |world| {
        let client = begun(world, Class::Standard).await;
        let first = message(world, 1, 0, "one");
        let second = message(world, 1, 0, "two");
        let entries = [first, second].map(|append| world.enqueue(client, append));
        let third = world.append(client, world.lanes[0]);
        all_end(world, client).await;
        assert!(matches!(world.state(entries[0]), Some(OutboxState::Durable(_))));
        let conflict = ("provider/idempotency-conflict".to_owned(), "fix-request".to_owned());
        assert_eq!(failure(world, entries[1]), conflict);
        assert!(matches!(world.state(third), Some(OutboxState::Durable(_))));
        // Seen, and forgotten.
        world.with_engine(client, |engine, now_ms| engine.dismiss(entries[1], now_ms));
        world.run_for(1_000).await;
        assert_eq!((world.state(entries[1]), world.clients[client].engine.outbox().failed), (None, 0));
    });
}

#[test]
fn beyond_the_horizon_an_unknown_outcome_is_said_and_no_new_id_is_made() {
    let mut settings = of(Class::Standard);
    settings.session_ms = 3 * 24 * HOUR_MS;
    simulate(settings, 36, async |world| {
        let client = begun(world, Class::Standard).await;
        // The provider takes it, and its answer is lost with everything else.
        world.weather.lose_answer = 1_000;
        let entry = world.append(client, world.lanes[0]);
        world.run_for(300).await;
        world.provider.stop().await;
        world.weather = Weather::FAIR;
        let queued = world.append(client, world.lanes[1]);
        world.run_for(24 * HOUR_MS + 120_000).await;
        world.provider.restart();
        world.crash(client);
        all_end(world, client).await;
        let expired = ("provider/idempotency-expired".to_owned(), "surface".to_owned());
        assert_eq!(failure(world, entry), expired);
        assert_eq!(failure(world, queued), expired, "too old to be known as new");
        let message = world.appended[&entry].client_message_id;
        assert_eq!(world.provider.messages().iter().filter(|it| **it == message).count(), 1, "it was there all along");
        assert_eq!(world.provider.messages().len(), 2, "and nothing else was appended for it");
    });
}

#[test]
fn a_record_that_expired_before_it_could_be_sent_is_not_sent() {
    simulate(of(Class::Fast), 37, async |world| {
        let client = begun(world, Class::Fast).await;
        world.provider.stop().await;
        world.run_for(2_000).await;
        let mut append = message(world, 7, 0, "soon stale");
        append.expires_at_ms = world.now_ms() + 5_000;
        let entry = world.enqueue(client, append);
        world.run_for(60_000).await;
        assert_eq!(failure(world, entry), ("outbox/expired".to_owned(), "fix-request".to_owned()));
    });
}

#[test]
fn refusals_that_time_mends_pace_it_and_others_end_one_entry() {
    simulate(of(Class::Standard), 38, async |world| {
        // Without subscriptions every request is an append.
        let client = world.open_client(Vec::new());
        world.run_for(500).await;
        for code in [Code::Backpressure, Code::RateLimited, Code::ChainStateStale] {
            world.provider.refuse(code, 4);
            append_some(world, client, 1);
            let began_ms = world.now_ms();
            all_end(world, client).await;
            assert!(world.now_ms() - began_ms < 60_000);
        }
        assert_eq!(world.check_appends(), Vec::<String>::new());
        for code in [Code::MessageTooLarge, Code::VerbDenied, Code::LaneScopeDenied, Code::EncryptionGenerationStale] {
            world.provider.refuse(code, 1);
            let [first, second] = [0, 0].map(|lane| world.append(client, world.lanes[lane]));
            all_end(world, client).await;
            assert_eq!(failure(world, first).1, "fix-request");
            assert!(matches!(world.state(second), Some(OutboxState::Durable(_))), "the next one goes on");
        }
        // Of the credential, not of the record: it waits for another session.
        world.provider.refuse(Code::GrantExpired, 1);
        let entry = world.append(client, world.lanes[0]);
        world.run_for(60_000).await;
        assert_eq!(world.state(entry), Some(OutboxState::Sent));
        world.with_engine(client, |engine, now_ms| engine.handle_online(now_ms));
        all_end(world, client).await;
        assert_eq!(world.check_appends().len(), 4);
    });
}

#[test]
fn an_acknowledgement_is_never_shown_as_durable() {
    simulate(of(Class::Fast), 39, async |world| {
        // Nobody verifies: what was acknowledged stays so, however long the provider says that it is durable.
        let client = world.open_client(Vec::new());
        world.run_for(500).await;
        append_some(world, client, 10);
        world.run_for(HOUR_MS).await;
        let states: Vec<_> = world.appended.keys().map(|entry| world.state(*entry)).collect();
        assert!(states.iter().all(|state| matches!(state, Some(OutboxState::Provisional(_)))), "{states:?}");
        assert_eq!(world.clients[client].engine.outbox().provisional, 30);
        // And there is room for more: what nobody can show any more is let go, oldest first, by its code.
        append_some(world, client, 180);
        world.run_for(HOUR_MS).await;
        assert_eq!(world.clients[client].engine.outbox().provisional, 512);
        assert_eq!(failure(world, 1), ("outbox/unverified".to_owned(), "surface".to_owned()));
    });
}
