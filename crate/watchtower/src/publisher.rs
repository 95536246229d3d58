//! Composing, sealing and signing: what a publisher does before it submits.
//!
//! The key stays where it is: a composed message names the bytes to sign, and takes the signature from whoever holds the
//! key, be it a hardware module or a non-extractable key of the browser.

use alloc::string::String;
use alloc::vec::Vec;

use remuda_verify::signature::PublicKey;
use remuda_wire::{Bytes24, Bytes32, Signature};

use crate::content_key::{seal, SecretBytes};
use crate::message::{StreamId, StreamMessage, Tags, MAX_INLINE_PAYLOAD_BYTES};
use crate::refusal::WatchtowerRefusal;
use crate::signing::{sha256, Profile};

/// `content_type` when none is named.
pub const DEFAULT_CONTENT_TYPE: &str = "application/json";

/// What is to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// When, in milliseconds since the Unix epoch.
    pub timestamp_unix_ms: u64,
    /// What kind.
    pub kind: String,
    /// Media type of the payload; `None` for [`DEFAULT_CONTENT_TYPE`].
    pub content_type: Option<String>,
    /// Headers.
    pub tags: Tags,
    /// The payload, readable.
    pub payload: Vec<u8>,
}

/// How a payload is sealed.
#[derive(Clone, Debug)]
pub struct Sealing<'a> {
    /// The epoch.
    pub key_epoch: u64,
    /// Its content key.
    pub key: &'a SecretBytes,
    /// 24 bytes of cryptographic randomness, never used before.
    pub nonce: Bytes24,
}

/// A message that lacks only its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composed {
    message: StreamMessage,
    signing_bytes: Vec<u8>,
}

impl Composed {
    /// What the publisher's key signs, as pure Ed25519.
    pub fn signing_bytes(&self) -> &[u8] {
        &self.signing_bytes
    }
}

/// The publisher's side of one stream.
#[derive(Clone, Debug)]
pub struct Publisher {
    stream_id: StreamId,
    signing_key_id: u64,
    key: PublicKey,
    head_sequence: u64,
}

impl Publisher {
    /// Goes on after `head_sequence` (0: nothing is published yet) with the key that is in force from there.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::KeySchedule`] for bytes that are no public key.
    pub fn new(
        stream_id: StreamId,
        head_sequence: u64,
        signing_key_id: u64,
        pubkey: &Bytes32,
    ) -> Result<Self, WatchtowerRefusal> {
        let key = PublicKey::parse(pubkey).ok_or(WatchtowerRefusal::KeySchedule)?;
        Ok(Self { stream_id, signing_key_id, key, head_sequence })
    }

    /// The last sequence that was completed.
    pub const fn head_sequence(&self) -> u64 {
        self.head_sequence
    }

    /// Composes the message for the next sequence.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::PayloadTooLarge`].
    pub fn compose(&self, draft: Draft, sealing: Option<&Sealing<'_>>) -> Result<Composed, WatchtowerRefusal> {
        let mut message = StreamMessage {
            stream_id: self.stream_id.clone(),
            sequence: self.head_sequence.checked_add(1).ok_or(WatchtowerRefusal::Regression)?,
            timestamp_unix_ms: draft.timestamp_unix_ms,
            kind: draft.kind,
            content_type: draft.content_type.unwrap_or_else(|| DEFAULT_CONTENT_TYPE.into()),
            tags: draft.tags,
            payload_inline: draft.payload,
            payload_hash: Bytes32::ZERO,
            key_epoch: None,
            signing_key_id: self.signing_key_id,
            publisher_sig: Signature([0; 64]),
        };
        if let Some(Sealing { key_epoch, key, nonce }) = sealing {
            message.payload_inline = seal(key, nonce, &message, *key_epoch, &message.payload_inline)?;
            message.key_epoch = Some(*key_epoch);
        }
        if message.payload_inline.len() > MAX_INLINE_PAYLOAD_BYTES {
            return Err(WatchtowerRefusal::PayloadTooLarge);
        }
        message.payload_hash = sha256(&message.payload_inline);
        let signing_bytes = Profile::Cip7.signing_bytes(&message);
        Ok(Composed { message, signing_bytes })
    }

    /// Puts the signature on, after checking it as every reader will, and moves to the next sequence.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::Signature`], and [`WatchtowerRefusal::Equivocation`] for a message whose sequence another one
    /// has taken since it was composed.
    pub fn complete(&mut self, composed: Composed, signature: Signature) -> Result<StreamMessage, WatchtowerRefusal> {
        let Composed { mut message, signing_bytes } = composed;
        if message.sequence <= self.head_sequence {
            return Err(WatchtowerRefusal::Equivocation);
        }
        self.key.verify(&signing_bytes, &signature).map_err(|_| WatchtowerRefusal::Signature)?;
        message.publisher_sig = signature;
        self.head_sequence = message.sequence;
        Ok(message)
    }

    /// Signs with another key from the next message on.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::KeySchedule`] for bytes that are no public key.
    pub fn rotate(&mut self, signing_key_id: u64, pubkey: &Bytes32) -> Result<(), WatchtowerRefusal> {
        self.key = PublicKey::parse(pubkey).ok_or(WatchtowerRefusal::KeySchedule)?;
        self.signing_key_id = signing_key_id;
        Ok(())
    }
}
