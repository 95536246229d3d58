//! The bodies of the browser suites. A file in `tests` runs them in one mode: page, dedicated worker.
#![cfg(target_arch = "wasm32")]

pub mod clock;
pub mod fetch;
pub mod harness;
pub mod store;
pub mod vectors;

/// One test for each named function of a module of this crate.
#[macro_export]
macro_rules! cases {
    ($module:ident: $($case:ident),* $(,)?) => {
        $(
            #[::wasm_bindgen_test::wasm_bindgen_test]
            async fn $case() {
                $crate::$module::$case().await;
            }
        )*
    };
}
