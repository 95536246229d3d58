//! Keys that carry their algorithm (§4, §9.1).

use crate::bytes::Bytes32;
use crate::codec::Canonical;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::writer::Writer;

macro_rules! tagged_key {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Bytes32);

        impl Canonical for $name {
            const MIN_BYTES: usize = 33;

            fn read(reader: &mut Reader<'_>) -> Self {
                let algorithm = u8::read(reader);
                reader.require(algorithm == 1, DecodeError::UnknownTag);
                Self(Canonical::read(reader))
            }

            fn encode(&self, writer: &mut Writer) {
                1u8.encode(writer);
                self.0.encode(writer);
            }
        }
    };
}

tagged_key!(
    /// An Ed25519 public key: tag 1, then 32 bytes. Whether it is a point is not known before it verifies.
    SigningPublicKey
);
tagged_key!(
    /// An X25519 public key of the one HPKE suite: tag 1, then 32 bytes.
    HpkePublicKey
);
