//! WebSockets under the virtual clock: messages keep their order in each direction, and a fault cuts the connection.

use std::time::Duration;

use remuda_session::TransportError;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::task::{AbortHandle, JoinSet};

use crate::provider::Provider;
use crate::random::Random;
use crate::weather::Weather;

/// What comes of a connection, in order.
pub enum SocketEvent {
    Opened,
    Message(Vec<u8>),
    Ended(TransportError),
}

/// The client's end. Dropping it cuts the connection.
pub struct Socket {
    up: UnboundedSender<Vec<u8>>,
    wire: AbortHandle,
}

impl Socket {
    /// Opens a connection; `tell` is given what comes of it.
    pub fn open(
        provider: &mut Provider,
        weather: Weather,
        mut random: Random,
        tell: impl Fn(SocketEvent) + Send + Sync + 'static,
    ) -> Self {
        let (up, sent) = unbounded_channel();
        let peer = if random.chance(weather.lose_request) { None } else { provider.connect() };
        let wire = tokio::spawn(async move {
            tokio::time::sleep(latency(&mut random, weather)).await;
            let ended = match peer {
                None => TransportError::Closed { code: 1006 },
                Some(peer) => {
                    tell(SocketEvent::Opened);
                    carry(peer, sent, weather, random, &tell).await
                }
            };
            tell(SocketEvent::Ended(ended));
        });
        Self { up, wire: wire.abort_handle() }
    }

    /// Sends one message.
    pub fn send(&self, message: Vec<u8>) {
        drop(self.up.send(message));
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.wire.abort();
    }
}

/// The provider's end.
pub struct Peer {
    pub sent: UnboundedSender<Vec<u8>>,
    pub received: UnboundedReceiver<Vec<u8>>,
}

/// Carries messages both ways until a fault or the provider ends it. Each direction has one message on its way at a time.
async fn carry(
    peer: Peer,
    mut sent: UnboundedReceiver<Vec<u8>>,
    weather: Weather,
    mut random: Random,
    tell: &impl Fn(SocketEvent),
) -> TransportError {
    let Peer { sent: to_provider, mut received } = peer;
    let mut directions = JoinSet::new();
    let mut up_random = random.fork();
    directions.spawn(async move {
        while let Some(message) = sent.recv().await {
            tokio::time::sleep(latency(&mut up_random, weather)).await;
            if up_random.chance(weather.lose_request) || to_provider.send(message).is_err() {
                return;
            }
        }
    });
    loop {
        // In this order: which of two ready ones is taken must not be by chance.
        tokio::select! {
            biased;
            _ = directions.join_next() => break,
            message = received.recv() => {
                let Some(message) = message else { break };
                tokio::time::sleep(latency(&mut random, weather)).await;
                if random.chance(weather.lose_answer) {
                    break;
                }
                if random.chance(weather.hang) {
                    // Nothing more comes, and nobody says so.
                    std::future::pending::<()>().await;
                }
                tell(SocketEvent::Message(message));
            }
        }
    }
    TransportError::Closed { code: 1006 }
}

fn latency(random: &mut Random, weather: Weather) -> Duration {
    Duration::from_millis(1 + random.below(weather.latency_ms))
}
