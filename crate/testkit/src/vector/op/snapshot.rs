//! `snapshot`.

use remuda_verify::snapshot::{SnapshotBundle, SnapshotExpectation, SnapshotResume};
use remuda_verify::trusted_chain::TrustedChain;
use remuda_wire::chain::BrokerState;
use remuda_wire::key::SigningPublicKey;
use serde_json::json;

use super::fast::state_json;
use crate::vector::input::Input;
use crate::vector::Answer;

/// Everything that a reader checks before it hydrates.
pub fn snapshot(input: &Input<'_>) -> Answer {
    let (context, stream_id) = (input.at("context").object()?, input.at("stream_id").digest()?);
    let expected = input.at("expected");
    let authorized_keys: Result<Vec<SigningPublicKey>, _> =
        expected.at("authorized_keys").list()?.map(Input::object).collect();
    let authorized_keys = authorized_keys?;
    let (scope, cbfs_reference) = (expected.at("scope").object()?, expected.at("cbfs_reference").bytes()?);
    let expectation = SnapshotExpectation {
        context: &context,
        stream_id: &stream_id,
        authorized_keys: &authorized_keys,
        scope: &scope,
        cbfs_reference: &cbfs_reference,
        encryption_generation: expected.at("encryption_generation").u64()?,
    };
    let (manifest, receipt) = (input.at("manifest").object()?, input.at("receipt").object()?);
    let (bytes, application_key) = (input.at("bytes").bytes()?, input.at("application_key").object()?);
    let bundle =
        SnapshotBundle { manifest: &manifest, receipt: &receipt, bytes: &bytes, application_key: &application_key };
    let reads: Result<Vec<BrokerState>, _> = input.at("chain").list()?.map(Input::object).collect();
    let mut chain = TrustedChain::new(&context, &stream_id);
    reads?.into_iter().try_for_each(|read| chain.add(read))?;

    let verified = expectation.verify(&bundle, &chain)?;
    let resume = match verified.resume() {
        SnapshotResume::Fast(state) => state_json(&state),
        SnapshotResume::Standard { last_sequence, global_tail, lane_id } => json!({
            "last_sequence": last_sequence.to_string(),
            "global_tail": global_tail.to_string(),
            "lane_id": lane_id.to_string(),
        }),
    };
    let checks: Vec<_> = verified.checks().iter().map(|check| check.name()).collect();
    Ok(json!({ "provider_anchor": verified.provider_anchor().to_string(), "resume": resume, "checks": checks }))
}
