//! The keys of a dev chain, all derived from one stored seed.

use ed25519_dalek::{Signer, SigningKey};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::preimage::keccak256;
use remuda_wire::{Address, Bytes32, Signature, Signed};

/// Everything secret, and the addresses that go with it.
pub struct DevKeys {
    seed: Bytes32,
    /// Signs receipts, checkpoints and transitions.
    pub provider: SigningKey,
    /// Signs key batches of an encrypted stream.
    pub rotation: SigningKey,
    /// In no chain record: what a lying provider signs with.
    pub stranger: SigningKey,
}

impl DevKeys {
    /// The keys of `seed`.
    pub fn from_seed(seed: Bytes32) -> Self {
        let key = |name: &str| SigningKey::from_bytes(&derive(&seed, name).0);
        Self { seed, provider: key("provider"), rotation: key("rotation"), stranger: key("stranger") }
    }

    /// The admin key of this number: the first signs grants until the chain rotates it.
    pub fn admin(&self, number: u32) -> SigningKey {
        let name = if number == 0 { "admin".to_owned() } else { format!("admin-{number}") };
        SigningKey::from_bytes(&derive(&self.seed, &name).0)
    }

    /// The account called `name`.
    pub fn address(&self, name: &str) -> Address {
        let digest = derive(&self.seed, name);
        let mut address = Address::ZERO;
        address.0.copy_from_slice(&digest.0[..20]);
        address
    }
}

/// Shows no key.
impl std::fmt::Debug for DevKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DevKeys(..)")
    }
}

fn derive(seed: &Bytes32, name: &str) -> Bytes32 {
    keccak256(&[b"remuda-dev-key:", seed.0.as_slice(), name.as_bytes()].concat())
}

/// The tagged public key of `key`.
pub fn public_key(key: &SigningKey) -> SigningPublicKey {
    SigningPublicKey(Bytes32(key.verifying_key().to_bytes()))
}

/// The signature over the object's signing digest (§14).
pub fn sign<T: Signed>(key: &SigningKey, object: &T) -> Signature {
    Signature(key.sign(&object.digest().0).to_bytes())
}

/// 32 bytes nobody can guess.
///
/// # Errors
/// When the operating system has none.
pub fn random32() -> anyhow::Result<Bytes32> {
    let mut bytes = Bytes32::ZERO;
    getrandom::fill(&mut bytes.0).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    Ok(bytes)
}
