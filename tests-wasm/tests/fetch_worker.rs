//! Fetch, clock and randomness in a dedicated worker.
#![cfg(target_arch = "wasm32")]

use remuda_tests_wasm::{clock_cases, fetch_cases};
use wasm_bindgen_test::wasm_bindgen_test_configure;

wasm_bindgen_test_configure!(run_in_dedicated_worker);

clock_cases!();
fetch_cases!();
