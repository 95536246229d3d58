//! The tables of `spec/VERDICTS.md` and of the code are one, and every code has a vector.

use std::collections::BTreeSet;

use remuda_testkit::verdict_rows;
use remuda_testkit::verdict_table::{assert_documented, assert_refused_in_vectors, codes_in_vectors, documented, Row};
use remuda_wire::verdict::{AdmissionRefused, Contradiction, EndpointRefused, ProtocolViolation, VerifyError};
use remuda_wire::DecodeError;

/// The planes of this crate; the others are of crates above or beside it.
const PLANES: [&str; 6] = ["decode", "protocol", "verify", "admission", "endpoint", "evidence"];

fn ours() -> Vec<Row> {
    [
        verdict_rows!(DecodeError::ALL),
        verdict_rows!(ProtocolViolation::ALL),
        verdict_rows!(VerifyError::ALL),
        verdict_rows!(AdmissionRefused::ALL),
        verdict_rows!(EndpointRefused::ALL),
        verdict_rows!(Contradiction::ALL),
    ]
    .concat()
}

#[test]
fn every_verdict_is_documented_and_every_documented_code_is_a_verdict() {
    assert_documented(&PLANES, &ours());
}

#[test]
fn every_code_has_a_reject_vector() {
    assert_refused_in_vectors(&ours());
}

#[test]
fn every_vector_names_codes_that_exist() {
    let known: BTreeSet<_> = documented().into_iter().map(|[code, ..]| code).collect();
    let unknown: Vec<_> = codes_in_vectors().into_iter().filter(|(code, _)| !known.contains(code)).collect();
    assert!(unknown.is_empty(), "codes that VERDICTS.md does not list: {unknown:?}");
}
