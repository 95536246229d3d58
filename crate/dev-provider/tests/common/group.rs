//! A consumer group followed from its genesis, every frame judged.

use remuda_verify::authentic::OneKey;
use remuda_verify::group::{GroupChain, GroupName, GroupSubscription, GroupSubscriptionConfig};
use remuda_verify::record_shape::StreamShape;
use remuda_wire::chain::Purpose;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::frame::ServerMessage;
use remuda_wire::group::{DeliveryLeaseRef, DeliveryStateAction, GroupConfig, GroupMode, GroupStart};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::preimage::signing_key_id;
use remuda_wire::request::{
    AckRequest, CreateGroupRequest, DeadLettersSource, ExtendRequest, NackRequest, OpenSubscriptionRequest,
    RejectRequest, RequestBody, StandardGroupSource, SubscriptionSource, VerificationMode,
};
use remuda_wire::verdict::Refusal;
use remuda_wire::Bytes32;

use super::standard::standard_id;
use super::{holder, Provider, Session, Socket};

/// A session whose grant has every verb; `extra` continues the JSON of the grant.
pub fn full_session(provider: &Provider, seed: u8, socket: bool, extra: &str) -> Session {
    let key = holder(seed);
    let verbs = "\"APPEND\",\"CONSUME\",\"ACKNOWLEDGE\",\"REPLAY\",\"GROUP_ADMIN\",\"REDRIVE\",\"LANE_ADMIN\"";
    let grant = provider.grant(&key, &format!(",\"verbs\":[{verbs}]{extra}"));
    let socket = socket.then(|| Socket::connect(provider));
    Session::over(provider, socket, key, grant).unwrap_or_else(|frames| panic!("{frames:?}"))
}

pub fn config(lane_id: Bytes32, group_id: Bytes32, mode: GroupMode) -> GroupConfig {
    GroupConfig {
        group_id,
        lane_id,
        mode,
        start: GroupStart::Head,
        visibility_timeout_ms: 60_000,
        max_visibility_ms: 600_000,
        max_in_flight: 100,
        max_attempts: 3,
        record_deadline_ms: 3_600_000,
        dead_letter_ttl_ms: 3_600_000,
        retention_pin_until_ms: 0,
    }
}

pub fn create(session: &Session, config: &GroupConfig) -> RequestBody {
    RequestBody::CreateGroup(CreateGroupRequest { stream_id: session.stream.stream_id, config: config.clone() })
}

/// A subscription of a group.
pub struct Followed {
    pub id: Bytes32,
    pub lane_id: Bytes32,
    pub group_id: Bytes32,
    pub verifier: GroupSubscription,
    /// Leased deliveries and dead letters, in order.
    pub delivered: Vec<RecordDelivery>,
    /// What updates said, in order; a leased delivery stands for its own.
    pub actions: Vec<DeliveryStateAction>,
    keys: OneKey,
}

impl Followed {
    /// Leases of `config`'s group, followed from its genesis.
    pub fn open(session: &mut Session, id: Bytes32, config: &GroupConfig) -> Self {
        let source = StandardGroupSource { lane_id: config.lane_id, group_id: config.group_id };
        Self::open_source(session, id, config, SubscriptionSource::StandardGroup(source), None)
            .unwrap_or_else(|frames| panic!("{frames:?}"))
    }

    /// Dead letters of `config`'s group, followed from its genesis.
    pub fn dead_letters(session: &mut Session, id: Bytes32, config: &GroupConfig, after: Option<u64>) -> Self {
        let after = after.map(standard_id);
        let source = DeadLettersSource { lane_id: config.lane_id, group_id: config.group_id, after };
        Self::open_source(session, id, config, SubscriptionSource::DeadLetters(source), None)
            .unwrap_or_else(|frames| panic!("{frames:?}"))
    }

    /// One that nothing was sent for yet.
    pub fn new(session: &Session, id: Bytes32, config: &GroupConfig, after_group_receipt: Option<Bytes32>) -> Self {
        let name = GroupName {
            context: session.stream.context.clone(),
            stream_id: session.stream.stream_id,
            lane_id: config.lane_id,
            group_id: config.group_id,
        };
        let key = SigningPublicKey(Bytes32(session.key.verifying_key().to_bytes()));
        let judged = GroupSubscriptionConfig {
            shape: StreamShape { purpose: Purpose::Main, encrypted: false },
            subscription_id: id,
            holder_signing_key_id: Some(signing_key_id(&key)),
        };
        Self {
            id,
            lane_id: config.lane_id,
            group_id: config.group_id,
            verifier: GroupSubscription::new(judged, GroupChain::new(name, after_group_receipt)),
            delivered: Vec::new(),
            actions: Vec::new(),
            keys: session.stream.keys(),
        }
    }

    pub fn open_source(
        session: &mut Session,
        id: Bytes32,
        config: &GroupConfig,
        source: SubscriptionSource,
        after_group_receipt: Option<Bytes32>,
    ) -> Result<Self, Vec<ServerMessage>> {
        let mut followed = Self::new(session, id, config, after_group_receipt);
        let frames = session.request(RequestBody::OpenSubscription(OpenSubscriptionRequest {
            stream_id: session.stream.stream_id,
            subscription_id: id,
            source,
            after_group_receipt,
            verification: VerificationMode::None,
        }));
        if !matches!(frames.first(), Some(ServerMessage::Response(_))) {
            return Err(frames);
        }
        followed.judge(frames).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        Ok(followed)
    }

    /// Judges what came beside an answer; the answer itself is skipped.
    pub fn judge(&mut self, mut frames: Vec<ServerMessage>) -> Result<(), Refusal> {
        frames.remove(0);
        self.judge_pushed(frames)
    }

    pub fn judge_pushed(&mut self, frames: Vec<ServerMessage>) -> Result<(), Refusal> {
        for frame in frames {
            match frame {
                ServerMessage::GroupState(update) => {
                    self.verifier.handle_group_state(&update, &self.keys)?;
                    self.actions.push(update.receipt.action);
                }
                ServerMessage::DeliveryState(update) => {
                    self.verifier.handle_delivery_state(&update, &self.keys)?;
                    self.actions.push(update.receipt.action);
                }
                ServerMessage::Delivery(delivery) => {
                    if delivery.lease.is_some() {
                        self.verifier.handle_delivery(&delivery, &self.keys)?;
                        self.actions.push(DeliveryStateAction::LeaseIssue);
                    }
                    self.delivered.push(delivery);
                }
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    }

    pub fn poll(&mut self, session: &mut Session, records: u32) -> Result<(), Refusal> {
        let waiting = std::mem::take(&mut session.inbox);
        let mut frames = session.credit(self.id, records, 1 << 20);
        assert!(matches!(frames.first(), Some(ServerMessage::Response(_))), "{frames:?}");
        frames.splice(1..1, waiting);
        self.judge(frames)
    }

    /// Polls, without credit, until `enough`.
    pub fn poll_until(&mut self, session: &mut Session, enough: impl Fn(&Self) -> bool) -> Result<(), Refusal> {
        for _ in 0..100 {
            if enough(self) {
                return Ok(());
            }
            self.poll(session, 0)?;
        }
        panic!("never enough: {:?}", self.actions);
    }

    pub fn sequences(&self) -> Vec<u64> {
        self.delivered.iter().map(|delivery| delivery.record_id.sequence()).collect()
    }

    /// The lease of the last delivery.
    pub fn lease(&self) -> DeliveryLeaseRef {
        let delivery = self.delivered.last().expect("a delivery");
        delivery.lease.as_ref().expect("a lease").reference.clone()
    }
}

pub fn ack(lease: &DeliveryLeaseRef) -> RequestBody {
    RequestBody::Ack(AckRequest { lease: lease.clone() })
}

pub fn nack(lease: &DeliveryLeaseRef, retry_after_ms: u64) -> RequestBody {
    RequestBody::Nack(NackRequest { lease: lease.clone(), retry_after_ms })
}

pub fn extend(lease: &DeliveryLeaseRef, extend_by_ms: u64) -> RequestBody {
    RequestBody::Extend(ExtendRequest { lease: lease.clone(), extend_by_ms })
}

pub fn reject(lease: &DeliveryLeaseRef, reason_hash: Bytes32) -> RequestBody {
    RequestBody::Reject(RejectRequest { lease: lease.clone(), reason_hash })
}
