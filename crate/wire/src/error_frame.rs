//! Errors that a provider reports (§13.2, §17). Codes are kept as they come: an unknown one is no reason to lose it.

use crate::bound;
use crate::bytes::Bytes32;
use crate::codec::{Bytes, Text};

object! {
    /// `CbqsErrorV1`.
    pub struct CbqsError {
        request_id: Option<Bytes32>,
        subscription_id: Option<Bytes32>,
        code: u16,
        message: Text<{ bound::MAX_ERROR_MESSAGE_BYTES }>,
        details: Bytes<{ bound::MAX_ERROR_DETAILS_BYTES }>,
    }
}
