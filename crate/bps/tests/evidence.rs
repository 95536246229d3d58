//! A pair that contradicts itself is portable, and nothing else is one.

mod support;

use remuda_bps::evidence::{Claim, Equivocation};
use remuda_bps::signature::LocalSigner;
use remuda_bps::topic::KIND_DATA;
use remuda_bps::BpsRefusal;
use remuda_wire::Bytes32;

use support::*;

const LATER: Bytes32 = Bytes32([0xc2; 32]);

#[test]
fn two_payloads_for_one_index_are_a_contradiction() {
    for challenge in [CHALLENGE, LATER] {
        let pair = (data(7, b"one"), broadcast_by(&admin(), KIND_DATA, challenge, 7, b"other"));
        let found = Equivocation::judge(&cohort(), pair.0.clone(), pair.1.clone()).expect("both are signed");
        let bytes = found.expect("a contradiction").to_file(&cohort()).expect("bounded");
        let claim = Claim::from_file(&bytes).expect("a file of evidence");
        assert_eq!((claim.cohort, &claim.pair), (cohort(), &pair));
        assert!(claim.judge().expect("both are signed").is_some());
        let (a, b) = claim.pair;
        assert!(Equivocation::judge(&cohort(), b, a).expect("both are signed").is_some(), "in either order");
        assert!((0..bytes.len()).all(|cut| Claim::from_file(&bytes[..cut]).is_err()));
    }
}

#[test]
fn an_honest_author_is_not_accused() {
    let again = broadcast_by(&admin(), KIND_DATA, LATER, 7, b"one");
    for other in [data(7, b"one"), again, data(8, b"other")] {
        assert_eq!(Equivocation::judge(&cohort(), data(7, b"one"), other), Ok(None));
    }
}

#[test]
fn only_updates_of_the_author_count() {
    let stranger = LocalSigner::new(&[0x57; 32]).expect("a key");
    let forged = broadcast_by(&stranger, KIND_DATA, CHALLENGE, 7, b"other");
    assert_eq!(Equivocation::judge(&cohort(), data(7, b"one"), forged), Err(BpsRefusal::Signer));
    assert_eq!(Equivocation::judge(&cohort(), auth(), data(0, b"one")), Err(BpsRefusal::UnknownKind));
    let mut relabelled = data(8, b"other");
    relabelled.index = 7;
    assert_eq!(Equivocation::judge(&cohort(), relabelled, data(7, b"one")), Err(BpsRefusal::Id));
}
