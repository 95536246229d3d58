//! Grants that end and grants that are withdrawn, while the conversation goes on (§7, §17).

use remuda_client::{CommandId, CommandOutcome, Connection, SubscriptionSpec};
use remuda_dev_provider::chain::Operation;
use remuda_position::outbox::OutboxState;
use remuda_session::Transports;
use remuda_wire::request::{ListLanesRequest, RequestBody};

use crate::honest::three_lanes;
use crate::provider::settings;
use crate::world::{simulate, World};

const MINUTE_MS: u64 = 60_000;

const EITHER: [Transports; 2] = [Transports::LongPoll, Transports::WebSocket];

async fn catches_up(world: &mut World, client: usize) -> bool {
    world.write_some(10).await;
    world.run_for(300).await;
    world.run_until(2 * MINUTE_MS, |world| world.caught_up(client)).await
}

/// Asks for a page of lanes, and waits for what comes of it.
async fn ask(world: &mut World, client: usize) -> CommandOutcome {
    let list = ListLanesRequest { stream_id: world.provider.stream_id(), after_lane_id: None, limit: 10 };
    let id = CommandId(u64::MAX - u64::try_from(world.clients[client].events.len()).expect("few"));
    world.with_engine(client, |engine, now_ms| engine.command(id, RequestBody::ListLanes(list), now_ms));
    let is_settled = |world: &mut World| world.clients[client].settled.contains_key(&id.0);
    assert!(world.run_until(10 * MINUTE_MS, is_settled).await, "every command is settled");
    match &world.clients[client].settled[&id.0][..] {
        [outcome] => outcome.clone(),
        other => panic!("settled once: {other:?}"),
    }
}

#[test]
fn a_grant_is_replaced_before_its_end_and_nobody_notices() {
    for transports in EITHER {
        simulate(settings(), 50, async |world| {
            (world.transports, world.renews_grant, world.grant_ttl_ms) = (transports, true, 20 * MINUTE_MS);
            let client = world.open_client(vec![three_lanes(world)]);
            world.run_for(500).await;
            let lane = world.provider.lanes()[0];
            let mut appended = Vec::new();
            for _ in 0..24 {
                assert!(catches_up(world, client).await);
                appended.push(world.append(client, lane));
                world.run_for(5 * MINUTE_MS).await;
            }
            assert!(catches_up(world, client).await);
            assert_eq!(world.failures(client), Vec::<String>::new());
            assert!(appended.iter().all(|entry| matches!(world.state(*entry), Some(OutboxState::Durable(_)))));
            // Two hours of grants of 20 minutes, each replaced 5 minutes before its end or halfway.
            assert!((6..=13).contains(&world.renewals), "{}", world.renewals);
            let spec = three_lanes(world);
            world.check(spec.key(&world.provider.context(), &world.provider.stream_id()), &spec.scope());
        });
    }
}

#[test]
fn a_withdrawn_grant_is_replaced_and_what_it_was_refused_for_is_asked_once_more() {
    for transports in EITHER {
        simulate(settings(), 51, async |world| {
            (world.transports, world.renews_grant) = (transports, true);
            let client = world.open_client(vec![three_lanes(world), SubscriptionSpec::FullStream]);
            world.run_for(500).await;
            assert!(catches_up(world, client).await);
            for round in 1..=3 {
                world.provider.operate(Operation::RotateAdmin);
                let lane = world.provider.lanes()[0];
                world.append(client, lane);
                // The application's service is down at first.
                world.fail_renewals = 2;
                assert!(matches!(ask(world, client).await, CommandOutcome::Accepted(_)), "round {round}");
                assert!(catches_up(world, client).await, "round {round}");
                assert_eq!(world.renewals, 3 * round);
                world.run_for(61 * MINUTE_MS).await;
            }
            assert_eq!(world.failures(client), Vec::<String>::new());
            assert_eq!(world.check_appends(), Vec::<String>::new());
        });
    }
}

#[test]
fn an_application_without_another_grant_is_asked_six_times_and_no_more() {
    for transports in EITHER {
        simulate(settings(), 52, async |world| {
            (world.transports, world.renews_grant, world.fail_renewals) = (transports, true, u32::MAX);
            let client = world.open_client(vec![three_lanes(world)]);
            world.run_for(500).await;
            assert!(catches_up(world, client).await);
            world.provider.operate(Operation::RotateAdmin);
            let outcome = ask(world, client).await;
            assert!(matches!(outcome, CommandOutcome::Refused(why) if why.code == "client/grant-not-renewed"));
            world.run_for(30 * MINUTE_MS).await;
            assert_eq!(world.renewals, 6);
            assert_eq!(world.failures(client), ["client/grant-not-renewed"]);
            assert_eq!(world.clients[client].engine.connection(), &Connection::Closed);
        });
    }
}

#[test]
fn without_a_source_of_grants_the_refusal_is_told_and_nothing_is_retried() {
    simulate(settings(), 53, async |world| {
        let client = world.open_client(vec![three_lanes(world)]);
        world.run_for(500).await;
        assert!(catches_up(world, client).await);
        world.provider.operate(Operation::RotateAdmin);
        world.run_for(30 * MINUTE_MS).await;
        assert_eq!(world.renewals, 0);
        let failures = world.failures(client);
        assert!(!failures.is_empty(), "it is told");
        assert!(failures.iter().all(|code| code == "provider/authorization-generation-stale"), "{failures:?}");
    });
}

#[test]
fn a_grant_is_presented_by_nobody_but_the_holder_of_its_key() {
    simulate(settings(), 90, async |world| {
        world.another_signer = true;
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec]);
        world.run_for(60_000).await;
        assert_eq!(world.failures(client), ["client/holder-mismatch"]);
        assert_eq!(*world.clients[client].engine.connection(), Connection::Closed);
        assert_eq!(world.clients[client].posts, 0, "the provider never saw the grant");
        // With its key it starts again.
        world.another_signer = false;
        world.with_engine(client, |engine, _| engine.handle_start([1; 32]));
        assert!(world.run_until(30_000, |world| world.clients[client].posts > 0).await);
    });
}

#[test]
fn a_renewed_grant_for_another_key_is_not_taken() {
    simulate(settings(), 91, async |world| {
        (world.renews_grant, world.grant_ttl_ms) = (true, 5 * MINUTE_MS);
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec]);
        world.run_for(500).await;
        world.another_holder = true;
        assert!(world.run_until(5 * MINUTE_MS, |world| world.renewals > 0).await);
        world.run_for(1_000).await;
        assert_eq!(world.failures(client), ["client/holder-mismatch"]);
        assert!(
            matches!(world.clients[client].engine.connection(), Connection::Open { .. }),
            "the old one is still good"
        );
        world.another_holder = false;
        world.run_for(60_000).await;
        assert!(catches_up(world, client).await);
        assert_eq!(world.failures(client), ["client/holder-mismatch"], "the next one was for its key");
    });
}
