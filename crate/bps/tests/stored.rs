//! What is stored comes back as it was verified.

mod support;

use remuda_bps::stored::{index_bytes, index_from_bytes, source_name, Side, StoredUpdate};
use remuda_bps::subscriber::Delivery;
use remuda_bps::{judge, Gap, Judged};

use support::*;

#[test]
fn updates_come_back_and_verify_again() {
    for gap in [None, Some(Gap { first: 3, last: u64::MAX })] {
        for length in [0, 1, 4_096] {
            let payload = vec![7; length];
            let broadcast = data(u64::MAX, &payload);
            let delivery = Delivery { payload: payload.clone(), gap, broadcast: broadcast.clone() };
            let row = StoredUpdate::row(&delivery).expect("a row");
            let stored = StoredUpdate::from_bytes(&row).expect("a row of ours");
            assert_eq!(stored, StoredUpdate { gap, broadcast });
            assert_eq!(stored.payload(), Ok(payload.as_slice()));
            assert!(matches!(judge(&cohort(), &stored.broadcast, None), Ok(Judged::Delivered { .. })));
            assert!((0..row.len()).all(|cut| StoredUpdate::from_bytes(&row[..cut]).is_err()));
        }
    }
}

#[test]
fn an_index_comes_back_and_only_whole() {
    assert_eq!(index_from_bytes(&index_bytes(u64::MAX - 1)), Ok(u64::MAX - 1));
    assert!(index_from_bytes(&[]).is_err() && index_from_bytes(&[0; 9]).is_err());
}

#[test]
fn the_sides_of_a_cohort_are_two_sources() {
    assert_ne!(source_name(Side::Subscriber, &cohort()), source_name(Side::Publisher, &cohort()));
}
