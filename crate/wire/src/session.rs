//! Proof of possession (§7.1) and the session frames (§13.2).

use crate::bytes::{Bytes32, Signature};
use crate::codec::ProviderEpoch;
use crate::context::{FinalizedView, SigningContext};
use crate::error::DecodeError;
use crate::grant::StreamGrant;
use crate::request::RequestMethod;

object! {
    /// `SessionProofV1`: the holder answers one challenge.
    pub struct SessionProof {
        context: SigningContext,
        stream_id: Bytes32,
        provider_epoch: ProviderEpoch,
        grant_id: Bytes32,
        session_id: Bytes32,
        challenge: Bytes32,
        signature: Signature,
    }
}

object! {
    /// `RequestProofV1`: binds one request body to one session and one counter.
    pub struct RequestProof {
        context: SigningContext,
        session_id: Bytes32,
        counter: u64,
        method: RequestMethod,
        body_hash: Bytes32,
        signature: Signature,
    }
}

object! {
    /// `OpenSessionRequestV1`.
    pub struct OpenSession {
        request_id: Bytes32,
        stream_id: Bytes32,
        grant: StreamGrant,
    }
    check |open: &OpenSession| {
        if open.stream_id == open.grant.stream_id { Ok(()) } else { Err(DecodeError::IdentityMismatch) }
    };
}

object! {
    /// `CompleteSessionRequestV1`.
    pub struct CompleteSession {
        request_id: Bytes32,
        proof: SessionProof,
    }
}

object! {
    /// `SessionChallengeV1`.
    pub struct SessionChallenge {
        request_id: Bytes32,
        context: SigningContext,
        served_at: FinalizedView,
        stream_id: Bytes32,
        grant_id: Bytes32,
        provider_epoch: ProviderEpoch,
        session_id: Bytes32,
        challenge: Bytes32,
        expires_at_ms: u64,
    }
}

object! {
    /// `SessionOpenedV1`.
    pub struct SessionOpened {
        request_id: Bytes32,
        context: SigningContext,
        served_at: FinalizedView,
        stream_id: Bytes32,
        grant_id: Bytes32,
        provider_epoch: ProviderEpoch,
        session_id: Bytes32,
        expires_at_ms: u64,
    }
}
