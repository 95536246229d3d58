//! Why one HTTP exchange brought no body, or a WebSocket ended: said by the driver, judged here.

use remuda_wire::Remedy;

/// One exchange failed before there was a whole body to decode, or a connection ended.
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
    /// The peer closed a WebSocket, or it broke.
    Closed {
        /// The close code; 1006 when there was no closing handshake.
        code: u16,
    },
    /// A WebSocket message that is not binary, or longer than a frame may be.
    Message,
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
            Self::Closed { .. } => "transport/closed",
            Self::Message => "transport/message",
            Self::Other => "transport/other",
        }
    }

    /// What the caller should do about it. Of the statuses, 408, 425, 429 and 5xx pass by themselves.
    pub const fn remedy(self) -> Remedy {
        match self {
            Self::Offline | Self::Timeout | Self::Aborted | Self::Closed { .. } | Self::Other => Remedy::Retry,
            Self::Http { status: 408 | 425 | 429 | 500..=599 } => Remedy::Retry,
            Self::Http { .. } | Self::BodyTooLarge | Self::Redirected | Self::Message => Remedy::Surface,
        }
    }
}

impl core::fmt::Display for TransportError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Http { status: number } | Self::Closed { code: number } => write!(f, "{}: {number}", self.code()),
            _ => f.write_str(self.code()),
        }
    }
}

impl core::error::Error for TransportError {}
