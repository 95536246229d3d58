//! What a driver reports of a chain read that brought no bytes.

use remuda_session::TransportError;

/// Why a chain read brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainReadError {
    /// The exchange failed.
    Transport(TransportError),
    /// HTTP 410: the node no longer serves this view.
    Gone,
    /// HTTP 404: the node knows no such stream or block.
    NotFound,
    /// Too few of several nodes gave the same answer.
    Disagreement,
}
