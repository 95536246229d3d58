//! An application that consumes a group, in one tab.

use std::collections::BTreeMap;
use std::rc::Rc;

use remuda_client::{CommandId, Decision, Event, Failure, GroupId, GroupNews, SubscriptionSpec, SubscriptionState};
use remuda_dev_provider::settings::{Class, Settings};
use remuda_position::{Boundary, PositionKey};
use remuda_session::Transports;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::group::{DeliveryResultState, DeliveryStateAction as Action, GroupConfig, GroupMode, GroupStart};
use remuda_wire::preimage::keccak256;
use remuda_wire::request::{CreateGroupRequest, RequestBody};
use remuda_wire::Bytes32;

use crate::provider::settings;
use crate::world::World;

pub const BOTH: [Transports; 2] = [Transports::LongPoll, Transports::WebSocket];

pub fn clear() -> Settings {
    Settings { class: Class::Standard, poll_ms: 5_000, ..settings() }
}

pub fn config(world: &World, change: impl FnOnce(&mut GroupConfig)) -> GroupConfig {
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
pub struct Application {
    pub client: usize,
    pub group: GroupId,
    pub key: PositionKey,
    /// How many events were read.
    pub read: usize,
    /// The leases that it was given and not told the end of.
    pub held: BTreeMap<Bytes32, Rc<RecordDelivery>>,
    /// What it was given: record sequence and attempt.
    pub given: Vec<(u64, u16)>,
    pub states: Vec<DeliveryResultState>,
    pub configs: Vec<bool>,
    pub outcomes: BTreeMap<u64, Result<Action, String>>,
}

impl Application {
    /// Creates the group, and consumes it.
    pub async fn begin(world: &mut World, config: GroupConfig) -> Self {
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
    pub fn read(&mut self, world: &World) -> Vec<Rc<RecordDelivery>> {
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

    pub fn decide(&self, world: &mut World, lease_id: Bytes32, decision: Decision) -> u64 {
        let (number, key) = (world.next_number(), self.key);
        world.with_engine(self.client, |engine, now_ms| {
            engine.decide(CommandId(number), key, &lease_id, decision, now_ms);
        });
        number
    }

    /// Decides, and waits until that is told.
    pub async fn settle(&mut self, world: &mut World, lease_id: Bytes32, decision: Decision) -> Result<Action, String> {
        let number = self.decide(world, lease_id, decision);
        self.until(world, |it| it.outcomes.contains_key(&number)).await;
        self.outcomes[&number].clone()
    }

    pub async fn until(&mut self, world: &mut World, done: impl Fn(&Self) -> bool) {
        let is_done = |world: &mut World| {
            self.read(world);
            done(self)
        };
        let is_done = world.run_until(120_000, is_done).await;
        assert!(is_done, "{:?} {:?} {:?}", self.given, self.state(world), world.failures(self.client));
    }

    /// The lease of a record that it holds.
    pub fn lease_of(&self, sequence: u64) -> Bytes32 {
        let is_it = |delivery: &RecordDelivery| delivery.record_id.sequence() == sequence;
        *self.held.iter().find(|(_, delivery)| is_it(delivery)).expect("it holds that").0
    }

    pub async fn given(&mut self, world: &mut World, what: &[(u64, u16)]) {
        self.until(world, |it| it.given.len() >= what.len()).await;
        assert_eq!(self.given, what);
    }

    pub fn state<'a>(&self, world: &'a World) -> &'a SubscriptionState {
        world.clients[self.client].engine.subscriptions()[&self.key].state()
    }

    /// The position is at the end of the provider's chain.
    pub fn is_at_tail(&self, world: &World) -> bool {
        let position = world.position(self.key).map(|stored| Boundary::stored(self.key, stored));
        position.and_then(|position| position.group_receipt()) == Some(world.provider.group(self.group).0)
    }
}

pub async fn create(world: &mut World, client: usize, config: GroupConfig) {
    let stream_id = world.stream_id;
    world.ask(client, RequestBody::CreateGroup(CreateGroupRequest { stream_id, config })).await;
}

pub async fn fill(world: &mut World, client: usize, count: u64) {
    let lane = world.lanes[0];
    for _ in 0..count {
        world.append(client, lane);
    }
    assert!(world.run_until(30_000, |world| world.appended.keys().all(|entry| world.has_ended(*entry))).await);
}
