//! The broker of SWIP-74, revision 8: cohorts by their spec, roles of streams, one cursor for each cohort, bounds,
//! deadlines and counters. No history, no loopback, no window.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use remuda_bps::message::{Join, Status};
use remuda_bps::soc::SingleOwnerChunk;
use remuda_bps::topic::{session_topic, update_id, KIND_AUTH, KIND_DATA};
use remuda_bps::{Address, Broadcast, Cohort};
use remuda_wire::Bytes32;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::keys::random32;
use crate::time::Clock;

/// What a broker grants.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Subscriber streams of a cohort; pending streams are outside.
    pub subscribers: usize,
    /// Cohorts of the broker.
    pub cohorts: usize,
    /// Streams of one connection in one cohort.
    pub streams_per_connection: usize,
    /// Broadcasts that wait for a subscriber stream.
    pub queue: usize,
    /// How long a cohort lives without an accepted frame.
    pub inactivity_ms: u64,
    /// How long a stream may be pending.
    pub claim_ms: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            subscribers: 64,
            cohorts: 64,
            streams_per_connection: 2,
            queue: 64,
            inactivity_ms: 600_000,
            claim_ms: 30_000,
        }
    }
}

/// What was not accepted, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // The document's names.
pub struct Counters {
    pub wrong_stream: u64,
    pub unknown_kind: u64,
    pub wrong_challenge: u64,
    pub invalid_soc: u64,
    pub claim_timeout: u64,
    pub retransmit: u64,
    pub queue_reset: u64,
}

/// What a stream may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Receives, and sends nothing.
    Subscriber,
    /// Of the admin's address: receives nothing, and claims in time.
    Pending { since_ms: u64 },
    /// Claimed: sends, and receives nothing.
    Publisher,
}

#[derive(Debug)]
struct Stream {
    cohort: Cohort,
    connection: u64,
    role: Role,
    challenge: Bytes32,
    queue: mpsc::Sender<Broadcast>,
}

#[derive(Debug)]
struct Room {
    /// The last accepted index.
    cursor: Option<u64>,
    active_ms: u64,
}

/// A stream that was joined.
#[derive(Debug)]
pub struct Joined {
    /// Its number.
    pub stream: u64,
    /// Its challenge.
    pub challenge: Bytes32,
    /// What it receives; ends when the broker resets the stream.
    pub broadcasts: mpsc::Receiver<Broadcast>,
}

/// A frame that a stream may not send: the stream is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A subscriber stream sends nothing.
    WrongStream,
    /// The chunk does not validate.
    InvalidSoc,
    /// The stream was reset before.
    Gone,
}

#[derive(Debug, Default)]
struct BrokerState {
    rooms: HashMap<(Bytes32, Address), Room>,
    streams: HashMap<u64, Stream>,
    streams_made: u64,
    counters: Counters,
}

/// A broker.
#[derive(Debug)]
pub struct Broker {
    bounds: Bounds,
    clock: Clock,
    state: Mutex<BrokerState>,
}

fn spec(cohort: &Cohort) -> (Bytes32, Address) {
    (cohort.topic, cohort.admin)
}

impl Broker {
    /// A broker without cohorts.
    pub fn new(bounds: Bounds, clock: Clock) -> Self {
        Self { bounds, clock, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, BrokerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was not accepted so far.
    pub fn counters(&self) -> Counters {
        self.state().counters
    }

    /// How many streams are open.
    pub fn streams(&self) -> usize {
        self.state().streams.len()
    }

    /// Creates the cohort if there is none of this spec, and attaches a stream. Anyone may do either.
    ///
    /// # Errors
    /// `FULL` when a bound is reached, `REJECTED` without randomness.
    pub fn join(&self, connection: u64, join: &Join) -> Result<Joined, Status> {
        let challenge = random32().map_err(|_| Status::Rejected)?;
        let now_ms = self.clock.now_ms();
        let mut state = self.state();
        let of_cohort = || state.streams.values().filter(|stream| stream.cohort == join.cohort);
        let is_admin = join.addr == join.cohort.admin;
        let subscribers = of_cohort().filter(|stream| stream.role == Role::Subscriber).count();
        let of_connection = of_cohort().filter(|stream| stream.connection == connection).count();
        let known = state.rooms.contains_key(&spec(&join.cohort));
        if (!known && state.rooms.len() >= self.bounds.cohorts)
            || (!is_admin && subscribers >= self.bounds.subscribers)
            || of_connection >= self.bounds.streams_per_connection
        {
            return Err(Status::Full);
        }
        state.rooms.entry(spec(&join.cohort)).or_insert(Room { cursor: None, active_ms: now_ms });
        state.streams_made += 1;
        let stream = state.streams_made;
        let (queue, broadcasts) = mpsc::channel(self.bounds.queue);
        let role = if is_admin { Role::Pending { since_ms: now_ms } } else { Role::Subscriber };
        state.streams.insert(stream, Stream { cohort: join.cohort, connection, role, challenge, queue });
        Ok(Joined { stream, challenge, broadcasts })
    }

    /// The stream is gone.
    pub fn leave(&self, stream: u64) {
        self.state().streams.remove(&stream);
    }

    /// A stream sends a frame.
    ///
    /// # Errors
    /// A violation: the stream was reset.
    pub fn receive(&self, number: u64, broadcast: &Broadcast) -> Result<(), Violation> {
        let now_ms = self.clock.now_ms();
        let mut state = self.state();
        let judged = state.judge(number, broadcast);
        match judged {
            Ok(kind) => {
                if let Some(kind) = kind {
                    state.accept(number, kind, broadcast, now_ms);
                }
                Ok(())
            }
            Err(violation) => {
                state.streams.remove(&number);
                Err(violation)
            }
        }
    }

    /// Ends what is over: cohorts without activity, streams that did not claim.
    pub fn expire(&self) {
        let now_ms = self.clock.now_ms();
        let mut state = self.state();
        let BrokerState { rooms, streams, counters, .. } = &mut *state;
        rooms.retain(|_, room| now_ms.saturating_sub(room.active_ms) < self.bounds.inactivity_ms);
        streams.retain(|_, stream| {
            let late = matches!(stream.role, Role::Pending { since_ms } if now_ms.saturating_sub(since_ms) >= self.bounds.claim_ms);
            counters.claim_timeout += u64::from(late);
            !late && rooms.contains_key(&spec(&stream.cohort))
        });
    }
}

impl BrokerState {
    /// The kind of a frame that is valid on its stream; `None` for one that is dropped and counted.
    fn judge(&mut self, number: u64, broadcast: &Broadcast) -> Result<Option<u8>, Violation> {
        let Self { streams, counters, .. } = self;
        let stream = streams.get(&number).ok_or(Violation::Gone)?;
        if stream.role == Role::Subscriber {
            counters.wrong_stream += 1;
            return Err(Violation::WrongStream);
        }
        let kind = match u8::try_from(broadcast.kind) {
            Ok(kind @ (KIND_DATA | KIND_AUTH)) => kind,
            _ => {
                counters.unknown_kind += 1;
                return Ok(None);
            }
        };
        if broadcast.challenge != stream.challenge.0 {
            counters.wrong_challenge += 1;
            return Ok(None);
        }
        let id = update_id(&session_topic(&stream.cohort.topic, kind, &stream.challenge), broadcast.index);
        let valid = SingleOwnerChunk::new(&broadcast.soc).is_ok_and(|chunk| {
            let fits = kind == KIND_DATA || chunk.payload().is_empty();
            chunk.id() == id && fits && chunk.verify(&stream.cohort.admin).is_ok()
        });
        if !valid {
            counters.invalid_soc += 1;
            return Err(Violation::InvalidSoc);
        }
        Ok(Some(kind))
    }

    /// A valid frame claims its stream, and is delivered when it is news.
    fn accept(&mut self, number: u64, kind: u8, broadcast: &Broadcast, now_ms: u64) {
        let Self { rooms, streams, counters, .. } = self;
        let Some(stream) = streams.get_mut(&number) else { return };
        stream.role = Role::Publisher;
        let cohort = stream.cohort;
        let Some(room) = rooms.get_mut(&spec(&cohort)) else { return };
        room.active_ms = now_ms;
        if kind == KIND_AUTH {
            return;
        }
        if room.cursor.is_some_and(|cursor| broadcast.index <= cursor) {
            counters.retransmit += 1;
            return;
        }
        room.cursor = Some(broadcast.index);
        streams.retain(|_, stream| {
            if stream.cohort != cohort || stream.role != Role::Subscriber {
                return true;
            }
            // Who takes nothing is reset, and may come back.
            let taken = !matches!(stream.queue.try_send(broadcast.clone()), Err(mpsc::error::TrySendError::Full(_)));
            counters.queue_reset += u64::from(!taken);
            taken
        });
    }
}
