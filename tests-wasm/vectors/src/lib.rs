//! The conformance vector runner for Node.js: `run.mjs` beside this folder says what it expects.
#![cfg(target_arch = "wasm32")]

use js_sys::Function;
use remuda_testkit::vector::{self, Report, Verdict};
use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsError, JsValue};

/// Runs one file and calls `on_line` with a JSON object for each vector, in file order.
///
/// # Errors
/// Throws where `text` is no vector file, or what `on_line` throws.
#[wasm_bindgen]
pub fn run_file(text: &str, on_line: &Function) -> Result<(), JsValue> {
    let mut thrown = None;
    let ran = vector::run_file(text, &mut |report| {
        if thrown.is_none() {
            thrown = on_line.call1(&JsValue::UNDEFINED, &line(report).into()).err();
        }
    });
    ran.map_err(|reason| JsError::new(&reason))?;
    thrown.map_or(Ok(()), Err)
}

fn line(report: &Report) -> String {
    let verdict = match report.verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::NotRun => "not run",
    };
    let Report { name, op, expected, got, .. } = report;
    json!({ "name": name, "op": op, "verdict": verdict, "expected": expected, "got": got }).to_string()
}
