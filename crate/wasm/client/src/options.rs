//! Reading what is particular to a client of streams.

use js_sys::{Array, Function, Uint8Array};
use remuda_client::{Decision, GroupId, Keyring, SubscriptionSpec};
use remuda_verify::secret::SecretBytes;
use remuda_wire::scope::{LaneScope, LaneSet};
use wasm_bindgen::{JsCast, JsValue};

pub use remuda_wasm_js::options::*;

use crate::secret::secret;
use crate::thrown::{bad_argument, thrown};

/// A small count that may be absent.
pub fn optional_count(options: &JsValue, name: &str) -> Result<Option<usize>, JsValue> {
    let Some(value) = optional(options, name) else { return Ok(None) };
    let count = value.as_f64().map(|number| number.to_string()).and_then(|digits| digits.parse().ok());
    count.map(Some).ok_or_else(|| bad_argument(&format!("`{name}` is a whole number, zero or more")))
}

/// A function member that may be absent.
pub fn optional_function(options: &JsValue, name: &str) -> Result<Option<Function>, JsValue> {
    optional(options, name).map(|_| function(options, name)).transpose()
}

/// A data key, 32 bytes.
pub fn data_key(key: &Uint8Array) -> Result<SecretBytes, JsValue> {
    secret(key).ok_or_else(|| bad_argument("a data key has 32 bytes"))
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
        let key: Uint8Array = member(&entry, "key").dyn_into().map_err(|_| wrong())?;
        let key = data_key(&key)?;
        keyring.insert(generation, key).map_err(|failure| thrown(&failure))?;
    }
    Ok(Some(keyring))
}

/// What a page wants to receive.
pub enum AskedFor {
    /// Verified, and kept.
    Subscription(SubscriptionSpec),
    /// As it comes.
    Tail(LaneScope),
}

/// `{ lanes: string[] | "all", verification: "scoped-proofs" | "full-stream" | "receipts" | "none" }`, or `{ lane, group }`.
pub fn asked_for(spec: &JsValue) -> Result<AskedFor, JsValue> {
    if optional(spec, "group").is_some() {
        return Ok(AskedFor::Subscription(SubscriptionSpec::Group(group(spec)?)));
    }
    let lanes = member(spec, "lanes");
    let is_all = lanes.as_string().as_deref() == Some("all");
    let scope = || if is_all { Ok(LaneScope::Any) } else { lane_scope(&lanes) };
    Ok(AskedFor::Subscription(match (text(spec, "verification")?.as_str(), is_all) {
        ("full-stream", true) => SubscriptionSpec::FullStream,
        ("scoped-proofs", false) => {
            SubscriptionSpec::scoped(scope()?).map_err(|refused| thrown(&remuda_wire::Refusal::from(refused).into()))?
        }
        ("receipts", _) => SubscriptionSpec::StandardReplay(scope()?),
        ("none", _) => return Ok(AskedFor::Tail(scope()?)),
        _ => {
            return Err(bad_argument(
                "`scoped-proofs` takes a list of lanes, `full-stream` takes \"all\", `receipts` and `none` take either",
            ))
        }
    }))
}

/// `{ lane, group }`.
pub fn group(spec: &JsValue) -> Result<GroupId, JsValue> {
    Ok(GroupId { lane_id: digest(&text(spec, "lane")?, "lane")?, group_id: digest(&text(spec, "group")?, "group")? })
}

/// `{ action: "ack" }`, `{ action: "nack", retryAfterMs }`, `{ action: "extend", extendByMs }`, `{ action: "reject", reason }`.
pub fn decision(decision: &JsValue) -> Result<Decision, JsValue> {
    Ok(match text(decision, "action")?.as_str() {
        "ack" => Decision::Ack,
        "nack" => Decision::Nack { retry_after_ms: unsigned(decision, "retryAfterMs")? },
        "extend" => Decision::Extend { extend_by_ms: unsigned(decision, "extendByMs")? },
        "reject" => Decision::Reject { reason_hash: digest(&text(decision, "reason")?, "reason")? },
        _ => return Err(bad_argument("`action` is \"ack\", \"nack\", \"extend\" or \"reject\"")),
    })
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
