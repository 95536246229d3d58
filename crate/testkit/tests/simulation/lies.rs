//! Every lie is caught with its code; what was honest before it is kept; F does not move by it.

use clap::ValueEnum;
use remuda_client::{Connection, Event, SubscriptionSpec, SubscriptionState};
use remuda_dev_provider::lie::{Lie, Part};
use remuda_position::outbox::OutboxState;
use remuda_position::Boundary;
use remuda_session::{Transport, Transports};
use remuda_wire::frame::{ServerFrameBatch, ServerMessage};
use remuda_wire::response::ResponseBody;
use remuda_wire::Bytes32;

use crate::honest::three_lanes;
use crate::provider::settings;
use crate::world::{simulate, World};

fn caught(lie: Lie) {
    [Transports::LongPoll, Transports::WebSocket].into_iter().for_each(|transports| caught_over(transports, lie));
}

fn caught_over(transports: Transports, lie: Lie) {
    let mut settings = settings();
    settings.lies = vec![lie];
    simulate(settings, 3, async |world| {
        world.transports = transports;
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec.clone()]);
        let key = spec.key(&world.provider.context(), &world.provider.stream_id());
        world.run_for(500).await;
        let state = |world: &World| world.clients[client].engine.subscriptions()[&key].state().clone();
        let mut rounds = 0;
        while state(world) != SubscriptionState::Failed {
            world.write_some(12).await;
            world.run_for(200).await;
            rounds += 1;
            assert!(rounds < 200, "never caught: {:?}", world.failures(client));
        }
        let failures = world.failures(client);
        assert!(!failures.is_empty() && failures.iter().all(|code| code == lie.verdict()), "{failures:?}");
        let (failure, _) = world.clients[client].engine.subscriptions()[&key].failure().expect("it is still there");
        assert_eq!((failure.code.as_str(), failure.rule.is_empty()), (lie.verdict(), false));
        assert_eq!(world.clients[client].engine.subscriptions()[&key].waiting(), 0, "what waited is let go");
        // The honest batches were kept and told, nothing after them.
        let told = |world: &World| {
            let batch = |event: &Event| match event {
                Event::Batch { batch, .. } => Some(batch.last_sequence),
                _ => None,
            };
            world.clients[client].events.iter().filter_map(|(_, event)| batch(event)).collect::<Vec<_>>()
        };
        let honest = told(world);
        let position = world.position(key).expect("honest batches came first");
        assert!(honest.len() >= 2, "{honest:?}");
        let durable = Boundary::stored(key, position.clone()).checkpoint();
        assert_eq!(durable.map(|end| end.last_sequence), honest.last().copied());
        assert_eq!(world.clients[client].engine.subscriptions()[&key].boundary().checkpoint(), durable);
        // Nothing more is asked for: a poll session without subscriptions is silent.
        // Its close waits for the poll that is held, which is the last.
        world.run_for(25_000).await;
        let posts = world.clients[client].posts;
        world.write_some(12).await;
        world.run_for(60_000).await;
        assert_eq!(world.clients[client].posts, posts, "nothing is sent for a failed subscription");
        assert_eq!((world.position(key), told(world)), (Some(position.clone()), honest));
        // Whoever comes back is lied to again, and F still does not move.
        world.crash(client);
        while state(world) != SubscriptionState::Failed {
            world.write_some(12).await;
            world.run_for(200).await;
        }
        assert_eq!(world.position(key), Some(position));
    });
}

#[test]
fn every_lie_about_batches_is_caught() {
    Lie::value_variants().iter().filter(|lie| lie.part() == Part::Fast).for_each(|lie| caught(*lie));
}

/// Changes every append result in a body.
fn bend_appends(bytes: &mut Vec<u8>, bend: impl Fn(&mut remuda_wire::response::AppendResult)) {
    let mut batch = ServerFrameBatch::from_bytes(bytes).expect("the provider's bodies are canonical");
    for frame in &mut batch.0 {
        if let ServerMessage::Response(response) = &mut frame.0 {
            if let ResponseBody::Append(result) = &mut response.body {
                bend(result);
            }
        }
    }
    *bytes = batch.to_bytes();
}

#[test]
fn an_append_result_that_lies_is_not_accepted() {
    type Bend = fn(&mut Vec<u8>);
    let another_stream: Bend = |bytes| {
        bend_appends(bytes, |result| {
            result.durable_watermark.as_mut().expect("fast").stream_id = Bytes32([9; 32]);
        });
    };
    let no_genesis: Bend = |bytes| {
        bend_appends(bytes, |result| {
            let watermark = result.durable_watermark.as_mut().expect("fast");
            watermark.last_durable_sequence = None;
            watermark.checkpoint_anchor = Bytes32([9; 32]);
        });
    };
    for (bend, code) in [(another_stream, "verify/result-binding"), (no_genesis, "protocol/watermark-anchor")] {
        simulate(settings(), 4, async |world| {
            let client = world.open_client(Vec::new());
            world.run_for(500).await;
            world.bend = Some(bend);
            let lane = world.provider.lanes()[0];
            let entry = world.append(client, lane);
            assert!(world.run_until(60_000, |world| world.has_ended(entry)).await, "it is not asked for ever");
            let Some(OutboxState::Failed(failure)) = world.state(entry) else { panic!("given up") };
            assert_eq!(&*failure.code, code);
            assert_eq!(world.failures(client), [code; 4]);
            // It is one result, not the session.
            world.bend = None;
            let entry = world.append(client, lane);
            world.run_for(20_000).await;
            assert!(matches!(world.state(entry), Some(OutboxState::Provisional(_))), "provisional, and no more");
        });
    }
}

#[test]
fn a_session_that_breaks_the_protocol_is_closed_visibly_and_can_be_started_again() {
    simulate(settings(), 5, async |world| {
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec.clone()]);
        let key = spec.key(&world.provider.context(), &world.provider.stream_id());
        world.run_for(500).await;
        world.write_some(12).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
        let before = world.position(key);
        // Every frame comes twice: a second answer to one request is not legal.
        world.bend = Some(|bytes| {
            let mut batch = ServerFrameBatch::from_bytes(bytes).expect("canonical");
            let again = batch.0.clone();
            batch.0.extend(again);
            *bytes = batch.to_bytes();
        });
        world.write_some(12).await;
        world.run_for(5_000).await;
        assert_eq!(*world.clients[client].engine.connection(), Connection::Closed);
        assert_eq!(world.failures(client), ["protocol/request-id-mismatch"]);
        assert_eq!(world.position(key), before, "nothing of such a body is applied");
        let posts = world.clients[client].posts;
        let entry = world.append(client, world.provider.lanes()[0]);
        world.run_for(120_000).await;
        assert_eq!(world.clients[client].posts, posts, "a closed engine is silent");
        assert_eq!(world.state(entry), Some(OutboxState::Queued), "what is appended waits");
        world.bend = None;
        world.with_engine(client, |engine, _| engine.handle_start([3; 32]));
        assert!(world.run_until(10_000, |world| world.caught_up(client)).await, "it is back");
        world.check(key, &spec.scope());
        assert_eq!(*world.clients[client].engine.connection(), Connection::Open { transport: Transport::LongPoll });
        // Starting what is started changes nothing.
        world.with_engine(client, |engine, _| engine.handle_start([4; 32]));
        world.run_for(1_000).await;
        assert_eq!(*world.clients[client].engine.connection(), Connection::Open { transport: Transport::LongPoll });
        assert_eq!(world.failures(client).len(), 1);
    });
}

#[test]
fn a_halted_full_stream_leaves_its_neighbour_alone() {
    let mut settings = settings();
    settings.lies = vec![Lie::ExtraLane];
    settings.lie_after = 6;
    simulate(settings, 6, async |world| {
        // One proof too many breaks both modes; the first to fail must not take the other's position along.
        let specs = [three_lanes(world), SubscriptionSpec::FullStream];
        let client = world.open_client(specs.to_vec());
        world.run_for(500).await;
        for _ in 0..30 {
            world.write_some(12).await;
            world.run_for(200).await;
        }
        let tab = &world.clients[client];
        assert!(tab.engine.subscriptions().values().all(|it| *it.state() == SubscriptionState::Failed));
        assert_eq!(world.failures(client), ["protocol/coverage-extraneous"; 2]);
        assert_eq!(*tab.engine.connection(), Connection::Open { transport: Transport::LongPoll });
    });
}
