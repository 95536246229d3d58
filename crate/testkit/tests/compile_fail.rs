//! Promises that types make: these programs do not compile, and for the reason that is written beside each.

#[test]
fn what_only_a_stage_can_make_nobody_else_can() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
