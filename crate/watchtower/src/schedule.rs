//! The key schedule: which key signs at which sequence.

use alloc::vec::Vec;

use remuda_verify::signature::PublicKey;
use remuda_wire::Bytes32;

use crate::cbor::{map, Value};
use crate::refusal::WatchtowerRefusal;

/// How many keys a schedule may have: far more than anyone rotates, and no more than fits anywhere.
pub const MAX_ENTRIES: usize = 16_384;

/// One rotation: from `effective_sequence` on, this key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// Contiguous from 1.
    pub signing_key_id: u64,
    /// An Ed25519 public key.
    pub pubkey: Bytes32,
    /// The first sequence that it signs.
    pub effective_sequence: u64,
}

impl KeyEntry {
    /// An entry as received.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::KeySchedule`] for a key that is not 32 bytes.
    pub fn new(signing_key_id: u64, pubkey: &[u8], effective_sequence: u64) -> Result<Self, WatchtowerRefusal> {
        let pubkey = Bytes32(pubkey.try_into().map_err(|_| WatchtowerRefusal::KeySchedule)?);
        Ok(Self { signing_key_id, pubkey, effective_sequence })
    }

    /// The entry as an element of an answer.
    pub fn to_value(&self) -> Value {
        map([
            ("signing_key_id", self.signing_key_id.into()),
            ("pubkey", self.pubkey.0.as_slice().into()),
            ("effective_sequence", self.effective_sequence.into()),
        ])
        .into()
    }
}

/// A schedule that was judged whole: ids contiguous from 1, effective sequences never decreasing.
#[derive(Clone, Debug, Default)]
pub struct KeySchedule {
    entries: Vec<(KeyEntry, Option<PublicKey>)>,
}

impl KeySchedule {
    /// Judges a whole schedule. It may be empty: then no message verifies.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::KeySchedule`], also above [`MAX_ENTRIES`].
    pub fn new(entries: impl IntoIterator<Item = KeyEntry>) -> Result<Self, WatchtowerRefusal> {
        let mut schedule = Self::default();
        entries.into_iter().try_for_each(|entry| schedule.push(entry))?;
        Ok(schedule)
    }

    /// Adds the next entry.
    fn push(&mut self, entry: KeyEntry) -> Result<(), WatchtowerRefusal> {
        let last = self.entries.last().map(|(entry, _)| entry);
        let next_id = last.map_or(Some(1), |last| last.signing_key_id.checked_add(1));
        let falls = last.is_some_and(|last| entry.effective_sequence < last.effective_sequence);
        if next_id != Some(entry.signing_key_id) || falls || self.entries.len() >= MAX_ENTRIES {
            return Err(WatchtowerRefusal::KeySchedule);
        }
        self.entries.push((entry, PublicKey::parse(&entry.pubkey)));
        Ok(())
    }

    /// Adds entries of a later history. Those that are known already must be the same: history is not rewritten.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::KeySchedule`]; then nothing was added.
    pub fn extend(&mut self, entries: &[KeyEntry]) -> Result<(), WatchtowerRefusal> {
        let before = self.entries.len();
        let added = entries.iter().try_for_each(|entry| match self.entry(entry.signing_key_id) {
            Some(known) if known == entry => Ok(()),
            Some(_) => Err(WatchtowerRefusal::KeySchedule),
            None => self.push(*entry),
        });
        if added.is_err() {
            self.entries.truncate(before);
        }
        added
    }

    /// The entry of this id: ids count from 1.
    fn entry(&self, signing_key_id: u64) -> Option<&KeyEntry> {
        let at = usize::try_from(signing_key_id.checked_sub(1)?).ok()?;
        self.entries.get(at).map(|(entry, _)| entry)
    }

    /// The entries, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &KeyEntry> {
        self.entries.iter().map(|(entry, _)| entry)
    }

    /// The key that signs at a sequence: the entry with the greatest effective sequence that is not above it, and of
    /// several such the last. `None` inside: its bytes are no point, so it verifies nothing.
    ///
    /// # Errors
    /// [`WatchtowerRefusal::KeySchedule`] when none is effective, or the message names another id.
    pub fn key_at(&self, sequence: u64, signing_key_id: u64) -> Result<Option<&PublicKey>, WatchtowerRefusal> {
        let effective = self.entries.partition_point(|(entry, _)| entry.effective_sequence <= sequence);
        match effective.checked_sub(1).and_then(|at| self.entries.get(at)) {
            Some((entry, key)) if entry.signing_key_id == signing_key_id => Ok(key.as_ref()),
            _ => Err(WatchtowerRefusal::KeySchedule),
        }
    }
}
