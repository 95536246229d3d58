//! Errors that a provider reports (§13.2, §17): typed by code, answered by remedy, unknown codes kept as they came.

use alloc::string::String;
use alloc::vec::Vec;

use remuda_wire::error_frame::CbqsError;
use remuda_wire::{Bytes32, Remedy};

macro_rules! kinds {
    ($($name:ident = $number:literal, $code:literal, $remedy:ident;)+) => {
        /// What a code of §17 means. Total: a code without a name is [`ErrorKind::Unknown`] and keeps its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorKind {
            $(#[doc = concat!("`", stringify!($number), "`.")] $name,)+
            /// A code that v1 does not reserve: never success, never a reason to retry (§17).
            Unknown(u16),
        }

        impl ErrorKind {
            /// Every kind that §17 names, ascending by code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The kind of a code.
            pub const fn of(code: u16) -> Self {
                match code { $($number => Self::$name,)+ unknown => Self::Unknown(unknown) }
            }

            /// The code on the wire.
            pub const fn number(self) -> u16 {
                match self { $(Self::$name => $number,)+ Self::Unknown(code) => code }
            }

            /// The name of §17, or `Unknown`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ Self::Unknown(_) => "Unknown" }
            }

            /// The stable path, `provider/reason`.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)+ Self::Unknown(_) => "provider/unknown" }
            }

            /// What the caller should do about it, by the text of §17 where it says so.
            pub const fn remedy(self) -> Remedy {
                match self { $(Self::$name => Remedy::$remedy,)+ Self::Unknown(_) => Remedy::Surface }
            }
        }
    };
}

kinds! {
    StreamNotFound = 3900, "provider/stream-not-found", FixRequest;
    StreamNotActive = 3901, "provider/stream-not-active", Surface;
    StreamSuspended = 3902, "provider/stream-suspended", Surface;
    ProviderEpochStale = 3903, "provider/provider-epoch-stale", FixRequest;
    AuthorizationGenerationStale = 3904, "provider/authorization-generation-stale", FixRequest;
    EncryptionGenerationStale = 3905, "provider/encryption-generation-stale", FixRequest;
    InvalidGrant = 3906, "provider/invalid-grant", FixRequest;
    GrantExpired = 3907, "provider/grant-expired", FixRequest;
    VerbDenied = 3908, "provider/verb-denied", FixRequest;
    GroupScopeDenied = 3909, "provider/group-scope-denied", FixRequest;
    InvalidProofOfPossession = 3910, "provider/invalid-proof-of-possession", FixRequest;
    RequestReplay = 3911, "provider/request-replay", FixRequest;
    MessageTooLarge = 3912, "provider/message-too-large", FixRequest;
    RateLimited = 3913, "provider/rate-limited", Retry;
    Backpressure = 3914, "provider/backpressure", Retry;
    IdempotencyConflict = 3915, "provider/idempotency-conflict", FixRequest;
    IdempotencyExpired = 3916, "provider/idempotency-expired", Surface;
    CursorTooOld = 3917, "provider/cursor-too-old", ReEnterAtBoundary;
    GroupNotFound = 3918, "provider/group-not-found", FixRequest;
    LeaseStale = 3919, "provider/lease-stale", Surface;
    DeliveryTerminal = 3920, "provider/delivery-terminal", Surface;
    FastModeHasNoLeases = 3921, "provider/fast-mode-has-no-leases", FixRequest;
    InvalidReceiptChain = 3923, "provider/invalid-receipt-chain", Halt;
    InvalidKeyBatch = 3924, "provider/invalid-key-batch", FixRequest;
    ChainStateStale = 3925, "provider/chain-state-stale", Retry;
    LaneNotFound = 3926, "provider/lane-not-found", FixRequest;
    LaneClosed = 3927, "provider/lane-closed", Surface;
    LaneScopeDenied = 3928, "provider/lane-scope-denied", FixRequest;
    LaneLimitExceeded = 3929, "provider/lane-limit-exceeded", Surface;
    BrokerEpochTransitionMissing = 3930, "provider/broker-epoch-transition-missing", ReEnterAtBoundary;
    SubscriptionLimitExceeded = 3932, "provider/subscription-limit-exceeded", FixRequest;
    BaseRateNotAccepted = 3933, "provider/base-rate-not-accepted", Surface;
    BaseRateCapacityExceeded = 3934, "provider/base-rate-capacity-exceeded", Surface;
    BaseRateScheduleUnavailable = 3935, "provider/base-rate-schedule-unavailable", Surface;
    PricingBasisInvalid = 3936, "provider/pricing-basis-invalid", Surface;
    UnsupportedVersion = 3937, "provider/unsupported-version", Surface;
    ChainInstanceMismatch = 3938, "provider/chain-instance-mismatch", FixRequest;
    GroupConfigInvalid = 3939, "provider/group-config-invalid", FixRequest;
    HolderInFlightLimitExceeded = 3940, "provider/holder-in-flight-limit-exceeded", FixRequest;
    ChainUnreachable = 3941, "provider/chain-unreachable", Surface;
    ChainViewInconsistent = 3942, "provider/chain-view-inconsistent", Halt;
    VerificationModeIncompatible = 3943, "provider/verification-mode-incompatible", FixRequest;
    NotCheckpointBoundary = 3944, "provider/not-checkpoint-boundary", ReEnterAtBoundary;
    ProofScopeTooWide = 3945, "provider/proof-scope-too-wide", SplitScope;
    LongPollBusy = 3946, "provider/long-poll-busy", Retry;
    ControlBacklogExceeded = 3947, "provider/control-backlog-exceeded", Retry;
}

impl ErrorKind {
    /// True when the provider no longer takes this session's proofs: it restarted, or forgot the session. The requests
    /// after it would all fail the same way, and a new handshake is the only way to learn more.
    pub const fn invalidates_session(self) -> bool {
        matches!(self, Self::InvalidProofOfPossession | Self::RequestReplay)
    }
}

/// `CbqsErrorV1` as its receiver keeps it: the peer's report, not our finding.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderError {
    /// The code as it came.
    pub code: u16,
    /// The provider's words. Untrusted text.
    pub message: String,
    /// Bytes typed by code; of `CursorTooOld` a signed retention anchor.
    pub details: Vec<u8>,
    /// The request that failed, when it is one.
    pub request_id: Option<Bytes32>,
    /// The subscription that this error ends, when it ends one.
    pub subscription_id: Option<Bytes32>,
}

impl ProviderError {
    /// What the code means.
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::of(self.code)
    }

    /// The stable path, `provider/reason`.
    pub const fn code(&self) -> &'static str {
        self.kind().code()
    }

    /// What the caller should do about it.
    pub const fn remedy(&self) -> Remedy {
        self.kind().remedy()
    }
}

impl From<CbqsError> for ProviderError {
    fn from(error: CbqsError) -> Self {
        Self {
            code: error.code,
            message: String::from(&*error.message),
            details: error.details.into_vec(),
            request_id: error.request_id,
            subscription_id: error.subscription_id,
        }
    }
}

/// Names the code and the identities; of the details only their length.
impl core::fmt::Debug for ProviderError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ProviderError")
            .field("code", &self.code)
            .field("kind", &self.kind())
            .field("message", &self.message)
            .field("details_bytes", &self.details.len())
            .field("request_id", &self.request_id)
            .field("subscription_id", &self.subscription_id)
            .finish()
    }
}

impl core::fmt::Display for ProviderError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({} {})", self.code(), self.code, self.kind().name())
    }
}

impl core::error::Error for ProviderError {}
