//! Conformance vectors in a browser: what verifies there is compiled by the browser that will run it.

use remuda_testkit::vector::{run_file, Counts, Verdict};

/// Every vector of a family passes. Of a family of which no operation is known, none is run; none is known by half.
///
/// # Panics
/// Where that does not hold.
pub fn all_pass(text: &str) {
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
    assert!((counts.passed > 0) == counts.not_run.is_empty(), "{}", counts.summary());
}

/// One test for each vector file.
#[macro_export]
macro_rules! families {
    ($($name:ident = $file:literal,)+) => {
        $(
            #[::wasm_bindgen_test::wasm_bindgen_test]
            fn $name() {
                $crate::vectors::all_pass(include_str!(concat!("../../vectors/", $file, ".json")));
            }
        )+
    };
}
