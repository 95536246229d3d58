//! Consumer groups: an application settles what it is given, over both transports, beside other consumers.

use std::collections::BTreeSet;
use std::rc::Rc;

use remuda_client::{Decision, Event, SubscriptionSpec, SubscriptionState};
use remuda_verify::audit::{audit, AuditVerdict};
use remuda_verify::response::AnsweredResult;
use remuda_wire::group::DeliveryStateAction as Action;
use remuda_wire::preimage::keccak256;
use remuda_wire::request::{DeleteGroupRequest, RedriveRequest, RequestBody};

use crate::consumer::{clear, config, fill, Application, BOTH};
use crate::standard::{keyring, standard};
use crate::world::{simulate, World};

#[test]
fn each_record_is_settled_as_the_application_says() {
    for transports in BOTH {
        simulate(clear(), 80, async |world| {
            world.transports = transports;
            let config = config(world, |config| config.max_attempts = 2);
            let mut app = Application::begin(world, config).await;
            fill(world, app.client, 5).await;
            app.given(world, &[(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]).await;
            let payload = &app.held[&app.lease_of(0)].payload;
            assert!(payload.starts_with(b"record "), "the record is what was appended");
            let [first, second, third] = [0, 1, 2].map(|sequence| app.lease_of(sequence));
            assert_eq!(app.settle(world, first, Decision::Ack).await, Ok(Action::Ack));
            assert_eq!(app.settle(world, second, Decision::Nack { retry_after_ms: 0 }).await, Ok(Action::Nack));
            let extend = Decision::Extend { extend_by_ms: 300_000 };
            assert_eq!(app.settle(world, third, extend).await, Ok(Action::Extend));
            let state = app.states.last().expect("it is told");
            assert!(state.lease_expires_at_ms > Some(world.now_ms() + 200_000), "by the provider's clock");
            assert_eq!(app.settle(world, third, Decision::Ack).await, Ok(Action::Ack), "an extended lease is a lease");
            let (fourth, reason_hash) = (app.lease_of(3), keccak256(b"never"));
            assert_eq!(app.settle(world, fourth, Decision::Reject { reason_hash }).await, Ok(Action::Reject));
            let dead = *app.states.last().expect("it is told");
            assert_eq!((dead.reason_hash, dead.record_id.sequence), (Some(reason_hash), 3));
            app.until(world, |it| it.given.last() == Some(&(1, 2))).await;
            // Its last attempt: now it is dead.
            let again = app.lease_of(1);
            assert_eq!(app.settle(world, again, Decision::Nack { retry_after_ms: 0 }).await, Ok(Action::Nack));
            assert!(app.states.last().is_some_and(|state| state.terminal_expires_at_ms.is_some()));
            let redrive = RedriveRequest {
                stream_id: world.stream_id,
                lane_id: app.group.lane_id,
                group_id: app.group.group_id,
                record_id: dead.record_id,
                terminal_cycle_id: dead.delivery_cycle_id,
            };
            let AnsweredResult::Delivery { state, .. } = world.ask(app.client, RequestBody::Redrive(redrive)).await
            else {
                panic!("a delivery state")
            };
            app.until(world, |it| it.given.last() == Some(&(3, 1))).await;
            let successor = app.lease_of(3);
            let lease = app.held[&successor].lease.clone().expect("a lease");
            assert_eq!(Some(lease.reference.delivery_cycle_id), state.successor_cycle_id);
            assert_eq!(app.settle(world, successor, Decision::Ack).await, Ok(Action::Ack));
            let last = app.lease_of(4);
            assert_eq!(app.settle(world, last, Decision::Ack).await, Ok(Action::Ack));
            assert!(app.held.is_empty() && app.is_at_tail(world));
            assert_eq!(world.failures(app.client), Vec::<String>::new());
        });
    }
}

#[test]
fn a_lease_has_one_decision_at_a_time_and_none_after_its_end() {
    simulate(clear(), 81, async |world| {
        let config = config(world, |config| config.max_attempts = 2);
        let mut app = Application::begin(world, config).await;
        fill(world, app.client, 1).await;
        app.given(world, &[(0, 1)]).await;
        let lease = app.lease_of(0);
        let slow = app.decide(world, lease, Decision::Extend { extend_by_ms: 1_000 });
        let refused = app.settle(world, lease, Decision::Ack).await;
        assert_eq!(refused, Err("group/decision-outstanding".into()));
        app.until(world, |it| it.outcomes.contains_key(&slow)).await;
        assert_eq!(app.outcomes[&slow], Ok(Action::Extend));
        // Nobody settles it: it runs out, comes again, and runs out for good.
        app.until(world, |it| it.given.len() == 2).await;
        assert_eq!(app.given, [(0, 1), (0, 2)]);
        assert_eq!(app.states.last().map(|state| state.action), Some(Action::LeaseExpire));
        assert_eq!(app.settle(world, lease, Decision::Ack).await, Err("group/lease-over".into()));
        app.until(world, |it| it.states.last().is_some_and(|state| state.action == Action::AttemptsExhaust)).await;
        assert!(app.held.is_empty());
        // Its group ends under a lease.
        fill(world, app.client, 1).await;
        app.until(world, |it| it.given.len() == 3).await;
        let lease = app.lease_of(1);
        let (lane_id, group_id) = (app.group.lane_id, app.group.group_id);
        let delete = DeleteGroupRequest { stream_id: world.stream_id, lane_id, group_id };
        world.ask(app.client, RequestBody::DeleteGroup(delete)).await;
        app.until(world, |it| it.configs == [true, false]).await;
        assert_eq!(app.settle(world, lease, Decision::Ack).await, Err("group/lease-over".into()));
        assert_eq!(world.failures(app.client), Vec::<String>::new());
    });
}

#[test]
fn whoever_comes_back_goes_on_behind_its_last_receipt() {
    for transports in BOTH {
        simulate(clear(), 82, async |world| {
            world.transports = transports;
            let config = config(world, |config| {
                config.visibility_timeout_ms = 5_000;
                config.max_attempts = 100;
            });
            let mut app = Application::begin(world, config).await;
            fill(world, app.client, 3).await;
            app.given(world, &[(0, 1), (1, 1), (2, 1)]).await;
            let lease = app.lease_of(0);
            assert_eq!(app.settle(world, lease, Decision::Ack).await, Ok(Action::Ack));
            assert!(app.is_at_tail(world));
            for round in 0..3 {
                let durable = world.provider.group(app.group).0;
                let asked = world.clients[app.client].asked.len();
                match round {
                    0 => {
                        world.crash(app.client);
                        app.held.clear();
                    }
                    1 => {
                        world.provider.kill().await;
                        world.provider.restart();
                    }
                    _ => {
                        world.with_engine(app.client, |engine, now_ms| engine.unsubscribe(app.key, now_ms));
                        let spec = SubscriptionSpec::Group(app.group);
                        world.with_engine(app.client, |engine, _| engine.subscribe(spec));
                        app.held.clear();
                    }
                }
                assert!(world.run_until(60_000, |world| world.clients[0].asked.len() > asked).await);
                let request = world.clients[app.client].asked.last().expect("it asked");
                assert_eq!(request.after_group_receipt, Some(durable), "round {round}");
                // What was held and not settled comes again.
                let given = app.given.len();
                app.until(world, |it| it.given.len() >= given + 2).await;
                world.run_for(500).await;
            }
            app.read(world);
            for lease in app.held.keys().copied().collect::<Vec<_>>() {
                app.decide(world, lease, Decision::Ack);
            }
            app.until(world, |it| it.held.is_empty()).await;
        });
    }
}

/// What cannot be read is never acknowledged (§11.2), and the application is told.
#[test]
fn what_cannot_be_opened_is_given_back_or_rejected_and_never_acknowledged() {
    simulate(standard(), 85, async |world| {
        world.keyring = Some(keyring(world));
        let config = config(world, |_| {});
        let mut app = Application::begin(world, config).await;
        fill(world, app.client, 1).await;
        // Sealed under nobody's key.
        let held = world.keyring.take();
        let mut other = remuda_client::Keyring::default();
        let generation = world.provider.encryption_generation();
        other.insert(generation, remuda_verify::secret::SecretBytes::new([9; 32])).expect("the first");
        world.keyring = Some(other);
        fill(world, app.client, 1).await;
        world.keyring = held;
        app.given(world, &[(0, 1), (1, 1)]).await;
        // Before its key is here even the good one waits.
        let mut keyring = remuda_client::Keyring::default();
        for (sequence, is_known, expected) in [(0, false, Action::Nack), (1, true, Action::Reject)] {
            if is_known {
                keyring.insert(generation, remuda_verify::secret::SecretBytes::new([5; 32])).expect("the first");
            }
            let lease = app.lease_of(sequence);
            let delivery = Rc::clone(&app.held[&lease]);
            let opened = keyring.open(&delivery.header, &delivery.payload);
            let decision = Decision::of_payload(&opened).expect("it cannot be read");
            assert_eq!(app.settle(world, lease, decision).await, Ok(expected));
        }
        assert_eq!(app.states.last().and_then(|state| state.reason_hash), Some(remuda_client::undecryptable()));
        // With its key it can be read, and is the application's to settle.
        app.until(world, |it| it.given.last() == Some(&(0, 2))).await;
        let lease = app.lease_of(0);
        let delivery = Rc::clone(&app.held[&lease]);
        assert_eq!(Decision::of_payload(&keyring.open(&delivery.header, &delivery.payload)), None);
        assert_eq!(app.settle(world, lease, Decision::Ack).await, Ok(Action::Ack));
        let acked = app.states.iter().filter(|state| state.action == Action::Ack).count();
        assert_eq!(acked, 1);
    });
}

#[test]
fn two_consumers_share_one_chain_and_no_record() {
    for transports in BOTH {
        simulate(clear(), 86, async |world| {
            world.transports = transports;
            let config = config(world, |config| config.max_in_flight = 2);
            let mut app = Application::begin(world, config).await;
            let other = keccak256(b"another holder");
            fill(world, app.client, 2).await;
            app.given(world, &[(0, 1), (1, 1)]).await;
            fill(world, app.client, 4).await;
            let lease = app.lease_of(0);
            assert_eq!(app.settle(world, lease, Decision::Nack { retry_after_ms: 600_000 }).await, Ok(Action::Nack));
            app.until(world, |it| it.given.len() == 3).await;
            let mut theirs = BTreeSet::new();
            for _ in 0..2 {
                let (key, held) = (app.lease_of(*app.given.last().map(|(sequence, _)| sequence).expect("one")), &app);
                held.decide(world, key, Decision::Ack);
                // As fast as our own next lease.
                if let Some(lease) = world.provider.lease_to(&other, app.group) {
                    theirs.insert(lease.record_id.sequence);
                    world.provider.ack_for(&other, &lease);
                }
                world.run_for(500).await;
                app.read(world);
            }
            while !app.held.is_empty() {
                for lease in app.held.keys().copied().collect::<Vec<_>>() {
                    app.settle(world, lease, Decision::Ack).await.expect("it is ours");
                }
                world.run_for(1_000).await;
                app.read(world);
            }
            let ours: BTreeSet<_> = app.given.iter().map(|(sequence, _)| *sequence).collect();
            assert!(ours.is_disjoint(&theirs), "{ours:?} {theirs:?}");
            assert!(app.is_at_tail(world), "what they do is in our chain too");
            assert_eq!(world.failures(app.client), Vec::<String>::new());
        });
    }
}

#[test]
fn whoever_holds_every_lease_that_it_may_settles_before_it_opens_again() {
    simulate(clear(), 87, async |world| {
        let config = config(world, |_| {});
        let mut app = Application::begin(world, config).await;
        fill(world, app.client, 66).await;
        // The grant allows 64.
        app.until(world, |it| it.given.len() == 64).await;
        world.provider.kill().await;
        world.provider.restart();
        let waits = |world: &mut World| {
            let failure = world.clients[0].engine.subscriptions()[&app.key].failure();
            failure.is_some_and(|(failure, _)| failure.code == "provider/holder-in-flight-limit-exceeded")
        };
        assert!(world.run_until(60_000, waits).await, "{:?}", world.failures(app.client));
        world.run_for(20_000).await;
        assert!(matches!(app.state(world), SubscriptionState::Due { .. } | SubscriptionState::Opening));
        let lease = app.lease_of(0);
        assert_eq!(app.settle(world, lease, Decision::Ack).await, Ok(Action::Ack));
        app.until(world, |it| it.given.len() == 65).await;
    });
}

#[test]
fn a_recording_of_a_consumer_is_consistent_over_cuts_and_decisions() {
    for transports in BOTH {
        simulate(clear(), 89, async |world| {
            world.transports = transports;
            let config = config(world, |_| {});
            let mut app = Application::begin(world, config).await;
            fill(world, app.client, 2).await;
            app.given(world, &[(0, 1), (1, 1)]).await;
            world.with_engine(app.client, |engine, now_ms| engine.start_recording(app.key, 8 << 20, now_ms));
            for round in 0..6 {
                for lease in app.held.keys().copied().collect::<Vec<_>>() {
                    app.settle(world, lease, Decision::Ack).await.expect("it is live");
                }
                fill(world, app.client, 1).await;
                app.until(world, |it| it.given.len() == 3 + round).await;
                if round == 3 {
                    world.provider.kill().await;
                    world.provider.restart();
                }
            }
            world.with_engine(app.client, |engine, _| engine.stop_recording());
            let Some((_, Event::Recorded(Some(recording)))) = world.clients[app.client].events.pop() else {
                panic!("a recording")
            };
            assert!(recording.is_complete);
            let report = audit(&recording.file);
            assert_eq!(report.verdict, AuditVerdict::Consistent, "{report:?}");
            assert_eq!(report.assurance.iter().map(|it| it.verified).sum::<usize>(), 6, "each delivery: {report:?}");
        });
    }
}

#[test]
fn a_decision_that_cannot_be_learnt_of_is_told_and_none_is_taken_afterwards() {
    simulate(clear(), 90, async |world| {
        let config = config(world, |_| {});
        let mut app = Application::begin(world, config).await;
        fill(world, app.client, 3).await;
        app.given(world, &[(0, 1), (1, 1), (2, 1)]).await;
        let [first, second, third] = [0, 1, 2].map(|sequence| app.lease_of(sequence));
        // No session: it waits, and nobody knows whether it was sent.
        world.provider.kill().await;
        world.run_for(5_000).await;
        let waiting = app.decide(world, first, Decision::Ack);
        world.run_for(5_000).await;
        app.read(world);
        assert!(!app.outcomes.contains_key(&waiting), "a cut is not the end");
        world.with_engine(app.client, |engine, now_ms| engine.close(now_ms));
        app.read(world);
        assert_eq!(app.outcomes[&waiting], Err("misuse/not-started".into()), "it was never sent");
        assert_eq!(app.settle(world, second, Decision::Ack).await, Err("misuse/not-started".into()));
        // Started again it goes on, and the lease is still a lease.
        world.provider.restart();
        world.with_engine(app.client, |engine, _| engine.handle_start([3; 32]));
        assert_eq!(app.settle(world, first, Decision::Ack).await, Ok(Action::Ack));
        // Left while it is on its way.
        let lost = app.decide(world, second, Decision::Ack);
        world.with_engine(app.client, |engine, now_ms| engine.unsubscribe(app.key, now_ms));
        app.read(world);
        assert_eq!(app.outcomes[&lost], Err("command/outcome-unknown".into()));
        assert_eq!(app.settle(world, third, Decision::Ack).await, Err("group/lease-over".into()));
    });
}
