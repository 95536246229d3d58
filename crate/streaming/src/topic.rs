//! Topics: a kind byte, then an identifier of that kind's length.
//!
//! ```text
//! 00 group + 16    01 welcome + 32    02 identity + 32    03 key package + 32    04 commit log + 16
//! ```

use remuda_wire::{Canonical, DecodeError, Reader, Writer};

use crate::verdict::StreamRefused;

macro_rules! kinds {
    ($($(#[$meta:meta])* $variant:ident = $tag:literal, $name:literal, $length:literal;)+) => {
        /// What a topic is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum TopicKind { $($(#[$meta])* $variant,)+ }

        impl TopicKind {
            /// Every kind, ascending by its byte.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The kind byte.
            pub const fn tag(self) -> u8 {
                match self { $(Self::$variant => $tag,)+ }
            }

            /// Its name in the vectors.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Bytes of an identifier.
            pub const fn identifier_bytes(self) -> usize {
                match self { $(Self::$variant => $length,)+ }
            }
        }
    };
}

kinds! {
    /// One group's messages: strictly ordered.
    Group = 0, "group", 16;
    /// One installation's welcomes: independent of each other.
    Welcome = 1, "welcome", 32;
    /// One inbox's identity updates: strictly ordered.
    Identity = 2, "identity", 32;
    /// One installation's key packages.
    KeyPackage = 3, "key_package", 32;
    /// One group's commit log.
    CommitLog = 4, "commit_log", 16;
}

/// Bytes of the longest topic.
const MAX_BYTES: usize = 33;

/// A topic. Small and copied: a client holds tens of thousands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic {
    kind: TopicKind,
    /// Kind byte and identifier; zero behind the identifier.
    bytes: [u8; MAX_BYTES],
}

impl Topic {
    /// Reads a topic.
    ///
    /// # Errors
    /// [`StreamRefused::Topic`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StreamRefused> {
        let (tag, identifier) = bytes.split_first().ok_or(StreamRefused::Topic)?;
        let kind = TopicKind::ALL.iter().find(|kind| kind.tag() == *tag).ok_or(StreamRefused::Topic)?;
        Self::new(*kind, identifier)
    }

    /// The topic of `kind` with this identifier.
    ///
    /// # Errors
    /// [`StreamRefused::Topic`] when the identifier is not as long as its kind's.
    pub fn new(kind: TopicKind, identifier: &[u8]) -> Result<Self, StreamRefused> {
        if identifier.len() != kind.identifier_bytes() {
            return Err(StreamRefused::Topic);
        }
        let mut bytes = [0; MAX_BYTES];
        for (to, from) in bytes.iter_mut().zip([kind.tag()].iter().chain(identifier)) {
            *to = *from;
        }
        Ok(Self { kind, bytes })
    }

    /// What it is about.
    pub const fn kind(&self) -> TopicKind {
        self.kind
    }

    /// Kind byte and identifier.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..=self.kind.identifier_bytes()).unwrap_or_default()
    }

    /// The identifier alone.
    pub fn identifier(&self) -> &[u8] {
        self.as_bytes().get(1..).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Topic {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// Kind byte and identifier, without a length: how our own rows hold it.
impl Canonical for Topic {
    const MIN_BYTES: usize = 17;

    fn read(reader: &mut Reader<'_>) -> Self {
        let tag = u8::read(reader);
        let known = TopicKind::ALL.iter().copied().find(|kind| kind.tag() == tag);
        reader.require(known.is_some(), DecodeError::UnknownTag);
        let kind = known.unwrap_or(TopicKind::Group);
        let identifier = reader.take(kind.identifier_bytes());
        // Of another length only where the reader has failed, and then it is none.
        Self::new(kind, identifier).unwrap_or(Self { kind, bytes: [0; MAX_BYTES] })
    }

    fn encode(&self, writer: &mut Writer) {
        writer.raw(self.as_bytes());
    }
}

/// The kind and the first four bytes: enough to tell topics apart, too little to be one (STR-064).
impl core::fmt::Debug for Topic {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:", self.kind.name())?;
        self.identifier().iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…")
    }
}
