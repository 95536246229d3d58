//! Consumer groups: an application that settles what it is given, over both transports, whatever breaks; each lie by its code.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use clap::ValueEnum;
use remuda_client::{CommandId, Decision, Event, Failure, GroupId, GroupNews, SubscriptionSpec, SubscriptionState};
use remuda_dev_provider::lie::{Lie, Part};
use remuda_dev_provider::settings::{Class, Settings};
use remuda_position::{Boundary, PositionKey};
use remuda_session::Transports;
use remuda_verify::response::AnsweredResult;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::group::{DeliveryResultState, DeliveryStateAction as Action, GroupConfig, GroupMode, GroupStart};
use remuda_wire::preimage::keccak256;
use remuda_wire::request::{CreateGroupRequest, DeleteGroupRequest, RedriveRequest, RequestBody};
use remuda_wire::Bytes32;

use crate::provider::settings;
use crate::schedules::{run_all, share};
use crate::standard::{keyring, standard};
use crate::weather::Weather;
use crate::world::{simulate, CrashAt, World};

const BOTH: [Transports; 2] = [Transports::LongPoll, Transports::WebSocket];

fn clear() -> Settings {
    Settings { class: Class::Standard, poll_ms: 5_000, ..settings() }
}

fn config(world: &World, change: impl FnOnce(&mut GroupConfig)) -> GroupConfig {
    let mut config = GroupConfig {
        group_id: keccak256(b"group"),
        lane_id: world.lanes[0],
        mode: GroupMode::Concurrent,
        start: GroupStart::Head,
        visibility_timeout_ms: 60_000,
        max_visibility_ms: 600_000,
        max_in_flight: 100,
        max_attempts: 3,
        record_deadline_ms: 86_400_000,
        dead_letter_ttl_ms: 86_400_000,
        retention_pin_until_ms: 0,
    };
    change(&mut config);
    config
}

/// An application that consumes a group, in one tab.
struct Application {
    client: usize,
    group: GroupId,
    key: PositionKey,
    /// How many events were read.
    read: usize,
    /// The leases that it was given and not told the end of.
    held: BTreeMap<Bytes32, Rc<RecordDelivery>>,
    /// What it was given: record sequence and attempt.
    given: Vec<(u64, u16)>,
    states: Vec<DeliveryResultState>,
    configs: Vec<bool>,
    outcomes: BTreeMap<u64, Result<Action, String>>,
}

impl Application {
    /// Creates the group, and consumes it.
    async fn begin(world: &mut World, config: GroupConfig) -> Self {
        let client = world.open_client(Vec::new());
        world.run_for(500).await;
        let group = GroupId { lane_id: config.lane_id, group_id: config.group_id };
        create(world, client, config).await;
        let key = world.subscribe(client, SubscriptionSpec::Group(group));
        Self {
            client,
            group,
            key,
            read: 0,
            held: BTreeMap::new(),
            given: Vec::new(),
            states: Vec::new(),
            configs: Vec::new(),
            outcomes: BTreeMap::new(),
        }
    }

    /// Reads what it was told. Gives the leases that are new.
    fn read(&mut self, world: &World) -> Vec<Rc<RecordDelivery>> {
        let mut new = Vec::new();
        for (_, event) in &world.clients[self.client].events[self.read..] {
            let Event::Group { key, news } = event else { continue };
            assert_eq!(*key, self.key);
            for news in news {
                match news {
                    GroupNews::Leased(delivery) => {
                        let lease = delivery.lease.as_ref().expect("a lease");
                        self.given.push((lease.reference.record_id.sequence, lease.attempt));
                        self.held.insert(lease.reference.lease_id, Rc::clone(delivery));
                        new.push(Rc::clone(delivery));
                    }
                    GroupNews::State(state) => {
                        if state.action != Action::Extend {
                            state.lease_id.map(|lease_id| self.held.remove(&lease_id));
                        }
                        self.states.push(*state);
                    }
                    GroupNews::Config(config) => self.configs.push(config.is_some()),
                    GroupNews::Decided { id, outcome } => {
                        let outcome = outcome.as_ref().map(|state| state.action);
                        let outcome = outcome.map_err(|failure: &Failure| failure.code.clone());
                        assert!(self.outcomes.insert(id.0, outcome).is_none(), "each decision is told of once");
                    }
                }
            }
        }
        self.read = world.clients[self.client].events.len();
        new
    }

    fn decide(&self, world: &mut World, lease_id: Bytes32, decision: Decision) -> u64 {
        let (number, key) = (world.next_number(), self.key);
        world.with_engine(self.client, |engine, now_ms| {
            engine.decide(CommandId(number), key, &lease_id, decision, now_ms);
        });
        number
    }

    /// Decides, and waits until that is told.
    async fn settle(&mut self, world: &mut World, lease_id: Bytes32, decision: Decision) -> Result<Action, String> {
        let number = self.decide(world, lease_id, decision);
        self.until(world, |it| it.outcomes.contains_key(&number)).await;
        self.outcomes[&number].clone()
    }

    async fn until(&mut self, world: &mut World, done: impl Fn(&Self) -> bool) {
        let is_done = |world: &mut World| {
            self.read(world);
            done(self)
        };
        let is_done = world.run_until(120_000, is_done).await;
        assert!(is_done, "{:?} {:?} {:?}", self.given, self.state(world), world.failures(self.client));
    }

    /// The lease of a record that it holds.
    fn lease_of(&self, sequence: u64) -> Bytes32 {
        let is_it = |delivery: &RecordDelivery| delivery.record_id.sequence() == sequence;
        *self.held.iter().find(|(_, delivery)| is_it(delivery)).expect("it holds that").0
    }

    async fn given(&mut self, world: &mut World, what: &[(u64, u16)]) {
        self.until(world, |it| it.given.len() >= what.len()).await;
        assert_eq!(self.given, what);
    }

    fn state<'a>(&self, world: &'a World) -> &'a SubscriptionState {
        world.clients[self.client].engine.subscriptions()[&self.key].state()
    }

    /// The position is at the end of the provider's chain.
    fn is_at_tail(&self, world: &World) -> bool {
        let position = world.position(self.key).map(|stored| Boundary::stored(self.key, stored));
        position.and_then(|position| position.group_receipt()) == Some(world.provider.group(self.group).0)
    }
}

async fn create(world: &mut World, client: usize, config: GroupConfig) {
    let stream_id = world.stream_id;
    world.ask(client, RequestBody::CreateGroup(CreateGroupRequest { stream_id, config })).await;
}

async fn fill(world: &mut World, client: usize, count: u64) {
    let lane = world.lanes[0];
    for _ in 0..count {
        world.append(client, lane);
    }
    assert!(world.run_until(30_000, |world| world.appended.keys().all(|entry| world.has_ended(*entry))).await);
}

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

#[test]
fn a_provider_that_lost_the_receipts_of_a_group_is_found_out() {
    simulate(clear(), 83, async |world| {
        let config = config(world, |_| {});
        let mut app = Application::begin(world, config.clone()).await;
        fill(world, app.client, 2).await;
        app.given(world, &[(0, 1), (1, 1)]).await;
        let before = world.position(app.key).expect("a position");
        world.provider.begin_again().await;
        let writer = world.open_client(Vec::new());
        world.run_for(2_000).await;
        create(world, writer, config).await;
        world.crash(app.client);
        let failed = |world: &mut World| *app.state(world) == SubscriptionState::Failed;
        assert!(world.run_until(120_000, failed).await, "{:?}", world.failures(app.client));
        let (failure, _) = world.clients[app.client].engine.subscriptions()[&app.key].failure().expect("a failure");
        assert_eq!(failure.code, "provider/cursor-too-old");
        assert_eq!(world.position(app.key), Some(before), "what we hold is kept");
    });
}

#[test]
fn every_lie_about_leases_is_caught() {
    for lie in Lie::value_variants().iter().filter(|lie| lie.part() == Part::Group) {
        for transports in BOTH {
            caught(*lie, transports);
        }
    }
}

fn caught(lie: Lie, transports: Transports) {
    simulate(Settings { lies: vec![lie], ..clear() }, 84, async |world| {
        world.transports = transports;
        let config = config(world, |_| {});
        let mut app = Application::begin(world, config).await;
        let mut rounds = 0;
        while *app.state(world) != SubscriptionState::Failed {
            fill(world, app.client, 2).await;
            world.run_for(500).await;
            app.read(world);
            rounds += 1;
            assert!(rounds < 50, "never caught: {:?}", world.failures(app.client));
        }
        let failures = world.failures(app.client);
        assert!(!failures.is_empty() && failures.iter().all(|code| code == lie.verdict()), "{lie:?}: {failures:?}");
        assert!(app.given.len() >= 3, "the honest deliveries were told: {:?}", app.given);
        let (given, position) = (app.given.len(), world.position(app.key).expect("honest receipts came first"));
        // Whoever comes back is lied to again, and the position does not move past the lie. Attempts and places in the queue are
        // judged of what was seen of a cycle (`RESOLUTIONS.md` §10), which is nothing behind a cursor.
        let needs_history = matches!(lie, Lie::SkipAttempt | Lie::ReuseQueuePosition);
        world.crash(app.client);
        fill(world, app.client, 1).await;
        world.run_for(5_000).await;
        app.read(world);
        assert!(needs_history || app.given.len() == given, "{lie:?}: nothing that is a lie is told");
        let failures = world.failures(app.client);
        assert!(failures.iter().all(|code| code == lie.verdict()), "{lie:?}: {failures:?}");
        let position = Boundary::stored(app.key, position).group_receipt().expect("of a group");
        assert!(world.provider.has_receipt(app.group, &position), "{lie:?}: it is at a receipt of the chain");
    });
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

/// Every record is acknowledged by an application that acknowledges what it is given, wherever anything breaks.
async fn consume_all(world: &mut World, app: &mut Application, count: u64) {
    world.weather = Weather::FAIR;
    world.crash_at = None;
    if !world.provider.is_running() {
        world.provider.restart();
    }
    let mut waited = 0;
    let given = |app: &Application| app.given.iter().map(|(sequence, _)| *sequence).collect::<BTreeSet<_>>();
    while given(app) != (0..count).collect() || !world.provider.group(app.group).1 || !app.is_at_tail(world) {
        world.with_engine(app.client, |engine, _| engine.subscribe(SubscriptionSpec::Group(app.group)));
        work(world, app);
        world.run_for(1_000).await;
        waited += 1;
        assert!(waited < 900, "{:?} {:?} {:?}", app.state(world), app.given, world.failures(app.client));
    }
    for code in world.failures(app.client) {
        let blames = code.starts_with("verify/") && code != "verify/key-unresolved" || code.starts_with("protocol/");
        assert!(!blames || code == "protocol/challenge-expired", "an honest peer is accused of {code}");
    }
}

fn work(world: &mut World, app: &mut Application) {
    for delivery in app.read(world) {
        let lease = delivery.lease.as_ref().expect("a lease").reference.lease_id;
        app.decide(world, lease, Decision::Ack);
    }
}

#[test]
fn a_crash_at_every_storage_step_of_a_consumer() {
    let script = async |world: &mut World, crash_at: Option<CrashAt>| {
        let config = config(world, |config| {
            config.visibility_timeout_ms = 3_000;
            config.max_attempts = 100;
        });
        let mut app = Application::begin(world, config).await;
        world.storage_steps = 0;
        world.crash_at = crash_at;
        for _ in 0..4 {
            fill(world, app.client, 2).await;
            work(world, &mut app);
            world.run_for(300).await;
        }
        let steps = world.storage_steps;
        consume_all(world, &mut app, 8).await;
        steps
    };
    let steps = simulate(clear(), 88, async |world| script(world, None).await);
    assert!(steps >= 12, "{steps} steps");
    for step in 1..=steps {
        simulate(clear(), 88, async |world| script(world, Some(CrashAt(step))).await);
    }
}

fn schedule(seed: u64, transports: Transports) -> [u32; 3] {
    let settings = Settings { session_ms: 60_000, ..clear() };
    simulate(settings, seed, async |world| {
        world.transports = transports;
        let config = config(world, |config| {
            config.visibility_timeout_ms = 4_000;
            config.max_attempts = 100;
        });
        let mut app = Application::begin(world, config).await;
        let mut counts = [0; 3];
        world.weather = Weather::FOUL;
        for _ in 0..25 {
            match world.random.below(8) {
                0..4 => {
                    let lane = world.lanes[0];
                    world.append(app.client, lane);
                    counts[0] += 1;
                }
                4 => {
                    world.crash(app.client);
                    counts[1] += 1;
                }
                5 if world.provider.is_running() => {
                    world.provider.kill().await;
                    let down_ms = world.random.below(5_000);
                    world.run_for(down_ms).await;
                    world.provider.restart();
                    counts[2] += 1;
                }
                6 => world.clients[app.client].frozen_until_ms = world.now_ms() + world.random.below(60_000),
                _ => world.weather.slow_disk_ms = world.random.below(2) * world.random.below(1_000),
            }
            work(world, &mut app);
            let pause_ms = world.random.below(1_500);
            world.run_for(pause_ms).await;
        }
        world.weather = Weather::FAIR;
        let ended = |world: &mut World| world.appended.keys().all(|entry| world.has_ended(*entry));
        assert!(world.run_until(300_000, ended).await, "{:?}", world.failures(app.client));
        consume_all(world, &mut app, u64::from(counts[0])).await;
        counts
    })
}

#[test]
fn on_any_schedule_every_record_is_consumed() {
    let total = run_all("groups", share(10), |seed| {
        schedule(
            seed,
            [Transports::LongPoll, Transports::WebSocket, Transports::Both][usize::try_from(seed % 3).expect("few")],
        )
    });
    assert!(total.iter().all(|count| *count > 5), "appends, crashes, restarts: {total:?}");
}
