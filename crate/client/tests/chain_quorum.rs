//! Several chain nodes as one (`RESOLUTIONS.md` §4).

use remuda_client::{ChainAnswer, ChainConclusion, ChainQuorum, ChainReadError};
use remuda_session::TransportError;
use remuda_testkit::builder::Provider;
use remuda_wire::chain::BrokerState;
use remuda_wire::preimage::keccak256;
use remuda_wire::{Bytes32, Canonical};

const OFFLINE: ChainAnswer = Err(ChainReadError::Transport(TransportError::Offline));

/// A read at `height`, on the branch of that name.
fn state(height: u64, branch: &str) -> BrokerState {
    let mut state = Provider::new().broker_state();
    state.view.height = height;
    state.view.block_hash = block(height, branch);
    state
}

fn block(height: u64, branch: &str) -> Bytes32 {
    keccak256(&[branch.as_bytes(), &height.to_be_bytes()].concat())
}

fn read(height: u64, branch: &str) -> ChainAnswer {
    Ok(state(height, branch).to_bytes())
}

#[test]
fn a_quorum_is_more_than_half_and_not_more_than_all() {
    let allowed: Vec<_> = (0..=6).filter(|needed| ChainQuorum::new(*needed, 5).is_some()).collect();
    assert_eq!(allowed, [3, 4, 5]);
    assert_eq!(ChainQuorum::new(1, 1), Some(ChainQuorum::majority(1)));
    assert_eq!(ChainQuorum::new(2, 2), Some(ChainQuorum::majority(2)));
    assert_eq!(ChainQuorum::new(0, 0), None);
}

#[test]
fn the_same_bytes_often_enough_are_the_answer_whatever_the_others_say() {
    let quorum = ChainQuorum::majority(3);
    let answers = [read(9, "main"), OFFLINE, read(9, "main")];
    assert_eq!(quorum.agreed(&answers[..1]), None, "one of three is not enough");
    assert_eq!(quorum.agreed(&answers), Some(&answers[0]));
    // That a view is gone has to be said as often.
    let gone = [Err(ChainReadError::Gone), read(9, "main"), Err(ChainReadError::Gone)];
    assert_eq!(quorum.conclude(None, &gone), ChainConclusion::Settled(Err(ChainReadError::Gone)));
}

#[test]
fn nodes_at_different_heights_are_asked_for_the_highest_block_that_enough_have_reached() {
    let quorum = ChainQuorum::new(3, 5).expect("three of five");
    let answers = [read(10, "main"), read(3, "main"), read(12, "main"), read(11, "main"), OFFLINE];
    let ChainConclusion::Pin(view) = quorum.conclude(None, &answers) else { panic!("they do not agree yet") };
    assert_eq!((view.height, view.block_hash), (10, block(10, "main")), "one that lags does not hold it back");
    // Of a view that was asked for there is no other to ask for.
    let pinned = quorum.conclude(Some(&view), &answers);
    assert_eq!(pinned, ChainConclusion::Settled(Err(ChainReadError::Disagreement)));
}

#[test]
fn one_lying_node_is_outvoted_and_two_of_three_are_a_disagreement() {
    let quorum = ChainQuorum::majority(3);
    let view = state(9, "main").view;
    let mut lie = state(9, "main");
    lie.effective_rent_height = 1;
    let lie: ChainAnswer = Ok(lie.to_bytes());
    let outvoted = quorum.conclude(Some(&view), &[lie.clone(), read(9, "main"), read(9, "main")]);
    assert_eq!(outvoted, ChainConclusion::Settled(read(9, "main")));
    let torn = quorum.conclude(Some(&view), &[lie, read(9, "main"), read(9, "fork")]);
    assert_eq!(torn, ChainConclusion::Settled(Err(ChainReadError::Disagreement)));
}

#[test]
fn too_few_readable_answers_are_the_fault_of_those_that_are_not() {
    let quorum = ChainQuorum::majority(3);
    let gone = Err(ChainReadError::Gone);
    let conclusion = quorum.conclude(None, &[read(9, "main"), OFFLINE, gone]);
    assert_eq!(conclusion, ChainConclusion::Settled(OFFLINE));
    // Bytes that are no broker state have no view to be asked for.
    let noise = [Ok(vec![1]), Ok(vec![2]), Ok(vec![3])];
    assert_eq!(quorum.conclude(None, &noise), ChainConclusion::Settled(Err(ChainReadError::Disagreement)));
}
