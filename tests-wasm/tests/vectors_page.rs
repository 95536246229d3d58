//! Conformance vectors in a page: what verifies here is compiled by the browser that will run it.
#![cfg(target_arch = "wasm32")]

use remuda_testkit::vector::{run_file, Counts, Verdict};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

/// Every vector of a family passes; none is of an operation that we do not know.
fn all_pass(text: &str) {
    let mut counts = Counts::default();
    let mut failed = Vec::new();
    let ran = run_file(text, &mut |report| {
        counts.add(report);
        if report.verdict == Verdict::Fail {
            failed.push(format!("{}: expected {}, got {}", report.name, report.expected, report.got));
        }
    });
    assert_eq!(ran, Ok(()));
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(counts.passed > 0 && counts.not_run.is_empty(), "{}", counts.summary());
}

macro_rules! families {
    ($($name:ident = $file:literal,)+) => {
        $(
            #[wasm_bindgen_test]
            fn $name() {
                all_pass(include_str!(concat!("../../vectors/", $file, ".json")));
            }
        )+
    };
}

families! {
    signatures = "signature",
    trees = "tree",
    scoped_checkpoints = "fast-scoped",
    full_checkpoints = "fast-full",
    transitions = "transition",
    sessions = "session",
    append_chains = "append",
    groups = "group",
    keys = "keys",
    evidence = "evidence",
    snapshots = "snapshot",
    audits = "audit",
}
