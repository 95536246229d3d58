//! A standard stream: receipts in their chains become a durable position, sealed payloads open, on any schedule of faults.

use std::collections::BTreeMap;

use remuda_client::{Connection, Keyring, OpenedPayload, SubscriptionSpec, SubscriptionState};
use remuda_dev_provider::settings::{Class, Settings};
use remuda_position::outbox::OutboxState;
use remuda_position::{Anchor, Boundary, ItemAssurance, PositionKey, Store, StoredItemBody, StoredStandardRecord};
use remuda_session::Transports;
use remuda_verify::response::AnsweredResult;
use remuda_verify::secret::SecretBytes;
use remuda_wire::record::RecordKind;
use remuda_wire::request::{CloseLaneRequest, CreateLaneRequest, ListLanesRequest, RequestBody};
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes32, Canonical};

use crate::provider::settings;
use crate::schedules::{run_all, share};
use crate::weather::Weather;
use crate::world::{now, simulate, World};

const DATA_KEY: [u8; 32] = [5; 32];

pub fn standard() -> Settings {
    Settings { class: Class::Standard, encrypted: true, poll_ms: 5_000, ..settings() }
}

pub fn keyring(world: &World) -> Keyring {
    let mut keyring = Keyring::default();
    keyring.insert(world.provider.encryption_generation(), SecretBytes::new(DATA_KEY)).expect("the first");
    keyring
}

/// The stored records of a position, after checking that they are numbered and in order.
fn stored(world: &World, key: PositionKey) -> Vec<StoredStandardRecord> {
    let records: Vec<_> = world
        .items(key)
        .into_iter()
        .map(|item| match item.body {
            StoredItemBody::StandardRecord(record) => {
                assert_eq!(item.assurance, ItemAssurance::Receipt);
                record
            }
            other => panic!("a record of another class: {other:?}"),
        })
        .collect();
    assert!(records.windows(2).all(|pair| pair[0].record_id < pair[1].record_id), "in order, each once");
    records
}

/// Each append that is durable: its message, its sequence and its receipt.
fn accepted(world: &World) -> BTreeMap<Bytes32, (u64, Bytes32)> {
    let durable = world.appended.iter().filter_map(|(entry, appended)| match world.state(*entry)? {
        OutboxState::Durable(durable) => {
            Some((appended.client_message_id, (durable.record_id.sequence(), durable.evidence)))
        }
        _ => None,
    });
    durable.collect()
}

async fn come_to_rest(world: &mut World, client: usize, specs: &[SubscriptionSpec]) {
    world.weather = Weather::FAIR;
    if !world.provider.is_running() {
        world.provider.restart();
    }
    for spec in specs {
        world.with_engine(client, |engine, _| engine.subscribe(spec.clone()));
    }
    let is_open = |world: &mut World| matches!(world.clients[client].engine.connection(), Connection::Open { .. });
    assert!(world.run_until(300_000, is_open).await, "{:?}", world.failures(client));
    let all_settled = |world: &mut World| world.appended.keys().all(|entry| world.has_ended(*entry));
    assert!(world.run_until(300_000, all_settled).await, "{:?}", world.failures(client));
    let lane = world.provider.lanes()[0];
    // One more record that everybody who follows this lane must have is the end.
    let entry = world.append(client, lane);
    assert!(world.run_until(60_000, |world| world.has_ended(entry)).await, "{:?}", world.failures(client));
    let (last, _) = accepted(world)[&world.appended[&entry].client_message_id];
    let there = |world: &mut World| {
        let subscriptions = world.clients[client].engine.subscriptions();
        subscriptions.values().all(|it| it.boundary().receipt_chain_end().is_some_and(|end| end.last_sequence == last))
    };
    assert!(world.run_until(120_000, there).await, "{:?}", world.failures(client));
}

fn check(world: &World, specs: &[SubscriptionSpec]) {
    let (context, stream_id) = (world.provider.context(), world.provider.stream_id());
    let keyring = keyring(world);
    let all = stored(world, specs[0].key(&context, &stream_id));
    let sequences: Vec<u64> = all.iter().map(|record| record.record_id.sequence).collect();
    assert!((0..).zip(&sequences).all(|(place, sequence)| place == *sequence), "none is missing from the first on");
    assert_eq!(world.check_appends(), Vec::<String>::new());
    for (message, (sequence, receipt)) in accepted(world) {
        let record = all.iter().find(|record| record.record_id.sequence == sequence);
        let record = record.unwrap_or_else(|| panic!("{sequence} was taken and is not among {sequences:?}"));
        assert_eq!((record.receipt, record.header.client_message_id), (receipt, message));
    }
    for record in &all {
        match keyring.open(&record.header, &record.payload) {
            OpenedPayload::Opened(plaintext) => assert!(plaintext.starts_with(b"record ")),
            OpenedPayload::Clear => assert_ne!(record.header.kind, RecordKind::Application),
            other => panic!("{other:?}"),
        }
        assert!(!record.payload.starts_with(b"record "), "nothing goes in the clear");
    }
    let scoped = stored(world, specs[1].key(&context, &stream_id));
    let scope = specs[1].scope();
    assert_eq!(scoped, all.into_iter().filter(|it| scope.contains(&it.header.lane_id)).collect::<Vec<_>>());
    let key = specs[0].key(&context, &stream_id);
    let position = Boundary::stored(key, world.position(key).expect("a position"));
    assert_eq!(position.anchor(), Some(Anchor::Genesis));
}

/// The data key is neither in the database nor in anything that is told or printed.
fn check_secrecy(world: &World, client: usize, key: PositionKey, keyring: &Keyring) {
    let rows = now(world.store.rows_after(key, 0, usize::MAX)).expect("a store in memory");
    let position = world.position(key).expect("a position").to_bytes();
    for bytes in rows.iter().map(|row| &row[..]).chain([&position[..]]) {
        assert!(!bytes.windows(DATA_KEY.len()).any(|window| window == DATA_KEY), "a data key is in the database");
    }
    let tab = &world.clients[client];
    let printed = format!("{:?} {:?} {keyring:?}", tab.engine, tab.events);
    for form in [hex::encode(DATA_KEY), format!("{:?}", &DATA_KEY[..8]).replace(['[', ']'], "")] {
        assert!(!printed.contains(&form), "a data key is printed");
    }
}

fn schedule(seed: u64, transports: Transports) -> [u32; 3] {
    simulate(standard(), seed, async |world| {
        world.transports = transports;
        world.keyring = Some(keyring(world));
        let specs = [
            SubscriptionSpec::StandardReplay(LaneScope::Any),
            SubscriptionSpec::StandardReplay(world.provider.scope(3)),
        ];
        let client = world.open_client(specs.to_vec());
        let lanes = world.provider.lanes();
        let mut counts = [0; 3];
        world.weather = Weather::FOUL;
        for _ in 0..40 {
            match world.random.below(8) {
                0..4 => {
                    for _ in 0..=world.random.below(5) {
                        let lane = lanes[usize::try_from(world.random.below(6)).expect("few")];
                        world.append(client, lane);
                        counts[0] += 1;
                    }
                }
                4 => {
                    world.crash(client);
                    counts[1] += 1;
                }
                5 if world.provider.is_running() => {
                    world.provider.kill().await;
                    let down_ms = world.random.below(5_000);
                    world.run_for(down_ms).await;
                    world.provider.restart();
                    counts[2] += 1;
                }
                6 => world.clients[client].frozen_until_ms = world.now_ms() + world.random.below(60_000),
                _ => world.weather.slow_disk_ms = world.random.below(2) * world.random.below(1_000),
            }
            let pause_ms = world.random.below(1_500);
            world.run_for(pause_ms).await;
        }
        come_to_rest(world, client, &specs).await;
        check(world, &specs);
        let key = specs[0].key(&world.provider.context(), &world.provider.stream_id());
        check_secrecy(world, client, key, &keyring(world));
        for code in world.failures(client) {
            let blames =
                code.starts_with("verify/") && code != "verify/key-unresolved" || code.starts_with("protocol/");
            assert!(
                !blames || code == "protocol/challenge-expired",
                "seed {seed}: an honest peer is accused of {code}"
            );
        }
        counts
    })
}

#[test]
fn on_any_schedule_every_receipt_is_linked_once() {
    let total = run_all("standard", share(20), |seed| {
        schedule(seed, if seed % 2 == 0 { Transports::Both } else { Transports::LongPoll })
    });
    assert!(total.iter().all(|count| *count > 5), "appends, crashes, restarts: {total:?}");
}

#[test]
fn a_lane_is_created_seen_listed_and_closed() {
    simulate(standard(), 7, async |world| {
        world.keyring = Some(keyring(world));
        let spec = SubscriptionSpec::StandardReplay(LaneScope::Any);
        let client = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        let stream_id = world.provider.stream_id();
        let create = CreateLaneRequest { stream_id, lane_nonce: Bytes32([4; 32]), metadata_hash: Bytes32([6; 32]) };
        let AnsweredResult::Lane { lane, receipt } = world.ask(client, RequestBody::CreateLane(create)).await else {
            panic!("a lane")
        };
        assert_eq!(lane.metadata_hash, Bytes32([6; 32]));
        let list = ListLanesRequest { stream_id, after_lane_id: None, limit: 100 };
        let AnsweredResult::Lanes(page) = world.ask(client, RequestBody::ListLanes(list)).await else {
            panic!("a page")
        };
        assert!(page.lanes.contains(&lane));
        let close = CloseLaneRequest { stream_id, lane_id: lane.lane_id };
        world.ask(client, RequestBody::CloseLane(close)).await;
        world.run_for(2_000).await;
        let records = stored(world, spec.key(&world.provider.context(), &stream_id));
        assert_eq!(world.failures(client), Vec::<String>::new());
        let kinds: Vec<_> = records.iter().map(|record| record.header.kind).collect();
        assert_eq!(kinds[kinds.len() - 2..], [RecordKind::LaneCreated, RecordKind::LaneClosed]);
        assert!(records.iter().any(|record| record.receipt == receipt.digest()), "its event is in the stream");
        // A closed lane takes nothing more.
        let entry = world.append(client, lane.lane_id);
        world.run_for(2_000).await;
        let Some(OutboxState::Failed(failure)) = world.state(entry) else { panic!("refused") };
        assert_eq!((&*failure.code, &*failure.remedy), ("provider/lane-closed", "surface"));
    });
}

#[test]
fn an_encrypted_stream_is_not_read_under_a_wrong_belief() {
    simulate(standard(), 8, async |world| {
        let client = world.open_client(vec![SubscriptionSpec::StandardReplay(LaneScope::Any)]);
        world.run_for(2_000).await;
        assert_eq!(world.failures(client), ["encryption/mismatch"]);
        assert_eq!(world.clients[client].posts, 0, "nothing is sent");
    });
}

#[test]
fn a_stream_of_the_other_class_is_refused_by_its_code() {
    simulate(settings(), 9, async |world| {
        let spec = SubscriptionSpec::StandardReplay(LaneScope::Any);
        let client = world.open_client(vec![spec.clone()]);
        world.run_for(2_000).await;
        let key = spec.key(&world.provider.context(), &world.provider.stream_id());
        assert_eq!(*world.clients[client].engine.subscriptions()[&key].state(), SubscriptionState::Failed);
        assert_eq!(world.failures(client).len(), 1, "{:?}", world.failures(client));
    });
}
