//! What holds for any bytes.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use remuda_bps::bridge::{read_subscribed, Offer};
use remuda_bps::broadcast::{judge, Gap, Judged};
use remuda_bps::message::{Ack, Broadcast, Join};
use remuda_bps::topic::KIND_DATA;
use support::*;

#[test]
fn every_bit_of_a_broadcast_is_signed() {
    let broadcast = data(7, b"hello");
    // Behind the payload there is only padding of the tree; before its end everything is signed.
    for bit in 0..broadcast.soc.len() * 8 {
        let mut bent = broadcast.clone();
        bent.soc[bit / 8] ^= 1 << (bit % 8);
        assert!(judge(&cohort(), &bent, None).is_err(), "bit {bit} of the chunk means nothing");
    }
    for bit in 0..256 {
        let mut bent = broadcast.clone();
        bent.challenge[bit / 8] ^= 1 << (bit % 8);
        assert!(judge(&cohort(), &bent, None).is_err(), "bit {bit} of the challenge means nothing");
    }
    for bit in 0..64 {
        let bent = Broadcast { index: broadcast.index ^ 1 << bit, ..broadcast.clone() };
        assert!(judge(&cohort(), &bent, None).is_err(), "bit {bit} of the index means nothing");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused(bytes in vec(any::<u8>(), 0..200), text in ".{0,200}") {
        let _ = Join::from_bytes(&bytes).map(|join| Join::from_bytes(&join.to_bytes()).expect("again"));
        let _ = Ack::from_bytes(&bytes).map(|ack| Ack::from_bytes(&ack.to_bytes()).expect("again"));
        for broadcast in [Broadcast::from_bytes(&bytes), read_subscribed(&bytes)].into_iter().flatten() {
            prop_assert_eq!(Broadcast::from_bytes(&broadcast.to_bytes()), Ok(broadcast.clone()));
            let delivered = matches!(judge(&cohort(), &broadcast, None), Ok(Judged::Delivered { .. }));
            prop_assert!(!delivered);
        }
        let _ = Offer::from_text(&text, &TOPIC, &BROKER);
    }

    #[test]
    fn messages_are_what_they_were(soc in vec(any::<u8>(), 0..300), kind: i32, challenge in vec(any::<u8>(), 0..40), index: u64) {
        let broadcast = Broadcast { soc, kind, challenge, index };
        prop_assert_eq!(Broadcast::from_bytes(&broadcast.to_bytes()), Ok(broadcast));
    }
}

proptest! {
    // Recovering a signer costs something.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_cursor_only_rises_and_every_gap_is_told(indices in vec(0_u64..40, 1..20)) {
        let mut cursor = None;
        let (mut seen, mut missing) = (Vec::new(), Vec::new());
        for index in indices {
            let broadcast = broadcast_by(&admin(), KIND_DATA, CHALLENGE, index, &[]);
            match judge(&cohort(), &broadcast, cursor).expect("valid") {
                Judged::Delivered { gap, .. } => {
                    prop_assert!(cursor.is_none_or(|cursor| index > cursor));
                    seen.push(index);
                    missing.extend(gap.into_iter().flat_map(|Gap { first, last }| first..=last));
                    cursor = Some(index);
                }
                Judged::Dropped(_) => prop_assert!(cursor.is_some_and(|cursor| index <= cursor)),
                Judged::Claim => prop_assert!(false),
            }
        }
        let mut all = [seen.clone(), missing].concat();
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(seen[0]..=seen[seen.len() - 1]));
    }
}
