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
