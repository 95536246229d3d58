//! The chain reads that a verifier trusts, consistent with each other, and the provider key that each resolves (§14).

use remuda_wire::chain::BrokerState;
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

use crate::authentic::KeySource;
use crate::chain_view::ChainView;
use crate::signature::PublicKey;
use crate::sorted::SortedMap;

/// Consistent reads of one stream, by height.
///
/// Every pair of them is consistent: what is compared on the way in is the block of the height and the two neighbours
/// that hold the stream, since generations never fall between neighbours and what is immutable is equal throughout.
#[derive(Clone, Debug)]
pub struct TrustedChain {
    context: SigningContext,
    stream_id: Bytes32,
    blocks: SortedMap<u64, Bytes32>,
    streams: SortedMap<u64, ChainView>,
    /// Immutable for a stream (§4.3), so parsed once.
    provider_key: Option<PublicKey>,
}

impl TrustedChain {
    /// No read yet.
    pub const fn new(context: SigningContext, stream_id: Bytes32) -> Self {
        Self { context, stream_id, blocks: SortedMap::new(), streams: SortedMap::new(), provider_key: None }
    }

    /// Adds one read; a refused read is not used.
    ///
    /// # Errors
    /// Those of [`ChainView::admit`], then [`VerifyError::ChainInconsistent`] with an earlier read.
    pub fn add(&mut self, read: BrokerState) -> Result<(), VerifyError> {
        let view = ChainView::admit(read, &self.context, &self.stream_id)?;
        let FinalizedView { height, block_hash, .. } = view.state().view;
        if self.blocks.get(&height).is_some_and(|known| *known != block_hash) {
            return Err(VerifyError::ChainInconsistent);
        }
        if let Some(stream) = &view.state().stream {
            let below = self.streams.before(&height);
            let above = self.streams.from(&height).next();
            below.into_iter().chain(above).try_for_each(|(_, neighbour)| view.check_against(neighbour))?;
            if self.streams.is_empty() {
                self.provider_key = PublicKey::from_signing_key(&stream.provider_signing_key);
            }
            self.streams.insert(height, view);
        }
        self.blocks.insert(height, block_hash);
        Ok(())
    }

    /// The read at exactly this view, when it holds the stream.
    pub fn at(&self, view: &FinalizedView) -> Option<&ChainView> {
        self.streams.get(&view.height).filter(|read| read.state().view == *view)
    }
}

impl KeySource for TrustedChain {
    fn key_at(&self, view: &FinalizedView) -> Option<&PublicKey> {
        self.at(view).and(self.provider_key.as_ref())
    }

    fn is_read_at(&self, view: &FinalizedView) -> bool {
        self.at(view).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use remuda_wire::codec::VersionOne;

    const CONTEXT: SigningContext =
        SigningContext { version: VersionOne, chain_id: 1, chain_instance_id: Bytes32([1; 32]) };

    fn absent(height: u64, block: u8) -> BrokerState {
        let view = FinalizedView { chain_instance_id: Bytes32([1; 32]), height, block_hash: Bytes32([block; 32]) };
        BrokerState { version: VersionOne, view, effective_rent_height: height, stream: None, provider: None }
    }

    #[test]
    fn one_height_has_one_block_even_where_the_stream_is_absent() {
        let stream_id = Bytes32([2; 32]);
        let mut chain = TrustedChain::new(CONTEXT, stream_id);
        assert_eq!(chain.add(absent(7, 1)), Ok(()));
        assert_eq!(chain.add(absent(7, 1)), Ok(()));
        assert_eq!(chain.add(absent(7, 2)), Err(VerifyError::ChainInconsistent));
        assert_eq!(chain.add(absent(8, 2)), Ok(()));
    }

    #[test]
    fn a_view_without_the_stream_resolves_no_key() {
        let stream_id = Bytes32([2; 32]);
        let mut chain = TrustedChain::new(CONTEXT, stream_id);
        let read = absent(7, 1);
        let view = read.view.clone();
        chain.add(read).unwrap();
        assert!(chain.key_at(&view).is_none());
    }
}
