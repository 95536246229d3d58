//! The conformance vector runner: any file of the format in `vectors/README.md`, natively and in wasm.

mod compare;
pub mod input;
pub mod op;
mod report;

pub use report::{Counts, Report, Verdict};

use serde_json::Value;

use input::{Input, Refused};

/// What an operation answers: derived values, or why there are none.
pub type Answer = Result<Value, Refused>;

/// Runs every vector of one file and hands each [`Report`] to `each`, in file order.
///
/// # Errors
/// A sentence when `text` is no vector file of format 1.
pub fn run_file(text: &str, each: &mut dyn FnMut(&Report)) -> Result<(), String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    if file["format"] != 1 {
        return Err(format!("format {} is not 1", file["format"]));
    }
    let vectors = file["vectors"].as_array().ok_or("no list of vectors")?;
    for vector in vectors {
        each(&run_vector(vector)?);
    }
    Ok(())
}

fn run_vector(vector: &Value) -> Result<Report, String> {
    let name = vector["name"].as_str().ok_or("a vector without a name")?.to_owned();
    let op = vector["op"].as_str().ok_or("a vector without an operation")?.to_owned();
    let expected = vector["expect"].clone();
    let Some(operation) = op::find(&op) else {
        return Ok(Report { name, op, expected, got: Value::Null, verdict: Verdict::NotRun });
    };
    let got = match operation(&Input::new(&vector["in"])) {
        Ok(values) => serde_json::json!({ "ok": values }),
        Err(Refused::Verdict(code)) => serde_json::json!({ "err": code }),
        Err(Refused::Malformed(reason)) => serde_json::json!({ "malformed": reason }),
    };
    let verdict = if compare::satisfies(&expected, &got) { Verdict::Pass } else { Verdict::Fail };
    Ok(Report { name, op, expected, got, verdict })
}
