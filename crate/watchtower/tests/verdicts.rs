//! The table of `spec/VERDICTS.md` and that of the code are one, and every code has a vector.

use remuda_testkit::verdict_rows;
use remuda_testkit::verdict_table::{assert_documented, assert_refused_in_vectors};
use remuda_watchtower::WatchtowerRefusal;

#[test]
fn every_verdict_is_documented_and_every_documented_code_is_a_verdict() {
    assert_documented(&["watchtower"], &verdict_rows!(WatchtowerRefusal::ALL));
}

#[test]
fn every_code_has_a_reject_vector() {
    assert_refused_in_vectors(&verdict_rows!(WatchtowerRefusal::ALL));
}
