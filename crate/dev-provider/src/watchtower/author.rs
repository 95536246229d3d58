//! Whoever writes the feed: the publisher's keys, its stream secret, and what it signs with them.

use anyhow::Context;
use ed25519_dalek::{Signer, SigningKey};
use remuda_watchtower::content_key::{derive_content_key, SecretBytes};
use remuda_watchtower::publisher::{Draft, Publisher, Sealing};
use remuda_watchtower::schedule::KeyEntry;
use remuda_watchtower::signing::Profile;
use remuda_watchtower::{StreamId, StreamMessage};
use remuda_wire::preimage::keccak256;
use remuda_wire::{Bytes24, Bytes32, Signature};

use crate::chain::CHAIN_ID;
use crate::keys::random32;

/// The author of one stream.
pub struct Author {
    seed: Bytes32,
    stream_id: StreamId,
    publisher: Publisher,
    key: SigningKey,
    signing_key_id: u64,
}

/// Shows no key.
impl std::fmt::Debug for Author {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Author(..)")
    }
}

fn pubkey(key: &SigningKey) -> Bytes32 {
    Bytes32(key.verifying_key().to_bytes())
}

impl Author {
    /// A new author, and the first entry of its key schedule.
    ///
    /// # Errors
    /// Never for a key that it made itself.
    pub fn new(seed: Bytes32, stream_id: StreamId) -> anyhow::Result<(Self, KeyEntry)> {
        let key = signing_key(&seed, 1);
        let publisher = Publisher::new(stream_id.clone(), 0, 1, &pubkey(&key)).context("a key")?;
        let first = KeyEntry { signing_key_id: 1, pubkey: pubkey(&key), effective_sequence: 1 };
        Ok((Self { seed, stream_id, publisher, key, signing_key_id: 1 }, first))
    }

    /// Which stream it writes.
    pub const fn stream_id(&self) -> &StreamId {
        &self.stream_id
    }

    /// The content key of an epoch.
    pub fn content_key(&self, key_epoch: u64) -> SecretBytes {
        let secret = SecretBytes::new(keccak256(&[b"stream-secret:", self.seed.0.as_slice()].concat()).0);
        derive_content_key(&secret, CHAIN_ID, &self.stream_id, key_epoch)
    }

    /// Signs the next message, sealed for an epoch where one is named.
    ///
    /// # Errors
    /// For a payload that is too large, and without randomness.
    pub fn write(&mut self, draft: Draft, key_epoch: Option<u64>) -> anyhow::Result<StreamMessage> {
        let key = key_epoch.map(|epoch| (epoch, self.content_key(epoch)));
        let mut nonce = Bytes24::ZERO;
        nonce.0.copy_from_slice(&random32()?.0[..24]);
        let sealing = key.as_ref().map(|(key_epoch, key)| Sealing { key_epoch: *key_epoch, key, nonce });
        let composed = self.publisher.compose(draft, sealing.as_ref()).context("composing")?;
        let signature = self.key.sign(composed.signing_bytes());
        self.publisher.complete(composed, Signature(signature.to_bytes())).context("signing")
    }

    /// Takes the next key, from the next message on.
    ///
    /// # Errors
    /// Never for a key that it made itself.
    pub fn rotate(&mut self) -> anyhow::Result<KeyEntry> {
        self.signing_key_id += 1;
        self.key = signing_key(&self.seed, self.signing_key_id);
        self.publisher.rotate(self.signing_key_id, &pubkey(&self.key)).context("a key")?;
        let effective_sequence = self.publisher.head_sequence() + 1;
        Ok(KeyEntry { signing_key_id: self.signing_key_id, pubkey: pubkey(&self.key), effective_sequence })
    }

    /// Signs a message that was bent, as this author would have.
    pub fn sign_again(&self, message: &mut StreamMessage) {
        sign(&self.key, message);
    }
}

fn signing_key(seed: &Bytes32, id: u64) -> SigningKey {
    SigningKey::from_bytes(&keccak256(&[b"feed-key:", seed.0.as_slice(), &id.to_be_bytes()].concat()).0)
}

/// Signs a message under any key, whatever it says.
pub fn sign(key: &SigningKey, message: &mut StreamMessage) {
    let signature = key.sign(&Profile::default().signing_bytes(message));
    message.publisher_sig = Signature(signature.to_bytes());
}
