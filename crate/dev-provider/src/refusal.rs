//! What the provider refuses, with the code of §17.

use remuda_wire::error_frame::CbqsError;
use remuda_wire::frame::ServerMessage;
use remuda_wire::{Bytes, Bytes32, Text};

/// The codes that this provider reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Code {
    StreamNotFound,
    StreamNotActive,
    AuthorizationGenerationStale,
    EncryptionGenerationStale,
    InvalidGrant,
    GrantExpired,
    VerbDenied,
    InvalidProofOfPossession,
    RequestReplay,
    MessageTooLarge,
    RateLimited,
    Backpressure,
    CursorTooOld,
    FastModeHasNoLeases,
    InvalidKeyBatch,
    LaneNotFound,
    LaneScopeDenied,
    LaneLimitExceeded,
    SubscriptionLimitExceeded,
    UnsupportedVersion,
    ChainInstanceMismatch,
    VerificationModeIncompatible,
    NotCheckpointBoundary,
    ProofScopeTooWide,
    LongPollBusy,
}

impl Code {
    /// The number on the wire.
    pub const fn number(self) -> u16 {
        match self {
            Self::StreamNotFound => 3900,
            Self::StreamNotActive => 3901,
            Self::AuthorizationGenerationStale => 3904,
            Self::EncryptionGenerationStale => 3905,
            Self::InvalidGrant => 3906,
            Self::GrantExpired => 3907,
            Self::VerbDenied => 3908,
            Self::InvalidProofOfPossession => 3910,
            Self::RequestReplay => 3911,
            Self::MessageTooLarge => 3912,
            Self::RateLimited => 3913,
            Self::Backpressure => 3914,
            Self::CursorTooOld => 3917,
            Self::FastModeHasNoLeases => 3921,
            Self::InvalidKeyBatch => 3924,
            Self::LaneNotFound => 3926,
            Self::LaneScopeDenied => 3928,
            Self::LaneLimitExceeded => 3929,
            Self::SubscriptionLimitExceeded => 3932,
            Self::UnsupportedVersion => 3937,
            Self::ChainInstanceMismatch => 3938,
            Self::VerificationModeIncompatible => 3943,
            Self::NotCheckpointBoundary => 3944,
            Self::ProofScopeTooWide => 3945,
            Self::LongPollBusy => 3946,
        }
    }
}

/// One refusal: its code, a sentence, and the details that the code defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: Code,
    /// For a person.
    pub message: String,
    /// For the client: a signed anchor, or the name of what was wrong.
    pub details: Vec<u8>,
    /// The subscription that this ends, when it ends one.
    pub subscription_id: Option<Bytes32>,
}

impl Refusal {
    /// A refusal without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Vec::new(), subscription_id: None }
    }

    /// The same with `details`.
    pub fn with_details(self, details: Vec<u8>) -> Self {
        Self { details, ..self }
    }

    /// The same, ending a subscription.
    pub fn ending(self, subscription_id: Bytes32) -> Self {
        Self { subscription_id: Some(subscription_id), ..self }
    }

    /// As a frame that answers `request_id`.
    pub fn frame(self, request_id: Bytes32) -> ServerMessage {
        self.error(Some(request_id))
    }

    /// As a frame that answers nothing: a subscription ends by itself.
    pub fn unasked(self) -> ServerMessage {
        self.error(None)
    }

    fn error(self, request_id: Option<Bytes32>) -> ServerMessage {
        ServerMessage::Error(CbqsError {
            request_id,
            subscription_id: self.subscription_id,
            code: self.code.number(),
            message: bounded_text(self.message),
            details: bounded_bytes(self.details),
        })
    }
}

/// Our own messages are short; a longer one is cut at a character.
fn bounded_text<const MAX: usize>(mut text: String) -> Text<MAX> {
    loop {
        match Text::new(text.clone()) {
            Ok(text) => return text,
            Err(over) => text.truncate(text.floor_char_boundary(over.bound)),
        }
    }
}

/// Our own details are short; longer ones are cut.
fn bounded_bytes<const MAX: usize>(mut bytes: Vec<u8>) -> Bytes<MAX> {
    loop {
        match Bytes::new(bytes.clone()) {
            Ok(bytes) => return bytes,
            Err(over) => bytes.truncate(over.bound),
        }
    }
}
