//! The publisher of one cohort, over the bridge or directly: the machine without a socket, a store or a key.
//!
//! ```text
//! publish ─▶ Store(next index) ─stored─▶ Sign(under this challenge) ─signature─▶ Send
//! ```
//! A subscriber cannot tell streams apart, so an index that may once have been sent is never used again, for anything:
//! that it is used is durable before its frame is sent. A frame that was signed and not sent is signed again, under the
//! next challenge and for the same index.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use remuda_wire::{Bytes32, Remedy};

use crate::bridge::{publish_path, published, Offer};
use crate::broadcast::Cohort;
use crate::chunk::MAX_PAYLOAD_BYTES;
use crate::connection::{Attempts, CloseReason, Dial, Moment, Transport, DEADLINE_MS};
use crate::message::{Ack, Broadcast, Join, Status};
use crate::refusal::BpsRefusal;
use crate::signature::RecoverableSignature;
use crate::soc::UnsignedChunk;
use crate::topic::{session_topic, update_id, KIND_AUTH, KIND_DATA};

/// How many updates may wait to be sent.
pub const MAX_QUEUE: usize = 1_024;

/// What is published, and from where on.
#[derive(Clone, Copy, Debug)]
pub struct PublisherConfig {
    /// Which cohort; we sign as its admin.
    pub cohort: Cohort,
    /// How the broker is reached.
    pub transport: Transport,
    /// The lowest index that was never used, as it is stored; 0 at the very first.
    pub next_index: u64,
}

/// Why an update is not taken. Nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishRefused {
    /// More than 4,096 bytes.
    PayloadTooLong,
    /// [`MAX_QUEUE`] updates wait.
    QueueFull,
    /// Every index was used.
    IndicesExhausted,
}

/// Names a signature that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureId(u64);

/// One thing that the driver does or the application learns, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublisherOutput {
    /// Connect; answer with [`Publisher::handle_connected`] or [`Publisher::handle_close`].
    Connect(Dial),
    /// Send this as one binary message.
    Send(Vec<u8>),
    /// Make this durable as the lowest index that was never used; answer with [`Publisher::handle_stored`].
    Store {
        /// The index.
        next_index: u64,
    },
    /// Sign these 32 bytes as the admin, as an Ethereum message; answer with [`Publisher::handle_signature`].
    Sign {
        /// Which signature.
        id: SignatureId,
        /// What is signed.
        message: Bytes32,
    },
    /// The update at the front of the queue was sent under this index. Nothing tells whether it arrived.
    Sent {
        /// Its index.
        index: u64,
    },
    /// Close the connection; nothing that still comes of it is wanted.
    Disconnect,
    /// The connection ended.
    Ended {
        /// Why.
        reason: CloseReason,
        /// When it is made again; `None`: not by itself.
        retry_at_ms: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle {
        due_ms: Option<u64>,
    },
    Connecting,
    /// Waits for the challenge.
    Joining {
        until_ms: u64,
    },
    /// Has a challenge, and must claim under it.
    Pending {
        challenge: Bytes32,
        until_ms: u64,
    },
    /// Claimed, as far as anyone tells us.
    Claimed {
        challenge: Bytes32,
    },
}

/// The index of the update at the front of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reserved {
    None,
    /// Being made durable.
    Storing(u64),
    /// Durable as used, and not sent yet.
    Stored(u64),
}

/// A frame that lacks only its signature.
#[derive(Clone, Debug)]
struct Signing {
    id: SignatureId,
    kind: u8,
    index: u64,
    chunk: UnsignedChunk,
}

/// A publisher.
#[derive(Clone, Debug)]
pub struct Publisher {
    config: PublisherConfig,
    state: State,
    attempts: Attempts,
    queue: VecDeque<Vec<u8>>,
    reserved: Reserved,
    signing: Option<Signing>,
    signatures: u64,
    outputs: VecDeque<PublisherOutput>,
}

impl Publisher {
    /// A publisher that connects at once.
    pub fn new(config: PublisherConfig) -> Self {
        Self {
            config,
            state: State::Idle { due_ms: Some(0) },
            attempts: Attempts::default(),
            queue: VecDeque::new(),
            reserved: Reserved::None,
            signing: None,
            signatures: 0,
            outputs: VecDeque::new(),
        }
    }

    /// How many updates wait to be sent.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Option<PublisherOutput> {
        self.outputs.pop_front()
    }

    /// When [`Self::handle_time`] is due.
    pub const fn wake_at(&self) -> Option<u64> {
        match self.state {
            State::Idle { due_ms } => due_ms,
            State::Joining { until_ms } | State::Pending { until_ms, .. } => Some(until_ms),
            State::Connecting | State::Claimed { .. } => None,
        }
    }

    /// The clock says so.
    pub fn handle_time(&mut self, at: Moment) {
        match self.state {
            State::Idle { due_ms: Some(due_ms) } if due_ms <= at.now_ms => {
                let dial = match &self.config.transport {
                    Transport::Bridge { broker } => Dial::Bridge(publish_path(&self.config.cohort, broker)),
                    Transport::Direct => Dial::Direct,
                };
                self.state = State::Connecting;
                self.outputs.push_back(PublisherOutput::Connect(dial));
            }
            State::Joining { until_ms } | State::Pending { until_ms, .. } if until_ms <= at.now_ms => {
                self.disconnect(CloseReason::Deadline, at);
            }
            _ => {}
        }
    }

    /// Queues an update.
    ///
    /// # Errors
    /// [`PublishRefused`].
    pub fn publish(&mut self, payload: Vec<u8>) -> Result<(), PublishRefused> {
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(PublishRefused::PayloadTooLong);
        }
        if self.queue.len() >= MAX_QUEUE {
            return Err(PublishRefused::QueueFull);
        }
        if self.config.next_index == u64::MAX {
            return Err(PublishRefused::IndicesExhausted);
        }
        self.queue.push_back(payload);
        self.reserve();
        self.advance();
        Ok(())
    }

    /// Begins to make the next index durable as used, for the update at the front of the queue.
    fn reserve(&mut self) {
        if self.reserved != Reserved::None || self.queue.is_empty() {
            return;
        }
        let index = self.config.next_index;
        // Without another index the queue stays as it is, and nothing more is taken.
        let Some(next_index) = index.checked_add(1) else { return };
        self.config.next_index = next_index;
        self.reserved = Reserved::Storing(index);
        self.outputs.push_back(PublisherOutput::Store { next_index });
    }

    /// This index is durable as the lowest that was never used.
    pub fn handle_stored(&mut self, next_index: u64) {
        if let Reserved::Storing(index) = self.reserved {
            if index < next_index {
                self.reserved = Reserved::Stored(index);
                self.advance();
            }
        }
    }

    /// The connection is open.
    pub fn handle_connected(&mut self, at: Moment) {
        if self.state != State::Connecting {
            return;
        }
        self.attempts.connected(at.now_ms);
        self.state = State::Joining { until_ms: at.now_ms.saturating_add(DEADLINE_MS) };
        if self.config.transport == Transport::Direct {
            let join = Join { cohort: self.config.cohort, addr: self.config.cohort.admin };
            self.outputs.push_back(PublisherOutput::Send(join.to_bytes()));
        }
    }

    /// A text message came: on the bridge, the offer.
    pub fn handle_text(&mut self, text: &str, at: Moment) {
        let offered = match (self.state, self.config.transport) {
            (State::Joining { .. }, Transport::Bridge { broker }) => {
                Offer::from_text(text, &self.config.cohort.topic, &broker)
            }
            (State::Idle { .. } | State::Connecting, _) => return,
            _ => Err(BpsRefusal::Frame),
        };
        match offered {
            Ok(offer) => self.take_challenge(offer.challenge, at),
            Err(refusal) => self.disconnect(CloseReason::Violation(refusal), at),
        }
    }

    /// A binary message came: directly, the acknowledgement. A publisher is sent nothing else.
    pub fn handle_message(&mut self, bytes: &[u8], at: Moment) {
        let ack = match (self.state, self.config.transport) {
            (State::Joining { .. }, Transport::Direct) => Ack::from_bytes(bytes),
            (State::Idle { .. } | State::Connecting, _) => return,
            _ => Err(BpsRefusal::Frame),
        };
        match ack.map(|ack| (ack.status, ack.joined())) {
            Ok((_, Some(challenge))) => self.take_challenge(challenge, at),
            Ok((Status::Full, _)) => self.disconnect(CloseReason::Exhausted, at),
            Ok(_) => self.disconnect(CloseReason::Rejected, at),
            Err(refusal) => self.disconnect(CloseReason::Violation(refusal), at),
        }
    }

    fn take_challenge(&mut self, challenge: Bytes32, at: Moment) {
        self.state = State::Pending { challenge, until_ms: at.now_ms.saturating_add(DEADLINE_MS) };
        self.advance();
    }

    /// Has the next frame signed, when there is one, a challenge, and nothing else being signed: the first update, or a
    /// bare claim when no update waits.
    fn advance(&mut self) {
        let (challenge, claimed) = match self.state {
            State::Pending { challenge, .. } => (challenge, false),
            State::Claimed { challenge } => (challenge, true),
            _ => return,
        };
        if self.signing.is_some() {
            return;
        }
        let (kind, index, payload) = match (self.reserved, self.queue.front()) {
            (Reserved::Stored(index), Some(payload)) => (KIND_DATA, index, payload.as_slice()),
            (Reserved::None, None) if !claimed => (KIND_AUTH, 0, [].as_slice()),
            _ => return,
        };
        let id = update_id(&session_topic(&self.config.cohort.topic, kind, &challenge), index);
        // Payloads were found short enough when they were queued.
        let Ok(chunk) = UnsignedChunk::new(id, payload) else { return };
        self.signatures = self.signatures.wrapping_add(1);
        let id = SignatureId(self.signatures);
        self.outputs.push_back(PublisherOutput::Sign { id, message: chunk.message() });
        self.signing = Some(Signing { id, kind, index, chunk });
    }

    /// A signature that was asked for. One for an earlier stream is not wanted any more.
    pub fn handle_signature(&mut self, id: SignatureId, signature: &RecoverableSignature, at: Moment) {
        let challenge = match self.state {
            State::Pending { challenge, .. } | State::Claimed { challenge } => challenge,
            _ => return,
        };
        let Some(Signing { kind, index, chunk, .. }) = self.signing.take_if(|signing| signing.id == id) else { return };
        let Ok(soc) = chunk.sign(&self.config.cohort.admin, signature) else {
            return self.disconnect(CloseReason::Signer, at);
        };
        let frame = match self.config.transport {
            Transport::Bridge { .. } => published(kind, index, &soc),
            Transport::Direct => Broadcast { soc, kind: kind.into(), challenge: challenge.0.into(), index }.to_bytes(),
        };
        self.outputs.push_back(PublisherOutput::Send(frame));
        self.state = State::Claimed { challenge };
        if kind == KIND_DATA {
            self.queue.pop_front();
            self.reserved = Reserved::None;
            self.outputs.push_back(PublisherOutput::Sent { index });
            self.reserve();
        }
        self.advance();
    }

    /// The connection ended, or could not be made: its close code, 1006 when there is none.
    pub fn handle_close(&mut self, code: u16, at: Moment) {
        if !matches!(self.state, State::Idle { .. }) {
            self.end(CloseReason::from_code(code), at);
        }
    }

    /// Closes for good. What waits stays unsent.
    pub fn close(&mut self, at: Moment) {
        match self.state {
            State::Idle { .. } => self.end(CloseReason::Requested, at),
            _ => self.disconnect(CloseReason::Requested, at),
        }
    }

    fn disconnect(&mut self, reason: CloseReason, at: Moment) {
        self.outputs.push_back(PublisherOutput::Disconnect);
        self.end(reason, at);
    }

    fn end(&mut self, reason: CloseReason, at: Moment) {
        // Whatever was being signed was for this stream.
        self.signing = None;
        let retry_at_ms = (reason.remedy() == Remedy::Retry).then(|| self.attempts.ended(at));
        self.state = State::Idle { due_ms: retry_at_ms };
        self.outputs.push_back(PublisherOutput::Ended { reason, retry_at_ms });
    }
}
