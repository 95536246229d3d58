//! What is kept of a key stream that was followed: how far, and the data keys. Secret: it is wrapped before it goes anywhere.

use alloc::vec::Vec;

use remuda_verify::secret::SecretBytes;
use remuda_wire::codec::{Canonical, VersionOne};
use remuda_wire::context::SigningContext;
use remuda_wire::key::HpkePublicKey;
use remuda_wire::{bound, object, Bytes32, List, Reader, Writer};
use zeroize::Zeroizing;

/// Generations whose keys are kept: far more than a stream has.
const MAX_KEPT_KEYS: usize = 65_536;
/// A generation and its key.
const KEPT_KEY_BYTES: usize = 8 + 32;

object! {
    /// The recipients of the batches of one generation, without repetition.
    pub struct GenerationMembers {
        generation: u64,
        members: List<HpkePublicKey, { bound::MAX_KEY_ENVELOPES_PER_BATCH }>,
    }
}

object! {
    /// Where the batches of one key stream were followed to, for one member.
    pub struct FollowedBatches {
        version: VersionOne,
        context: SigningContext,
        main_stream_id: Bytes32,
        member: HpkePublicKey,
        /// Number of the last item of the last whole batch; 0 before the first.
        after_item: u64,
        batch_tail: Option<Bytes32>,
        /// The generation that the chain said last is active.
        active_generation: Option<u64>,
        /// The lowest generation that was active when the last batch was committed, by the batches alone.
        least_active: u64,
        /// The newest generation of a batch.
        newest: Option<u64>,
        /// The generation of the first batch that was seen, where it was not the first of the stream.
        begun_within: Option<u64>,
        members: List<GenerationMembers, 2>,
    }
}

/// What is kept, with the data keys beside it.
pub struct Kept {
    pub(super) followed: FollowedBatches,
    pub(super) keys: Vec<(u64, SecretBytes)>,
}

impl Kept {
    /// `followed || count || (generation || key)*`. Erased when dropped.
    pub(super) fn to_bytes<'a>(
        followed: &FollowedBatches,
        keys: impl ExactSizeIterator<Item = (u64, &'a SecretBytes)>,
    ) -> Zeroizing<Vec<u8>> {
        let followed = followed.to_bytes();
        // Room for everything at once: nothing secret is moved, and left behind.
        let mut writer = Writer::with_capacity(followed.len() + 4 + keys.len() * KEPT_KEY_BYTES);
        writer.raw(&followed);
        writer.length(keys.len());
        for (generation, key) in keys {
            generation.encode(&mut writer);
            writer.raw(key.expose());
        }
        Zeroizing::new(writer.into_bytes())
    }

    /// Reads what was kept; `None` for anything else.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let followed = FollowedBatches::read(&mut reader);
        let count = reader.length(MAX_KEPT_KEYS);
        if reader.remaining() != count.checked_mul(KEPT_KEY_BYTES)? {
            return None;
        }
        let keys =
            (0..count).map(|_| (u64::read(&mut reader), SecretBytes::filled(|key| *key = reader.array()))).collect();
        reader.finish().ok()?;
        Some(Self { followed, keys })
    }
}
