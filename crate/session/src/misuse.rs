//! What a caller of this crate did wrong. The peer did nothing.

use remuda_wire::Remedy;

/// A call that the machine refuses. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiMisuse {
    /// The grant is of another stream or chain than the session.
    GrantMismatch,
    /// The grant binds one key for signing and for key envelopes.
    HolderKeysEqual,
    /// `handle_start` came before, and the machine is not closed.
    AlreadyStarted,
    /// The machine is closed for good or was never started: nothing is sent until `handle_start`.
    NotStarted,
    /// As many requests wait as the configuration allows.
    QueueFull,
    /// A subscription of this id is open or being opened in this session.
    SubscriptionExists,
    /// No subscription of this id is open in this session.
    UnknownSubscription,
}

impl ApiMisuse {
    /// The stable code, `misuse/reason`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::GrantMismatch => "misuse/grant-mismatch",
            Self::HolderKeysEqual => "misuse/holder-keys-equal",
            Self::AlreadyStarted => "misuse/already-started",
            Self::NotStarted => "misuse/not-started",
            Self::QueueFull => "misuse/queue-full",
            Self::SubscriptionExists => "misuse/subscription-exists",
            Self::UnknownSubscription => "misuse/unknown-subscription",
        }
    }

    /// What the caller should do about it.
    pub const fn remedy(self) -> Remedy {
        match self {
            Self::QueueFull => Remedy::Retry,
            Self::GrantMismatch
            | Self::HolderKeysEqual
            | Self::AlreadyStarted
            | Self::NotStarted
            | Self::SubscriptionExists
            | Self::UnknownSubscription => Remedy::FixRequest,
        }
    }
}

impl core::fmt::Display for ApiMisuse {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.code())
    }
}

impl core::error::Error for ApiMisuse {}
