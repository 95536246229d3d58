//! Conformance vectors of the largest frames and batches, in a page.
#![cfg(target_arch = "wasm32")]

use remuda_tests_wasm::families;
use wasm_bindgen_test::wasm_bindgen_test_configure;

wasm_bindgen_test_configure!(run_in_browser);

families! {
    large_batches = "fast-large",
}
