//! Restarts, takeovers, sleep: what an engine lives through, one at a time.

use remuda_client::{Connection, Event, SubscriptionSpec, SubscriptionState};
use remuda_position::outbox::OutboxState;
use remuda_position::{StoredItemBody, StoredTransition};
use remuda_wire::transition::TransitionKind;

use crate::honest::three_lanes;
use crate::provider::settings;
use crate::weather::Weather;
use crate::world::{simulate, World};

const HOUR_MS: u64 = 3_600_000;

fn transitions(world: &World, spec: &SubscriptionSpec) -> Vec<StoredTransition> {
    let key = spec.key(&world.provider.context(), &world.provider.stream_id());
    let transition = |body| match body {
        StoredItemBody::Transition(transition) => Some(transition),
        _ => None,
    };
    world.items(key).into_iter().filter_map(|item| transition(item.body)).collect()
}

#[test]
fn a_restart_is_one_transition() {
    for (clean, kind) in [(true, TransitionKind::Clean), (false, TransitionKind::Void)] {
        simulate(settings(), 10, async |world| {
            let specs = [three_lanes(world), SubscriptionSpec::FullStream];
            let client = world.open_client(specs.to_vec());
            world.run_for(500).await;
            for epoch in 1..4 {
                world.write_some(20).await;
                assert!(world.run_until(5_000, |world| world.caught_up(client) && !is_new(world)).await);
                if clean {
                    world.provider.stop().await;
                } else {
                    world.provider.kill().await;
                }
                world.run_for(3_000).await;
                assert!(matches!(world.clients[client].engine.connection(), Connection::Waiting { .. }));
                world.provider.restart();
                assert!(world.run_until(60_000, |world| world.caught_up(client)).await, "epoch {epoch} is adopted");
            }
            world.write_some(20).await;
            world.run_for(300).await;
            assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
            for spec in &specs {
                let key = spec.key(&world.provider.context(), &world.provider.stream_id());
                world.check(key, &spec.scope());
                let stored = transitions(world, spec);
                let of =
                    |stored: &StoredTransition| (stored.transition.kind, stored.transition.replacement_broker_epoch);
                assert_eq!(stored.iter().map(of).collect::<Vec<_>>(), [(kind, 1), (kind, 2), (kind, 3)]);
                let told = world.clients[client]
                    .events
                    .iter()
                    .filter(|(_, event)| matches!(event, Event::Transition { key: of, .. } if *of == key));
                assert_eq!(told.count(), 3, "each is told once");
            }
            assert!(
                world
                    .failures(client)
                    .iter()
                    .all(|code| code.starts_with("transport/") || code == "provider/invalid-proof-of-possession"),
                "{:?}",
                world.failures(client)
            );
        });
    }
}

/// The epoch in force has no checkpoint yet.
fn is_new(world: &World) -> bool {
    world.provider.head().next_sequence == 0
}

#[test]
fn a_position_that_began_between_a_restart_and_its_first_checkpoint_can_be_resumed() {
    simulate(settings(), 11, async |world| {
        world.provider.kill().await;
        world.provider.restart();
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec.clone()]);
        world.run_for(2_000).await;
        // It has seen the transition. It is away while the epoch goes on, and comes back.
        world.clients[client].frozen_until_ms = world.now_ms() + 30_000;
        for _ in 0..5 {
            world.write_some(10).await;
            world.run_for(300).await;
        }
        world.crash(client);
        world.clients[client].frozen_until_ms = 0;
        world.run_for(2_000).await;
        world.write_some(10).await;
        world.run_for(2_000).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
        assert_eq!(world.failures(client), Vec::<String>::new());
    });
}

#[test]
fn a_cursor_that_is_too_old_is_a_failure_and_no_loop() {
    simulate(settings(), 12, async |world| {
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        world.write_some(20).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
        for _ in 0..2 {
            world.provider.kill().await;
            world.provider.restart();
        }
        let key = spec.key(&world.provider.context(), &world.provider.stream_id());
        let before = world.position(key);
        let failed = |world: &mut World| {
            *world.clients[client].engine.subscriptions()[&key].state() == SubscriptionState::Failed
        };
        assert!(world.run_until(120_000, failed).await);
        let (failure, _) = world.clients[client].engine.subscriptions()[&key].failure().expect("a failure");
        assert_eq!(failure.code, "provider/cursor-too-old");
        let posts = world.clients[client].posts;
        world.run_for(120_000).await;
        assert!(world.clients[client].posts <= posts + 1, "nothing more is asked for");
        assert_eq!(world.failures(client).iter().filter(|code| *code == "provider/cursor-too-old").count(), 1);
        assert_eq!(world.position(key), before);
    });
}

#[test]
fn of_two_owners_the_fenced_one_stops() {
    simulate(settings(), 13, async |world| {
        let spec = three_lanes(world);
        let first = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        world.write_some(20).await;
        assert!(world.run_until(5_000, |world| world.caught_up(first)).await);
        let second = world.open_client(vec![spec.clone()]);
        for _ in 0..10 {
            world.write_some(10).await;
            world.run_for(200).await;
        }
        assert!(world.run_until(5_000, |world| world.caught_up(second)).await);
        let key = spec.key(&world.provider.context(), &world.provider.stream_id());
        world.check(key, &spec.scope());
        assert_eq!(*world.clients[first].engine.connection(), Connection::Closed);
        assert_eq!(world.failures(first), ["store/fenced"]);
        assert_eq!(world.failures(second), Vec::<String>::new());
        // It stays closed, whatever it is asked for.
        let posts = world.clients[first].posts;
        let entry = world.append(first, world.provider.lanes()[0]);
        world.with_engine(first, |engine, _| engine.handle_start([1; 32]));
        world.with_engine(first, |engine, now_ms| engine.handle_online(now_ms));
        world.write_some(10).await;
        world.run_for(60_000).await;
        assert_eq!(world.clients[first].posts, posts);
        assert_eq!(world.state(entry), Some(OutboxState::Queued), "it waits for the owner to look");
        world.with_engine(second, |engine, _| engine.handle_enqueued());
        assert!(world.run_until(5_000, |world| world.has_ended(entry)).await, "who enqueues need not own");
        assert_eq!(*world.clients[first].engine.connection(), Connection::Closed);
    });
}

#[test]
fn eight_hours_of_sleep() {
    simulate(settings(), 14, async |world| {
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec.clone()]);
        let lane = world.provider.lanes()[0];
        world.run_for(500).await;
        world.write_some(20).await;
        world.append(client, lane);
        world.run_for(500).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
        world.clients[client].frozen_until_ms = world.now_ms() + 8 * HOUR_MS;
        for _ in 0..8 {
            world.write_some(30).await;
            world.run_for(HOUR_MS - 60_000).await;
        }
        world.run_for(8 * 60_000).await;
        let woke_ms = world.now_ms();
        world.append(client, lane);
        assert!(world.run_until(120_000, |world| world.caught_up(client)).await, "awake: {:?}", world.failures(client));
        assert!(world.now_ms() - woke_ms < 10_000, "{} ms", world.now_ms() - woke_ms);
        world.run_for(500).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
        world.check(spec.key(&world.provider.context(), &world.provider.stream_id()), &spec.scope());
        assert_eq!(world.check_appends(), Vec::<String>::new());
    });
}

#[test]
fn nothing_opens_under_a_commit_that_outlives_its_session() {
    simulate(settings(), 15, async |world| {
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec.clone()]);
        let key = spec.key(&world.provider.context(), &world.provider.stream_id());
        world.run_for(500).await;
        world.write_some(20).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
        let batches = world.clients[client].engine.subscriptions()[&key].verified().1;
        // The disk is busy for a minute, and the provider's connections are cut meanwhile.
        world.weather.slow_disk_ms = 60_000;
        world.write_some(20).await;
        world.run_for(1_000).await;
        world.provider.kill().await;
        world.provider.restart();
        world.run_for(30_000).await;
        let subscription = &world.clients[client].engine.subscriptions()[&key];
        assert!(matches!(subscription.state(), SubscriptionState::Due { .. }), "{:?}", subscription.state());
        world.weather = Weather::FAIR;
        assert!(world.run_until(60_000, |world| world.caught_up(client)).await);
        world.check(key, &spec.scope());
        let subscription = &world.clients[client].engine.subscriptions()[&key];
        assert_eq!(subscription.verified().1, batches + 1, "the commit was told");
    });
}

#[test]
fn a_slow_disk_holds_the_peer_back() {
    let mut settings = settings();
    settings.batch_records = 64;
    simulate(settings, 16, async |world| {
        world.credit = remuda_session::CreditTarget { records: 100_000, bytes: 1 << 40 };
        let client = world.open_client(vec![SubscriptionSpec::FullStream]);
        world.run_for(500).await;
        world.write_large(1).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
        world.weather.slow_disk_ms = 600_000;
        for _ in 0..3 {
            world.write_large(64).await;
            world.run_for(1_000).await;
        }
        // 48 MiB are durable there. Here are the batch that is being kept, what may wait, and two bodies of 4 MiB: one that
        // went over the limit, one that was under way.
        assert!(
            world.clients[client].received < (16 + 8 + 4 + 4 + 1) << 20,
            "{} bytes",
            world.clients[client].received
        );
        world.weather = Weather::FAIR;
        assert!(world.run_until(700_000, |world| world.caught_up(client)).await);
        assert!(world.clients[client].received > 48 << 20);
        let spec = SubscriptionSpec::FullStream;
        world.check(spec.key(&world.provider.context(), &world.provider.stream_id()), &spec.scope());
    });
}

#[test]
fn what_is_unsubscribed_and_subscribed_again_goes_on() {
    simulate(settings(), 17, async |world| {
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec.clone()]);
        let key = spec.key(&world.provider.context(), &world.provider.stream_id());
        world.run_for(500).await;
        world.write_some(3).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client) && !is_new(world)).await);
        for round in 0..40 {
            world.write_some(3).await;
            world.weather.slow_disk_ms = (round % 4) * 100;
            world.run_for(37 * (round % 7)).await;
            world.with_engine(client, |engine, now_ms| engine.unsubscribe(key, now_ms));
            world.run_for(11 * (round % 3)).await;
            world.with_engine(client, |engine, _| engine.subscribe(spec.clone()));
        }
        world.run_for(500).await;
        assert!(world.run_until(60_000, |world| world.caught_up(client)).await, "{:?}", world.failures(client));
        assert_eq!(world.failures(client), Vec::<String>::new());
        world.check(key, &spec.scope());
    });
}

#[test]
fn a_read_for_a_session_that_is_gone_does_not_end_what_is_waited_for_now() {
    simulate(settings(), 18, async |world| {
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec.clone()]);
        let key = spec.key(&world.provider.context(), &world.provider.stream_id());
        world.run_for(500).await;
        world.write_some(20).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client) && !is_new(world)).await);
        let batches = world.clients[client].engine.subscriptions()[&key].verified().1;
        // A batch of a new view: its key is read, slowly. The session ends meanwhile.
        world.weather.slow_read_ms = 30_000;
        world.provider.advance();
        world.write_some(20).await;
        world.run_for(1_000).await;
        world.provider.kill().await;
        world.provider.restart();
        // The next session reads it again, at once, and its commit is under way when the old answer comes.
        world.weather.slow_read_ms = 0;
        world.weather.slow_disk_ms = 60_000;
        world.run_for(100_000).await;
        world.weather = Weather::FAIR;
        assert!(world.run_until(200_000, |world| world.caught_up(client)).await);
        world.check(key, &spec.scope());
        assert_eq!(world.clients[client].engine.subscriptions()[&key].verified().1, batches + 1, "it was told");
        assert!(!world.failures(client).iter().any(|code| code.starts_with("store/")), "{:?}", world.failures(client));
    });
}

#[test]
fn a_session_that_the_provider_forgot_fails_no_subscription() {
    simulate(settings(), 19, async |world| {
        let client = world.open_client(Vec::new());
        world.run_for(500).await;
        world.provider.kill().await;
        world.provider.restart();
        let spec = three_lanes(world);
        let key = world.subscribe(client, spec.clone());
        let lane = world.provider.lanes()[0];
        world.run_for(10_000).await;
        assert_eq!(*world.clients[client].engine.subscriptions()[&key].state(), SubscriptionState::Live);
        world.append(client, lane);
        world.run_for(500).await;
        world.provider.kill().await;
        world.provider.restart();
        let entry = world.append(client, lane);
        // It had no effect in the session that was forgotten, so it is sent once more in the next.
        assert!(world.run_until(10_000, |world| world.has_ended(entry)).await, "{:?}", world.state(entry));
        assert!(world.run_until(10_000, |world| world.caught_up(client) && !is_new(world)).await);
        world.check(key, &spec.scope());
    });
}

#[test]
fn an_answer_for_a_subscription_that_left_is_not_that_of_the_next() {
    simulate(settings(), 20, async |world| {
        let spec = three_lanes(world);
        let client = world.open_client(Vec::new());
        world.run_for(500).await;
        for delay_ms in 1..40 {
            let key = world.subscribe(client, spec.clone());
            world.run_for(delay_ms).await;
            world.with_engine(client, |engine, now_ms| engine.unsubscribe(key, now_ms));
            world.weather.unreadable = 1_000;
            world.subscribe(client, spec.clone());
            world.run_for(100).await;
            let state = world.clients[client].engine.subscriptions()[&key].state().clone();
            assert!(matches!(state, SubscriptionState::Opening | SubscriptionState::Due { .. }), "{state:?}");
            world.weather = Weather::FAIR;
            world.with_engine(client, |engine, now_ms| engine.unsubscribe(key, now_ms));
        }
        let key = world.subscribe(client, spec);
        world.run_for(5_000).await;
        assert_eq!(*world.clients[client].engine.subscriptions()[&key].state(), SubscriptionState::Live);
    });
}
