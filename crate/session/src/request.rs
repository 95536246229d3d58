//! One proof-bound request on its way to a signature (§7.1, §13.1).

use alloc::vec::Vec;

use remuda_wire::context::SigningContext;
use remuda_wire::frame::{ClientFrame, ClientMessage};
use remuda_wire::preimage::request_body_hash;
use remuda_wire::request::{AuthenticatedRequest, RequestBody};
use remuda_wire::session::RequestProof;
use remuda_wire::{Bytes32, Signature, Signed};

/// A request with its counter, before the holder signed it. Made only by [`crate::handshake::Open::request`].
#[derive(Debug)]
pub struct UnsignedRequest {
    request: AuthenticatedRequest,
    digest: Bytes32,
}

impl UnsignedRequest {
    pub(crate) fn new(
        context: SigningContext,
        session_id: Bytes32,
        counter: u64,
        request_id: Bytes32,
        body: RequestBody,
    ) -> Self {
        let (method, body_hash) = (body.method(), request_body_hash(&body));
        let proof = RequestProof { context, session_id, counter, method, body_hash, signature: Signature::ZERO };
        let digest = proof.digest();
        Self { request: AuthenticatedRequest { request_id, proof, body }, digest }
    }

    /// The digest of the proof's signing bytes: what the holder key signs.
    pub const fn digest(&self) -> Bytes32 {
        self.digest
    }

    /// The body.
    pub const fn body(&self) -> &RequestBody {
        &self.request.body
    }

    /// The correlation id.
    pub const fn request_id(&self) -> Bytes32 {
        self.request.request_id
    }

    /// Puts the signature in: the bytes of the `Request` frame.
    pub fn sign(mut self, signature: Signature) -> Vec<u8> {
        self.request.proof.signature = signature;
        ClientFrame(ClientMessage::Request(self.request)).to_bytes()
    }
}
