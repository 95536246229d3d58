//! The operations by name. Each module holds those of one vector family.

mod append;
pub mod audit;
mod bps;
mod chain;
mod common;
pub mod decode;
mod endpoint;
mod evidence;
mod fast;
mod grant;
mod group;
mod keys;
mod preimage;
mod recipe;
mod response;
mod retention;
mod session;
mod signature;
mod snapshot;
mod streaming;
mod tree;
mod watchtower;

use super::input::Input;
use super::Answer;

/// One operation.
pub type Operation = fn(&Input<'_>) -> Answer;

/// Every operation that this runner knows.
const OPERATIONS: &[(&str, Operation)] = &[
    ("audit", audit::audit),
    ("append_chain", append::append_chain),
    ("decode", decode::decode),
    ("signing_digest", preimage::signing_digest),
    ("derive", preimage::derive),
    ("body_hash", preimage::body_hash),
    ("cursor_too_old", retention::cursor_too_old),
    ("evidence_pair", evidence::pair),
    ("group_chain", group::group_chain),
    ("retention_pair", evidence::pair),
    ("verify_signature", signature::verify_signature),
    ("merkle_root", tree::merkle_root),
    ("sparse_root", tree::sparse_root),
    ("sparse_prove", tree::sparse_prove),
    ("sparse_proof_root", tree::sparse_proof_root),
    ("lane_payload", tree::lane_payload),
    ("ordered_range", tree::ordered_range),
    ("checkpoint_scoped", fast::checkpoint_scoped),
    ("checkpoint_full", fast::checkpoint_full),
    ("transition", fast::transition),
    ("chain_read", chain::chain_read),
    ("endpoint", endpoint::endpoint),
    ("grant", grant::grant),
    ("key_batch", keys::key_batch),
    ("envelope_open", keys::envelope_open),
    ("aead_open", keys::aead_open),
    ("open_subscription", grant::open_subscription),
    ("snapshot", snapshot::snapshot),
    ("handshake", session::handshake),
    ("credit", session::credit),
    ("response", response::response),
    ("group_config", response::group_config),
    ("watchtower_cbor", watchtower::cbor),
    ("watchtower_signing_bytes", watchtower::signing_bytes),
    ("watchtower_aad", watchtower::aad),
    ("watchtower_verify", watchtower::verify),
    ("watchtower_open", watchtower::open),
    ("watchtower_filter", watchtower::filter),
    ("watchtower_identity_bytes", watchtower::identity_bytes),
    ("watchtower_wrapped_dek_aad", watchtower::wrapped_dek_aad),
    ("watchtower_content_key", watchtower::content_key),
    ("watchtower_unwrap", watchtower::unwrap),
    ("bps_chunk_address", bps::chunk_address),
    ("bps_soc", bps::soc),
    ("bps_topic", bps::topic),
    ("bps_broadcast", bps::broadcast),
    ("bps_bridge_frame", bps::bridge_frame),
    ("bps_offer", bps::offer),
    ("bps_protobuf", bps::protobuf),
    ("streaming_topic", streaming::topic),
    ("streaming_request", streaming::request),
    ("streaming_frames", streaming::frames),
    ("streaming_grpc_web", streaming::grpc_web),
];

/// The operation called `name`.
pub fn find(name: &str) -> Option<Operation> {
    OPERATIONS.iter().find(|(known, _)| *known == name).map(|(_, operation)| *operation)
}
