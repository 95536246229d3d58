//! `audit`.

use remuda_verify::audit::audit as audit_file;
use remuda_verify::audit::Auditor;

use crate::vector::input::{Input, Refused};
use crate::vector::Answer;

/// A whole audit file, judged at once and again byte by byte: both must answer the same.
pub fn audit(input: &Input<'_>) -> Answer {
    let file =
        decode_base64(input.at("file").text()?).ok_or_else(|| Refused::Malformed("the file is not base64".into()))?;
    let report = audit_file(&file).to_json();
    let mut auditor = Auditor::new();
    file.chunks(1).for_each(|chunk| auditor.push(chunk));
    if auditor.finish().to_json() != report {
        return Err(Refused::Malformed("the report depends on how the file is cut".into()));
    }
    serde_json::from_str(&report).map_err(|error| Refused::Malformed(error.to_string()))
}

/// Standard base64 with padding.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0u32);
    for symbol in text.trim_end_matches('=').bytes() {
        let value = ALPHABET.iter().position(|known| *known == symbol)?;
        held = held << 6 | u32::try_from(value).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}
