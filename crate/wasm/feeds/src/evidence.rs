//! Re-checking what somebody else says: a contradiction of an author, an update.

use remuda_bps::evidence::Equivocation as BpsEquivocation;
use remuda_bps::{judge, BpsRefusal, Broadcast, Judged};
use remuda_watchtower::evidence::Equivocation;
use remuda_watchtower::schedule::KeySchedule;
use remuda_watchtower::WatchtowerRefusal;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use crate::bps::cohort;
use crate::feed_options::{schedule, stream_id};

/// Judges a pair of messages of `{ stream, schedule }`: `watchtower/equivocation` where they contradict each other, another
/// code where one of them is not signed under this schedule, `undefined` where both are and get along.
///
/// # Errors
/// Throws `misuse/argument`.
#[wasm_bindgen(js_name = checkWatchtowerEvidence)]
pub fn check_watchtower_evidence(options: &JsValue, pair: &[u8]) -> Result<Option<String>, JsValue> {
    let (stream_id, schedule) = (stream_id(options)?, schedule(options)?);
    let judged = KeySchedule::new(schedule).and_then(|schedule| {
        let (a, b) = Equivocation::read_pair(pair)?;
        Equivocation::judge(&stream_id, &schedule, a, b)
    });
    Ok(match judged {
        Ok(Some(_)) => Some(WatchtowerRefusal::Equivocation.code().into()),
        Ok(None) => None,
        Err(refusal) => Some(refusal.code().into()),
    })
}

/// Judges a pair of updates of `{ topic, owner }`: `contradiction` where they are of one index and say different things, a
/// code where one of them is no update of the owner, `undefined` where both are and get along.
///
/// # Errors
/// Throws `misuse/argument`.
#[wasm_bindgen(js_name = checkBpsEvidence)]
pub fn check_bps_evidence(options: &JsValue, pair: &[u8]) -> Result<Option<String>, JsValue> {
    let cohort = cohort(options)?;
    let judged = BpsEquivocation::read_pair(pair).and_then(|(a, b)| BpsEquivocation::judge(&cohort, a, b));
    Ok(match judged {
        Ok(Some(_)) => Some("contradiction".into()),
        Ok(None) => None,
        Err(refusal) => Some(refusal.code().into()),
    })
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
