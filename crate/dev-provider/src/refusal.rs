//! What the provider refuses, with the code of §17.

use remuda_wire::error_frame::CbqsError;
use remuda_wire::frame::ServerMessage;
use remuda_wire::{Bytes, Bytes32, Text};

macro_rules! codes {
    ($($name:ident = $number:literal,)+) => {
        /// The codes of §17. Those that no request to a v1 broker can bring about are reported only when told to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Code { $($name,)+ }

        impl Code {
            /// Every code, ascending.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The number on the wire.
            pub const fn number(self) -> u16 {
                match self { $(Self::$name => $number,)+ }
            }

            /// The specification's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

codes! {
    StreamNotFound = 3900,
    StreamNotActive = 3901,
    StreamSuspended = 3902,
    ProviderEpochStale = 3903,
    AuthorizationGenerationStale = 3904,
    EncryptionGenerationStale = 3905,
    InvalidGrant = 3906,
    GrantExpired = 3907,
    VerbDenied = 3908,
    GroupScopeDenied = 3909,
    InvalidProofOfPossession = 3910,
    RequestReplay = 3911,
    MessageTooLarge = 3912,
    RateLimited = 3913,
    Backpressure = 3914,
    IdempotencyConflict = 3915,
    IdempotencyExpired = 3916,
    CursorTooOld = 3917,
    GroupNotFound = 3918,
    LeaseStale = 3919,
    DeliveryTerminal = 3920,
    FastModeHasNoLeases = 3921,
    InvalidReceiptChain = 3923,
    InvalidKeyBatch = 3924,
    ChainStateStale = 3925,
    LaneNotFound = 3926,
    LaneClosed = 3927,
    LaneScopeDenied = 3928,
    LaneLimitExceeded = 3929,
    BrokerEpochTransitionMissing = 3930,
    SubscriptionLimitExceeded = 3932,
    BaseRateNotAccepted = 3933,
    BaseRateCapacityExceeded = 3934,
    BaseRateScheduleUnavailable = 3935,
    PricingBasisInvalid = 3936,
    UnsupportedVersion = 3937,
    ChainInstanceMismatch = 3938,
    GroupConfigInvalid = 3939,
    HolderInFlightLimitExceeded = 3940,
    ChainUnreachable = 3941,
    ChainViewInconsistent = 3942,
    VerificationModeIncompatible = 3943,
    NotCheckpointBoundary = 3944,
    ProofScopeTooWide = 3945,
    LongPollBusy = 3946,
    ControlBacklogExceeded = 3947,
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
