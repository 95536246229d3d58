//! Proof of possession (§7.1, §13.2): from a grant to an open session.
//!
//! ```text
//! AwaitChallenge --challenge--> AwaitSignature --signature--> AwaitOpened --opened--> Open
//!   OpenSession                   digest to sign                CompleteSession
//! ```
//!
//! Each state is a struct that holds only what it knows, and each transition consumes it: a challenge is answered once,
//! and nothing can be asked of a session that is not open. Signing is the caller's, so the holder key may be one that no
//! code can read.

use alloc::vec::Vec;

use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::frame::{ClientFrame, ClientMessage, ServerFrame, ServerMessage};
use remuda_wire::grant::StreamGrant;
use remuda_wire::request::RequestBody;
use remuda_wire::session::{CompleteSession, OpenSession, SessionProof};
use remuda_wire::verdict::{ProtocolViolation, VerifyError};
use remuda_wire::{Bytes32, ProviderEpoch, Refusal, Signature, Signed};

use crate::counter::RequestCounter;
use crate::misuse::ApiMisuse;
use crate::output::CloseCause;
use crate::provider_error::ProviderError;
use crate::request::UnsignedRequest;

/// What a session is opened with: the chain, the stream, and a grant for both.
#[derive(Clone, Debug)]
pub struct HandshakeConfig {
    context: SigningContext,
    grant: StreamGrant,
}

impl HandshakeConfig {
    /// Takes a grant of exactly this chain and stream, whose two holder keys are distinct (§9.1). Its signature is not checked
    /// here.
    ///
    /// # Errors
    /// [`ApiMisuse::HolderKeysEqual`], [`ApiMisuse::GrantMismatch`].
    pub fn new(context: SigningContext, stream_id: Bytes32, grant: StreamGrant) -> Result<Self, ApiMisuse> {
        if grant.holder_hpke_key.is_some_and(|key| key.0 == grant.holder_signing_key.0) {
            return Err(ApiMisuse::HolderKeysEqual);
        }
        if grant.context == context && grant.stream_id == stream_id {
            Ok(Self { context, grant })
        } else {
            Err(ApiMisuse::GrantMismatch)
        }
    }

    /// The stream.
    pub const fn stream_id(&self) -> &Bytes32 {
        &self.grant.stream_id
    }

    /// Who the session is for.
    pub fn identity(&self) -> SessionIdentity {
        SessionIdentity {
            context: self.context.clone(),
            stream_id: self.grant.stream_id,
            grant_id: self.grant.digest(),
        }
    }
}

/// What every frame of a handshake must repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionIdentity {
    /// The chain.
    pub context: SigningContext,
    /// The stream.
    pub stream_id: Bytes32,
    /// The digest of the grant's signing bytes; its transport bytes would be another (§7).
    pub grant_id: Bytes32,
}

/// What a challenge and an opened session both say.
struct Claim<'a> {
    request_id: &'a Bytes32,
    grant_id: &'a Bytes32,
    session_id: &'a Bytes32,
    expires_at_ms: u64,
    context: &'a SigningContext,
    stream_id: &'a Bytes32,
    served_at: &'a FinalizedView,
}

impl Claim<'_> {
    /// The checks of `VERDICTS.md`, "A challenge or opened session", after `unexpected-frame`.
    ///
    /// `session_id` is the challenge's, once there is one.
    fn check(
        &self,
        identity: &SessionIdentity,
        request_id: &Bytes32,
        session_id: Option<&Bytes32>,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        if self.request_id != request_id {
            return Err(ProtocolViolation::RequestIdMismatch.into());
        }
        if *self.grant_id != identity.grant_id || session_id.is_some_and(|session| session != self.session_id) {
            return Err(ProtocolViolation::SessionMismatch.into());
        }
        if now_ms > self.expires_at_ms {
            return Err(ProtocolViolation::ChallengeExpired.into());
        }
        if *self.context != identity.context {
            return Err(VerifyError::ContextMismatch.into());
        }
        if *self.stream_id != identity.stream_id {
            return Err(VerifyError::StreamMismatch.into());
        }
        if self.served_at.chain_instance_id != self.context.chain_instance_id {
            return Err(VerifyError::ServedAtMismatch.into());
        }
        Ok(())
    }
}

/// `OpenSession` is sent; its challenge is awaited.
#[derive(Debug)]
pub struct AwaitChallenge {
    identity: SessionIdentity,
    request_id: Bytes32,
}

impl AwaitChallenge {
    /// Begins: the state, and the bytes of the `OpenSession` frame.
    pub fn new(config: &HandshakeConfig, request_id: Bytes32) -> (Self, Vec<u8>) {
        let open = OpenSession { request_id, stream_id: config.grant.stream_id, grant: config.grant.clone() };
        let frame = ClientFrame(ClientMessage::OpenSession(open));
        (Self::expecting(config.identity(), request_id), frame.to_bytes())
    }

    /// The state after an `OpenSession` that was sent elsewhere, as in a recorded conversation.
    pub const fn expecting(identity: SessionIdentity, request_id: Bytes32) -> Self {
        Self { identity, request_id }
    }

    /// The request that the challenge must name.
    pub const fn request_id(&self) -> &Bytes32 {
        &self.request_id
    }

    /// Takes the challenge. It is valid up to and including its `expires_at_ms`.
    ///
    /// # Errors
    /// In this order: [`ProtocolViolation::UnexpectedFrame`], `RequestIdMismatch`, `SessionMismatch`, `ChallengeExpired`;
    /// [`VerifyError::ContextMismatch`], `StreamMismatch`, `ServedAtMismatch`.
    pub fn handle(self, frame: &ServerFrame, now_ms: u64) -> Result<AwaitSignature, Refusal> {
        let ServerMessage::SessionChallenge(challenge) = &frame.0 else {
            return Err(ProtocolViolation::UnexpectedFrame.into());
        };
        let claim = Claim {
            request_id: &challenge.request_id,
            grant_id: &challenge.grant_id,
            session_id: &challenge.session_id,
            expires_at_ms: challenge.expires_at_ms,
            context: &challenge.context,
            stream_id: &challenge.stream_id,
            served_at: &challenge.served_at,
        };
        claim.check(&self.identity, &self.request_id, None, now_ms)?;
        let proof = SessionProof {
            context: self.identity.context.clone(),
            stream_id: self.identity.stream_id,
            provider_epoch: ProviderEpoch,
            grant_id: self.identity.grant_id,
            session_id: challenge.session_id,
            challenge: challenge.challenge,
            signature: Signature::ZERO,
        };
        Ok(AwaitSignature { identity: self.identity, digest: proof.digest(), proof })
    }
}

/// The challenge is good; the holder's signature is awaited.
#[derive(Debug)]
pub struct AwaitSignature {
    identity: SessionIdentity,
    digest: Bytes32,
    proof: SessionProof,
}

impl AwaitSignature {
    /// The digest of the proof's signing bytes: what the holder key signs.
    pub const fn digest(&self) -> Bytes32 {
        self.digest
    }

    /// The session that the challenge named.
    pub const fn session_id(&self) -> Bytes32 {
        self.proof.session_id
    }

    /// The random bytes that the proof answers.
    pub(crate) const fn challenge(&self) -> Bytes32 {
        self.proof.challenge
    }

    /// Puts the signature in: the next state, and the bytes of the `CompleteSession` frame.
    pub fn sign(self, signature: Signature, request_id: Bytes32) -> (AwaitOpened, Vec<u8>) {
        let session_id = self.proof.session_id;
        let proof = SessionProof { signature, ..self.proof };
        let frame = ClientFrame(ClientMessage::CompleteSession(CompleteSession { request_id, proof }));
        (AwaitOpened { identity: self.identity, request_id, session_id }, frame.to_bytes())
    }
}

/// `CompleteSession` is sent; the opened session is awaited.
#[derive(Debug)]
pub struct AwaitOpened {
    identity: SessionIdentity,
    request_id: Bytes32,
    session_id: Bytes32,
}

impl AwaitOpened {
    /// The request that the opened session must name.
    pub const fn request_id(&self) -> &Bytes32 {
        &self.request_id
    }

    /// Takes the opened session.
    ///
    /// # Errors
    /// Those of [`AwaitChallenge::handle`]; a session that is over before it began is `ChallengeExpired`.
    pub fn handle(self, frame: &ServerFrame, now_ms: u64) -> Result<Open, Refusal> {
        let ServerMessage::SessionOpened(opened) = &frame.0 else {
            return Err(ProtocolViolation::UnexpectedFrame.into());
        };
        let claim = Claim {
            request_id: &opened.request_id,
            grant_id: &opened.grant_id,
            session_id: &opened.session_id,
            expires_at_ms: opened.expires_at_ms,
            context: &opened.context,
            stream_id: &opened.stream_id,
            served_at: &opened.served_at,
        };
        claim.check(&self.identity, &self.request_id, Some(&self.session_id), now_ms)?;
        Ok(Open {
            context: self.identity.context,
            session_id: self.session_id,
            expires_at_ms: opened.expires_at_ms,
            counter: RequestCounter::new(),
        })
    }
}

/// Refused proofs in a row that a provider which restarts again and again would explain.
const MAX_FORGOTTEN_CHALLENGES: u32 = 3;

/// Whether a refusal of the holder's proof may mean that the provider restarted since its challenge and has forgotten it: a
/// new one is asked for a few times before the key is taken to be wrong.
pub(crate) fn is_forgotten_challenge(cause: &CloseCause, refused_before: u32) -> bool {
    let is_refused = matches!(cause, CloseCause::Provider(error) if error.kind().invalidates_session());
    is_refused && refused_before < MAX_FORGOTTEN_CHALLENGES
}

/// A frame that answers a step of the handshake: judged by `handle`, or the provider's error.
///
/// # Errors
/// The provider's own; [`ProtocolViolation::RequestIdMismatch`] for one that answers another request; those of `handle`.
pub(crate) fn handshake_answer<T>(
    frame: ServerFrame,
    request_id: &Bytes32,
    handle: impl FnOnce(&ServerFrame) -> Result<T, Refusal>,
) -> Result<T, CloseCause> {
    let ServerMessage::Error(error) = frame.0 else { return handle(&frame).map_err(CloseCause::Violation) };
    let error = ProviderError::from(error);
    Err(if error.request_id.is_none_or(|id| id == *request_id) {
        CloseCause::Provider(error)
    } else {
        CloseCause::Violation(ProtocolViolation::RequestIdMismatch.into())
    })
}

/// An open session: requests can be proved in it.
#[derive(Debug)]
pub struct Open {
    context: SigningContext,
    session_id: Bytes32,
    expires_at_ms: u64,
    counter: RequestCounter,
}

impl Open {
    /// The session.
    pub const fn session_id(&self) -> Bytes32 {
        self.session_id
    }

    /// When the provider stops taking its proofs.
    pub const fn expires_at_ms(&self) -> u64 {
        self.expires_at_ms
    }

    /// The last counter that a request of this session took, or zero.
    pub const fn last_counter(&self) -> u64 {
        self.counter.last()
    }

    /// Gives `body` the next counter, whatever became of the request before it. `None` when the session has no more.
    pub fn request(&mut self, body: RequestBody, request_id: Bytes32) -> Option<UnsignedRequest> {
        let counter = self.counter.take()?;
        Some(UnsignedRequest::new(self.context.clone(), self.session_id, counter, request_id, body))
    }
}
