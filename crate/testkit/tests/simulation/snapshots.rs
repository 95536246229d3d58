//! Behind a floor, and what leads on from there: a hole that is accepted, or snapshots that are verified (§15).

use ed25519_dalek::{Signer, SigningKey};
use remuda_client::{CommandId, Event, Failure, Hydrated, SnapshotPart, SubscriptionSpec, SubscriptionState};
use remuda_dev_provider::lie::Lie;
use remuda_dev_provider::refusal::Code;
use remuda_dev_provider::settings::{Class, Settings};
use remuda_position::memory::MemoryStore;
use remuda_position::{Anchor, ItemAssurance, PositionKey, StoredItem, StoredItemBody};
use remuda_verify::snapshot_generation::{FetchedSnapshot, SnapshotGeneration};
use remuda_wire::audit::HeldObject;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::record::RecordId;
use remuda_wire::scope::LaneScope;
use remuda_wire::{Bytes, Bytes32, Signature, Signed};

use crate::honest::three_lanes;
use crate::provider::settings;
use crate::world::{simulate, CrashAt, World};

fn application() -> SigningKey {
    SigningKey::from_bytes(&[77; 32])
}

fn public_key(key: &SigningKey) -> SigningPublicKey {
    SigningPublicKey(Bytes32(key.verifying_key().to_bytes()))
}

fn key_of(world: &World, spec: &SubscriptionSpec) -> PositionKey {
    spec.key(&world.provider.context(), &world.provider.stream_id())
}

/// What a replica at the end of this position publishes: one snapshot for each of `lanes`, or one of the whole stream.
fn publish(world: &World, client: usize, key: PositionKey, lanes: &[Option<Bytes32>]) -> SnapshotGeneration {
    let last_item = world.position(key).expect("a position").last_item();
    let contents: Vec<_> = lanes.iter().map(|lane| format!("{lane:?} through item {last_item}").into_bytes()).collect();
    let references: Vec<_> = (0..lanes.len()).map(|number| format!("snapshot/{number}").into_bytes()).collect();
    let parts: Vec<_> = lanes
        .iter()
        .zip(contents.iter().zip(&references))
        .map(|(lane_id, (bytes, reference))| SnapshotPart {
            lane_id: *lane_id,
            bytes,
            cbfs_reference: Bytes::new(reference.clone()).expect("short"),
            encryption_generation: 0,
        })
        .collect();
    let draft = world.clients[client].engine.draft_snapshots(key, last_item, &parts).expect("the replica is there");
    let fetched = draft.manifests.into_iter().zip(contents.clone()).zip(lanes.iter().zip(references.clone()));
    SnapshotGeneration {
        receipt: draft.receipt,
        authorized_keys: vec![public_key(&application())],
        snapshots: fetched
            .map(|((mut manifest, bytes), (lane_id, cbfs_reference))| {
                manifest.application_signature = Signature(application().sign(&manifest.digest().0).to_bytes());
                let application_key = public_key(&application());
                FetchedSnapshot {
                    manifest,
                    application_key,
                    bytes,
                    lane_id: *lane_id,
                    cbfs_reference,
                    encryption_generation: 0,
                }
            })
            .collect(),
    }
}

/// Hydrates, and waits for what comes of it.
async fn hydrate(
    world: &mut World,
    client: usize,
    key: PositionKey,
    generation: SnapshotGeneration,
) -> Result<Hydrated, Failure> {
    let id = CommandId(world.next_number());
    world.with_engine(client, |engine, now_ms| engine.hydrate(id, key, generation, now_ms));
    let outcome = |world: &World| {
        let told = world.clients[client].events.iter().filter_map(|(_, event)| match event {
            Event::Hydrated { id: told, outcome } if *told == id => Some(outcome.clone()),
            _ => None,
        });
        let told: Vec<_> = told.collect();
        assert!(told.len() <= 1, "told once");
        told.into_iter().next()
    };
    assert!(world.run_until(30_000, |world| outcome(world).is_some()).await, "{:?}", world.failures(client));
    outcome(world).expect("told")
}

/// `count` records of somebody else, all of which `client` then has.
async fn keep_up(world: &mut World, client: usize, count: u64) {
    world.write_some(count).await;
    world.run_for(500).await;
    assert!(world.run_until(20_000, |world| world.caught_up(client)).await, "{:?}", world.failures(client));
}

fn state(world: &World, client: usize, key: PositionKey) -> SubscriptionState {
    world.clients[client].engine.subscriptions()[&key].state().clone()
}

/// A tab that is two lineages behind, and knows it.
async fn left_behind(world: &mut World, spec: &SubscriptionSpec) -> (usize, PositionKey) {
    let client = world.open_client(vec![spec.clone()]);
    world.run_for(500).await;
    keep_up(world, client, 20).await;
    for _ in 0..2 {
        world.provider.kill().await;
        world.provider.restart();
    }
    let key = key_of(world, spec);
    assert!(world.run_until(120_000, |world| state(world, client, key) == SubscriptionState::Failed).await);
    let (failure, _) = world.clients[client].engine.subscriptions()[&key].failure().expect("a failure");
    assert_eq!(failure.code, "provider/cursor-too-old");
    assert!(world.clients[client].engine.subscriptions()[&key].floor().is_some(), "the floor is a signed one");
    (client, key)
}

/// The records behind the last item that is no record, by their sequences.
fn records_behind_the_last_hole(world: &World, key: PositionKey) -> Vec<u64> {
    let mut sequences = Vec::new();
    for item in world.items(key) {
        match item.body {
            StoredItemBody::Record(record) => sequences.push(record.record_id.sequence),
            StoredItemBody::StandardRecord(record) => sequences.push(record.record_id.sequence),
            StoredItemBody::Transition(_) | StoredItemBody::Gap(_) | StoredItemBody::Snapshot(_) => sequences.clear(),
        }
    }
    sequences
}

#[test]
fn a_gap_that_is_accepted_is_an_item_and_the_reader_goes_on_behind_it() {
    simulate(settings(), 40, async |world| {
        let spec = SubscriptionSpec::FullStream;
        let (client, key) = left_behind(world, &spec).await;
        let before = world.position(key).expect("a position");
        assert!(world.with_engine(client, |engine, now_ms| engine.accept_gap(key, now_ms)));
        assert!(world.run_until(30_000, |world| state(world, client, key) == SubscriptionState::Live).await);
        let gap = world.items(key).pop().expect("an item");
        let StoredItemBody::Gap(hole) = gap.body else { panic!("{gap:?}") };
        assert_eq!(gap.assurance, ItemAssurance::RetentionAnchor);
        assert!(matches!(hole.anchor, Some(HeldObject::FastRetentionAnchor(_))));
        assert!(matches!(hole.after, Some(RecordId::Fast(id)) if id.broker_epoch == 0), "{hole:?}");
        assert!(matches!(hole.before, RecordId::Fast(id) if (id.broker_epoch, id.sequence) == (2, 0)), "{hole:?}");
        assert_eq!(world.position(key).expect("a position").last_item(), before.last_item() + 1);
        assert!(world.clients[client].events.iter().any(|(_, event)| matches!(event, Event::Gap { .. })));
        keep_up(world, client, 20).await;
        let position = world.position(key).expect("a position");
        assert_eq!(position.anchor(), Anchor::Retention);
        assert_eq!(records_behind_the_last_hole(world, key), (0..20).collect::<Vec<_>>());
        // There is nothing more to accept.
        assert!(!world.with_engine(client, |engine, now_ms| engine.accept_gap(key, now_ms)));
    });
}

#[test]
fn what_lies_between_the_floor_and_the_first_batch_is_a_gap_too() {
    simulate(settings(), 41, async |world| {
        let spec = SubscriptionSpec::FullStream;
        let (client, key) = left_behind(world, &spec).await;
        // No cursor names the beginning of the lineage: the provider goes on at its head.
        world.write_some(20).await;
        world.run_for(1_000).await;
        assert!(world.with_engine(client, |engine, now_ms| engine.accept_gap(key, now_ms)));
        assert!(world.run_until(30_000, |world| state(world, client, key) == SubscriptionState::Live).await);
        keep_up(world, client, 5).await;
        let gaps: Vec<_> = world
            .items(key)
            .into_iter()
            .filter_map(|item| match item.body {
                StoredItemBody::Gap(gap) => Some((item.assurance, gap)),
                _ => None,
            })
            .collect();
        let [(signed, _), (unsigned, hole)] = &gaps[..] else { panic!("{gaps:?}") };
        assert_eq!((*signed, *unsigned), (ItemAssurance::RetentionAnchor, ItemAssurance::None));
        assert!(matches!(hole.before, RecordId::Fast(id) if (id.broker_epoch, id.sequence) == (2, 20)), "{hole:?}");
        assert_eq!(records_behind_the_last_hole(world, key), (20..25).collect::<Vec<_>>());
    });
}

/// Whether a reader stopped over a floor in the middle of its lineage goes on behind exactly one hole.
fn goes_on_behind_a_floor(settings: Settings, spec: &SubscriptionSpec) {
    simulate(settings, 42, async |world| {
        let key = key_of(world, spec);
        let client = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        let has = |count: u64| move |world: &mut World| world.position(key).is_some_and(|it| it.last_item() == count);
        world.some_of_either(client, 10).await;
        assert!(world.run_until(10_000, has(10)).await, "{:?}", world.failures(client));
        world.with_engine(client, |engine, now_ms| engine.unsubscribe(key, now_ms));
        world.some_of_either(client, 10).await;
        world.run_for(6_000).await;
        assert!(world.provider.collect(), "something is old enough");
        world.some_of_either(client, 10).await;
        world.subscribe(client, spec.clone());
        let failed = |world: &mut World| state(world, client, key) == SubscriptionState::Failed;
        assert!(world.run_until(30_000, failed).await, "{:?}", world.failures(client));
        assert!(world.with_engine(client, |engine, now_ms| engine.accept_gap(key, now_ms)));
        assert!(world.run_until(30_000, has(21)).await, "{:?} {}", world.failures(client), world.items(key).len());
        let hole = &world.items(key)[10];
        assert!(matches!(hole.body, StoredItemBody::Gap(_)), "{hole:?}");
        assert_eq!(records_behind_the_last_hole(world, key), (20..30).collect::<Vec<_>>());
    });
}

#[test]
fn a_floor_in_the_middle_of_a_lineage_leads_on_without_a_second_gap() {
    let settings = Settings { retention_ms: Some(5_000), ..settings() };
    goes_on_behind_a_floor(settings, &SubscriptionSpec::FullStream);
}

#[test]
fn a_floor_of_a_standard_stream_leads_on_without_a_second_gap() {
    let settings = Settings { retention_ms: Some(5_000), class: Class::Standard, poll_ms: 1_000, ..settings() };
    goes_on_behind_a_floor(settings, &SubscriptionSpec::StandardReplay(LaneScope::Any));
}

#[test]
fn a_new_reader_begins_with_snapshots_and_misses_nothing_after_them() {
    for lanes in [1, 3] {
        simulate(settings(), 43, async |world| {
            let spec = if lanes == 1 { SubscriptionSpec::FullStream } else { three_lanes(world) };
            let key = key_of(world, &spec);
            let writer = world.open_client(vec![spec.clone()]);
            world.run_for(500).await;
            keep_up(world, writer, 20).await;
            let wanted: Vec<_> = match spec.scope().lanes() {
                None => vec![None],
                Some(lanes) => lanes.iter().copied().map(Some).collect(),
            };
            let generation = publish(world, writer, key, &wanted);
            let covered = world.position(key).expect("a position");
            let given: Vec<_> = generation.snapshots.iter().map(|it| (it.bytes.as_ptr(), it.bytes.len())).collect();
            world.another_database(writer);
            let reader = world.open_client(Vec::new());
            world.write_some(10).await;
            world.subscribe(reader, spec.clone());
            let hydrated = hydrate(world, reader, key, generation).await.expect("verified");
            let told = world.clients[reader].events.iter().find_map(|(_, event)| match event {
                Event::Hydrated { outcome: Ok(hydrated), .. } => Some(&hydrated.contents),
                _ => None,
            });
            let got: Vec<_> = told.into_iter().flatten().map(|bytes| (bytes.as_ptr(), bytes.len())).collect();
            assert_eq!(got, given, "what was hashed is what is given back: the very buffers");
            assert_eq!(hydrated.last_item, 1);
            assert!(world.run_until(20_000, |world| world.caught_up(reader)).await, "{:?}", world.failures(reader));
            let items = world.items(key);
            let StoredItemBody::Snapshot(snapshot) = &items[0].body else { panic!("{:?}", items[0]) };
            assert_eq!((items[0].assurance, snapshot.manifests.len()), (ItemAssurance::Snapshot, lanes));
            let HeldObject::CheckpointReceipt(receipt) = &snapshot.receipt else { panic!("{snapshot:?}") };
            assert_eq!(covered.place(), place_of(receipt));
            let expected: Vec<_> = world
                .provider
                .durable(&spec.scope())
                .into_iter()
                .map(|(id, _)| id.sequence)
                .filter(|sequence| *sequence > receipt.last_sequence)
                .collect();
            assert_eq!(records_behind_the_last_hole(world, key), expected);
            assert_eq!(world.position(key).expect("a position").anchor(), Anchor::Snapshot);
            assert_eq!(world.failures(reader), Vec::<String>::new());
        });
    }
}

impl World {
    /// `count` records that are durable then: of somebody else, or, of a standard stream, appended by us.
    async fn some_of_either(&mut self, client: usize, count: u64) {
        if self.provider.is_fast() {
            self.write_some(count).await;
            self.run_for(500).await;
            return;
        }
        let lanes = self.provider.lanes();
        for lane in lanes.into_iter().cycle().take(usize::try_from(count).expect("few")) {
            let entry = self.append(client, lane);
            assert!(self.run_until(10_000, |world| world.has_ended(entry)).await, "{:?}", self.failures(client));
        }
    }

    /// The tab closes for good, and the next one begins with a new database.
    fn another_database(&mut self, client: usize) {
        self.with_engine(client, |engine, now_ms| engine.close(now_ms));
        self.store = MemoryStore::default();
    }
}

fn place_of(receipt: &remuda_wire::checkpoint::CheckpointReceipt) -> remuda_position::Place {
    let (broker_epoch, last_sequence) = (receipt.broker_epoch, receipt.last_sequence);
    let checkpoint = remuda_position::CheckpointEnd { broker_epoch, last_sequence, digest: receipt.digest() };
    remuda_position::Place::Fast { checkpoint: Some(checkpoint), adopted: None }
}

#[test]
fn a_generation_whose_snapshots_cover_different_checkpoints_is_refused() {
    simulate(settings(), 44, async |world| {
        let spec = three_lanes(world);
        let key = key_of(world, &spec);
        let lanes: Vec<_> = spec.scope().lanes().expect("a set").iter().copied().map(Some).collect();
        let writer = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        keep_up(world, writer, 10).await;
        let earlier = publish(world, writer, key, &lanes);
        keep_up(world, writer, 10).await;
        let later = publish(world, writer, key, &lanes);
        world.another_database(writer);
        let reader = world.open_client(Vec::new());
        let mut mixed = later.clone();
        mixed.snapshots[1] = earlier.snapshots[1].clone();
        let mut missing = later.clone();
        missing.snapshots.pop();
        let mut twice = later.clone();
        twice.snapshots[2] = later.snapshots[1].clone();
        let mut altered = later.clone();
        altered.snapshots[1].bytes.push(0);
        let mut unauthorized = later.clone();
        unauthorized.authorized_keys = vec![public_key(&SigningKey::from_bytes(&[78; 32]))];
        let mut forged = later.clone();
        forged.snapshots[0].manifest.application_signature = Signature::ZERO;
        for (generation, code) in [
            (mixed, "verify/snapshot-anchor"),
            (missing, "admission/snapshot-expectation"),
            (twice, "admission/snapshot-expectation"),
            (altered, "verify/snapshot-hash"),
            (unauthorized, "admission/snapshot-signer"),
            (forged, "verify/signature"),
        ] {
            world.subscribe(reader, spec.clone());
            let refused = hydrate(world, reader, key, generation).await.expect_err("refused");
            assert_eq!(refused.code, code);
            world.run_for(5_000).await;
            assert_eq!(state(world, reader, key), SubscriptionState::Failed, "it begins nowhere else by itself");
            assert_eq!((world.position(key), world.clients[reader].asked.len()), (None, 0), "{code}");
        }
        world.subscribe(reader, spec.clone());
        hydrate(world, reader, key, later).await.expect("verified");
        assert!(world.run_until(20_000, |world| world.caught_up(reader)).await, "{:?}", world.failures(reader));
    });
}

#[test]
fn a_snapshot_of_two_lineages_ago_ends_at_the_signed_floor_and_not_at_the_head() {
    simulate(settings(), 45, async |world| {
        let spec = SubscriptionSpec::FullStream;
        let key = key_of(world, &spec);
        let writer = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        keep_up(world, writer, 10).await;
        let old = publish(world, writer, key, &[None]);
        for _ in 0..2 {
            world.provider.kill().await;
            world.provider.restart();
        }
        world.another_database(writer);
        let reader = world.open_client(Vec::new());
        world.subscribe(reader, spec.clone());
        hydrate(world, reader, key, old).await.expect("the bundle is authentic, however old");
        let failed = |world: &mut World| state(world, reader, key) == SubscriptionState::Failed;
        assert!(world.run_until(30_000, failed).await);
        assert_eq!(world.failures(reader), ["provider/cursor-too-old"]);
        let asked: Vec<_> = world.clients[reader].asked.iter().map(|request| request.source.clone()).collect();
        let [remuda_wire::request::SubscriptionSource::Fast(source)] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!(
            source.after.map(|id| id.broker_epoch),
            Some(0),
            "it asked with the lineage of the bundled checkpoint"
        );
        assert_eq!(world.items(key).len(), 1, "the snapshot is all that it has");
    });
}

#[test]
fn an_older_snapshot_moves_no_position_back() {
    simulate(settings(), 46, async |world| {
        let spec = SubscriptionSpec::FullStream;
        let key = key_of(world, &spec);
        let client = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        keep_up(world, client, 10).await;
        let snapshot = publish(world, client, key, &[None]);
        for _ in 0..2 {
            // Both of the very place and of one behind it.
            let before = world.position(key);
            let refused = hydrate(world, client, key, snapshot.clone()).await.expect_err("it would go back");
            assert_eq!(refused.code, "client/snapshot-rollback");
            assert_eq!(world.position(key), before);
            keep_up(world, client, 10).await;
        }
        world.check(key, &spec.scope());
        assert_eq!(world.failures(client), Vec::<String>::new());
    });
}

#[test]
fn a_reader_behind_the_floor_is_led_on_by_a_later_snapshot() {
    simulate(settings(), 47, async |world| {
        let spec = SubscriptionSpec::FullStream;
        let (client, key) = left_behind(world, &spec).await;
        // Somebody else has kept up, on a database of their own.
        let ours = core::mem::take(&mut world.store);
        let theirs = world.open_client(vec![spec.clone()]);
        world.run_for(500).await;
        keep_up(world, theirs, 10).await;
        let snapshot = publish(world, theirs, key, &[None]);
        world.another_database(theirs);
        world.store = ours;
        hydrate(world, client, key, snapshot).await.expect("verified");
        keep_up(world, client, 10).await;
        assert_eq!(records_behind_the_last_hole(world, key), (10..20).collect::<Vec<_>>());
    });
}

#[test]
fn a_crash_at_every_storage_step_of_a_beginning() {
    let script = async |world: &mut World, crash_at: Option<CrashAt>| {
        let spec = SubscriptionSpec::FullStream;
        let (client, key) = left_behind(world, &spec).await;
        world.storage_steps = 0;
        world.crash_at = crash_at;
        // A tab that crashed knows nothing of its floor, is told again, and is asked again.
        let accepted = |world: &mut World| {
            world.with_engine(client, |engine, now_ms| engine.accept_gap(key, now_ms));
            state(world, client, key) == SubscriptionState::Live
        };
        assert!(world.run_until(60_000, accepted).await, "{:?}", world.failures(client));
        // The first batch of a lineage that begins without a cursor may be missed by a crash: then it is a hole too.
        for _ in 0..2 {
            world.write_some(5).await;
            world.run_for(2_000).await;
        }
        assert!(world.run_until(20_000, |world| world.caught_up(client)).await, "{:?}", world.failures(client));
        let signed = |item: &StoredItem| item.assurance == ItemAssurance::RetentionAnchor;
        assert_eq!(world.items(key).iter().filter(|item| signed(item)).count(), 1, "the hole is there once");
        let records = records_behind_the_last_hole(world, key);
        assert!(records == (0..10).collect::<Vec<_>>() || records == (5..10).collect::<Vec<_>>(), "{records:?}");
        world.storage_steps
    };
    let steps = simulate(settings(), 48, async |world| script(world, None).await);
    assert!(steps >= 4, "{steps} steps");
    for step in 1..=steps {
        simulate(settings(), 48, async |world| script(world, Some(CrashAt(step))).await);
    }
}

#[test]
fn a_refusal_without_its_anchor_is_the_providers_fault() {
    simulate(settings(), 49, async |world| {
        let spec = three_lanes(world);
        world.provider.refuse(Code::CursorTooOld, 1);
        let client = world.open_client(vec![spec.clone()]);
        let key = key_of(world, &spec);
        let failed = |world: &mut World| state(world, client, key) == SubscriptionState::Failed;
        assert!(world.run_until(30_000, failed).await);
        assert_eq!(world.failures(client), ["protocol/anchor-missing"]);
        assert!(!world.with_engine(client, |engine, now_ms| engine.accept_gap(key, now_ms)), "there is no floor");
    });
}

#[test]
fn a_floor_that_is_a_lie_is_found_out() {
    for (lie, is_pruned, code) in
        [(Lie::UnjustifiedFloor, false, "verify/unjustified-refusal"), (Lie::WrongAnchor, true, "verify/anchor-scope")]
    {
        let standard = Settings { class: Class::Standard, poll_ms: 1_000, retention_ms: Some(5_000), ..settings() };
        simulate(Settings { lies: vec![lie], lie_after: 0, ..standard }, 50, async |world| {
            let spec = SubscriptionSpec::StandardReplay(LaneScope::Any);
            let client = world.open_client(Vec::new());
            let key = key_of(world, &spec);
            world.run_for(500).await;
            world.some_of_either(client, 4).await;
            world.run_for(6_000).await;
            assert!(!is_pruned || world.provider.collect());
            world.subscribe(client, spec);
            let failed = |world: &mut World| state(world, client, key) == SubscriptionState::Failed;
            assert!(world.run_until(60_000, failed).await, "{:?}", world.failures(client));
            assert_eq!(world.failures(client), [code]);
            assert!(!world.with_engine(client, |engine, now_ms| engine.accept_gap(key, now_ms)), "it is no floor");
        });
    }
}
