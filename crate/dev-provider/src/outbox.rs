//! The frames of one long-poll response, bounded before anything moves (§13.2).

use remuda_wire::bound::{MAX_SERVER_FRAMES_PER_BATCH, MAX_WIRE_FRAME_BYTES};
use remuda_wire::frame::ServerMessage;
use remuda_wire::{Canonical, VersionOne, Writer};

/// A response stays below this, unless its first subscription frame alone is larger.
const SOFT_BYTES: usize = 4 << 20;

/// Encoded frames, at most as many as a batch carries.
#[derive(Debug, Default)]
pub struct Outbox {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    /// Frames of subscriptions, beside the response itself.
    pushed: usize,
}

impl Outbox {
    /// An outbox that begins with the answer to the request.
    pub fn answering(message: &ServerMessage) -> Self {
        let frame = encode(message);
        Self { bytes: frame.len() + 4, frames: vec![frame], pushed: 0 }
    }

    /// Adds a frame if it fits; `false` leaves it for the next poll.
    pub fn push(&mut self, message: &ServerMessage) -> bool {
        let frame = encode(message);
        let over = self.bytes + frame.len() + 4 > SOFT_BYTES && self.pushed > 0;
        if over || self.frames.len() >= MAX_SERVER_FRAMES_PER_BATCH || frame.len() > MAX_WIRE_FRAME_BYTES {
            return false;
        }
        self.bytes += frame.len() + 4;
        self.pushed += 1;
        self.frames.push(frame);
        true
    }

    /// True when a subscription has something in it.
    pub const fn has_frames(&self) -> bool {
        self.pushed > 0
    }

    /// `CbqsServerFrameBatchV1`.
    pub fn into_bytes(self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(self.bytes + 4);
        writer.length(self.frames.len());
        for frame in &self.frames {
            writer.length(frame.len());
            writer.raw(frame);
        }
        writer.into_bytes()
    }
}

/// One canonical server frame: version, tag, body.
fn encode(message: &ServerMessage) -> Vec<u8> {
    let mut writer = Writer::new();
    VersionOne.encode(&mut writer);
    message.encode(&mut writer);
    writer.into_bytes()
}
