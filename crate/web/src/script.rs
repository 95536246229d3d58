//! What JavaScript throws, and members that are looked up by name because their place differs between page and worker.

use js_sys::{Function, Reflect};
use wasm_bindgen::{JsCast, JsValue};

/// A member of the global object: `undefined` where there is none, or where reading it throws.
pub fn global(name: &str) -> JsValue {
    member(&js_sys::global(), name)
}

/// A function of the global object.
pub fn global_function(name: &str) -> Option<Function> {
    global(name).dyn_into().ok()
}

/// A member of a value: `undefined` where there is none, or where reading it throws.
pub fn member(value: &JsValue, name: &str) -> JsValue {
    Reflect::get(value, &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED)
}

/// The `name` of a thrown value: `QuotaExceededError`, `TypeError`. Empty where it has none.
pub fn fault_name(thrown: &JsValue) -> String {
    member(thrown, "name").as_string().unwrap_or_default()
}

/// The `message` of a thrown value, for people. Empty where it has none.
pub fn fault_message(thrown: &JsValue) -> String {
    member(thrown, "message").as_string().unwrap_or_default()
}
