//! Sessions and challenges that were met before (§7.1).
//!
//! A `session_id` is unique and a challenge is random. Who repeats one has the holder sign what it signed already, or
//! takes requests of one session for those of another.

use alloc::collections::VecDeque;

use remuda_wire::verdict::ProtocolViolation;
use remuda_wire::Bytes32;

use crate::handshake::AwaitSignature;

/// How many are remembered: more handshakes than one provider is asked for within the life of a challenge.
const REMEMBERED: usize = 64;

/// The last challenges of one machine, each with its session.
#[derive(Debug, Default)]
pub struct SeenChallenges(VecDeque<(Bytes32, Bytes32)>);

impl SeenChallenges {
    /// Takes a good challenge, once.
    ///
    /// # Errors
    /// [`ProtocolViolation::SessionMismatch`] for a session or challenge that was met before, and for a challenge of zeros.
    pub fn admit(&mut self, wait: AwaitSignature) -> Result<AwaitSignature, ProtocolViolation> {
        let (session_id, challenge) = (wait.session_id(), wait.challenge());
        let repeats = |seen: &(Bytes32, Bytes32)| seen.0 == session_id || seen.1 == challenge;
        if challenge.is_zero() || self.0.iter().any(repeats) {
            return Err(ProtocolViolation::SessionMismatch);
        }
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((session_id, challenge));
        Ok(wait)
    }
}
