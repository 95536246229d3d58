//! What a client recorded is an audit file: of an honest provider it is consistent, of a liar it says what the client said.

use remuda_client::{Event, Recording, SubscriptionSpec};
use remuda_dev_provider::lie::Lie;
use remuda_dev_provider::settings::{Class, Settings};
use remuda_session::Transports;
use remuda_verify::audit::{audit, AuditReport, AuditVerdict};
use remuda_wire::scope::LaneScope;

use crate::honest::three_lanes;
use crate::provider::settings;
use crate::world::{simulate, World};

const ROOMY: usize = 8 << 20;

fn start(world: &mut World, client: usize, spec: &SubscriptionSpec, max_bytes: usize) {
    let key = spec.key(&world.provider.context(), &world.provider.stream_id());
    world.with_engine(client, |engine, now_ms| engine.start_recording(key, max_bytes, now_ms));
}

fn stop(world: &mut World, client: usize) -> Recording {
    world.with_engine(client, |engine, _| engine.stop_recording());
    match world.clients[client].events.pop() {
        Some((_, Event::Recorded(Some(recording)))) => recording,
        other => panic!("{other:?}"),
    }
}

fn judge(recording: &Recording) -> AuditReport {
    let report = audit(&recording.file);
    assert_eq!(u32::try_from(report.items), Ok(recording.items));
    report
}

#[test]
fn of_an_honest_provider_is_consistent_and_whole() {
    for transports in [Transports::LongPoll, Transports::WebSocket] {
        simulate(settings(), 60, async |world| {
            world.transports = transports;
            let spec = three_lanes(world);
            let client = world.open_client(vec![spec.clone(), SubscriptionSpec::FullStream]);
            world.run_for(500).await;
            world.write_some(10).await;
            assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
            // In the middle of a batch, and over a restart.
            world.write_some(10).await;
            start(world, client, &spec, ROOMY);
            world.run_for(300).await;
            for _ in 0..5 {
                world.write_some(10).await;
                world.run_for(300).await;
            }
            world.provider.stop().await;
            world.provider.restart();
            assert!(world.run_until(60_000, |world| world.caught_up(client)).await);
            world.write_some(10).await;
            world.run_for(300).await;
            assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
            let recording = stop(world, client);
            assert!(recording.is_complete);
            let report = judge(&recording);
            assert_eq!(report.verdict, AuditVerdict::Consistent, "{report:?}");
            let verified: usize = report.assurance.iter().map(|it| it.verified).sum();
            assert!(verified > 25 && report.assurance.len() == 2, "before and after the restart: {report:?}");
            assert_eq!(report.assurance.iter().map(|it| it.unverified).sum::<usize>(), 0);
            // A stop cuts what is in flight: nothing else is told.
            assert!(world.failures(client).iter().all(|code| code.starts_with("transport/")));
        });
    }
}

#[test]
fn of_a_standard_stream_holds_its_receipts() {
    let settings = Settings { class: Class::Standard, ..settings() };
    simulate(settings, 61, async |world| {
        let spec = SubscriptionSpec::StandardReplay(LaneScope::Any);
        let client = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        start(world, client, &spec, ROOMY);
        let lane = world.provider.lanes()[0];
        for _ in 0..20 {
            world.append(client, lane);
            world.run_for(100).await;
        }
        world.run_for(2_000).await;
        let report = judge(&stop(world, client));
        assert_eq!(report.verdict, AuditVerdict::Consistent, "{report:?}");
        assert_eq!(report.assurance[0].verified, 20);
        // Each receipt came twice, as an answer and with its record: one object.
        assert!(report.signatures >= 40, "{report:?}");
    });
}

#[test]
fn of_a_liar_says_what_the_client_said() {
    for lie in [Lie::WithholdRecord, Lie::RelabelLane, Lie::WrongKey] {
        let settings = Settings { lies: vec![lie], ..settings() };
        simulate(settings, 62, async |world| {
            let spec = three_lanes(world);
            let client = world.open_client(vec![spec.clone()]);
            world.run_for(500).await;
            start(world, client, &spec, ROOMY);
            for _ in 0..60 {
                world.write_some(12).await;
                world.run_for(200).await;
            }
            assert!(world.failures(client).iter().any(|code| code == lie.verdict()));
            let report = judge(&stop(world, client));
            assert_eq!(report.verdict, AuditVerdict::Violations);
            let codes: Vec<_> = report.findings.iter().map(|finding| finding.refusal.code()).collect();
            assert!(!codes.is_empty() && codes.iter().all(|code| *code == lie.verdict()), "{codes:?}");
        });
    }
}

#[test]
fn of_a_subscription_that_is_left_ends_there() {
    simulate(settings(), 64, async |world| {
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        world.write_some(20).await;
        assert!(world.run_until(5_000, |world| world.caught_up(client)).await);
        start(world, client, &spec, ROOMY);
        world.write_some(20).await;
        world.run_for(500).await;
        let key = spec.key(&world.provider.context(), &world.provider.stream_id());
        world.with_engine(client, |engine, now_ms| {
            engine.unsubscribe(key, now_ms);
            engine.subscribe(spec.clone())
        });
        world.write_some(20).await;
        world.run_for(500).await;
        world.provider.stop().await;
        world.provider.restart();
        assert!(world.run_until(60_000, |world| world.caught_up(client)).await);
        let recording = stop(world, client);
        assert!(!recording.is_complete, "what was asked for anew is not in it");
        assert_eq!(judge(&recording).verdict, AuditVerdict::Consistent);
    });
}

#[test]
fn without_room_it_ends_before_the_first_hole() {
    simulate(settings(), 63, async |world| {
        let spec = three_lanes(world);
        let client = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        start(world, client, &spec, 20_000);
        for _ in 0..20 {
            world.write_some(12).await;
            world.run_for(300).await;
        }
        let recording = stop(world, client);
        assert!(!recording.is_complete && recording.items > 2);
        assert!(recording.file.len() < 24_000, "{}", recording.file.len());
        assert_eq!(judge(&recording).verdict, AuditVerdict::Consistent);
        world.with_engine(client, |engine, _| engine.stop_recording());
        assert!(matches!(world.clients[client].events.last(), Some((_, Event::Recorded(None)))));
    });
}
