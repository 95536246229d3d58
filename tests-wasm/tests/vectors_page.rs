//! Conformance vectors of what verifies, in a page.
#![cfg(target_arch = "wasm32")]

use remuda_tests_wasm::families;
use wasm_bindgen_test::wasm_bindgen_test_configure;

wasm_bindgen_test_configure!(run_in_browser);

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
