//! The canonical transport (§13): one canonical frame in each binary message, both ways.

use std::time::Duration;

use axum::extract::ws::{close_code, CloseFrame, Message, WebSocket};
use futures_util::SinkExt;
use remuda_wire::frame::ClientFrame;

use crate::exchange::{Connection, Exchange};

/// A peer that takes nothing for so long is cut off: `cbqs.slow_consumer_timeout_ms`, default.
const SLOW_CONSUMER: Duration = Duration::from_secs(60);

/// Serves one connection until either side ends it.
pub async fn serve(exchange: &Exchange, mut socket: WebSocket) {
    let ended = match converse(exchange, &mut socket).await {
        Ok(ended) => ended,
        Err(error) => {
            tracing::error!(%error, "a connection failed");
            Some((close_code::ERROR, "the provider failed"))
        }
    };
    if let Some((code, reason)) = ended {
        let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
        // The peer may be gone already.
        let _ = tokio::time::timeout(SLOW_CONSUMER, SinkExt::send(&mut socket, close)).await;
    }
}

/// Answers why we end it; `None` when the peer did.
async fn converse(exchange: &Exchange, socket: &mut WebSocket) -> anyhow::Result<Option<(u16, &'static str)>> {
    let mut connection = Connection::new(exchange);
    loop {
        let frames = tokio::select! {
            message = socket.recv() => match message {
                None | Some(Err(_) | Ok(Message::Close(_))) => return Ok(None),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Text(_))) => return Ok(Some((close_code::UNSUPPORTED, "binary messages only"))),
                Some(Ok(Message::Binary(bytes))) => match ClientFrame::from_bytes(&bytes) {
                    Ok(frame) => connection.receive(frame).await?,
                    Err(error) => return Ok(Some((close_code::PROTOCOL, error.code()))),
                },
            },
            frames = connection.ready() => match frames? {
                frames if frames.is_empty() => return Ok(Some((close_code::AWAY, "the connection is over"))),
                frames => frames,
            },
        };
        if tokio::time::timeout(SLOW_CONSUMER, send(socket, frames)).await.is_err() {
            return Ok(Some((close_code::POLICY, "the peer takes nothing")));
        }
    }
}

/// Sends a round with one flush. A failure shows at the next read.
async fn send(socket: &mut WebSocket, frames: Vec<Vec<u8>>) {
    for frame in frames {
        if socket.feed(Message::Binary(frame.into())).await.is_err() {
            return;
        }
    }
    let _ = socket.flush().await;
}
