//! What a machine asks for and tells.

use alloc::vec::Vec;

use remuda_wire::request::RequestBody;
use remuda_wire::response::ResponseBody;
use remuda_wire::{Bytes32, Refusal, Remedy};

use crate::provider_error::ProviderError;
use crate::routed::RoutedFrame;
use crate::transport_error::TransportError;

/// Which session: a page has one over a WebSocket, or two over long-poll, each of which admits one request at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// Appends and everything else that is answered at once.
    Command,
    /// Subscriptions, and the credit requests that poll them.
    Poll,
    /// Everything, over a WebSocket.
    Socket,
}

impl Slot {
    /// The session of a channel over long-poll that a request belongs to: subscriptions and their credit are of the poll
    /// session.
    pub const fn of(body: &RequestBody) -> Self {
        match body {
            RequestBody::OpenSubscription(_) | RequestBody::CloseSubscription(_) | RequestBody::Credit(_) => Self::Poll,
            RequestBody::Append(_)
            | RequestBody::BeginKeyBatch(_)
            | RequestBody::PutKeyBatchChunk(_)
            | RequestBody::CommitKeyBatch(_)
            | RequestBody::CreateLane(_)
            | RequestBody::CloseLane(_)
            | RequestBody::ListLanes(_)
            | RequestBody::CreateGroup(_)
            | RequestBody::UpdateGroup(_)
            | RequestBody::DeleteGroup(_)
            | RequestBody::Ack(_)
            | RequestBody::Nack(_)
            | RequestBody::Extend(_)
            | RequestBody::Reject(_)
            | RequestBody::Redrive(_) => Self::Command,
        }
    }

    /// What its frames travel over.
    pub const fn transport(self) -> Transport {
        match self {
            Self::Command | Self::Poll => Transport::LongPoll,
            Self::Socket => Transport::WebSocket,
        }
    }
}

/// What frames travel over (§13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The canonical one.
    WebSocket,
    /// The fallback.
    LongPoll,
}

/// Names one submitted request until it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestHandle {
    pub(crate) slot: Slot,
    pub(crate) number: u64,
}

impl RequestHandle {
    /// The session that it was submitted to.
    pub const fn slot(self) -> Slot {
        self.slot
    }
}

/// Names one HTTP exchange, so that an answer that comes after it was given up is told from the answer that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostId(pub(crate) u64);

/// Names one WebSocket connection, so that what comes of one that was given up is told from what is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub(crate) u64);

/// One thing that the driver does or the caller learns, in order.
///
/// Every submitted request is settled exactly once: by `Answer`, `PollTimeout`, `Unanswered` or `Unsent`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // Deliveries are both the common and the large one.
pub enum Output {
    /// POST `body` to the endpoint; answer with `handle_body` or `handle_transport_error`.
    Post {
        /// Which exchange.
        post: PostId,
        /// One canonical `CbqsClientFrameV1`.
        body: Vec<u8>,
    },
    /// The answer of this exchange is no longer wanted: it may be aborted. Whatever still comes of it is ignored.
    Abort {
        /// Which exchange.
        post: PostId,
    },
    /// Open a WebSocket to the endpoint; answer with `handle_connected`, or with `handle_disconnected` when it comes to nothing.
    Connect {
        /// Which connection.
        socket: SocketId,
    },
    /// Send one binary message.
    Send {
        /// Over which connection.
        socket: SocketId,
        /// One canonical `CbqsClientFrameV1`.
        message: Vec<u8>,
    },
    /// Close this connection, or give up opening it. Whatever still comes of it is ignored.
    Disconnect {
        /// Which connection.
        socket: SocketId,
    },
    /// Sign this digest with the holder key; answer with `handle_signature` or `handle_signing_failed`.
    Sign {
        /// What is signed.
        digest: Bytes32,
    },
    /// The handshake succeeded. Nothing is subscribed in the new session.
    Opened {
        /// The session.
        session_id: Bytes32,
        /// When the provider stops taking its proofs.
        expires_at_ms: u64,
    },
    /// The provider answered a request: with a result that is not verified yet, or with an error.
    Answer {
        /// Which request.
        handle: RequestHandle,
        /// What it answered.
        result: Result<ResponseBody, ProviderError>,
    },
    /// A frame that is legal now.
    Frame(RoutedFrame),
    /// The provider ended one subscription; the others go on.
    SubscriptionEnded {
        /// Which.
        subscription_id: Bytes32,
        /// Why.
        error: ProviderError,
    },
    /// The provider held a request until its poll timeout: whatever it would have granted is not confirmed.
    PollTimeout {
        /// Which request.
        handle: RequestHandle,
    },
    /// A request was sent and will not be answered: whether it took effect is unknown.
    Unanswered {
        /// Which request.
        handle: RequestHandle,
    },
    /// A request was never sent: it had no effect.
    Unsent {
        /// Which request.
        handle: RequestHandle,
    },
    /// The session ended, and every subscription with it.
    Closed {
        /// Why.
        cause: CloseCause,
        /// When a new handshake begins by itself; `None` when only `handle_start` begins one.
        retry_at_ms: Option<u64>,
    },
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseCause {
    /// The peer sent what is no frame, not legal now, or false. Nothing of that body was applied.
    Violation(Refusal),
    /// The peer reported an error that no single request or subscription explains, or refused the handshake.
    Provider(ProviderError),
    /// An exchange failed, and with it possibly frames of live subscriptions.
    Transport(TransportError),
    /// The session is about to expire.
    Expired,
    /// A handshake frame or an `OpenSubscription` was answered by an empty batch: what the peer made of it is unknown.
    OutcomeUnknown,
    /// The session goes on over the other transport.
    TransportChanged,
    /// A held poll was given up so that another subscription can be opened at once.
    PollGivenUp,
    /// The holder key did not sign.
    SigningFailed,
    /// The caller closed it.
    Requested,
}

impl CloseCause {
    /// The stable code, `plane/reason`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Violation(refusal) => refusal.code(),
            Self::Provider(error) => error.code(),
            Self::Transport(error) => error.code(),
            Self::Expired => "session/expired",
            Self::OutcomeUnknown => "session/outcome-unknown",
            Self::TransportChanged => "session/transport-changed",
            Self::PollGivenUp => "session/poll-given-up",
            Self::SigningFailed => "session/signing-failed",
            Self::Requested => "session/requested",
        }
    }

    /// What the caller should do about it.
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Violation(refusal) => refusal.remedy(),
            Self::Provider(error) => error.remedy(),
            Self::Transport(error) => error.remedy(),
            Self::Expired | Self::OutcomeUnknown | Self::TransportChanged | Self::PollGivenUp => Remedy::Retry,
            Self::SigningFailed => Remedy::FixRequest,
            Self::Requested => Remedy::Surface,
        }
    }
}
