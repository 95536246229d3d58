//! Which subscriptions are legal at all (§13.1, §13.2): one variant for each combination that a provider can serve.

use remuda_wire::bound::MAX_PROOF_LANES_PER_SUBSCRIPTION;
use remuda_wire::record::{FastRecordId, StandardRecordId};
use remuda_wire::request::{OpenSubscriptionRequest, SubscriptionSource, VerificationMode};
use remuda_wire::scope::LaneScope;
use remuda_wire::verdict::AdmissionRefused;
use remuda_wire::Bytes32;

use crate::fast::Verification;

/// A subscription that can be served as asked. A verifying mode on a source or scope that cannot carry it, and a group
/// cursor without a group, cannot be represented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LegalSubscription {
    /// Leased deliveries of one group.
    StandardGroup {
        /// Its lane.
        lane_id: Bytes32,
        /// The group.
        group_id: Bytes32,
        /// The last group receipt known, exclusive; `None` from group genesis.
        after_group_receipt: Option<Bytes32>,
    },
    /// Standard records in order.
    StandardReplay {
        /// Their lanes.
        scope: LaneScope,
        /// Exclusive start.
        after: Option<StandardRecordId>,
    },
    /// Fast records in order.
    Fast {
        /// Their lanes, and what the provider owes.
        verification: Verification,
        /// Exclusive start: a checkpoint boundary when verifying.
        after: Option<FastRecordId>,
    },
    /// The dead letters of one group.
    DeadLetters {
        /// Its lane.
        lane_id: Bytes32,
        /// The group.
        group_id: Bytes32,
        /// Exclusive start.
        after: Option<StandardRecordId>,
        /// The last group receipt known, exclusive; `None` from group genesis.
        after_group_receipt: Option<Bytes32>,
    },
}

impl LegalSubscription {
    /// Judges a request by itself; whether a grant permits it is [`crate::grant::check_subscription`].
    ///
    /// # Errors
    /// In this order: [`AdmissionRefused::VerificationMode`], [`AdmissionRefused::ProofScopeTooWide`],
    /// [`AdmissionRefused::AfterGroupReceipt`].
    pub fn of(request: &OpenSubscriptionRequest) -> Result<Self, AdmissionRefused> {
        let after_group_receipt = request.after_group_receipt;
        match &request.source {
            SubscriptionSource::StandardGroup(source) => {
                refuse_verification(request.verification)?;
                Ok(Self::StandardGroup { lane_id: source.lane_id, group_id: source.group_id, after_group_receipt })
            }
            SubscriptionSource::StandardReplay(source) => {
                refuse_verification(request.verification)?;
                refuse_group_cursor(after_group_receipt)?;
                Ok(Self::StandardReplay { scope: source.scope.clone(), after: source.after })
            }
            SubscriptionSource::Fast(source) => {
                let verification = fast_verification(request.verification, &source.scope)?;
                refuse_group_cursor(after_group_receipt)?;
                Ok(Self::Fast { verification, after: source.after })
            }
            SubscriptionSource::DeadLetters(source) => {
                refuse_verification(request.verification)?;
                let (lane_id, group_id) = (source.lane_id, source.group_id);
                Ok(Self::DeadLetters { lane_id, group_id, after: source.after, after_group_receipt })
            }
        }
    }
}

fn refuse_verification(mode: VerificationMode) -> Result<(), AdmissionRefused> {
    if mode == VerificationMode::None {
        Ok(())
    } else {
        Err(AdmissionRefused::VerificationMode)
    }
}

fn fast_verification(mode: VerificationMode, scope: &LaneScope) -> Result<Verification, AdmissionRefused> {
    match (mode, scope.lanes()) {
        (VerificationMode::None, _) => Ok(Verification::None(scope.clone())),
        (VerificationMode::FullStream, None) => Ok(Verification::FullStream),
        (VerificationMode::ScopedProofs, Some(lanes)) if lanes.len() > MAX_PROOF_LANES_PER_SUBSCRIPTION => {
            Err(AdmissionRefused::ProofScopeTooWide)
        }
        (VerificationMode::ScopedProofs, Some(_)) => Ok(Verification::ScopedProofs(scope.clone())),
        (VerificationMode::FullStream, Some(_)) | (VerificationMode::ScopedProofs, None) => {
            Err(AdmissionRefused::VerificationMode)
        }
    }
}

const fn refuse_group_cursor(after_group_receipt: Option<Bytes32>) -> Result<(), AdmissionRefused> {
    if after_group_receipt.is_some() {
        Err(AdmissionRefused::AfterGroupReceipt)
    } else {
        Ok(())
    }
}
