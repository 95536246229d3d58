//! The table of `spec/VERDICTS.md` and that of the code are one, and every code has a vector.

use remuda_bps::BpsRefusal;
use remuda_testkit::verdict_rows;
use remuda_testkit::verdict_table::{assert_documented, assert_refused_in_vectors};

#[test]
fn every_verdict_is_documented_and_every_documented_code_is_a_verdict() {
    assert_documented(&["bps"], &verdict_rows!(BpsRefusal::ALL));
}

#[test]
fn every_code_has_a_reject_vector() {
    assert_refused_in_vectors(&verdict_rows!(BpsRefusal::ALL));
}
