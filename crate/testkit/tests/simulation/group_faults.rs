//! Consumer groups under every fault: a provider that lies, or forgets, or dies; a tab that dies, a link and a disk that fail.

use std::collections::BTreeSet;

use clap::ValueEnum;
use remuda_client::{Decision, SubscriptionSpec, SubscriptionState};
use remuda_dev_provider::lie::{Lie, Part};
use remuda_dev_provider::settings::Settings;
use remuda_position::Boundary;
use remuda_session::Transports;

use crate::consumer::{clear, config, create, fill, Application, BOTH};
use crate::schedules::{run_all, share};
use crate::weather::Weather;
use crate::world::{simulate, CrashAt, World};

#[test]
fn a_provider_that_lost_the_receipts_of_a_group_is_found_out() {
    simulate(clear(), 83, async |world| {
        let config = config(world, |_| {});
        let mut app = Application::begin(world, config.clone()).await;
        fill(world, app.client, 2).await;
        app.given(world, &[(0, 1), (1, 1)]).await;
        let before = world.position(app.key).expect("a position");
        world.provider.begin_again().await;
        let writer = world.open_client(Vec::new());
        world.run_for(2_000).await;
        create(world, writer, config).await;
        world.crash(app.client);
        let failed = |world: &mut World| *app.state(world) == SubscriptionState::Failed;
        assert!(world.run_until(120_000, failed).await, "{:?}", world.failures(app.client));
        let (failure, _) = world.clients[app.client].engine.subscriptions()[&app.key].failure().expect("a failure");
        assert_eq!(failure.code, "provider/cursor-too-old");
        assert_eq!(world.position(app.key), Some(before), "what we hold is kept");
    });
}

#[test]
fn every_lie_about_leases_is_caught() {
    for lie in Lie::value_variants().iter().filter(|lie| lie.part() == Part::Group) {
        for transports in BOTH {
            caught(*lie, transports);
        }
    }
}

fn caught(lie: Lie, transports: Transports) {
    simulate(Settings { lies: vec![lie], ..clear() }, 84, async |world| {
        world.transports = transports;
        let config = config(world, |_| {});
        let mut app = Application::begin(world, config).await;
        let mut rounds = 0;
        while *app.state(world) != SubscriptionState::Failed {
            fill(world, app.client, 2).await;
            world.run_for(500).await;
            app.read(world);
            rounds += 1;
            assert!(rounds < 50, "never caught: {:?}", world.failures(app.client));
        }
        let failures = world.failures(app.client);
        assert!(!failures.is_empty() && failures.iter().all(|code| code == lie.verdict()), "{lie:?}: {failures:?}");
        assert!(app.given.len() >= 3, "the honest deliveries were told: {:?}", app.given);
        let (given, position) = (app.given.len(), world.position(app.key).expect("honest receipts came first"));
        // Whoever comes back is lied to again, and the position does not move past the lie. Attempts and places in the queue are
        // judged of what was seen of a cycle (`RESOLUTIONS.md` §10), which is nothing behind a cursor.
        let needs_history = matches!(lie, Lie::SkipAttempt | Lie::ReuseQueuePosition);
        world.crash(app.client);
        fill(world, app.client, 1).await;
        world.run_for(5_000).await;
        app.read(world);
        assert!(needs_history || app.given.len() == given, "{lie:?}: nothing that is a lie is told");
        let failures = world.failures(app.client);
        assert!(failures.iter().all(|code| code == lie.verdict()), "{lie:?}: {failures:?}");
        let position = Boundary::stored(app.key, position).group_receipt().expect("of a group");
        assert!(world.provider.has_receipt(app.group, &position), "{lie:?}: it is at a receipt of the chain");
    });
}

/// Every record is acknowledged by an application that acknowledges what it is given, wherever anything breaks.
async fn consume_all(world: &mut World, app: &mut Application, count: u64) {
    world.weather = Weather::FAIR;
    world.crash_at = None;
    if !world.provider.is_running() {
        world.provider.restart();
    }
    let mut waited = 0;
    let given = |app: &Application| app.given.iter().map(|(sequence, _)| *sequence).collect::<BTreeSet<_>>();
    while given(app) != (0..count).collect() || !world.provider.group(app.group).1 || !app.is_at_tail(world) {
        world.with_engine(app.client, |engine, _| engine.subscribe(SubscriptionSpec::Group(app.group)));
        work(world, app);
        world.run_for(1_000).await;
        waited += 1;
        assert!(waited < 900, "{:?} {:?} {:?}", app.state(world), app.given, world.failures(app.client));
    }
    for code in world.failures(app.client) {
        let blames = code.starts_with("verify/") && code != "verify/key-unresolved" || code.starts_with("protocol/");
        assert!(!blames || code == "protocol/challenge-expired", "an honest peer is accused of {code}");
    }
}

fn work(world: &mut World, app: &mut Application) {
    for delivery in app.read(world) {
        let lease = delivery.lease.as_ref().expect("a lease").reference.lease_id;
        app.decide(world, lease, Decision::Ack);
    }
}

#[test]
fn a_crash_at_every_storage_step_of_a_consumer() {
    let script = async |world: &mut World, crash_at: Option<CrashAt>| {
        let config = config(world, |config| {
            config.visibility_timeout_ms = 3_000;
            config.max_attempts = 100;
        });
        let mut app = Application::begin(world, config).await;
        world.storage_steps = 0;
        world.crash_at = crash_at;
        for _ in 0..4 {
            fill(world, app.client, 2).await;
            work(world, &mut app);
            world.run_for(300).await;
        }
        let steps = world.storage_steps;
        consume_all(world, &mut app, 8).await;
        steps
    };
    let steps = simulate(clear(), 88, async |world| script(world, None).await);
    assert!(steps >= 12, "{steps} steps");
    for step in 1..=steps {
        simulate(clear(), 88, async |world| script(world, Some(CrashAt(step))).await);
    }
}

fn schedule(seed: u64, transports: Transports) -> [u32; 3] {
    let settings = Settings { session_ms: 60_000, ..clear() };
    simulate(settings, seed, async |world| {
        world.transports = transports;
        let config = config(world, |config| {
            config.visibility_timeout_ms = 4_000;
            config.max_attempts = 100;
        });
        let mut app = Application::begin(world, config).await;
        let mut counts = [0; 3];
        world.weather = Weather::FOUL;
        for _ in 0..25 {
            match world.random.below(8) {
                0..4 => {
                    let lane = world.lanes[0];
                    world.append(app.client, lane);
                    counts[0] += 1;
                }
                4 => {
                    world.crash(app.client);
                    counts[1] += 1;
                }
                5 if world.provider.is_running() => {
                    world.provider.kill().await;
                    let down_ms = world.random.below(5_000);
                    world.run_for(down_ms).await;
                    world.provider.restart();
                    counts[2] += 1;
                }
                6 => world.clients[app.client].frozen_until_ms = world.now_ms() + world.random.below(60_000),
                _ => world.weather.slow_disk_ms = world.random.below(2) * world.random.below(1_000),
            }
            work(world, &mut app);
            let pause_ms = world.random.below(1_500);
            world.run_for(pause_ms).await;
        }
        world.weather = Weather::FAIR;
        let ended = |world: &mut World| world.appended.keys().all(|entry| world.has_ended(*entry));
        assert!(world.run_until(300_000, ended).await, "{:?}", world.failures(app.client));
        consume_all(world, &mut app, u64::from(counts[0])).await;
        counts
    })
}

#[test]
fn on_any_schedule_every_record_is_consumed() {
    let total = run_all("groups", share(10), |seed| {
        schedule(
            seed,
            [Transports::LongPoll, Transports::WebSocket, Transports::Both][usize::try_from(seed % 3).expect("few")],
        )
    });
    assert!(total.iter().all(|count| *count > 5), "appends, crashes, restarts: {total:?}");
}
