//! Errors as JavaScript throws them: an `Error` with `code`, `remedy`, `rule` and `meaning`.

use js_sys::{Error, Reflect};
use remuda_client::Failure;
use remuda_position::StoreError;
use remuda_wire::Remedy;
use wasm_bindgen::JsValue;

use crate::object::{time_ms, Builder, ToJs};

/// The `Error` object of a failure.
pub fn thrown(failure: &Failure) -> JsValue {
    let error = Error::new(&format!("{}: {}", failure.code, failure.meaning));
    let members = [
        ("code", failure.code.as_str()),
        ("remedy", failure.remedy.name()),
        ("rule", &failure.rule),
        ("meaning", &failure.meaning),
    ];
    for (name, value) in members {
        // Setting a member of an error of our own cannot fail.
        drop(Reflect::set(&error, &name.to_js(), &value.to_js()));
    }
    error.into()
}

/// The `Error` of a store failure.
pub fn store_error(error: &StoreError) -> JsValue {
    thrown(&Failure::from(error))
}

/// The `Error` of an argument that cannot be used.
pub fn bad_argument(meaning: &str) -> JsValue {
    thrown(&Failure {
        code: "misuse/argument".into(),
        remedy: Remedy::FixRequest,
        rule: String::new(),
        meaning: meaning.into(),
    })
}

/// A failure as an event or a status carries it.
pub fn failure_object(failure: &Failure, at_ms: u64) -> JsValue {
    Builder::new()
        .with("code", &failure.code)
        .with("remedy", failure.remedy.name())
        .with("rule", &failure.rule)
        .with("meaning", &failure.meaning)
        .with_value("atMs", &time_ms(at_ms))
        .build()
}
