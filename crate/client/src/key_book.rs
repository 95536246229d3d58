//! Which key signed at which view: chain reads, judged and remembered.
//!
//! A receipt's key is that of the stream record at its own `served_at` (§14). A view that was not read yet is asked for,
//! never guessed: until then its receipt waits.

use alloc::collections::BTreeMap;
use alloc::collections::VecDeque;

use remuda_verify::authentic::KeySource;
use remuda_verify::chain_view::ChainView;
use remuda_verify::signature::PublicKey;
use remuda_wire::chain::{BrokerState, StreamRecord};
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::verdict::{Refusal, VerifyError};
use remuda_wire::{Bytes32, Canonical};

/// Views whose key is remembered: far more than wait at a time, and bounded whatever a provider claims.
const MAX_VIEWS: usize = 256;

/// The keys of one stream by view, and the first read that later ones must agree with.
#[derive(Debug)]
pub struct KeyBook {
    context: SigningContext,
    stream_id: Bytes32,
    latest: Option<ChainView>,
    first_key: Option<PublicKey>,
    keys: BTreeMap<(u64, Bytes32), Option<PublicKey>>,
    order: VecDeque<(u64, Bytes32)>,
}

impl KeyBook {
    /// A book without reads.
    pub const fn new(context: SigningContext, stream_id: Bytes32) -> Self {
        Self { context, stream_id, latest: None, first_key: None, keys: BTreeMap::new(), order: VecDeque::new() }
    }

    /// The stream as last read.
    pub fn stream(&self) -> Option<&StreamRecord> {
        self.latest.as_ref().and_then(|view| view.state().stream.as_ref())
    }

    /// The last whole read.
    pub fn latest(&self) -> Option<&BrokerState> {
        self.latest.as_ref().map(ChainView::state)
    }

    /// True when the key at `view` is settled, even if it is settled that there is none.
    pub fn knows(&self, view: &FinalizedView) -> bool {
        // A view of another chain instance needs no read: authentication refuses it before it asks for a key.
        view.chain_instance_id != self.context.chain_instance_id || self.keys.contains_key(&name(view))
    }

    /// Takes the bytes of a read, of the latest view or of the one that was asked for.
    ///
    /// # Errors
    /// The decode verdict; [`ChainView::admit`]; [`VerifyError::ChainInconsistent`] when it is not the pinned view, or
    /// contradicts an earlier read.
    pub fn handle_read(&mut self, bytes: &[u8], pinned: Option<&FinalizedView>) -> Result<(), Refusal> {
        let view = ChainView::admit(BrokerState::from_bytes(bytes)?, &self.context, &self.stream_id)?;
        if pinned.is_some_and(|pinned| *pinned != view.state().view) {
            return Err(VerifyError::ChainInconsistent.into());
        }
        if let Some(latest) = &self.latest {
            view.check_against(latest)?;
        }
        let key = view.state().stream.as_ref().and_then(|stream| self.key(&stream.provider_signing_key));
        if self.first_key.is_none() {
            self.first_key.clone_from(&key);
        }
        self.remember(&view.state().view, key);
        let newer = self.latest.as_ref().is_none_or(|latest| latest.state().view.height <= view.state().view.height);
        if newer {
            self.latest = Some(view);
        }
        Ok(())
    }

    /// Has every view read again. What the first read said still holds.
    pub fn forget_views(&mut self) {
        self.keys.clear();
        self.order.clear();
    }

    /// The node no longer serves this view (HTTP 410): v1 never changes a stream's key, so the one first verified holds
    /// (`RESOLUTIONS.md` §9). Without an earlier read nothing is settled.
    pub fn handle_gone(&mut self, view: &FinalizedView) {
        if let Some(key) = self.first_key.clone() {
            self.remember(view, Some(key));
        }
    }

    /// The key that is known already, with what it learnt, or a new one.
    fn key(&self, bytes: &SigningPublicKey) -> Option<PublicKey> {
        let known = self.first_key.as_ref().filter(|known| known.bytes() == bytes.0);
        known.cloned().or_else(|| PublicKey::from_signing_key(bytes))
    }

    fn remember(&mut self, view: &FinalizedView, key: Option<PublicKey>) {
        let name = name(view);
        if self.keys.insert(name, key).is_none() {
            self.order.push_back(name);
        }
        if self.order.len() > MAX_VIEWS {
            if let Some(oldest) = self.order.pop_front() {
                self.keys.remove(&oldest);
            }
        }
    }
}

const fn name(view: &FinalizedView) -> (u64, Bytes32) {
    (view.height, view.block_hash)
}

impl KeySource for KeyBook {
    fn key_at(&self, view: &FinalizedView) -> Option<&PublicKey> {
        self.keys.get(&name(view))?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use remuda_testkit::builder::Provider;

    /// A book, and the honest read at `height`, changed.
    fn read_at(height: u64, change: impl FnOnce(&mut StreamRecord)) -> (KeyBook, BrokerState) {
        let provider = Provider::new();
        let mut read = provider.broker_state();
        (read.view.height, read.view.block_hash) = (height, remuda_wire::preimage::keccak256(&height.to_be_bytes()));
        change(read.stream.as_mut().expect("a stream"));
        (KeyBook::new(provider.context, provider.stream_id), read)
    }

    #[test]
    fn an_older_view_is_not_the_latest_and_a_contradiction_is_refused() {
        let (mut book, newer) = read_at(100, |stream| stream.encryption_generation = 3);
        book.handle_read(&newer.to_bytes(), None).expect("the first");
        let older = read_at(99, |stream| stream.encryption_generation = 2).1;
        book.handle_read(&older.to_bytes(), None).expect("heights may fall");
        assert_eq!(
            book.latest().map(|state| state.view.height),
            Some(100),
            "the view that rules is never an older one"
        );
        let fallen = read_at(101, |stream| stream.encryption_generation = 2).1;
        let refused = book.handle_read(&fallen.to_bytes(), None);
        assert_eq!(refused, Err(VerifyError::ChainInconsistent.into()));
        let mut fork = newer;
        fork.view.block_hash = Bytes32([1; 32]);
        assert_eq!(book.handle_read(&fork.to_bytes(), None), Err(VerifyError::ChainInconsistent.into()));
        assert_eq!(book.latest().map(|state| state.view.height), Some(100));
    }

    #[test]
    fn a_pinned_read_of_another_view_is_refused() {
        let (mut book, read) = read_at(100, |_| {});
        let asked = read_at(99, |_| {}).1.view;
        let refused = book.handle_read(&read.to_bytes(), Some(&asked));
        assert_eq!(refused, Err(VerifyError::ChainInconsistent.into()));
        assert!(book.latest().is_none() && !book.knows(&read.view), "nothing of it is used");
        book.handle_read(&read.to_bytes(), Some(&read.view)).expect("the view that was asked for");
        assert!(book.key_at(&read.view).is_some());
    }
}
