//! Frames: what one message carries (§13.2).

use alloc::vec::Vec;

use crate::bound;
use crate::checkpoint::CheckpointFrame;
use crate::codec::{Canonical, VersionOne};
use crate::delivery::RecordDelivery;
use crate::error::DecodeError;
use crate::error_frame::CbqsError;
use crate::group::{DeliveryStateUpdate, GroupStateUpdate};
use crate::reader::Reader;
use crate::request::AuthenticatedRequest;
use crate::response::Response;
use crate::session::{CompleteSession, OpenSession, SessionChallenge, SessionOpened};
use crate::transition::BrokerEpochTransition;
use crate::writer::Writer;

/// Bytes within the frame bound, before any of them is copied.
#[derive(Clone, Copy, Debug)]
pub struct WireFrame<'a>(&'a [u8]);

impl<'a> WireFrame<'a> {
    /// Admits at most 5,242,880 bytes.
    ///
    /// # Errors
    /// [`DecodeError::FrameTooLarge`].
    pub const fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if bytes.len() <= bound::MAX_WIRE_FRAME_BYTES {
            Ok(Self(bytes))
        } else {
            Err(DecodeError::FrameTooLarge)
        }
    }

    /// The bytes.
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }
}

union! {
    /// The client frames without their version byte.
    pub enum ClientMessage: u8 {
        OpenSession(body: OpenSession) = 1,
        CompleteSession(body: CompleteSession) = 2,
        Request(body: AuthenticatedRequest) = 3,
    }
}

union! {
    /// The server frames without their version byte.
    pub enum ServerMessage: u8 {
        SessionChallenge(body: SessionChallenge) = 1,
        SessionOpened(body: SessionOpened) = 2,
        Response(body: Response) = 3,
        Delivery(body: RecordDelivery) = 4,
        Checkpoint(body: CheckpointFrame) = 5,
        BrokerEpochTransition(body: BrokerEpochTransition) = 6,
        Error(body: CbqsError) = 7,
        DeliveryState(body: DeliveryStateUpdate) = 8,
        GroupState(body: GroupStateUpdate) = 9,
    }
}

macro_rules! frame {
    ($(#[$meta:meta])* $name:ident, $message:ident) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub $message);

        impl $name {
            /// Decodes one whole frame.
            ///
            /// # Errors
            /// Any [`DecodeError`] but [`DecodeError::FrameTooLarge`], which [`WireFrame::new`] says.
            pub fn decode_frame(frame: WireFrame<'_>) -> Result<Self, DecodeError> {
                let mut reader = Reader::new(frame.0);
                VersionOne::read(&mut reader);
                let message = $message::read(&mut reader);
                reader.finish().map(|()| Self(message))
            }

            /// Decodes one whole frame from bytes of any length.
            ///
            /// # Errors
            /// Any [`DecodeError`].
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
                Self::decode_frame(WireFrame::new(bytes)?)
            }

            /// The canonical bytes: version, tag, body.
            pub fn to_bytes(&self) -> Vec<u8> {
                let mut writer = Writer::new();
                VersionOne.encode(&mut writer);
                self.0.encode(&mut writer);
                writer.into_bytes()
            }
        }
    };
}

frame!(
    /// `CbqsClientFrameV1`.
    ClientFrame, ClientMessage
);
frame!(
    /// `CbqsServerFrameV1`.
    ServerFrame, ServerMessage
);

/// `CbqsServerFrameBatchV1`: the body of a long-poll response. Decoded whole before any frame is applied.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ServerFrameBatch(pub Vec<ServerFrame>);

impl ServerFrameBatch {
    /// Decodes a whole response body.
    ///
    /// # Errors
    /// The first [`DecodeError`] in reading order.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let count = reader.length(bound::MAX_SERVER_FRAMES_PER_BATCH);
        // A frame as a value is far larger than its fewest bytes: nothing is reserved for a count that is only claimed.
        let mut frames = Vec::new();
        for _ in 0..count {
            let length = usize::try_from(u32::read(&mut reader)).unwrap_or(usize::MAX);
            reader.require(length <= bound::MAX_WIRE_FRAME_BYTES, DecodeError::FrameTooLarge);
            let frame = reader.take(length);
            reader.result()?;
            frames.push(ServerFrame::from_bytes(frame)?);
        }
        reader.finish()?;
        Ok(Self(frames))
    }

    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.length(self.0.len());
        for frame in &self.0 {
            let bytes = frame.to_bytes();
            writer.length(bytes.len());
            writer.raw(&bytes);
        }
        writer.into_bytes()
    }
}
