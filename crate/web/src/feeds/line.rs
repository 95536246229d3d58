//! The one connection of a machine of BPS: dialled when it asks, told as inputs.

use futures_channel::mpsc::UnboundedSender;
use remuda_bps::connection::{Dial, Moment};
use remuda_session::{Transport, TransportError};

use super::{random, send};
use crate::clock::now_ms;
use crate::dial::{Endpoint, PlainLoopback};
use crate::web_socket::{Socket, SocketEvent};

/// Where a broker is reached.
#[derive(Clone, Debug)]
pub struct BrokerAddress {
    /// Of the bridge the base of its paths; directly the endpoint itself.
    pub endpoint: String,
    /// Whether this machine may be dialled without TLS.
    pub plain: PlainLoopback,
}

/// Something came of a connection. Each has a number, so that what comes late of an earlier one is known for that.
#[derive(Debug)]
pub struct Heard {
    connection: u64,
    event: SocketEvent,
}

/// The connection, if there is one.
pub struct Line<T> {
    address: BrokerAddress,
    sender: UnboundedSender<T>,
    connection: u64,
    socket: Option<Socket>,
}

impl<T: From<Heard> + 'static> Line<T> {
    /// No connection yet; what comes of later ones is sent to `sender`.
    pub fn new(address: BrokerAddress, sender: UnboundedSender<T>) -> Self {
        Self { address, sender, connection: 0, socket: None }
    }

    /// Begins a connection in the place of the one before.
    pub fn connect(&mut self, dial: &Dial) {
        self.connection = self.connection.wrapping_add(1);
        let (connection, sender) = (self.connection, self.sender.clone());
        let told = move |event| send(&sender, Heard { connection, event }.into());
        let uri = match dial {
            Dial::Bridge(path) => format!("{}{path}", self.address.endpoint.trim_end_matches('/')),
            Dial::Direct => self.address.endpoint.clone(),
        };
        let admitted = Endpoint::admit(&uri, Transport::WebSocket, self.address.plain);
        match admitted.map_err(|_| TransportError::Other).and_then(|endpoint| Socket::open(&endpoint, told.clone())) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => told(SocketEvent::Ended(error)),
        }
    }

    /// Sends one binary message.
    pub fn send(&self, message: &[u8]) {
        if let Some(socket) = &self.socket {
            socket.send(message);
        }
    }

    /// Closes the connection; nothing that still comes of it is heard.
    pub fn disconnect(&mut self) {
        self.connection = self.connection.wrapping_add(1);
        self.socket = None;
    }

    /// What was heard, unless it is of an earlier connection.
    pub fn current(&self, heard: Heard) -> Option<SocketEvent> {
        (heard.connection == self.connection).then_some(heard.event)
    }
}

/// The close code of a connection that broke or was never made.
pub const ABNORMAL: u16 = 1006;

/// The close code of a connection's end.
pub const fn close_code(error: &TransportError) -> u16 {
    match error {
        TransportError::Closed { code } => *code,
        _ => ABNORMAL,
    }
}

/// When an input comes.
pub fn moment() -> Moment {
    Moment { now_ms: now_ms(), random: random() }
}
