//! Tails: what comes is painted at once, and what a verifying subscription confirms later is the same.

use remuda_client::{Event, SubscriptionSpec, TailKey};
use remuda_position::StoredItemBody;
use remuda_session::Transports;
use remuda_wire::record::{FastRecordId, RecordId};
use remuda_wire::scope::LaneScope;

use crate::honest::three_lanes;
use crate::provider::settings;
use crate::weather::Weather;
use crate::world::{simulate, World};

/// What a tail painted, in order.
fn painted(world: &World, client: usize, tail: TailKey) -> Vec<FastRecordId> {
    let paint = |event: &Event| match event {
        Event::Painted { key, record } if *key == tail => match record.record_id {
            RecordId::Fast(id) => Some(id),
            RecordId::Standard(_) => panic!("a standard record in a fast stream"),
        },
        _ => None,
    };
    world.clients[client].events.iter().filter_map(|(_, event)| paint(event)).collect()
}

fn confirmed(world: &World, spec: &SubscriptionSpec) -> Vec<FastRecordId> {
    let key = spec.key(&world.provider.context(), &world.provider.stream_id());
    let record = |body| match body {
        StoredItemBody::Record(record) => Some(record.record_id),
        _ => None,
    };
    world.items(key).into_iter().filter_map(|item| record(item.body)).collect()
}

#[test]
fn a_record_is_painted_while_its_commit_is_under_way_and_confirmed_after() {
    for transports in [Transports::LongPoll, Transports::WebSocket] {
        simulate(settings(), 70, async |world| {
            world.transports = transports;
            let spec = three_lanes(world);
            let client = world.open_client(vec![spec.clone()]);
            world.run_for(500).await;
            world.write_some(10).await;
            assert!(world.run_until(10_000, |world| world.caught_up(client)).await);
            let scope = spec.scope();
            let tail = world.with_engine(client, |engine, now_ms| engine.tail(scope.clone(), now_ms));
            world.run_for(1_000).await;
            let before = confirmed(world, &spec);
            world.weather.slow_disk_ms = 3_000;
            world.write_some(30).await;
            world.run_for(1_000).await;
            let early = painted(world, client, tail);
            assert!(!early.is_empty(), "painted while the disk is slow");
            assert_eq!(confirmed(world, &spec), before, "nothing of it is confirmed yet");
            assert!(world.run_until(10_000, |world| world.caught_up(client)).await);
            assert_eq!(confirmed(world, &spec)[before.len()..], early);
            // The same lanes once more are the same tail; ended, it paints no more.
            assert_eq!(world.with_engine(client, |engine, now_ms| engine.tail(scope, now_ms)), tail);
            world.with_engine(client, |engine, now_ms| engine.end_tail(tail, now_ms));
            world.write_some(10).await;
            world.run_for(5_000).await;
            assert_eq!(painted(world, client, tail), early);
            assert_eq!(world.failures(client), Vec::<String>::new());
        });
    }
}

#[test]
fn a_tail_goes_on_over_cuts_and_restarts_in_order() {
    for (seed, transports) in [(71, Transports::LongPoll), (72, Transports::WebSocket), (73, Transports::Both)] {
        simulate(settings(), seed, async |world| {
            world.transports = transports;
            let client = world.open_client(vec![three_lanes(world)]);
            world.run_for(500).await;
            let tail = world.with_engine(client, |engine, now_ms| engine.tail(LaneScope::Any, now_ms));
            world.run_for(500).await;
            world.weather = Weather::FOUL;
            for round in 0..40 {
                world.write_some(5).await;
                world.run_for(500).await;
                if round % 10 == 5 && world.caught_up(client) {
                    world.provider.kill().await;
                    world.run_for(1_000).await;
                    world.provider.restart();
                }
            }
            world.weather = Weather::FAIR;
            // A connection that hangs is given up after its request's time.
            world.run_for(180_000).await;
            let so_far = painted(world, client, tail).len();
            world.write_some(5).await;
            world.run_for(1_000).await;
            let painted = painted(world, client, tail);
            assert_eq!(painted.len(), so_far + 5, "it lives");
            assert!(so_far > 60, "{so_far}");
            let place = |id: &FastRecordId| (id.broker_epoch, id.sequence);
            assert!(painted.windows(2).all(|pair| place(&pair[0]) < place(&pair[1])), "in order, none twice");
        });
    }
}
