//! The store in a page.
#![cfg(target_arch = "wasm32")]

use remuda_tests_wasm::store_cases;
use wasm_bindgen_test::wasm_bindgen_test_configure;

wasm_bindgen_test_configure!(run_in_browser);

store_cases!();
