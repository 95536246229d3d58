//! A WebSocket of raw frames: one canonical frame in each binary message.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::Duration;

use remuda_wire::frame::{ClientFrame, ClientMessage, ServerFrame, ServerMessage};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::WebSocket;
use tungstenite::{Error, Message};

use super::Provider;

/// How long [`Socket::wait`] waits for a frame.
const WAIT: Duration = Duration::from_millis(500);

/// An open socket, and what came while an answer was awaited.
pub struct Socket {
    socket: WebSocket<TcpStream>,
    waiting: VecDeque<ServerMessage>,
}

impl Socket {
    pub fn connect(provider: &Provider) -> Self {
        Self::connect_from(provider, None).expect("the handshake")
    }

    /// Connects as a page of `origin` would.
    pub fn connect_from(provider: &Provider, origin: Option<&str>) -> Result<Self, u16> {
        let mut request = format!("ws://{}/cbqs", provider.address).into_client_request().expect("an address");
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().expect("a header"));
        }
        let stream = TcpStream::connect(&provider.address).expect("connects");
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Self { socket, waiting: VecDeque::new() }),
            Err(tungstenite::HandshakeError::Failure(Error::Http(response))) => Err(response.status().as_u16()),
            Err(other) => panic!("{other}"),
        }
    }

    /// Sends a frame and answers with the frame that names its request; what came before it waits.
    pub fn ask(&mut self, message: ClientMessage) -> Vec<ServerMessage> {
        let id = match &message {
            ClientMessage::OpenSession(body) => body.request_id,
            ClientMessage::CompleteSession(body) => body.request_id,
            ClientMessage::Request(body) => body.request_id,
        };
        self.send(Message::Binary(ClientFrame(message).to_bytes().into()));
        loop {
            let frame = self.read(Duration::from_secs(20)).expect("an answer");
            let answers = match &frame {
                ServerMessage::SessionChallenge(body) => body.request_id == id,
                ServerMessage::SessionOpened(body) => body.request_id == id,
                ServerMessage::Response(body) => body.request_id == id,
                ServerMessage::Error(body) => body.request_id == Some(id),
                _ => false,
            };
            if answers {
                return [frame].into_iter().chain(self.waiting.drain(..)).collect();
            }
            self.waiting.push_back(frame);
        }
    }

    pub fn send(&mut self, message: Message) {
        self.socket.send(message).expect("sent");
    }

    /// The next frame that nobody asked for, if one comes soon.
    pub fn wait(&mut self) -> Option<ServerMessage> {
        self.waiting.pop_front().or_else(|| self.read(WAIT))
    }

    /// The code that the other side closed with.
    pub fn closed(&mut self) -> u16 {
        self.socket.get_ref().set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        loop {
            match self.socket.read().expect("a close frame") {
                Message::Close(Some(frame)) => return frame.code.into(),
                Message::Close(None) => panic!("closed without a code"),
                _ => {}
            }
        }
    }

    fn read(&mut self, timeout: Duration) -> Option<ServerMessage> {
        self.socket.get_ref().set_read_timeout(Some(timeout)).expect("a timeout");
        loop {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => return Some(ServerFrame::from_bytes(&bytes).expect("canonical").0),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(other) => panic!("{other:?}"),
                Err(Error::Io(error))
                    if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
                {
                    return None
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}
