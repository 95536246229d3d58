//! What a position is for: whoever has one goes on from it, and a provider that goes back is found out by it.

use remuda_client::{SubscriptionSpec, SubscriptionState};
use remuda_position::Boundary;
use remuda_session::Transports;
use remuda_wire::chain::BrokerState;
use remuda_wire::request::SubscriptionSource;
use remuda_wire::scope::LaneScope;
use remuda_wire::Canonical;

use crate::honest::three_lanes;
use crate::provider::settings;
use crate::standard::{keyring, standard};
use crate::world::simulate;

#[test]
fn whoever_has_a_position_never_asks_without_it() {
    for transports in [Transports::LongPoll, Transports::WebSocket] {
        simulate(settings(), 30, async |world| {
            world.transports = transports;
            let spec = three_lanes(world);
            let client = world.open_client(vec![spec.clone()]);
            let key = spec.key(&world.provider.context(), &world.provider.stream_id());
            world.run_for(500).await;
            for round in 0..6 {
                world.write_some(20).await;
                world.run_for(300).await;
                assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
                let durable = Boundary::stored(key, world.position(key).expect("a position")).cursor();
                assert!(durable.is_some());
                let before = world.clients[client].asked.len();
                if round % 2 == 0 {
                    world.crash(client);
                } else {
                    world.with_engine(client, |engine, now_ms| engine.unsubscribe(key, now_ms));
                    world.with_engine(client, |engine, _| engine.subscribe(spec.clone()));
                }
                world.run_for(3_000).await;
                let asked = &world.clients[client].asked[before..];
                assert!(!asked.is_empty(), "it has asked again");
                for request in asked {
                    let SubscriptionSource::Fast(source) = &request.source else { panic!("of a fast stream") };
                    assert_eq!(source.after, durable, "round {round}");
                }
            }
            assert_eq!(world.failures(client), Vec::<String>::new());
        });
    }
}

#[test]
fn a_provider_that_lost_what_it_acknowledged_is_found_out() {
    simulate(standard(), 31, async |world| {
        world.keyring = Some(keyring(world));
        let spec = SubscriptionSpec::StandardReplay(LaneScope::Any);
        let client = world.open_client(vec![spec.clone()]);
        let key = spec.key(&world.provider.context(), &world.provider.stream_id());
        let lane = world.provider.lanes()[0];
        world.run_for(500).await;
        for _ in 0..5 {
            world.append(client, lane);
            world.run_for(200).await;
        }
        let before = world.position(key).expect("a position");
        world.provider.begin_again().await;
        // Another history grows past the position that we hold.
        let writer = world.open_client(Vec::new());
        for _ in 0..20 {
            world.append(writer, lane);
            world.run_for(200).await;
        }
        world.crash(client);
        let failed = |world: &mut crate::world::World| {
            *world.clients[client].engine.subscriptions()[&key].state() == SubscriptionState::Failed
        };
        assert!(world.run_until(120_000, failed).await, "{:?}", world.failures(client));
        let (failure, _) = world.clients[client].engine.subscriptions()[&key].failure().expect("a failure");
        assert_eq!(failure.code, "verify/global-chain");
        assert_eq!(world.position(key), Some(before), "what we hold is kept");
    });
}

#[test]
fn only_endpoints_of_the_chain_are_known() {
    simulate(settings(), 32, async |world| {
        let client = world.open_client(Vec::new());
        assert!(world.clients[client].engine.endpoints().is_empty(), "nothing can be dialled before the chain is read");
        world.run_for(500).await;
        let read = world.provider.read_chain(&world.stream_id, None).expect("a running chain");
        let registered = BrokerState::from_bytes(&read).expect("canonical").provider.expect("a provider").endpoints;
        assert!(!registered.is_empty());
        assert_eq!(world.clients[client].engine.endpoints(), &registered[..]);
    });
}
