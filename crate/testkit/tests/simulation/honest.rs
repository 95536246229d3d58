//! Fair weather: everything arrives, once, in order, soon.

use remuda_client::{BatchSummary, Connection, Event, SubscriptionSpec, SubscriptionState};
use remuda_position::outbox::OutboxState;
use remuda_session::{Transport, Transports};

use crate::provider::settings;
use crate::world::{simulate, World};

/// A subscription of the first three of six lanes, and the key of its position.
pub fn three_lanes(world: &World) -> SubscriptionSpec {
    SubscriptionSpec::scoped(world.provider.scope(3)).expect("a set")
}

#[test]
fn every_durable_record_arrives_once_in_order() {
    for (offered, used) in [
        (Transports::LongPoll, Transport::LongPoll),
        (Transports::WebSocket, Transport::WebSocket),
        (Transports::Both, Transport::WebSocket),
    ] {
        every_durable_record_arrives(offered, used);
    }
}

fn every_durable_record_arrives(offered: Transports, used: Transport) {
    simulate(settings(), 1, async |world| {
        world.transports = offered;
        let scoped = three_lanes(world);
        let client = world.open_client(vec![scoped.clone(), SubscriptionSpec::FullStream]);
        let lanes = world.provider.lanes();
        world.run_for(500).await;
        let mut appended = Vec::new();
        for round in 0..40 {
            world.write_some(5).await;
            appended.push(world.append(client, lanes[round % 6]));
            world.run_for(50).await;
        }
        assert!(world.run_until(20_000, |world| world.caught_up(client)).await, "caught up");
        world.run_for(200).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client)).await, "caught up");
        let (context, stream_id) = (world.provider.context(), world.provider.stream_id());
        for spec in [scoped, SubscriptionSpec::FullStream] {
            world.check(spec.key(&context, &stream_id), &spec.scope());
        }
        assert_eq!(world.check_appends(), Vec::<String>::new());
        let tab = &world.clients[client];
        assert_eq!(world.failures(client), Vec::<String>::new());
        assert!(appended.iter().all(|entry| matches!(world.state(*entry), Some(OutboxState::Durable(_)))));
        assert_eq!(world.provider.durable(&SubscriptionSpec::FullStream.scope()).len(), 240);
        assert_eq!(tab.engine.connection(), &Connection::Open { transport: used });
        assert!(tab.engine.subscriptions().values().all(|it| *it.state() == SubscriptionState::Live));
        // Told and kept agree: every batch was told once, in order.
        for (key, subscription) in tab.engine.subscriptions() {
            let told = tab.events.iter().filter_map(|(_, event)| match event {
                Event::Batch { key: of, batch: BatchSummary { first_sequence, last_sequence, .. }, .. }
                    if of == key =>
                {
                    Some((*first_sequence, *last_sequence))
                }
                _ => None,
            });
            let told: Vec<_> = told.collect();
            assert!(told.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{told:?}");
            assert_eq!(subscription.verified().1, u64::try_from(told.len()).expect("few"));
        }
    });
}

#[test]
fn a_subscription_does_not_wait_for_a_poll_that_is_held() {
    simulate(settings(), 2, async |world| {
        let client = world.open_client(vec![three_lanes(world)]);
        world.run_for(500).await;
        world.write_some(5).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
        world.run_for(1_000).await;
        let began_ms = world.now_ms();
        let key = world.subscribe(client, SubscriptionSpec::FullStream);
        let live =
            |world: &mut World| *world.clients[client].engine.subscriptions()[&key].state() == SubscriptionState::Live;
        assert!(world.run_until(20_000, live).await, "the poll is held for 20 seconds");
        assert!(world.now_ms() - began_ms < 1_000, "{} ms", world.now_ms() - began_ms);
        let all_live = |world: &mut World| {
            let subscriptions = world.clients[client].engine.subscriptions();
            subscriptions.values().all(|it| *it.state() == SubscriptionState::Live)
        };
        assert!(world.run_until(1_000, all_live).await, "the others are back as soon");
        assert_eq!(world.failures(client), Vec::<String>::new());
    });
}
