//! `handshake`, `credit`.

use remuda_session::handshake::{AwaitChallenge, SessionIdentity};
use remuda_session::CreditWindow;
use remuda_wire::frame::ServerFrame;
use remuda_wire::{DecodeError, Refusal, Signature};
use serde_json::json;

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// A challenge, and the session that it opens. The signature is the holder's, so it is not part of the vector.
pub fn handshake(input: &Input<'_>) -> Answer {
    let identity = SessionIdentity {
        context: input.at("context").object()?,
        stream_id: input.at("stream_id").digest()?,
        grant_id: input.at("grant_id").digest()?,
    };
    let now_ms = input.at("now_ms").u64()?;
    let ids = input.at("request_ids").digests()?;
    let [open, complete] = ids[..] else { return Err(Refused::Malformed("two request ids expected".into())) };
    let bytes: Result<Vec<_>, _> = input.at("frames").list()?.map(Input::bytes).collect();
    let frames: Result<Vec<_>, DecodeError> = bytes?.iter().map(|bytes| ServerFrame::from_bytes(bytes)).collect();
    let frames = frames?;
    let refused = |refusal: Refusal| Refused::Verdict(refusal.code());
    let challenge = frames.first().ok_or_else(|| Refused::Malformed("a challenge expected".into()))?;
    let challenged = AwaitChallenge::expecting(identity, open).handle(challenge, now_ms).map_err(refused)?;
    let (session_id, digest) = (challenged.session_id(), challenged.digest());
    if let Some(opened) = frames.get(1) {
        let (wait, _) = challenged.sign(Signature::ZERO, complete);
        wait.handle(opened, now_ms).map_err(refused)?;
    }
    Ok(json!({ "session_id": session_id.to_string(), "proof_digest": digest.to_string() }))
}

/// Grants and deliveries of one subscription.
pub fn credit(input: &Input<'_>) -> Answer {
    let mut window = CreditWindow::default();
    for step in input.at("steps").list()? {
        let parts: Vec<_> = step.list()?.collect();
        match parts[..] {
            [kind, records, bytes] if kind.text()? == "grant" => window.grant(records.number()?, bytes.u64()?),
            [kind, length] if kind.text()? == "delivery" => {
                window.spend(length.number()?).map_err(|violation| Refused::Verdict(violation.code()))?;
            }
            _ => return Err(Refused::Malformed(format!("unknown step {}", step.json()))),
        }
    }
    Ok(json!({ "records": window.records, "bytes": window.bytes.to_string() }))
}
