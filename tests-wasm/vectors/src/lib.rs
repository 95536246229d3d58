//! The conformance vector runner for Node.js: `run.mjs` beside this folder says what it expects. And the largest frame
//! that there can be, for the test that judging it in a worker leaves its page alone.
#![cfg(target_arch = "wasm32")]

use js_sys::Function;
use remuda_testkit::builder;
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

/// The largest checkpoint frame that there can be.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct FullFrame(builder::FullFrame);

#[wasm_bindgen]
impl FullFrame {
    /// Makes it.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes and verifies it. Answers how many bytes it has.
    pub fn judge(&self) -> usize {
        self.0.judge();
        self.0.bytes.len()
    }
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
