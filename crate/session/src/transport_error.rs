//! Why one HTTP exchange brought no body: said by the driver, judged here.

use remuda_wire::Remedy;

/// One exchange failed before there was a whole body to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransportError {
    /// There is no network.
    Offline,
    /// No whole answer in time.
    Timeout,
    /// An answer with another status than 200.
    Http {
        /// The status.
        status: u16,
    },
    /// The body is longer than the configured cap.
    BodyTooLarge,
    /// The endpoint answered with a redirect, which a page must not follow (§4.3).
    Redirected,
    /// The exchange was cut: by the peer, by a proxy, or by whoever owns the page.
    Aborted,
    /// Whatever else the platform reports without saying what.
    Other,
}

impl TransportError {
    /// The stable code, `transport/reason`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Offline => "transport/offline",
            Self::Timeout => "transport/timeout",
            Self::Http { .. } => "transport/http-status",
            Self::BodyTooLarge => "transport/body-too-large",
            Self::Redirected => "transport/redirected",
            Self::Aborted => "transport/aborted",
            Self::Other => "transport/other",
        }
    }

    /// What the caller should do about it. Of the statuses, 408, 425, 429 and 5xx pass by themselves.
    pub const fn remedy(self) -> Remedy {
        match self {
            Self::Offline | Self::Timeout | Self::Aborted | Self::Other => Remedy::Retry,
            Self::Http { status: 408 | 425 | 429 | 500..=599 } => Remedy::Retry,
            Self::Http { .. } | Self::BodyTooLarge | Self::Redirected => Remedy::Surface,
        }
    }
}

impl core::fmt::Display for TransportError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Http { status } => write!(f, "{}: {status}", self.code()),
            _ => f.write_str(self.code()),
        }
    }
}

impl core::error::Error for TransportError {}
