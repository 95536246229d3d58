//! A grant is presented only by whoever holds its key (§7, `GRA-11`): before the first connection the signer signs a digest
//! of ours, which says nothing that a provider would take, and the signature has to be of the grant's holder key.

use remuda_session::{CloseCause, Slot};
use remuda_verify::signature::verify_signature;
use remuda_wire::grant::StreamGrant;
use remuda_wire::preimage::keccak256;
use remuda_wire::{Bytes32, Signature};

use super::{Engine, Output};
use crate::failure::Failure;

/// What is signed: no layout of the signing registry begins with this.
const PROBE_DOMAIN: &[u8] = b"remuda/holder-probe/v1";

/// What is known of the signer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Holder {
    /// It was not asked yet.
    #[default]
    Unknown,
    /// It is asked to sign this.
    Asked(Bytes32),
    /// It holds the key of the grant.
    Proven,
}

impl Engine {
    /// Whether the signer holds the grant's key; asks it when that is not known.
    pub(super) fn is_holder_proven(&mut self) -> bool {
        if self.holder == Holder::Unknown {
            let digest = keccak256(&[PROBE_DOMAIN, &self.fresh_id().0].concat());
            self.holder = Holder::Asked(digest);
            self.outputs.push_back(Output::Sign { slot: Slot::Command, digest });
        }
        self.holder == Holder::Proven
    }

    /// Takes the signature of the probe, or its absence. False for a signature of anything else.
    pub(super) fn judge_holder(&mut self, digest: &Bytes32, signature: Option<&Signature>, now_ms: u64) -> bool {
        if self.holder != Holder::Asked(*digest) {
            return false;
        }
        let failure = match signature {
            None => Some(Failure::from(&CloseCause::SigningFailed)),
            Some(signature) => verify_signature(&self.config.grant.holder_signing_key.0, &digest.0, signature)
                .err()
                .map(|_| Failure::holder_mismatch()),
        };
        if let Some(failure) = failure {
            self.holder = Holder::Unknown;
            self.fail(None, failure);
            self.halt(now_ms);
        } else {
            self.holder = Holder::Proven;
            self.start_channel(now_ms);
        }
        true
    }

    /// Whether another grant is for the key that the signer holds.
    pub(super) fn is_for_holder(&self, grant: &StreamGrant) -> bool {
        grant.holder_signing_key == self.config.grant.holder_signing_key
    }
}
