//! Chain reads (§4.1, §17): one against the stream that it is of, and one against another.

use remuda_wire::chain::{BrokerState, DeliveryClass, Purpose, StreamRecord};
use remuda_wire::context::SigningContext;
use remuda_wire::preimage::{key_stream_id, stream_id as derive_stream_id};
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

/// A chain read that is of our chain and, where it has a stream, of our stream and its provider.
#[derive(Clone, Debug)]
pub struct ChainView(BrokerState);

impl ChainView {
    /// Checks the contexts of view, stream and provider, then that the stream is ours, its ids derive, and its provider is
    /// the one it names.
    ///
    /// # Errors
    /// [`VerifyError::ContextMismatch`], then [`VerifyError::StreamMismatch`].
    pub fn admit(read: BrokerState, context: &SigningContext, stream_id: &Bytes32) -> Result<Self, VerifyError> {
        let instance = context.chain_instance_id;
        let stream_instance = read.stream.as_ref().map_or(instance, |stream| stream.chain_instance_id);
        let provider_instance = read.provider.as_ref().map_or(instance, |provider| provider.chain_instance_id);
        if [read.view.chain_instance_id, stream_instance, provider_instance] != [instance; 3] {
            return Err(VerifyError::ContextMismatch);
        }
        if let Some(stream) = &read.stream {
            let provider_differs = read.provider.as_ref().is_some_and(|provider| provider.provider != stream.provider);
            if stream.stream_id != *stream_id || provider_differs || !ids_derive(stream, context) {
                return Err(VerifyError::StreamMismatch);
            }
        }
        Ok(Self(read))
    }

    /// The read.
    pub const fn state(&self) -> &BrokerState {
        &self.0
    }

    /// Checks a later read against this one: blocks, immutable fields, generations (§4.1, §17).
    ///
    /// # Errors
    /// [`VerifyError::ChainInconsistent`].
    pub fn check_against(&self, earlier: &Self) -> Result<(), VerifyError> {
        let (a, b) = (&earlier.0, &self.0);
        let two_blocks = a.view.height == b.view.height && a.view.block_hash != b.view.block_hash;
        let streams_conflict = match (&a.stream, &b.stream) {
            (Some(one), Some(other)) => {
                let (older, newer) = if a.view.height <= b.view.height { (one, other) } else { (other, one) };
                immutable_fields(older) != immutable_fields(newer)
                    || generations(older).iter().zip(generations(newer)).any(|(before, after)| after < *before)
            }
            _ => false,
        };
        if two_blocks || streams_conflict {
            Err(VerifyError::ChainInconsistent)
        } else {
            Ok(())
        }
    }
}

/// A stream's id and its link are the derived ones, and a key stream is what §4.1 says every key stream is.
fn ids_derive(stream: &StreamRecord, context: &SigningContext) -> bool {
    let main = derive_stream_id(context.chain_id, &context.chain_instance_id, &stream.owner, stream.owner_nonce);
    let key = key_stream_id(&main);
    match stream.purpose {
        Purpose::Main => stream.stream_id == main && stream.linked_stream_id == stream.encrypted.then_some(key),
        Purpose::Key => {
            stream.stream_id == key
                && stream.linked_stream_id == Some(main)
                && stream.delivery_class == DeliveryClass::Standard
                && !stream.encrypted
                && stream.rate_per_block == 0
        }
    }
}

/// What never changes of a stream (§4.1), its snapshotted provider key included.
fn immutable_fields(stream: &StreamRecord) -> impl PartialEq + '_ {
    (
        (stream.purpose, stream.owner, stream.owner_nonce, stream.delivery_class, stream.encrypted),
        (stream.linked_stream_id, stream.provider, stream.provider_signing_key, stream.created_at_block),
    )
}

/// What never falls.
const fn generations(stream: &StreamRecord) -> [u64; 3] {
    [stream.authorization_generation, stream.encryption_generation, stream.pricing_generation]
}
