//! Data keys by encryption generation (§9): sealing what is appended, opening what was verified.
//!
//! Rows hold ciphertext. A record is opened when it is read, so one that came before its key opens once the key is here,
//! and taking a key away closes what it opened.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use remuda_verify::payload::{open_payload, seal_payload};
use remuda_verify::secret::SecretBytes;
use remuda_wire::record::{RecordHeader, RecordKind, RecordOrigin};
use remuda_wire::request::AppendRequest;
use remuda_wire::verdict::VerifyError;
use remuda_wire::{Bytes, Bytes24, Remedy};

use crate::failure::Failure;

/// The data keys that a member holds. Erased when dropped.
#[derive(Debug, Default)]
pub struct Keyring {
    keys: BTreeMap<u64, SecretBytes>,
    /// Generations of which two different keys were given.
    disputed: BTreeSet<u64>,
    /// The generation that the chain said last is active.
    active: Option<u64>,
}

/// What became of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenedPayload {
    /// It was never sealed: a lane event, which the provider writes in the clear (§10).
    Clear,
    /// Its plaintext: sealed by somebody who holds the key of this generation.
    Opened(Vec<u8>),
    /// There is no key of its generation yet.
    Sealed,
    /// It does not open under the key of its generation.
    Unreadable(VerifyError),
}

impl Keyring {
    /// Keeps the key of a generation. The same key again changes nothing.
    ///
    /// # Errors
    /// `encryption/generation-conflict` for another key of a generation that has one: a generation has one data key (§9.4), so
    /// one of the two is false, and what opened under the first still must. Nothing is sealed under either.
    pub fn insert(&mut self, generation: u64, key: SecretBytes) -> Result<(), Failure> {
        match self.keys.get(&generation) {
            Some(known) if !known.is_same(&key) => {
                self.disputed.insert(generation);
                Err(generation_conflict())
            }
            Some(_) => Ok(()),
            None => {
                self.keys.insert(generation, key);
                Ok(())
            }
        }
    }

    /// Erases the key of a generation. True when there was one.
    pub fn remove(&mut self, generation: u64) -> bool {
        self.disputed.remove(&generation);
        self.keys.remove(&generation).is_some()
    }

    /// The generations that can be opened, ascending.
    pub fn generations(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.keys.keys().copied()
    }

    /// The key of a generation.
    pub(crate) fn key(&self, generation: u64) -> Option<&SecretBytes> {
        self.keys.get(&generation)
    }

    /// Takes the active generation of the stream record: from now on nothing is sealed under another (§9.4). A later one may be
    /// known already, and is inert; an earlier one is over. A generation never falls.
    pub fn set_active(&mut self, generation: u64) {
        self.active = self.active.max(Some(generation));
    }

    /// Seals the payload of a request under the key of the active generation, or under the newest while the chain was never read.
    /// `nonce` is fresh random bytes, used for nothing else.
    ///
    /// # Errors
    /// `encryption/no-key` without that key; `encryption/generation-conflict` where two keys of it were given;
    /// `encryption/payload-too-large` when the sealed payload is above the protocol's limit.
    pub fn seal(&self, request: AppendRequest, nonce: Bytes24) -> Result<AppendRequest, Failure> {
        let newest = || self.keys.keys().next_back().copied();
        let generation = self.active.or_else(newest).ok_or_else(no_key)?;
        let key = self.keys.get(&generation).ok_or_else(no_key)?;
        if self.disputed.contains(&generation) {
            return Err(generation_conflict());
        }
        let mut request = AppendRequest { encryption_generation: generation, nonce, ..request };
        let sealed = seal_payload(key, &request.header(), &request.payload).map_err(|_| too_large())?;
        request.payload = Bytes::new(sealed).map_err(|_| too_large())?;
        Ok(request)
    }

    /// Opens the payload of a verified record of an encrypted stream.
    pub fn open(&self, header: &RecordHeader, payload: &[u8]) -> OpenedPayload {
        if header.origin != RecordOrigin::Client || header.kind != RecordKind::Application {
            return OpenedPayload::Clear;
        }
        match self.keys.get(&header.encryption_generation) {
            None => OpenedPayload::Sealed,
            Some(key) => match open_payload(key, header, payload) {
                Ok(plaintext) => OpenedPayload::Opened(plaintext),
                Err(error) => OpenedPayload::Unreadable(error),
            },
        }
    }
}

fn generation_conflict() -> Failure {
    Failure {
        code: "encryption/generation-conflict".into(),
        remedy: Remedy::Surface,
        rule: "CIP-39 §9.4".into(),
        meaning: "another data key of this generation is known already: one of the two is false".into(),
    }
}

fn no_key() -> Failure {
    Failure {
        code: "encryption/no-key".into(),
        remedy: Remedy::Surface,
        rule: "CIP-39 §9.1".into(),
        meaning: "the stream is encrypted and this member holds no data key of its active generation yet".into(),
    }
}

fn too_large() -> Failure {
    Failure {
        code: "encryption/payload-too-large".into(),
        remedy: Remedy::FixRequest,
        rule: "CIP-39 §10".into(),
        meaning: "sealed, the payload is larger than a record may be".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use remuda_wire::{bound, Bytes32};

    fn request(payload: &[u8]) -> AppendRequest {
        AppendRequest {
            stream_id: Bytes32([1; 32]),
            lane_id: Bytes32([2; 32]),
            client_message_id: Bytes32([3; 32]),
            client_created_at_ms: 4,
            visible_after_ms: 0,
            expires_at_ms: 5,
            encryption_generation: 0,
            nonce: Bytes24::ZERO,
            payload: Bytes::new(payload.to_vec()).expect("short"),
        }
    }

    #[test]
    fn what_came_before_its_key_opens_once_the_key_is_here() {
        let mut writer = Keyring::default();
        assert_eq!(writer.seal(request(b"a"), Bytes24([9; 24])).unwrap_err().code, "encryption/no-key");
        writer.insert(1, SecretBytes::new([1; 32])).expect("the first");
        writer.insert(2, SecretBytes::new([2; 32])).expect("another generation");
        let sealed = writer.seal(request(b"plain"), Bytes24([9; 24])).expect("a key");
        assert_eq!(sealed.encryption_generation, 2, "the newest");
        let header = sealed.header();
        let mut reader = Keyring::default();
        assert_eq!(reader.open(&header, &sealed.payload), OpenedPayload::Sealed);
        reader.insert(2, SecretBytes::new([1; 32])).expect("the first");
        assert_eq!(reader.open(&header, &sealed.payload), OpenedPayload::Unreadable(VerifyError::Aead));
        assert!(reader.remove(2));
        reader.insert(2, SecretBytes::new([2; 32])).expect("there is none");
        assert_eq!(reader.open(&header, &sealed.payload), OpenedPayload::Opened(b"plain".to_vec()));
        let moved = RecordHeader { lane_id: Bytes32([7; 32]), ..header };
        assert_eq!(reader.open(&moved, &sealed.payload), OpenedPayload::Unreadable(VerifyError::Aead));
        assert!(reader.remove(2) && !reader.remove(2));
    }

    #[test]
    fn a_generation_has_one_key_and_another_is_refused() {
        let mut keyring = Keyring::default();
        let sealed = {
            keyring.insert(3, SecretBytes::new([1; 32])).expect("the first");
            keyring.seal(request(b"plain"), Bytes24([9; 24])).expect("a key")
        };
        keyring.insert(3, SecretBytes::new([1; 32])).expect("the same again");
        let refused = keyring.insert(3, SecretBytes::new([2; 32])).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.remedy), ("encryption/generation-conflict", Remedy::Surface));
        assert_eq!(keyring.open(&sealed.header(), &sealed.payload), OpenedPayload::Opened(b"plain".to_vec()));
        // Whichever is the false one, nobody is sent anything under it.
        let refused = keyring.seal(request(b"plain"), Bytes24([9; 24])).unwrap_err();
        assert_eq!(refused.code, "encryption/generation-conflict");
    }

    #[test]
    fn only_the_active_generation_seals() {
        let mut keyring = Keyring::default();
        keyring.insert(1, SecretBytes::new([1; 32])).expect("the first");
        keyring.insert(2, SecretBytes::new([2; 32])).expect("the next, which is inert");
        keyring.set_active(1);
        let generation = |keyring: &Keyring| {
            keyring.seal(request(b"plain"), Bytes24([9; 24])).map(|sealed| sealed.encryption_generation)
        };
        assert_eq!(generation(&keyring), Ok(1));
        keyring.set_active(2);
        keyring.set_active(1);
        assert_eq!(generation(&keyring), Ok(2), "a generation never falls");
        keyring.set_active(3);
        assert_eq!(generation(&keyring).unwrap_err().code, "encryption/no-key", "its envelope has not come");
    }

    #[test]
    fn lane_events_are_never_opened_and_the_limit_counts_the_tag() {
        let mut keyring = Keyring::default();
        keyring.insert(0, SecretBytes::new([1; 32])).expect("the first");
        let header = RecordHeader {
            origin: RecordOrigin::ProviderEvent,
            kind: RecordKind::LaneCreated,
            ..request(b"").header()
        };
        assert_eq!(keyring.open(&header, b"event"), OpenedPayload::Clear);
        let full = request(&alloc::vec![0; bound::MAX_INLINE_MESSAGE_BYTES]);
        let refused = keyring.seal(full, Bytes24([9; 24])).unwrap_err();
        assert_eq!(refused.code, "encryption/payload-too-large");
    }
}
