//! Envelopes beside another implementation of RFC 9180: what ours seals, the other opens.

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable, Kem, OpModeR, Serializable};
use remuda_verify::key_derivation::SecretBytes;
use remuda_verify::{hpke as ours, open};
use remuda_wire::key::HpkePublicKey;
use remuda_wire::key_batch::KeyRotationBatch;
use remuda_wire::preimage::keccak256;
use remuda_wire::verdict::VerifyError;
use remuda_wire::{Bytes32, List, Signature};

fn secret(name: &str, number: u32) -> SecretBytes {
    SecretBytes::new(keccak256(format!("{name} {number}").as_bytes()).0)
}

fn batch(number: u32) -> KeyRotationBatch {
    KeyRotationBatch {
        context: remuda_testkit::builder::Provider::new().context,
        stream_id: keccak256(&number.to_be_bytes()),
        encryption_generation: u64::from(number),
        previous_batch_digest: Bytes32([1; 32]),
        sorted_envelope_digests: List::new(vec![Bytes32([2; 32])]).expect("few"),
        membership_set_digest: Bytes32([3; 32]),
        created_at_ms: 4,
        signature: Signature::ZERO,
    }
}

#[test]
fn what_is_sealed_here_opens_elsewhere_and_here_only_for_its_member() {
    for number in 0..64 {
        let (recipient, data_key, batch) = (secret("recipient", number), secret("data key", number), batch(number));
        let theirs = <X25519HkdfSha256 as Kem>::PrivateKey::from_bytes(recipient.expose()).expect("a key");
        let public = HpkePublicKey(Bytes32(X25519HkdfSha256::sk_to_pk(&theirs).to_bytes().into()));
        assert_eq!(open::hpke_public_key(&recipient), public);
        let ephemeral = secret("ephemeral", number);
        let envelope = open::seal_envelope(&public, &batch, &data_key, &ephemeral).expect("a key");
        let (encapsulated, sealed) = envelope.hpke_ciphertext.split_at(32);
        assert_eq!(open::encapsulated_key(&envelope).0, *encapsulated);
        let opened = hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &theirs,
            &Deserializable::from_bytes(encapsulated).expect("a key"),
            b"cbqs/key-envelope-hpke/v1",
            sealed,
            &open::envelope_associated_data(&envelope, &batch),
        );
        assert_eq!(opened.expect("sealed by the same rules"), data_key.expose());
        // In two steps, as for a key that only its owner can use.
        let agreed = ours::agree(&recipient, &open::encapsulated_key(&envelope)).expect("a secret");
        let opened = open::open_agreed(&envelope, &batch, &agreed).expect("ours");
        assert!(opened.is_same(&data_key));
        let wrong = ours::agree(&secret("another", number), &open::encapsulated_key(&envelope)).expect("a secret");
        assert_eq!(open::open_agreed(&envelope, &batch, &wrong).err(), Some(VerifyError::Hpke));
        let zeros = SecretBytes::new([0; 32]);
        assert_eq!(open::open_agreed(&envelope, &batch, &zeros).err(), Some(VerifyError::Hpke));
    }
}

#[test]
fn nothing_is_sealed_for_a_key_of_small_order() {
    let small = HpkePublicKey(Bytes32([0; 32]));
    let sealed = open::seal_envelope(&small, &batch(1), &secret("data key", 1), &secret("ephemeral", 1));
    assert_eq!(sealed, Err(VerifyError::Hpke));
}
