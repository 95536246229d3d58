//! Fixed byte strings: raw on the wire, hexadecimal to people.

use crate::codec::Canonical;
use crate::reader::Reader;
use crate::writer::Writer;

macro_rules! fixed_bytes {
    ($(#[$meta:meta])* $name:ident, $size:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $size]);

        impl $name {
            /// All bytes zero.
            pub const ZERO: Self = Self([0; $size]);

            /// True when every byte is zero. Not constant-time: these are public values.
            pub fn is_zero(&self) -> bool {
                self.0.iter().all(|byte| *byte == 0)
            }
        }

        impl Canonical for $name {
            const MIN_BYTES: usize = $size;

            fn read(reader: &mut Reader<'_>) -> Self {
                Self(reader.array())
            }

            fn encode(&self, writer: &mut Writer) {
                writer.raw(&self.0);
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    };
}

fixed_bytes!(
    /// A digest or an opaque 32-byte identifier.
    Bytes32, 32
);
fixed_bytes!(
    /// An XChaCha20-Poly1305 nonce (§9.1).
    Bytes24, 24
);
fixed_bytes!(
    /// A chain account address.
    Address, 20
);
fixed_bytes!(
    /// An Ed25519 signature, not yet checked.
    Signature, 64
);
