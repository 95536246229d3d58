//! Reading what is particular to a client of streams.

use js_sys::Array;
use remuda_client::{Keyring, SubscriptionSpec};
use remuda_verify::secret::SecretBytes;
use remuda_wire::scope::{LaneScope, LaneSet};
use wasm_bindgen::{JsCast, JsValue};

pub use remuda_wasm_js::options::*;

use crate::thrown::{bad_argument, thrown};

/// A data key, 32 bytes.
pub fn data_key(key: &[u8]) -> Result<SecretBytes, JsValue> {
    key.try_into().map(SecretBytes::new).map_err(|_| bad_argument("a data key has 32 bytes"))
}

/// `{ generation: bigint, key: Uint8Array }[]`; absent for a stream that is not encrypted.
pub fn keyring(keys: &JsValue) -> Result<Option<Keyring>, JsValue> {
    if keys.is_undefined() || keys.is_null() {
        return Ok(None);
    }
    let wrong = || bad_argument("`dataKeys` is a list of { generation: bigint, key: Uint8Array }");
    let mut keyring = Keyring::default();
    for entry in keys.dyn_ref::<Array>().ok_or_else(wrong)?.iter() {
        let generation = u64::try_from(member(&entry, "generation")).map_err(|_| wrong())?;
        keyring.insert(generation, data_key(&bytes(&entry, "key")?)?);
    }
    Ok(Some(keyring))
}

/// `{ lanes: string[] | "all", verification: "scoped-proofs" | "full-stream" | "receipts" }`.
pub fn subscription_spec(spec: &JsValue) -> Result<SubscriptionSpec, JsValue> {
    let lanes = member(spec, "lanes");
    match (text(spec, "verification")?.as_str(), lanes.as_string().as_deref()) {
        ("full-stream", Some("all")) => Ok(SubscriptionSpec::FullStream),
        ("scoped-proofs", None) => SubscriptionSpec::scoped(lane_scope(&lanes)?)
            .map_err(|refused| thrown(&remuda_wire::Refusal::from(refused).into())),
        ("receipts", Some("all")) => Ok(SubscriptionSpec::StandardReplay(LaneScope::Any)),
        ("receipts", None) => Ok(SubscriptionSpec::StandardReplay(lane_scope(&lanes)?)),
        _ => Err(bad_argument(
            "`scoped-proofs` takes a list of lanes, `full-stream` takes \"all\", `receipts` takes either",
        )),
    }
}

fn lane_scope(lanes: &JsValue) -> Result<LaneScope, JsValue> {
    let lanes: &Array = lanes.dyn_ref().ok_or_else(|| bad_argument("`lanes` is a list of ids or \"all\""))?;
    let ids: Result<Vec<_>, _> = lanes
        .iter()
        .map(|lane| digest(&lane.as_string().ok_or_else(|| bad_argument("a lane is a string"))?, "lanes"))
        .collect();
    let set = LaneSet::new(ids?).map_err(|error| bad_argument(&error.to_string()))?;
    let set = set.ok_or_else(|| bad_argument("`lanes` names at least one lane"))?;
    Ok(match &*set {
        [only] => LaneScope::Exact(*only),
        _ => LaneScope::Set(set),
    })
}
