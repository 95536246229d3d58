//! How a broker is reached, left and come back to: the same for both machines.

use alloc::string::String;
use remuda_wire::backoff::Backoff;
use remuda_wire::{Bytes32, Remedy};

use crate::refusal::BpsRefusal;

/// How a broker is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Through a node's WebSocket bridge, which talks to this broker.
    Bridge {
        /// The broker's overlay address.
        broker: Bytes32,
    },
    /// Directly: one protobuf message in each binary message.
    Direct,
}

/// Where to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dial {
    /// This path at the node.
    Bridge(String),
    /// The broker's own endpoint.
    Direct,
}

/// When an input comes, and the randomness for what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Any 64 bits; only delays come of them.
    pub random: u64,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// 4001: the node found a chunk invalid.
    InvalidChunk,
    /// 4002: the node found a message invalid.
    InvalidMessage,
    /// 4003: the broker is gone.
    BrokerGone,
    /// 1013: no room, here or in the cohort.
    Exhausted,
    /// 1006: the connection broke, or was never made.
    Abnormal,
    /// Another close code.
    Closed(u16),
    /// We closed: the broker broke the protocol.
    Violation(BpsRefusal),
    /// The broker refused the stream for good.
    Rejected,
    /// We closed: an answer, or our own signature, came too late.
    Deadline,
    /// We closed: what was signed is not by the admin.
    Signer,
    /// The caller closed it.
    Requested,
}

impl CloseReason {
    /// By the close code of a WebSocket.
    pub const fn from_code(code: u16) -> Self {
        match code {
            4001 => Self::InvalidChunk,
            4002 => Self::InvalidMessage,
            4003 => Self::BrokerGone,
            1013 => Self::Exhausted,
            1006 => Self::Abnormal,
            other => Self::Closed(other),
        }
    }

    /// The stable code, `plane/reason`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidChunk => "close/invalid-chunk",
            Self::InvalidMessage => "close/invalid-message",
            Self::BrokerGone => "close/broker-gone",
            Self::Exhausted => "close/exhausted",
            Self::Abnormal => "close/abnormal",
            Self::Closed(_) => "close/other",
            Self::Violation(refusal) => refusal.code(),
            Self::Rejected => "close/rejected",
            Self::Deadline => "close/deadline",
            Self::Signer => "close/signer",
            Self::Requested => "close/requested",
        }
    }

    /// What the caller should do about it. Machines come back by themselves exactly after what says [`Remedy::Retry`].
    pub const fn remedy(self) -> Remedy {
        match self {
            Self::BrokerGone | Self::Exhausted | Self::Abnormal | Self::Closed(_) | Self::Deadline => Remedy::Retry,
            Self::Violation(refusal) => refusal.remedy(),
            Self::InvalidChunk | Self::InvalidMessage | Self::Rejected => Remedy::Halt,
            Self::Signer => Remedy::FixRequest,
            Self::Requested => Remedy::Surface,
        }
    }
}

/// How long a broker may take to answer, and a publisher to claim.
pub const DEADLINE_MS: u64 = 30_000;

/// Attempts to reach a broker: between them 1 to 30 seconds, with full jitter, until a connection has lasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    failed: u32,
    connected_at_ms: Option<u64>,
}

impl Attempts {
    const LEAST_MS: u64 = 1_000;
    const ABOVE_LEAST: Backoff = Backoff { base_ms: 1_000, cap_ms: 29_000 };

    pub fn connected(&mut self, now_ms: u64) {
        self.connected_at_ms = Some(now_ms);
    }

    /// When the next attempt is due.
    pub fn ended(&mut self, at: Moment) -> u64 {
        let lasted = self.connected_at_ms.take().is_some_and(|since| at.now_ms.saturating_sub(since) >= DEADLINE_MS);
        if lasted {
            self.failed = 0;
        }
        let delay_ms = Self::LEAST_MS + Self::ABOVE_LEAST.delay_ms(self.failed, at.random);
        self.failed = self.failed.saturating_add(1);
        at.now_ms.saturating_add(delay_ms)
    }
}
