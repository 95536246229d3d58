//! The four shapes of canonical things: fixed bytes, structs, tag enums and tagged unions.

/// An error enum of one plane: each variant with its stable code, its CIP-39 section, its meaning and its remedy.
///
/// A new variant does not compile until it has all four.
#[macro_export]
macro_rules! verdicts {
    ($(#[$meta:meta])* pub enum $name:ident in $plane:literal {
        $($variant:ident = $reason:literal, $section:literal, $meaning:literal, $remedy:ident;)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        // A meaning is plain text: what it has in brackets is no link.
        #[allow(rustdoc::broken_intra_doc_links)]
        pub enum $name { $(#[doc = concat!("§", $section, ": ", $meaning, ".")] $variant,)+ }

        impl $name {
            /// Every verdict of this plane, in the order of `VERDICTS.md`.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable code, `plane/reason`.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => concat!($plane, "/", $reason),)+ }
            }

            /// The section of CIP-39 (or the named document) whose rule was broken.
            pub const fn section(self) -> &'static str {
                match self { $(Self::$variant => $section,)+ }
            }

            /// What is wrong, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }

            /// What the caller should do about it.
            pub const fn remedy(self) -> $crate::Remedy {
                match self { $(Self::$variant => $crate::Remedy::$remedy,)+ }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}: {} (§{})", self.code(), self.meaning(), self.section())
            }
        }

        impl core::error::Error for $name {}
    };
}

/// A struct whose canonical bytes are its fields in listed order, with an optional check after the last one.
#[macro_export]
macro_rules! object {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* $field:ident : $ty:ty,)+ } $(check $check:expr;)?) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$field_meta])* #[allow(missing_docs)] pub $field: $ty,)+ }

        impl $name {
            /// The field names, in canonical order.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field),)+];
        }

        impl $crate::codec::Canonical for $name {
            const MIN_BYTES: usize = 0 $(+ <$ty as $crate::codec::Canonical>::MIN_BYTES)+;

            fn read(reader: &mut $crate::reader::Reader<'_>) -> Self {
                let value = Self { $($field: $crate::codec::Canonical::read(reader),)+ };
                $( reader.check(|| ($check)(&value)); )?
                value
            }

            fn encode(&self, writer: &mut $crate::writer::Writer) {
                $(self.$field.encode(writer);)+
            }
        }
    };
}

/// An enum without fields: a one-byte tag (or `u16` where said).
#[macro_export]
macro_rules! tags {
    ($(#[$meta:meta])* pub enum $name:ident : $repr:ty {
        $(#[$first_meta:meta])* $first:ident = $first_tag:literal,
        $($(#[$variant_meta:meta])* $variant:ident = $tag:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[$first_meta])* #[allow(missing_docs)] $first,
            $($(#[$variant_meta])* #[allow(missing_docs)] $variant,)*
        }

        impl $name {
            /// Every value, ascending by tag.
            pub const ALL: &'static [Self] = &[Self::$first, $(Self::$variant,)*];

            /// The numeric discriminant on the wire.
            pub const fn tag(self) -> $repr {
                match self { Self::$first => $first_tag, $(Self::$variant => $tag,)* }
            }

            /// The specification's name.
            pub const fn name(self) -> &'static str {
                match self { Self::$first => stringify!($first), $(Self::$variant => stringify!($variant),)* }
            }
        }

        impl $crate::codec::Canonical for $name {
            const MIN_BYTES: usize = <$repr as $crate::codec::Canonical>::MIN_BYTES;

            fn read(reader: &mut $crate::reader::Reader<'_>) -> Self {
                match <$repr as $crate::codec::Canonical>::read(reader) {
                    $($tag => Self::$variant,)*
                    tag => {
                        reader.require(tag == $first_tag, $crate::error::DecodeError::UnknownTag);
                        Self::$first
                    }
                }
            }

            fn encode(&self, writer: &mut $crate::writer::Writer) {
                self.tag().encode(writer);
            }
        }
    };
}

/// An enum with fields: a tag, then the fields of its variant.
#[macro_export]
macro_rules! union {
    ($(#[$meta:meta])* pub enum $name:ident : $repr:ty {
        $(#[$first_meta:meta])* $first:ident $(($first_bind:ident : $first_ty:ty))? = $first_tag:literal,
        $($(#[$variant_meta:meta])* $variant:ident $(($bind:ident : $ty:ty))? = $tag:literal,)*
    } $(check $check:expr;)?) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(clippy::large_enum_variant)]
        pub enum $name {
            $(#[$first_meta])* #[allow(missing_docs)] $first $(($first_ty))?,
            $($(#[$variant_meta])* #[allow(missing_docs)] $variant $(($ty))?,)*
        }

        impl $crate::codec::Canonical for $name {
            const MIN_BYTES: usize = <$repr as $crate::codec::Canonical>::MIN_BYTES;

            fn read(reader: &mut $crate::reader::Reader<'_>) -> Self {
                let value = match <$repr as $crate::codec::Canonical>::read(reader) {
                    $($tag => Self::$variant $((<$ty as $crate::codec::Canonical>::read(reader)))?,)*
                    tag => {
                        reader.require(tag == $first_tag, $crate::error::DecodeError::UnknownTag);
                        Self::$first $((<$first_ty as $crate::codec::Canonical>::read(reader)))?
                    }
                };
                $( reader.check(|| ($check)(&value)); )?
                value
            }

            fn encode(&self, writer: &mut $crate::writer::Writer) {
                match self {
                    Self::$first $(($first_bind))? => {
                        let tag: $repr = $first_tag;
                        tag.encode(writer);
                        $($first_bind.encode(writer);)?
                    }
                    $(Self::$variant $(($bind))? => {
                        let tag: $repr = $tag;
                        tag.encode(writer);
                        $($bind.encode(writer);)?
                    })*
                }
            }
        }
    };
}
