//! §4: what is of another chain is refused before anything of ours is looked at.

use remuda_testkit::builder::Provider;
use remuda_verify::authentic::{Authority, KeySource};
use remuda_verify::signature::PublicKey;
use remuda_wire::audit::HeldObject;
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

/// Keys that must not be asked for.
struct Untouched;

impl KeySource for Untouched {
    fn key_at(&self, view: &FinalizedView) -> Option<&PublicKey> {
        panic!("a key at {view:?} was asked for")
    }
}

#[test]
fn another_chain_is_refused_before_a_key_is_asked_for() {
    let provider = Provider::new();
    let objects: [HeldObject; 2] =
        [provider.genesis_transition().into(), provider.checkpoint_of_one(&Bytes32([1; 32])).into()];
    let ours = (provider.context.clone(), provider.stream_id);
    let another_chain = SigningContext { chain_id: provider.context.chain_id + 1, ..provider.context.clone() };
    let another_instance = SigningContext { chain_instance_id: Bytes32([9; 32]), ..provider.context };
    for object in objects {
        for (context, stream_id, refusal) in [
            (&another_chain, &ours.1, VerifyError::ContextMismatch),
            (&another_instance, &ours.1, VerifyError::ContextMismatch),
            (&ours.0, &Bytes32([9; 32]), VerifyError::StreamMismatch),
        ] {
            let authority = Authority { context, stream_id, keys: &Untouched };
            assert_eq!(authority.authenticate_held(object.clone()).err(), Some(refusal));
        }
    }
}
