//! gRPC status: how an answer ended, and what that asks of us.

use alloc::string::String;
use alloc::vec::Vec;

macro_rules! codes {
    ($($variant:ident = $number:literal,)+) => {
        /// A code of gRPC; what it does not number is [`GrpcCode::Unknown`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum GrpcCode { $(#[allow(missing_docs)] $variant,)+ }

        impl GrpcCode {
            /// By its number on the wire.
            pub const fn from_number(number: u32) -> Self {
                match number { $($number => Self::$variant,)+ _ => Self::Unknown }
            }
        }
    };
}

codes! {
    Ok = 0, Cancelled = 1, Unknown = 2, InvalidArgument = 3, DeadlineExceeded = 4, NotFound = 5, AlreadyExists = 6,
    PermissionDenied = 7, ResourceExhausted = 8, FailedPrecondition = 9, Aborted = 10, OutOfRange = 11,
    Unimplemented = 12, Internal = 13, Unavailable = 14, DataLoss = 15, Unauthenticated = 16,
}

impl GrpcCode {
    /// Whether a stream that ended with it is opened again from durable F (`STREAMING.md`, "Backend limits"). A clean end
    /// is one too: a static stream goes on until it is cancelled or fails (STR-051). Nothing that says that the request
    /// itself is wrong is repeated.
    pub const fn reopens(self) -> bool {
        match self {
            Self::Ok
            | Self::Cancelled
            | Self::Unknown
            | Self::DeadlineExceeded
            | Self::ResourceExhausted
            | Self::Aborted
            | Self::Internal
            | Self::Unavailable => true,
            Self::InvalidArgument
            | Self::NotFound
            | Self::AlreadyExists
            | Self::PermissionDenied
            | Self::FailedPrecondition
            | Self::OutOfRange
            | Self::Unimplemented
            | Self::DataLoss
            | Self::Unauthenticated => false,
        }
    }
}

/// How an answer ended: a well-formed word of the backend, success or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcStatus {
    /// `grpc-status`; 0 is success.
    pub number: u32,
    /// `grpc-message`, percent-decoded; empty when absent.
    pub message: String,
}

impl GrpcStatus {
    /// The code.
    pub const fn code(&self) -> GrpcCode {
        GrpcCode::from_number(self.number)
    }

    /// From names and values of headers or of trailers; `None` without a numeric `grpc-status`. The first of a name
    /// counts.
    pub(crate) fn from_pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Option<Self> {
        let find = |name: &str| pairs.clone().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let digits = find("grpc-status")?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let message = find("grpc-message").map_or_else(String::new, percent_decoded);
        Some(Self { number: digits.parse().ok()?, message })
    }
}

/// What is no escape stays as it is; what is no UTF-8 becomes U+FFFD.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'%', [high, low, after @ ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| (high * 16 + low, after)),
            _ => None,
        };
        let (byte, after) = escaped.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}
