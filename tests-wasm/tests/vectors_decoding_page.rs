//! Conformance vectors of what is decoded, hashed and admitted, in a page.
#![cfg(target_arch = "wasm32")]

use remuda_tests_wasm::families;
use wasm_bindgen_test::wasm_bindgen_test_configure;

wasm_bindgen_test_configure!(run_in_browser);

families! {
    decoding = "decode",
    preimages = "preimage",
    endpoints = "endpoint",
    grants = "grant",
    retention = "retention",
}
