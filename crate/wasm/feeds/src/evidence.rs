//! Evidence: making a file of two contradictory objects, and judging one that somebody else made.

use remuda_bps::evidence::{Claim as BpsClaim, Equivocation as BpsEquivocation};
use remuda_bps::{judge, BpsRefusal, Broadcast, Judged};
use remuda_wasm_js::object::{Builder, ToJs};
use remuda_wasm_js::options::{bytes, optional};
use remuda_wasm_js::thrown::thrown;
use remuda_watchtower::cbor::decode;
use remuda_watchtower::evidence::{Claim, Equivocation};
use remuda_watchtower::schedule::KeySchedule;
use remuda_watchtower::{StreamId, StreamMessage, WatchtowerRefusal};
use remuda_web::feeds::failure::{of_bps, of_watchtower};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use crate::bps::cohort;
use crate::feed_options::{schedule, stream_id};

/// What a judgement came to: `code` where the two contradict each other or one of them is not signed, null where they get
/// along; and whom it is about.
fn judgement(contradicts: bool, code: Option<&str>) -> Builder {
    Builder::new().with("contradicts", &contradicts).with("code", &code)
}

/// Makes a file of evidence of `{ stream, schedule, a, b }`, each of the two a message as it was signed; `undefined` where they
/// do not contradict each other.
///
/// # Errors
/// Throws `misuse/argument`; a `watchtower/…` where one of them is not signed under the schedule.
#[wasm_bindgen(js_name = watchtowerEvidence)]
pub fn watchtower_evidence(options: &JsValue) -> Result<Option<Vec<u8>>, JsValue> {
    let refused = |refusal| thrown(&of_watchtower(refusal));
    let (stream_id, entries) = (stream_id(options)?, schedule(options)?);
    let message = |name| decode(&bytes(options, name)?).and_then(StreamMessage::from_value).map_err(refused);
    let schedule = KeySchedule::new(entries.iter().copied()).map_err(refused)?;
    let found = Equivocation::judge(&stream_id, &schedule, message("a")?, message("b")?).map_err(refused)?;
    Ok(found.map(|found| found.to_file(&entries)))
}

/// Judges a file of evidence of a feed, under `options.schedule` where that is given: `{ contradicts, code, stream }`.
///
/// # Errors
/// Throws `misuse/argument`.
#[wasm_bindgen(js_name = checkWatchtowerEvidence)]
pub fn check_watchtower_evidence(options: &JsValue, file: &[u8]) -> Result<JsValue, JsValue> {
    let trusted = optional(options, "schedule").map(|_| schedule(options)).transpose()?;
    let claim = match Claim::from_file(file) {
        Ok(claim) => claim,
        Err(refusal) => {
            return Ok(judgement(false, Some(refusal.code())).with_value("stream", &JsValue::NULL).build());
        }
    };
    let judged = match claim.judge(trusted.as_ref().unwrap_or(&claim.schedule)) {
        Ok(Some(_)) => judgement(true, Some(WatchtowerRefusal::Equivocation.code())),
        Ok(None) => judgement(false, None),
        Err(refusal) => judgement(false, Some(refusal.code())),
    };
    let stream = match &claim.stream_id {
        StreamId::Text(text) => text.to_js(),
        StreamId::Bytes(bytes) => bytes.0.as_slice().to_js(),
    };
    Ok(judged.with_value("stream", &stream).build())
}

/// Makes a file of evidence of `{ topic, owner, a, b }`, each of the two an update as it was signed; `undefined` where they do
/// not contradict each other.
///
/// # Errors
/// Throws `misuse/argument`; a `bps/…` where one of them is no update of the owner.
#[wasm_bindgen(js_name = bpsEvidence)]
pub fn bps_evidence(options: &JsValue) -> Result<Option<Vec<u8>>, JsValue> {
    let refused = |refusal| thrown(&of_bps(refusal));
    let cohort = cohort(options)?;
    let broadcast = |name| Broadcast::from_bytes(&bytes(options, name)?).map_err(refused);
    let found = BpsEquivocation::judge(&cohort, broadcast("a")?, broadcast("b")?).map_err(refused)?;
    found.map(|found| found.to_file(&cohort)).transpose().map_err(refused)
}

/// Judges a file of evidence of a broadcast: `{ contradicts, code, topic, owner }`.
#[wasm_bindgen(js_name = checkBpsEvidence)]
pub fn check_bps_evidence(file: &[u8]) -> JsValue {
    let claim = match BpsClaim::from_file(file) {
        Ok(claim) => claim,
        Err(refusal) => {
            let undecodable = judgement(false, Some(refusal.code()));
            return undecodable.with_value("topic", &JsValue::NULL).with_value("owner", &JsValue::NULL).build();
        }
    };
    let judged = match claim.judge() {
        Ok(found) => judgement(found.is_some(), None),
        Err(refusal) => judgement(false, Some(refusal.code())),
    };
    judged.with("topic", &claim.cohort.topic).with("owner", &claim.cohort.admin).build()
}

/// Judges one update of `{ topic, owner }`, as it was stored: `undefined` when it is one, or the code of why not.
///
/// # Errors
/// Throws `misuse/argument`.
#[wasm_bindgen(js_name = checkBpsUpdate)]
pub fn check_bps_update(options: &JsValue, broadcast: &[u8]) -> Result<Option<String>, JsValue> {
    let cohort = cohort(options)?;
    let judged = Broadcast::from_bytes(broadcast).and_then(|broadcast| judge(&cohort, &broadcast, None));
    let refusal = match judged {
        Ok(Judged::Delivered { .. }) => None,
        Ok(Judged::Claim) => Some(BpsRefusal::UnknownKind),
        Ok(Judged::Dropped(refusal)) | Err(refusal) => Some(refusal),
    };
    Ok(refusal.map(|refusal| refusal.code().into()))
}
