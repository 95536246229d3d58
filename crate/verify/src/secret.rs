//! Bytes that nobody else learns (feature `secret`).

use alloc::boxed::Box;
use core::fmt;

use zeroize::Zeroizing;

/// 32 secret bytes: erased when dropped, never printed, compared in constant time. Where they are moved, they stay in one place.
#[derive(Clone)]
pub struct SecretBytes(Box<Zeroizing<[u8; 32]>>);

impl SecretBytes {
    /// Takes secret bytes; the caller erases its own copy.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self::filled(|secret| *secret = bytes)
    }

    /// Secret bytes that are derived in place, so that no copy is left behind.
    pub fn filled(fill: impl FnOnce(&mut [u8; 32])) -> Self {
        let mut bytes = Box::new(Zeroizing::new([0; 32]));
        fill(&mut bytes);
        Self(bytes)
    }

    /// Whether both are the same, in a time that does not depend on where they differ.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0.iter()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }

    /// The bytes, to hand to a cipher or to sealed storage.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes(…)")
    }
}
