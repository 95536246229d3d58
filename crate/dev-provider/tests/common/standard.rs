//! A standard replay, judged as it comes.

use remuda_verify::authentic::OneKey;
use remuda_verify::record_shape::StreamShape;
use remuda_verify::response::{AnsweredResult, ResponseVerifier};
use remuda_verify::standard::{StandardReplay, StandardReplayConfig, StandardState};
use remuda_wire::chain::Purpose;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::frame::ServerMessage;
use remuda_wire::record::{RecordId, StandardRecordId};
use remuda_wire::request::{
    OpenSubscriptionRequest, RequestBody, StandardReplaySource, SubscriptionSource, VerificationMode,
};
use remuda_wire::scope::LaneScope;
use remuda_wire::verdict::Refusal;
use remuda_wire::{Bytes32, ProviderEpoch};

use super::Session;

/// A replay subscription of a session, with its verifier.
pub struct Replayed {
    pub id: Bytes32,
    pub verifier: StandardReplay,
    pub received: Vec<RecordDelivery>,
    keys: OneKey,
}

impl Replayed {
    /// From the first record on.
    pub fn open(session: &mut Session, id: Bytes32, scope: LaneScope) -> Self {
        let state = StandardState::genesis(&session.stream.context, &session.stream.stream_id, &scope);
        Self::open_at(session, id, scope, None, state).unwrap_or_else(|frames| panic!("{frames:?}"))
    }

    pub fn open_at(
        session: &mut Session,
        id: Bytes32,
        scope: LaneScope,
        after: Option<u64>,
        state: StandardState,
    ) -> Result<Self, Vec<ServerMessage>> {
        let frames = session.request(RequestBody::OpenSubscription(replay_request(session, id, scope.clone(), after)));
        if !matches!(frames.first(), Some(ServerMessage::Response(_))) {
            return Err(frames);
        }
        let config = StandardReplayConfig {
            context: session.stream.context.clone(),
            stream_id: session.stream.stream_id,
            shape: StreamShape { purpose: Purpose::Main, encrypted: false },
            subscription_id: id,
            scope,
        };
        Ok(Self { id, verifier: StandardReplay::new(config, state), received: Vec::new(), keys: session.stream.keys() })
    }

    /// One poll; what came is judged.
    pub fn poll(&mut self, session: &mut Session, records: u32) -> Result<usize, Refusal> {
        let mut count = 0;
        for frame in session.credit(self.id, records, 1 << 20).into_iter().skip(1) {
            let ServerMessage::Delivery(delivery) = frame else { panic!("{frame:?}") };
            self.verifier.handle_delivery(&delivery, &self.keys)?;
            self.received.push(delivery);
            count += 1;
        }
        Ok(count)
    }

    /// Polls until `count` records came in all.
    pub fn poll_until(&mut self, session: &mut Session, count: usize) -> Result<(), Refusal> {
        for _ in 0..200 {
            if self.received.len() >= count {
                return Ok(());
            }
            self.poll(session, 64)?;
        }
        panic!("only {} of {count} came", self.received.len());
    }

    pub fn sequences(&self) -> Vec<u64> {
        self.received.iter().map(|delivery| delivery.record_id.sequence()).collect()
    }
}

pub fn standard_id(sequence: u64) -> StandardRecordId {
    StandardRecordId { provider_epoch: ProviderEpoch, sequence }
}

pub fn replay_request(session: &Session, id: Bytes32, scope: LaneScope, after: Option<u64>) -> OpenSubscriptionRequest {
    OpenSubscriptionRequest {
        stream_id: session.stream.stream_id,
        subscription_id: id,
        source: SubscriptionSource::StandardReplay(StandardReplaySource { scope, after: after.map(standard_id) }),
        after_group_receipt: None,
        verification: VerificationMode::None,
    }
}

/// What a request is answered with, judged.
pub fn answered(session: &mut Session, body: RequestBody) -> Result<AnsweredResult, u16> {
    let request = session.prepare(session.counter + 1, body.clone());
    let first = session.request(body).remove(0);
    if let ServerMessage::Error(error) = first {
        return Err(error.code);
    }
    let (context, keys) = (session.stream.context.clone(), session.stream.keys());
    let verifier = ResponseVerifier { context: &context, keys: &keys };
    Ok(verifier.verify(&request, first).unwrap_or_else(|refusal| panic!("{refusal:?}")))
}

pub fn sequence_of(result: &AnsweredResult) -> u64 {
    match result {
        AnsweredResult::Appended(receipt) => match receipt.record_id {
            RecordId::Standard(id) => id.sequence,
            RecordId::Fast(id) => id.sequence,
        },
        other => panic!("{other:?}"),
    }
}
