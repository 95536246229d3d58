//! Members of an encrypted stream: keys come by the key stream while records flow, and a removed member gets none.

use std::collections::BTreeMap;

use remuda_client::member_keys::{
    KeyBatchDraft, MemberKeyConfig, MemberKeyEvent, MemberKeyOutput, MemberKeys, StreamKeyFacts, UploadStep,
};
use remuda_client::{
    CommandId, CommandOutcome, Connection, Event, Keyring, OpenedPayload, SubscriptionSpec, SubscriptionState,
};
use remuda_dev_provider::chain::Operation;
use remuda_dev_provider::lie::Lie;
use remuda_dev_provider::settings::{Class, Settings};
use remuda_position::outbox::OutboxState;
use remuda_position::{PositionKey, Store, StoredItemBody};
use remuda_session::Transports;
use remuda_verify::hpke::agree;
use remuda_verify::key_derivation::{data_key, SecretBytes};
use remuda_verify::open::hpke_public_key;
use remuda_wire::key::HpkePublicKey;
use remuda_wire::key_batch::KeyBatchReceipt;
use remuda_wire::preimage::{keccak256, key_stream_id};
use remuda_wire::record::RecordHeader;
use remuda_wire::scope::LaneScope;

use crate::provider::settings;
use crate::schedules::{run_all, share};
use crate::weather::Weather;
use crate::world::{now, simulate, Stream, World};

const MAIN: usize = 0;
const KEYS: usize = 1;
const EVERYTHING: SubscriptionSpec = SubscriptionSpec::StandardReplay(LaneScope::Any);

fn encrypted(class: Class) -> Settings {
    Settings { class, encrypted: true, poll_ms: 5_000, ..settings() }
}

fn main_spec(class: Class) -> SubscriptionSpec {
    match class {
        Class::Standard => EVERYTHING,
        Class::Fast => SubscriptionSpec::FullStream,
    }
}

fn secret(name: &str) -> SecretBytes {
    SecretBytes::new(keccak256(name.as_bytes()).0)
}

fn public(name: &str) -> HpkePublicKey {
    hpke_public_key(&secret(name))
}

fn keys_position(world: &World) -> PositionKey {
    EVERYTHING.key(&world.provider.context(), &key_stream_id(&world.stream_id))
}

fn chain_reads(world: &World) -> usize {
    world.clients[MAIN].events.iter().filter(|(_, event)| *event == Event::ChainRead).count()
}

/// One member: what its page does with the rows of the key stream.
struct Member {
    name: &'static str,
    keys: MemberKeys,
    keyring: Keyring,
    kept: Vec<u8>,
    events: Vec<MemberKeyEvent>,
    /// How many reads of the chain there were when it asked for one.
    waits_for_read: Option<usize>,
}

impl Member {
    fn new(world: &World, name: &'static str) -> Self {
        let keys = MemberKeys::new(Self::config(world, name));
        let (keyring, kept, events) = (Keyring::default(), Vec::new(), Vec::new());
        Self { name, keys, keyring, kept, events, waits_for_read: None }
    }

    fn config(world: &World, name: &str) -> MemberKeyConfig {
        let (context, main_stream_id) = (world.context.clone(), world.stream_id);
        MemberKeyConfig { context, main_stream_id, member: public(name) }
    }

    /// Its process dies; what was kept is all that is left of it.
    fn restart(&mut self, world: &World) {
        let last_item = u64::try_from(world.items(keys_position(world)).len()).expect("few");
        self.keyring = Keyring::default();
        self.keys = MemberKeys::restore(Self::config(world, self.name), &self.kept, last_item, &mut self.keyring);
        self.waits_for_read = None;
    }

    /// Takes the rows that there are.
    fn follow(&mut self, world: &mut World) {
        let stream = world.clients[MAIN].engine.stream().cloned();
        let Some(facts) = stream.as_ref().and_then(StreamKeyFacts::of) else { return };
        self.keyring.set_active(facts.active_generation);
        if self.waits_for_read.is_none_or(|before| chain_reads(world) > before) {
            self.waits_for_read = None;
            self.keys.handle_chain(facts, &mut self.keyring);
        }
        let rows = world.items(keys_position(world));
        loop {
            while let Some(output) = self.keys.poll_output() {
                match output {
                    MemberKeyOutput::Agree { public_key } => {
                        self.keys.handle_agreed(agree(&secret(self.name), &public_key), &mut self.keyring);
                    }
                    MemberKeyOutput::ReadChain => {
                        self.waits_for_read = Some(chain_reads(world));
                        world.with_engine(MAIN, |engine, _| engine.read_chain());
                    }
                    MemberKeyOutput::Keep(kept) => self.kept = kept.to_vec(),
                    MemberKeyOutput::Event(event) => self.events.push(event),
                }
            }
            let after = self.keys.wants_after().and_then(|after| usize::try_from(after).ok());
            let Some((number, row)) = after.and_then(|after| Some((after + 1, rows.get(after)?))) else { return };
            let number = u64::try_from(number).expect("few");
            self.keys.handle_item(number, row.clone(), &mut self.keyring);
        }
    }

    fn generations(&self) -> Vec<u64> {
        self.keyring.generations().collect()
    }

    fn failures(&self) -> Vec<&str> {
        let code = |event| match event {
            &MemberKeyEvent::Failed(ref failure) | &MemberKeyEvent::NotOpened { ref failure, .. } => {
                Some(failure.code.as_str())
            }
            _ => None,
        };
        self.events.iter().filter_map(code).collect()
    }
}

/// Opens both engines of one tab.
fn open(world: &mut World, class: Class) {
    world.keyring = Some(Keyring::default());
    world.renews_grant = true;
    assert_eq!(world.open_client(vec![main_spec(class)]), MAIN);
    assert_eq!(world.open_engine(Stream::Keys, vec![EVERYTHING]), KEYS);
}

fn is_open(world: &World, client: usize) -> bool {
    matches!(world.clients[client].engine.connection(), Connection::Open { .. })
}

/// Publishes a batch, whatever happens to the link. Gives its receipt, or the code of what failed.
async fn publish(
    world: &mut World,
    publisher: &mut Member,
    generation: u64,
    names: &[&str],
) -> Result<KeyBatchReceipt, String> {
    // The owner knows its own chain.
    for round in 0.. {
        assert!(round < 1_000, "{:?} {:?}", world.failures(MAIN), world.failures(KEYS));
        publisher.follow(world);
        let active = world.provider.encryption_generation();
        if publisher.keys.position(generation).is_some_and(|position| position.active_generation == active) {
            break;
        }
        world.with_engine(MAIN, |engine, _| engine.read_chain());
        world.run_for(200).await;
    }
    let key = data_key(&secret("root"), &world.stream_id, generation);
    let recipients: Vec<_> = names.iter().map(|name| public(name)).collect();
    let position = publisher.keys.position(generation).expect("it was there");
    let mut drawn = world.random.fork();
    let fresh = || secret(&format!("ephemeral {}", drawn.next()));
    let draft = KeyBatchDraft::compose(&position, generation, &recipients, &key, 1, fresh);
    let draft = draft.map_err(|failure| failure.code)?;
    let signature = world.provider.sign_rotation(&draft.digest());
    let mut upload = draft.sign(signature, &position).map_err(|failure| failure.code)?;
    for _ in 0..1_000 {
        assert!(world.run_until(600_000, |world| opens(world, KEYS)).await, "{:?}", world.failures(KEYS));
        let number = world.next_number();
        let request = upload.request();
        world.with_engine(KEYS, |engine, now_ms| engine.command(CommandId(number), request, now_ms));
        let settled = |world: &mut World| world.clients[KEYS].settled.contains_key(&number);
        // A process that died settles nothing.
        let outcome = if world.run_until(60_000, settled).await {
            world.clients[KEYS].settled.remove(&number).and_then(|outcomes| outcomes.first().cloned())
        } else {
            None
        };
        match upload.handle(&outcome.unwrap_or(CommandOutcome::Unknown)) {
            UploadStep::Send => world.run_for(10).await,
            UploadStep::Durable(receipt) => return Ok(receipt),
            UploadStep::Failed(failure) => return Err(failure.code),
        }
    }
    panic!("never published: {:?}", world.failures(KEYS));
}

/// Whether it is open; an application starts it again where six grants in a row were withdrawn before they were presented.
fn opens(world: &mut World, client: usize) -> bool {
    if *world.clients[client].engine.connection() == Connection::Closed {
        let number = world.next_number();
        world.with_engine(client, |engine, _| engine.handle_start(keccak256(&number.to_be_bytes()).0));
    }
    is_open(world, client)
}

/// The next generation is for `names` from now on.
async fn rotate(world: &mut World, publisher: &mut Member, names: &[&str]) {
    let next = world.provider.encryption_generation() + 1;
    for round in 0.. {
        match publish(world, publisher, next, names).await {
            Ok(_) => break,
            // Its own last batch has not come back yet, so it named another predecessor; or the engine was closed meanwhile.
            Err(code) => {
                assert!(
                    round < 100 && ["provider/invalid-key-batch", "misuse/not-started"].contains(&&*code),
                    "{code}"
                );
            }
        }
        // A disk that failed it again and again has ended the subscription.
        world.with_engine(KEYS, |engine, _| engine.subscribe(EVERYTHING));
        world.run_for(1_000).await;
    }
    world.provider.operate(Operation::ActivateGeneration);
}

/// Appends by a member, where it has the key of the active generation.
fn append(world: &mut World, member: &mut Member) -> Option<u64> {
    let active = world.clients[MAIN].engine.stream()?.encryption_generation;
    if !member.generations().contains(&active) {
        return None;
    }
    let lane = world.lanes[0];
    core::mem::swap(&mut member.keyring, world.keyring.as_mut().expect("encrypted"));
    let entry = world.append(MAIN, lane);
    core::mem::swap(&mut member.keyring, world.keyring.as_mut().expect("encrypted"));
    Some(entry)
}

/// The stored application records of the main stream.
fn records(world: &World, class: Class) -> Vec<(RecordHeader, Vec<u8>)> {
    let key = main_spec(class).key(&world.context, &world.stream_id);
    let records = world.items(key).into_iter().filter_map(|item| match item.body {
        StoredItemBody::StandardRecord(record) => Some((record.header, record.payload.to_vec())),
        StoredItemBody::Record(record) => Some((record.header, record.payload.to_vec())),
        _ => None,
    });
    records.filter(|(header, _)| header.origin == remuda_wire::record::RecordOrigin::Client).collect()
}

/// How many records of each generation a member reads, and how many it does not for want of a key.
fn readable(world: &World, class: Class, member: &Member) -> BTreeMap<u64, (usize, usize)> {
    let mut counts = BTreeMap::<_, (usize, usize)>::new();
    for (header, payload) in records(world, class) {
        let count = counts.entry(header.encryption_generation).or_default();
        match member.keyring.open(&header, &payload) {
            OpenedPayload::Opened(plaintext) => {
                assert!(plaintext.starts_with(b"record "));
                count.0 += 1;
            }
            OpenedPayload::Sealed => count.1 += 1,
            other => panic!("{other:?}"),
        }
    }
    counts
}

async fn settle(world: &mut World, class: Class, members: &mut [&mut Member]) {
    world.weather = Weather::FAIR;
    if !world.provider.is_running() {
        world.provider.restart();
    }
    for (client, spec) in [(MAIN, main_spec(class)), (KEYS, EVERYTHING)] {
        world.with_engine(client, |engine, _| engine.subscribe(spec));
        assert!(world.run_until(300_000, |world| opens(world, client)).await, "{:?}", world.failures(client));
    }
    let all_settled = |world: &mut World| world.appended.keys().all(|entry| world.has_ended(*entry));
    assert!(world.run_until(300_000, all_settled).await, "{:?}", world.failures(MAIN));
    world.run_for(20_000).await;
    for member in members {
        let newest = |world: &mut World| {
            member.follow(world);
            member.keys.newest().is_some_and(|(newest, _)| newest == world.provider.encryption_generation())
        };
        assert!(world.run_until(120_000, newest).await, "{:?} {:?}", member.events, world.failures(KEYS));
    }
}

/// The data keys are in no row, no event and nothing that is printed.
fn check_secrecy(world: &World, member: &Member) {
    let rows = now(world.store.rows_after(keys_position(world), 0, usize::MAX)).expect("a store in memory");
    let tabs: Vec<_> = world.clients.iter().map(|tab| format!("{:?} {:?}", tab.engine, tab.events)).collect();
    let printed = format!("{tabs:?} {:?} {:?} {:?}", member.keys, member.events, member.keyring);
    for generation in member.generations() {
        let key = data_key(&secret("root"), &world.stream_id, generation);
        assert!(!rows.iter().any(|row| row.windows(32).any(|window| window == key.expose())));
        for form in [hex::encode(key.expose()), format!("{:?}", &key.expose()[..8]).replace(['[', ']'], "")] {
            assert!(!printed.contains(&form), "a data key is printed");
        }
    }
}

fn schedule(seed: u64) -> [u32; 4] {
    let class = if seed.is_multiple_of(3) { Class::Fast } else { Class::Standard };
    simulate(encrypted(class), seed, async |world| {
        world.transports = if seed.is_multiple_of(2) { Transports::Both } else { Transports::LongPoll };
        open(world, class);
        let (mut alice, mut bob) = (Member::new(world, "alice"), Member::new(world, "bob"));
        publish(world, &mut alice, 0, &["alice", "bob"]).await.expect("an honest provider");
        world.run_for(2_000).await;
        alice.follow(world);
        // A position, so that whoever comes back goes on where it was.
        let first = append(world, &mut alice).expect("a key");
        assert!(world.run_until(30_000, |world| world.has_ended(first)).await);
        let mut counts = [0; 4];
        let (mut last_of_bob, mut removed) = (0, false);
        world.weather = Weather::FOUL;
        for step in 0..30 {
            match world.random.below(8) {
                0..3 => {
                    for _ in 0..=world.random.below(4) {
                        counts[0] += u32::from(append(world, &mut alice).is_some());
                    }
                }
                3 => {
                    world.crash(MAIN);
                    alice.restart(world);
                    counts[1] += 1;
                }
                4 => {
                    bob.restart(world);
                    counts[1] += 1;
                }
                // Twice behind its back, and a cursor of a fast stream is too old.
                5 if class == Class::Standard => {
                    world.provider.kill().await;
                    let down_ms = world.random.below(5_000);
                    world.run_for(down_ms).await;
                    world.provider.restart();
                    counts[2] += 1;
                }
                6 if step % 2 == 0 => {
                    removed |= step > 12;
                    rotate(world, &mut alice, if removed { &["alice"] } else { &["alice", "bob"] }).await;
                    if !removed {
                        last_of_bob = world.provider.encryption_generation();
                    }
                    counts[3] += 1;
                }
                _ => world.clients[MAIN].frozen_until_ms = world.now_ms() + world.random.below(20_000),
            }
            let pause_ms = world.random.below(1_500);
            world.run_for(pause_ms).await;
            alice.follow(world);
            bob.follow(world);
        }
        settle(world, class, &mut [&mut alice, &mut bob]).await;
        let active = world.provider.encryption_generation();
        assert_eq!(alice.generations(), (0..=active).collect::<Vec<_>>(), "seed {seed}: {:?}", alice.events);
        assert_eq!(bob.generations(), (0..=last_of_bob).collect::<Vec<_>>(), "seed {seed}: {:?}", bob.events);
        assert_eq!((alice.failures(), bob.failures()), (vec![], vec![]), "seed {seed}: an honest peer is accused");
        assert!(readable(world, class, &alice).values().all(|(_, sealed)| *sealed == 0));
        for (generation, (opened, sealed)) in readable(world, class, &bob) {
            assert_eq!(if generation <= last_of_bob { sealed } else { opened }, 0, "seed {seed}: {generation}");
        }
        if removed {
            let told = MemberKeyEvent::Removed { generation: last_of_bob + 1, last_readable: Some(last_of_bob) };
            assert!(bob.events.contains(&told), "seed {seed}: {:?}", bob.events);
        }
        for entry in world.appended.keys() {
            if let Some(OutboxState::Failed(failure)) = world.state(*entry) {
                let stale = ["encryption/generation-stale", "provider/encryption-generation-stale"];
                assert!(stale.contains(&&*failure.code), "seed {seed}: {failure:?}");
            }
        }
        check_secrecy(world, &alice);
        counts
    })
}

#[test]
fn on_any_schedule_members_read_what_they_are_members_of() {
    let total = run_all("member keys", share(20), schedule);
    assert!(total.iter().all(|count| *count > 5), "appends, restarts, kills, rotations: {total:?}");
}

#[test]
fn what_came_before_its_key_is_read_once_the_key_comes() {
    simulate(encrypted(Class::Standard), 3, async |world| {
        open(world, Class::Standard);
        let mut alice = Member::new(world, "alice");
        publish(world, &mut alice, 0, &["alice"]).await.expect("an honest provider");
        world.run_for(2_000).await;
        alice.follow(world);
        let entry = append(world, &mut alice).expect("a key");
        assert!(world.run_until(30_000, |world| world.has_ended(entry)).await);
        world.run_for(2_000).await;
        // Bob has the record, and nothing to open it with.
        let mut bob = Member::new(world, "bob");
        bob.follow(world);
        assert_eq!(bob.events, [MemberKeyEvent::Removed { generation: 0, last_readable: None }]);
        assert_eq!(readable(world, Class::Standard, &bob), BTreeMap::from([(0, (0, 1))]));
        // A supplemental batch adds him, and removes nobody.
        publish(world, &mut alice, 0, &["bob"]).await.expect("an honest provider");
        world.run_for(2_000).await;
        bob.follow(world);
        alice.follow(world);
        assert_eq!(readable(world, Class::Standard, &bob), BTreeMap::from([(0, (1, 0))]));
        assert_eq!(alice.keys.newest(), Some((0, true)));
    });
}

#[test]
fn nothing_is_sealed_under_a_generation_that_is_not_active() {
    simulate(encrypted(Class::Standard), 4, async |world| {
        open(world, Class::Standard);
        let mut alice = Member::new(world, "alice");
        publish(world, &mut alice, 0, &["alice"]).await.expect("an honest provider");
        world.run_for(2_000).await;
        // The batch of the next generation is there, and inert.
        publish(world, &mut alice, 1, &["alice"]).await.expect("an honest provider");
        world.run_for(2_000).await;
        alice.follow(world);
        assert_eq!(alice.generations(), [0, 1]);
        let first = append(world, &mut alice).expect("a key");
        assert!(world.run_until(30_000, |world| world.has_ended(first)).await);
        assert_eq!(world.appended[&first].encryption_generation, 0);
        // It is activated, and this tab has not heard of it: the broker refuses, and the chain is read again.
        world.provider.operate(Operation::ActivateGeneration);
        let stale = append(world, &mut alice).expect("a key");
        assert!(world.run_until(60_000, |world| world.has_ended(stale)).await);
        let Some(OutboxState::Failed(failure)) = world.state(stale) else { panic!("refused") };
        assert!(failure.code.ends_with("generation-stale"), "{failure:?}");
        world.run_for(2_000).await;
        alice.follow(world);
        let fresh = append(world, &mut alice).expect("a key");
        assert!(world.run_until(60_000, |world| world.has_ended(fresh)).await);
        assert_eq!(world.appended[&fresh].encryption_generation, 1);
        assert!(matches!(world.state(fresh), Some(OutboxState::Durable(_))));
    });
}

#[test]
fn lies_about_key_batches_are_caught_by_their_codes() {
    let replayed = [Lie::BreakGlobalChain, Lie::BreakLaneChain, Lie::WithholdReceipt, Lie::ForgeReceiptKey];
    for lie in replayed {
        simulate(encrypted(Class::Standard), 5, async |world| {
            open(world, Class::Standard);
            let mut alice = Member::new(world, "alice");
            publish(world, &mut alice, 0, &["alice", "bob"]).await.expect("an honest provider");
            world.run_for(2_000).await;
            alice.follow(world);
            let honest = world.items(keys_position(world)).len();
            assert_eq!((alice.generations(), honest), (vec![0], 3));
            world.provider.tell(vec![lie], 0);
            publish(world, &mut alice, 1, &["alice", "bob"]).await.expect("it lies to readers");
            let state =
                |world: &World| world.clients[KEYS].engine.subscriptions()[&keys_position(world)].state().clone();
            assert!(world.run_until(300_000, |world| state(world) == SubscriptionState::Failed).await, "{lie:?}");
            let failures = world.failures(KEYS);
            assert!(failures.iter().all(|code| code == lie.verdict()), "{lie:?}: {failures:?}");
            alice.follow(world);
            assert_eq!((alice.generations(), alice.failures()), (vec![0], vec![]), "{lie:?}: no key comes of it");
        });
    }
    simulate(encrypted(Class::Standard), 6, async |world| {
        open(world, Class::Standard);
        let mut alice = Member::new(world, "alice");
        world.provider.tell(vec![Lie::ForgeKeyReceipt], 0);
        let published = publish(world, &mut alice, 0, &["alice"]).await;
        assert_eq!(published, Err(Lie::ForgeKeyReceipt.verdict().to_owned()));
        assert!(published.is_err_and(|code| code == "verify/envelope-root"), "nothing to activate a generation with");
    });
}

#[test]
fn only_a_whole_batch_of_the_rotation_key_is_published() {
    simulate(encrypted(Class::Standard), 7, async |world| {
        open(world, Class::Standard);
        let mut alice = Member::new(world, "alice");
        let refused = |code: &str| Err(code.to_owned());
        assert_eq!(publish(world, &mut alice, 0, &[]).await, refused("encryption/empty-rotation"));
        assert_eq!(publish(world, &mut alice, 2, &["alice"]).await, refused("verify/key-generation"));
        let receipt = publish(world, &mut alice, 0, &["alice", "bob", "alice"]).await.expect("an honest provider");
        assert_eq!((receipt.envelope_count, receipt.first_sequence), (2, 0), "one envelope for each");
    });
}
