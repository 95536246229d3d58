//! Random schedules of faults, and a crash at every storage step: nothing is lost, nothing is repeated.

use remuda_client::{Event, SubscriptionSpec, SubscriptionState};
use remuda_session::Transports;

use crate::honest::three_lanes;
use crate::provider::settings;
use crate::schedules::{run_all, share};
use crate::weather::Weather;
use crate::world::{simulate, CrashAt, World};

/// Lets a world that was through anything come to rest, and checks what it kept. Gives how many appends are repeated.
async fn settle_and_check(world: &mut World, client: usize, specs: &[SubscriptionSpec]) -> usize {
    world.weather = Weather::FAIR;
    world.crash_at = None;
    if !world.provider.is_running() {
        world.provider.restart();
    }
    let rests = |world: &mut World| {
        for spec in specs {
            // Failures that repeating cannot help are the application's to start again; what is under way may still fail.
            world.with_engine(client, |engine, _| engine.subscribe(spec.clone()));
        }
        world.caught_up(client)
    };
    for _ in 0..2 {
        let there = world.run_until(300_000, rests).await;
        let states: Vec<_> =
            world.clients[client].engine.subscriptions().values().map(|it| it.state().clone()).collect();
        assert!(there, "{states:?} {:?}", world.failures(client));
        world.write_some(5).await;
        world.run_for(500).await;
    }
    assert!(world.run_until(60_000, rests).await);
    for spec in specs {
        world.check(spec.key(&world.provider.context(), &world.provider.stream_id()), &spec.scope());
    }
    let (codes, repeated) = world.check_appends_kept();
    assert_eq!(codes, Vec::<String>::new());
    repeated.len()
}

#[test]
fn a_crash_at_every_storage_step() {
    let script = async |world: &mut World, crash_at: Option<CrashAt>| {
        let specs = [three_lanes(world), SubscriptionSpec::FullStream];
        let client = world.open_client(specs.to_vec());
        // Before the first checkpoint is kept there is no promise yet: a reader begins where the provider stands.
        world.run_for(300).await;
        world.write_some(8).await;
        assert!(
            world.run_until(5_000, |world| world.provider.head().next_sequence > 0 && world.caught_up(client)).await
        );
        world.storage_steps = 0;
        world.crash_at = crash_at;
        for round in 0..6 {
            world.write_some(8).await;
            world.run_for(200).await;
            if round == 3 {
                assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
                world.provider.kill().await;
                world.provider.restart();
            }
        }
        let steps = world.storage_steps;
        assert_eq!(settle_and_check(world, client, &specs).await, 0, "nothing is repeated");
        steps
    };
    let steps = simulate(settings(), 20, async |world| script(world, None).await);
    assert!(steps >= 12, "{steps} steps: two for each round");
    for step in 1..=steps {
        simulate(settings(), 20, async |world| script(world, Some(CrashAt(step))).await);
    }
}

/// A challenge that lay here while we slept is nobody's fault, and is asked for again.
const NOBODYS_FAULT: &str = "protocol/challenge-expired";

/// One random schedule; gives everything that was told, how often a tab crashed, a provider restarted and a tab froze, how many
/// appends there were, and how many of them are repeated.
fn schedule(seed: u64, transports: Transports) -> (Vec<(u64, Event)>, [u32; 5]) {
    let mut settings = settings();
    settings.poll_ms = 5_000;
    settings.session_ms = 60_000;
    simulate(settings, seed, async |world| {
        world.transports = transports;
        let specs = [three_lanes(world), SubscriptionSpec::FullStream];
        let client = world.open_client(specs.to_vec());
        let lanes = world.provider.lanes();
        let mut counts = [0; 3];
        // The first checkpoint is what every later one is linked to: it is not to be missed.
        world.run_for(1_000).await;
        world.write_some(3).await;
        assert!(
            world.run_until(10_000, |world| world.provider.head().next_sequence > 0 && world.caught_up(client)).await
        );
        world.weather = Weather::FOUL;
        for _ in 0..40 {
            match world.random.below(12) {
                0..4 => {
                    let count = 1 + world.random.below(6);
                    world.write_some(count).await;
                }
                4 => {
                    for _ in 0..=world.random.below(4) {
                        let lane = lanes[usize::try_from(world.random.below(6)).expect("few")];
                        world.append(client, lane);
                    }
                }
                5 => {
                    world.crash(client);
                    counts[0] += 1;
                }
                // A cursor of the lineage before the last is too old: one restart at a time.
                action @ 6..8 if has_checkpoint_of_this_lineage(world, client) => {
                    if action == 6 {
                        world.provider.kill().await;
                    } else {
                        world.provider.stop().await;
                    }
                    let down_ms = world.random.below(5_000);
                    world.run_for(down_ms).await;
                    world.provider.restart();
                    counts[1] += 1;
                }
                8 => {
                    world.clients[client].frozen_until_ms = world.now_ms() + world.random.below(90_000);
                    counts[2] += 1;
                }
                9 => world.provider.advance(),
                10 => world.with_engine(client, |engine, now_ms| engine.handle_online(now_ms)),
                _ => world.weather.slow_disk_ms = world.random.below(2) * world.random.below(2_000),
            }
            let pause_ms = world.random.below(1_500);
            world.run_for(pause_ms).await;
            for spec in &specs {
                let key = spec.key(&world.provider.context(), &world.provider.stream_id());
                let failed = world.clients[client].engine.subscriptions().get(&key).expect("subscribed");
                if *failed.state() == SubscriptionState::Failed {
                    world.with_engine(client, |engine, _| engine.subscribe(spec.clone()));
                }
            }
        }
        let repeated = settle_and_check(world, client, &specs).await;
        for code in world.failures(client) {
            let blames_the_peer = code.starts_with("verify/") && code != "verify/key-unresolved"
                || code.starts_with("protocol/") && code != NOBODYS_FAULT
                || code.starts_with("evidence/")
                || code.starts_with("misuse/");
            assert!(!blames_the_peer, "seed {seed}: an honest peer is accused of {code}");
        }
        let [crashes, restarts, freezes] = counts;
        let [appends, repeated] = [world.appended.len(), repeated].map(|count| u32::try_from(count).expect("few"));
        (world.clients[client].events.clone(), [crashes, restarts, freezes, appends, repeated])
    })
}

fn has_checkpoint_of_this_lineage(world: &World, client: usize) -> bool {
    let lineage = world.provider.head().broker_epoch;
    let subscriptions = world.clients[client].engine.subscriptions();
    world.provider.is_running()
        && subscriptions.values().all(|it| it.boundary().checkpoint().is_some_and(|end| end.broker_epoch == lineage))
}

/// In turn, so that every transport meets every fault.
const fn transports_of(seed: u64) -> Transports {
    match seed % 3 {
        0 => Transports::LongPoll,
        1 => Transports::WebSocket,
        _ => Transports::Both,
    }
}

#[test]
fn on_any_schedule_nothing_is_lost_and_no_record_comes_twice() {
    let total = run_all("fast", share(80), |seed| {
        let (events, counts) = schedule(seed, transports_of(seed));
        assert!(events.len() > 50, "seed {seed}");
        counts
    });
    println!("fast: crashes, restarts, freezes, appends, appends made again: {total:?}");
    let [counts @ .., appends, repeated] = total;
    assert!(counts.iter().all(|count| *count > 10), "crashes, restarts, freezes: {total:?}");
    assert!(repeated * 500 <= appends.max(500), "one in 500 at most, where a connection is dead for long: {total:?}");
}

#[test]
fn the_same_seed_is_the_same_story() {
    for seed in 1_000..1_002 {
        let story = || schedule(seed, transports_of(seed));
        let ((events, counts), (again, counts_again)) = (story(), story());
        let differ = events.iter().zip(&again).find(|(event, again)| event != again);
        assert_eq!((differ, counts), (None, counts_again), "seed {seed}");
        assert_eq!(events.len(), again.len(), "seed {seed}");
    }
}
