//! Which chain an object belongs to (§4).

use crate::bytes::Bytes32;
use crate::codec::VersionOne;

object! {
    /// `CbqsSigningContextV1`, 41 bytes: first in every signed object.
    #[derive(Copy)]
    pub struct SigningContext {
        version: VersionOne,
        chain_id: u64,
        chain_instance_id: Bytes32,
    }
}

object! {
    /// `FinalizedViewV1`, 72 bytes: one immutable block of one chain history.
    #[derive(Copy)]
    pub struct FinalizedView {
        chain_instance_id: Bytes32,
        height: u64,
        block_hash: Bytes32,
    }
}
