//! One WebSocket: messages within a bound, and one word on how it ended.
//!
//! ```text
//! open ──▶ Opened ──▶ (Message | Text)* ──▶ Ended(why)         dropped: closed, and nothing more is told
//!   └──────────────────────────────────────▲
//! ```
//! A browser does not say why a connection could not be opened: it is 1006, as when one breaks.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{ArrayBuffer, JsString, Uint8Array};
use remuda_session::TransportError;
use remuda_wire::bound;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{BinaryType, CloseEvent, Event, MessageEvent, WebSocket};

use crate::dial::Endpoint;
use crate::event::Listener;

/// What a connection tells, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// It is open.
    Opened,
    /// One binary message of at most [`bound::MAX_WIRE_FRAME_BYTES`] bytes.
    Message(Vec<u8>),
    /// One text message of at most as many UTF-16 units.
    Text(String),
    /// It ended, or was never opened. Nothing comes after.
    Ended(TransportError),
}

/// A connection. Dropping it closes it.
pub struct Socket {
    socket: WebSocket,
    _listeners: [Listener; 3],
}

impl Socket {
    /// Begins to open a connection; `told` learns what becomes of it.
    ///
    /// # Errors
    /// [`TransportError::Other`] where the browser refuses even to try.
    pub fn open(endpoint: &Endpoint, told: impl FnMut(SocketEvent) + 'static) -> Result<Self, TransportError> {
        let socket = WebSocket::new(endpoint.as_str()).map_err(|_| TransportError::Other)?;
        socket.set_binary_type(BinaryType::Arraybuffer);
        let told = Rc::new(Teller(RefCell::new(Some(told))));
        let (opened, heard, ended) = (Rc::clone(&told), Rc::clone(&told), told);
        let listeners = [
            Listener::new(&socket, "open", move |_| opened.tell(SocketEvent::Opened)),
            Listener::new(&socket, "message", move |event| heard.tell(message(event))),
            // An `error` says nothing that the `close` after it does not.
            Listener::new(&socket, "close", move |event| {
                let code = event.dyn_ref::<CloseEvent>().map_or(1006, CloseEvent::code);
                ended.tell(SocketEvent::Ended(TransportError::Closed { code }));
            }),
        ];
        Ok(Self { socket, _listeners: listeners })
    }

    /// Sends one binary message. What cannot be sent is lost with the connection, whose end is told.
    pub fn send(&self, message: &[u8]) {
        // A view would do, but memory may grow, and move, while the browser still reads.
        let _ = self.socket.send_with_js_u8_array(&Uint8Array::from(message));
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = self.socket.close();
    }
}

/// Who is told, until the end is.
struct Teller<T>(RefCell<Option<T>>);

impl<T: FnMut(SocketEvent)> Teller<T> {
    fn tell(&self, event: SocketEvent) {
        let Some(mut told) = self.0.take() else { return };
        let is_last = matches!(event, SocketEvent::Ended(_));
        told(event);
        if !is_last {
            self.0.replace(Some(told));
        }
    }
}

/// A message, looked at before it is copied.
fn message(event: Event) -> SocketEvent {
    let data = event.dyn_into::<MessageEvent>().map_or(JsValue::UNDEFINED, |event| event.data());
    let within = |length| usize::try_from(length).is_ok_and(|length| length <= bound::MAX_WIRE_FRAME_BYTES);
    match (data.dyn_ref::<ArrayBuffer>(), data.dyn_ref::<JsString>()) {
        (Some(bytes), _) if within(bytes.byte_length()) => SocketEvent::Message(Uint8Array::new(bytes).to_vec()),
        (_, Some(text)) if within(text.length()) => SocketEvent::Text(String::from(text)),
        _ => SocketEvent::Ended(TransportError::Message),
    }
}
