//! Positions of groups against a naive model: they move along verified receipts, one after the other, or not at all.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use remuda_position::memory::MemoryStore;
use remuda_position::{commit, AdmissionBudget, Anchor, Boundary, PositionKey, Store, StoreError};
use remuda_testkit::builder::{GroupReceipts, Provider};
use remuda_testkit::random::Random;
use remuda_verify::group::{GroupChain, GroupSegment};
use remuda_wire::verdict::VerifyError;
use remuda_wire::Bytes32;

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory has nothing to wait for"),
    }
}

/// A group's whole history, cut into segments at random.
fn segments(random: &mut Random, receipts: &mut GroupReceipts, count: usize) -> Vec<GroupSegment> {
    let mut chain = GroupChain::new(receipts.name(), None);
    let mut segments = Vec::new();
    for _ in 0..count {
        assert_eq!(chain.take_segment(), None, "nothing came since");
        for _ in 0..=random.below(4) {
            let (receipt, config) = receipts.advance().expect("our own signature");
            chain.apply_mutation(&receipt, Some(&config)).expect("an honest history");
        }
        segments.push(chain.take_segment().expect("something came"));
    }
    segments
}

#[test]
fn a_position_moves_along_the_receipts_and_no_other_way() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut receipts = GroupReceipts::new(Provider::new(), Bytes32([3; 32]));
        let history = segments(&mut random, &mut receipts, 12);
        let mut other = GroupReceipts::new(Provider::new(), Bytes32([4; 32]));
        let foreign = segments(&mut random, &mut other, 12);
        let name = receipts.name();
        let key = PositionKey::derive_group(&name.context, &name.stream_id, &name.lane_id, &name.group_id);
        let store = MemoryStore::default();
        let mut fence = now(store.take_fence()).expect("ownership");
        let mut boundary = Boundary::empty(key);
        let mut reached = 0;
        for _ in 0..100 {
            let is_foreign = random.below(5) == 0;
            // The one before, the next, or one too far; of another group anything but its creation.
            let offered =
                (reached + random.below(3)).saturating_sub(1).clamp(usize::from(is_foreign), history.len() - 1);
            let segment = if is_foreign { &foreign[offered] } else { &history[offered] };
            let planned = boundary.plan(segment.clone(), fence, &AdmissionBudget::default());
            if !is_foreign && offered + 1 == reached {
                assert!(planned.expect("it is durable").is_none(), "the same again changes nothing");
                continue;
            }
            if is_foreign || offered != reached {
                assert_eq!(planned.expect_err("it does not begin here"), VerifyError::GroupChain.into());
                continue;
            }
            let admission = planned.expect("it follows").expect("it is new");
            assert!(admission.write_set().rows.is_empty());
            if random.below(3) == 0 {
                // Another owner was faster: nothing of it is kept.
                let newer = now(store.take_fence()).expect("ownership");
                assert_eq!(now(commit(&store, admission)).err(), Some(StoreError::Fenced));
                fence = newer;
                continue;
            }
            boundary = now(commit(&store, admission)).expect("a commit").into_boundary();
            reached += 1;
            assert_eq!(boundary.group_receipt(), Some(history[offered].receipt()));
            assert_eq!((boundary.anchor(), boundary.last_item()), (Some(Anchor::Genesis), 0));
            let stored = now(store.load(key)).expect("a store").expect("a position");
            assert_eq!(Boundary::stored(key, stored), boundary, "what is read again is what was committed");
            assert!(boundary.cursor().is_none() && boundary.standard_cursor().is_none() && boundary.point().is_none());
        }
        assert!(reached > 5, "seed {seed}: it moved {reached} times");
    }
}

#[test]
fn a_segment_that_did_not_become_durable_is_offered_again_with_what_came_since() {
    let mut receipts = GroupReceipts::new(Provider::new(), Bytes32([3; 32]));
    let mut chain = GroupChain::new(receipts.name(), None);
    let mut next = |chain: &mut GroupChain| {
        let (receipt, config) = receipts.advance().expect("our own signature");
        chain.apply_mutation(&receipt, Some(&config)).expect("an honest history");
        receipt.digest()
    };
    next(&mut chain);
    let lost = chain.take_segment().expect("its creation");
    assert_eq!((lost.after(), chain.segment_after()), (None, Some(lost.receipt())));
    chain.reopen_segment(lost.after());
    let last = next(&mut chain);
    let again = chain.take_segment().expect("both");
    assert_eq!((again.after(), again.receipt()), (None, last));
    // History that forks is none of the chain.
    receipts.fork();
    let (receipt, config) = receipts.advance().expect("our own signature");
    assert_eq!(chain.apply_mutation(&receipt, Some(&config)).err(), Some(VerifyError::GroupChain));
    assert_eq!((chain.tail(), chain.take_segment()), (last, None), "a refusal changes nothing");
    chain.forget_cycles();
    assert_eq!(chain.cursor(), Some(last), "the chain goes on");
}
