//! Single-owner chunks: `id(32) || signature(65) || span(8) || payload(0..=4096)`.

use alloc::vec::Vec;

use remuda_wire::preimage::keccak256;
use remuda_wire::{Address, Bytes32};

use crate::chunk::{chunk_address, MAX_PAYLOAD_BYTES, SPAN_BYTES};
use crate::refusal::BpsRefusal;
use crate::signature::{recover, RecoverableSignature, SIGNATURE_BYTES};

/// The shortest single-owner chunk.
pub const MIN_SOC_BYTES: usize = 32 + SIGNATURE_BYTES + SPAN_BYTES;
/// The longest.
pub const MAX_SOC_BYTES: usize = MIN_SOC_BYTES + MAX_PAYLOAD_BYTES;

/// A single-owner chunk as received: nothing of it is checked but its length.
#[derive(Clone, Copy, Debug)]
pub struct SingleOwnerChunk<'a> {
    id: Bytes32,
    signature: &'a RecoverableSignature,
    span: &'a [u8; SPAN_BYTES],
    payload: &'a [u8],
    wrapped: &'a [u8],
}

impl<'a> SingleOwnerChunk<'a> {
    /// Splits its bytes.
    ///
    /// # Errors
    /// [`BpsRefusal::SocLength`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, BpsRefusal> {
        if bytes.len() > MAX_SOC_BYTES {
            return Err(BpsRefusal::SocLength);
        }
        let (id, rest) = bytes.split_first_chunk().ok_or(BpsRefusal::SocLength)?;
        let (signature, wrapped) = rest.split_first_chunk().ok_or(BpsRefusal::SocLength)?;
        let (span, payload) = wrapped.split_first_chunk().ok_or(BpsRefusal::SocLength)?;
        Ok(Self { id: Bytes32(*id), signature, span, payload, wrapped })
    }

    /// The identifier that it was signed for.
    pub const fn id(&self) -> Bytes32 {
        self.id
    }

    /// Its span, which says nothing about the length of the payload.
    pub const fn span(&self) -> u64 {
        u64::from_le_bytes(*self.span)
    }

    /// Its payload.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The address of the chunk that it wraps.
    ///
    /// # Errors
    /// Never: its length was checked.
    pub fn wrapped_address(&self) -> Result<Bytes32, BpsRefusal> {
        chunk_address(self.wrapped)
    }

    /// Whether `owner` signed it.
    ///
    /// # Errors
    /// [`BpsRefusal::Signer`].
    pub fn verify(&self, owner: &Address) -> Result<(), BpsRefusal> {
        let message = signed_message(&self.id, &self.wrapped_address()?);
        match recover(&message, self.signature) {
            Some(signer) if signer == *owner => Ok(()),
            _ => Err(BpsRefusal::Signer),
        }
    }
}

/// Where an owner's chunk of this identifier is.
pub fn soc_address(id: &Bytes32, owner: &Address) -> Bytes32 {
    keccak256(&[id.0.as_slice(), &owner.0].concat())
}

/// The 32 bytes that an owner signs, as a wallet's `personal_sign` does.
pub fn signed_message(id: &Bytes32, wrapped_address: &Bytes32) -> Bytes32 {
    keccak256(&[id.0, wrapped_address.0].concat())
}

/// A chunk that lacks only its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsignedChunk {
    id: Bytes32,
    wrapped: Vec<u8>,
    message: Bytes32,
}

impl UnsignedChunk {
    /// A chunk for `id` whose span is the length of its payload.
    ///
    /// # Errors
    /// [`BpsRefusal::ChunkLength`] for a payload of more than 4,096 bytes.
    pub fn new(id: Bytes32, payload: &[u8]) -> Result<Self, BpsRefusal> {
        let span = u64::try_from(payload.len()).map_err(|_| BpsRefusal::ChunkLength)?;
        let wrapped = [&span.to_le_bytes(), payload].concat();
        let message = signed_message(&id, &chunk_address(&wrapped)?);
        Ok(Self { id, wrapped, message })
    }

    /// What its owner signs.
    pub const fn message(&self) -> Bytes32 {
        self.message
    }

    /// Its bytes, once `owner` signed it.
    ///
    /// # Errors
    /// [`BpsRefusal::Signer`].
    pub fn sign(&self, owner: &Address, signature: &RecoverableSignature) -> Result<Vec<u8>, BpsRefusal> {
        match recover(&self.message, signature) {
            Some(signer) if signer == *owner => Ok([self.id.0.as_slice(), signature, &self.wrapped].concat()),
            _ => Err(BpsRefusal::Signer),
        }
    }
}
