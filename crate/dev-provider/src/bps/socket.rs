//! The three kinds of socket before the broker: the direct frames, and the two bridges of a node.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use remuda_bps::message::{Ack, Join, Status};
use remuda_bps::{judge, Broadcast};

use super::broker::{Joined, Violation};
use super::lie::offer;
use super::Node;

/// Close codes of the bridge.
mod close {
    pub const INVALID_CHUNK: u16 = 4001;
    pub const INVALID_MESSAGE: u16 = 4002;
    pub const BROKER_GONE: u16 = 4003;
    pub const EXHAUSTED: u16 = 1013;
}

/// How long a peer has for its first message.
const FIRST_MESSAGE: Duration = Duration::from_secs(30);

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

fn connection() -> u64 {
    CONNECTIONS.fetch_add(1, Ordering::Relaxed)
}

/// The next binary message; `None` when the peer is gone or sends what is none.
async fn binary(socket: &mut WebSocket) -> Option<Result<Vec<u8>, ()>> {
    loop {
        match socket.recv().await {
            Some(Ok(Message::Binary(bytes))) => return Some(Ok(bytes.into())),
            Some(Ok(Message::Text(_))) => return Some(Err(())),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            None | Some(Err(_) | Ok(Message::Close(_))) => return None,
        }
    }
}

/// Sends a message; false when the peer is gone.
async fn send(socket: &mut WebSocket, message: impl Into<Message>) -> bool {
    socket.send(message.into()).await.is_ok()
}

async fn end(mut socket: WebSocket, code: Option<u16>) {
    if let Some(code) = code {
        // The peer may be gone already.
        let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: "".into() }))).await;
    }
}

/// The direct frames: `Join`, `Ack`, then `Broadcast` in the direction of the stream's role.
pub async fn serve_direct(node: &Node, mut socket: WebSocket) {
    let first = tokio::time::timeout(FIRST_MESSAGE, binary(&mut socket)).await;
    let Ok(Some(Ok(bytes))) = first else { return end(socket, Some(close::INVALID_MESSAGE)).await };
    // A Join whose address is not 20 bytes is rejected, like every other that is none.
    let joined = Join::from_bytes(&bytes).map_err(|_| Status::Rejected);
    let joined = joined.and_then(|join| node.broker.join(connection(), &join).map(|joined| (join, joined)));
    let (join, mut joined) = match joined {
        Ok(joined) => joined,
        Err(status) => {
            send(&mut socket, Ack { status, challenge: Vec::new() }.to_bytes()).await;
            return end(socket, None).await;
        }
    };
    let ack = Ack { status: Status::Ok, challenge: joined.challenge.0.into() };
    let code = if send(&mut socket, ack.to_bytes()).await {
        converse_directly(node, &join, &mut joined, &mut socket).await
    } else {
        None
    };
    node.broker.leave(joined.stream);
    end(socket, code).await;
}

async fn converse_directly(node: &Node, join: &Join, joined: &mut Joined, socket: &mut WebSocket) -> Option<u16> {
    loop {
        tokio::select! {
            received = binary(socket) => {
                let broadcast = match received? {
                    Ok(bytes) => Broadcast::from_bytes(&bytes),
                    Err(()) => return Some(close::INVALID_MESSAGE),
                };
                let Ok(broadcast) = broadcast else { return Some(close::INVALID_MESSAGE) };
                if let Err(violation) = node.broker.receive(joined.stream, &broadcast) {
                    return Some(code_of(violation));
                }
            }
            broadcast = joined.broadcasts.recv() => {
                let Some(broadcast) = broadcast else { return Some(close::EXHAUSTED) };
                for told in told(node, join, broadcast) {
                    if !send(socket, told.to_bytes()).await {
                        return None;
                    }
                }
            }
        }
    }
}

fn told(node: &Node, join: &Join, broadcast: Broadcast) -> Vec<Broadcast> {
    match node.lie {
        Some(lie) => lie.bend(&join.cohort, broadcast),
        None => vec![broadcast],
    }
}

const fn code_of(violation: Violation) -> u16 {
    match violation {
        Violation::InvalidSoc => close::INVALID_CHUNK,
        Violation::WrongStream => close::INVALID_MESSAGE,
        Violation::Gone => close::BROKER_GONE,
    }
}

/// The subscribe bridge. The node judges what the broker says before it passes it on, unless it lies itself.
pub async fn serve_subscriber(node: &Node, join: &Join, mut cursor: Option<u64>, mut socket: WebSocket) {
    let mut joined = match node.broker.join(connection(), join) {
        Ok(joined) => joined,
        Err(_) => return end(socket, Some(close::EXHAUSTED)).await,
    };
    let code = loop {
        tokio::select! {
            received = binary(&mut socket) => match received {
                None => break None,
                // A subscriber sends nothing.
                Some(_) => break Some(close::INVALID_MESSAGE),
            },
            broadcast = joined.broadcasts.recv() => {
                let Some(broadcast) = broadcast else { break Some(close::BROKER_GONE) };
                if cursor.is_some_and(|cursor| broadcast.index <= cursor) {
                    continue;
                }
                if judge(&join.cohort, &broadcast, cursor).is_err() {
                    break Some(close::INVALID_CHUNK);
                }
                cursor = Some(broadcast.index);
                let mut gone = false;
                for told in told(node, join, broadcast) {
                    let message = [&told.challenge[..], &told.index.to_be_bytes(), &told.soc].concat();
                    gone |= !send(&mut socket, message).await;
                }
                if gone {
                    break None;
                }
            }
        }
    };
    node.broker.leave(joined.stream);
    end(socket, code).await;
}

/// The publish bridge: an offer, then frames of the publisher.
pub async fn serve_publisher(node: &Node, join: &Join, mut socket: WebSocket) {
    let mut joined = match node.broker.join(connection(), join) {
        Ok(joined) => joined,
        Err(_) => return end(socket, Some(close::EXHAUSTED)).await,
    };
    let text = offer(node.lie, &join.cohort.topic, &node.overlay, &joined.challenge);
    let mut code = None;
    if send(&mut socket, text).await {
        code = loop {
            tokio::select! {
                received = binary(&mut socket) => {
                    let Some(received) = received else { break None };
                    let Some(broadcast) = received.ok().and_then(|bytes| frame(&bytes, &joined)) else {
                        break Some(close::INVALID_MESSAGE);
                    };
                    if let Err(violation) = node.broker.receive(joined.stream, &broadcast) {
                        break Some(code_of(violation));
                    }
                }
                // A publisher receives nothing: this ends when the broker resets the stream.
                _ = joined.broadcasts.recv() => break Some(close::BROKER_GONE),
            }
        };
    }
    node.broker.leave(joined.stream);
    end(socket, code).await;
}

/// `kind(1) || index(8, big-endian) || soc`, as the broker is sent it.
fn frame(bytes: &[u8], joined: &Joined) -> Option<Broadcast> {
    let (kind, rest) = bytes.split_first()?;
    let (index, soc) = rest.split_first_chunk()?;
    Some(Broadcast {
        soc: soc.into(),
        kind: (*kind).into(),
        challenge: joined.challenge.0.into(),
        index: u64::from_be_bytes(*index),
    })
}
