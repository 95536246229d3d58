//! The frames of one answer, bounded before anything moves (§13.2).

use remuda_wire::bound::{MAX_SERVER_FRAMES_PER_BATCH, MAX_WIRE_FRAME_BYTES};
use remuda_wire::frame::ServerMessage;
use remuda_wire::{Canonical, VersionOne, Writer};

/// How much one answer may carry. Its first frame of a subscription may be larger than that alone.
#[derive(Clone, Copy, Debug)]
struct Limits {
    frames: usize,
    bytes: usize,
}

/// Of a long-poll response.
const BATCH: Limits = Limits { frames: MAX_SERVER_FRAMES_PER_BATCH, bytes: 4 << 20 };
/// Of one round of a persistent connection: what may wait for a slow peer, and how long its own frames wait for ours.
const ROUND: Limits = Limits { frames: MAX_SERVER_FRAMES_PER_BATCH, bytes: 256 << 10 };

/// Encoded frames, at most as many as their transport carries at once.
#[derive(Debug)]
pub struct Outbox {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    /// Frames of subscriptions, beside the response itself.
    pushed: usize,
    limits: Limits,
}

impl Outbox {
    /// A long-poll response that begins with the answer to the request.
    pub fn batch(answer: &ServerMessage) -> Self {
        Self::new(BATCH).answering(answer)
    }

    /// One round of a persistent connection, without an answer.
    pub const fn round() -> Self {
        Self::new(ROUND)
    }

    const fn new(limits: Limits) -> Self {
        Self { frames: Vec::new(), bytes: 0, pushed: 0, limits }
    }

    /// The same with the answer to a request, whatever its size.
    pub fn answering(mut self, answer: &ServerMessage) -> Self {
        let frame = encode(answer);
        self.bytes += frame.len() + 4;
        self.frames.push(frame);
        self
    }

    /// True when a frame of `bytes` fits.
    pub const fn has_room(&self, bytes: usize) -> bool {
        let over = self.bytes + bytes + 4 > self.limits.bytes && self.pushed > 0;
        !over && self.frames.len() < self.limits.frames && bytes <= MAX_WIRE_FRAME_BYTES
    }

    /// Adds a frame of a subscription if it fits; `false` leaves it for the next time.
    pub fn push(&mut self, message: &ServerMessage) -> bool {
        let frame = encode(message);
        if !self.has_room(frame.len()) {
            return false;
        }
        self.bytes += frame.len() + 4;
        self.pushed += 1;
        self.frames.push(frame);
        true
    }

    /// How many bytes are in it.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// True when a subscription has something in it.
    pub const fn has_frames(&self) -> bool {
        self.pushed > 0
    }

    /// The frames one by one: a persistent connection sends each as a message.
    pub fn into_frames(self) -> Vec<Vec<u8>> {
        self.frames
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
