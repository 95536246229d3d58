//! Every lie is caught with its code, after honest batches, and again by a client that comes back.

mod common;

use clap::ValueEnum;
use common::{batches, fresh_directory, Provider, Session, Subscriber};
use remuda_dev_provider::lie::Lie;
use remuda_verify::fast::{FastState, Verification};

fn caught(lie: Lie) {
    let value = lie.to_possible_value().expect("a name");
    let name = value.get_name();
    let data = fresh_directory(name);
    let arguments = ["--writer", "200", "--lie", name, "--lie-after", "3", "--batch-ms", "50"];
    let provider = Provider::start(&data, &arguments);
    let scope = provider.stream().scope(3);
    let session = Session::open(&provider, 1);
    let mut subscriber =
        Subscriber::open(session, Verification::ScopedProofs(scope.clone()), None, FastState::default())
            .unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let mut honest = 0;
    let refusal = loop {
        let before = subscriber.verifier.state().clone();
        match subscriber.poll(256, 1 << 20) {
            Ok(events) => honest += batches(&events).len(),
            Err(refusal) => {
                honest += usize::from(subscriber.verifier.state() != &before);
                break refusal;
            }
        }
        assert!(honest < 100, "{name} was never told");
    };
    assert_eq!(refusal.code(), lie.verdict(), "{name}");
    assert!(honest >= 1, "{name}: honest batches come first");
    // The same again from the last verified boundary: the lie persists.
    let (after, state) = (subscriber.boundary(), subscriber.verifier.state().clone());
    let session = Session::open(&provider, 1);
    let again = Subscriber::open(session, Verification::ScopedProofs(scope), Some(after), state.clone());
    let refusal = match again {
        Err(refusal) => refusal,
        Ok(mut subscriber) => loop {
            match subscriber.poll(256, 1 << 20) {
                Ok(events) => assert!(batches(&events).is_empty(), "{name}: a lying batch verified"),
                Err(refusal) => {
                    assert_eq!(subscriber.verifier.state(), &state, "{name}: the position moved");
                    break refusal;
                }
            }
        },
    };
    assert_eq!(refusal.code(), lie.verdict(), "{name} again");
}

macro_rules! lies {
    ($($test:ident = $lie:ident,)+) => {
        $(#[test] fn $test() { caught(Lie::$lie); })+

        #[test]
        fn every_lie_has_a_test() {
            assert_eq!(Lie::value_variants(), [$(Lie::$lie,)+]);
        }
    };
}

lies! {
    withhold_record = WithholdRecord,
    inject_record = InjectRecord,
    relabel_lane = RelabelLane,
    extra_lane = ExtraLane,
    unlinked_receipt = UnlinkedReceipt,
    wrong_key = WrongKey,
    void_without_transition = VoidWithoutTransition,
}

#[test]
fn a_transition_is_withheld_after_a_restart() {
    let data = fresh_directory("withheld-transition");
    let provider = Provider::start(&data, &["--writer", "200", "--batch-ms", "50"]);
    let verification = Verification::ScopedProofs(provider.stream().scope(3));
    let session = Session::open(&provider, 1);
    let mut subscriber = Subscriber::open(session, verification.clone(), None, FastState::default())
        .unwrap_or_else(|refusal| panic!("{refusal:?}"));
    subscriber.poll_until(|events| batches(events).len() >= 2).expect("honest");
    let (after, state) = (subscriber.boundary(), subscriber.verifier.state().clone());
    provider.kill();
    let arguments = ["--writer", "200", "--batch-ms", "50", "--lie", "void-without-transition", "--lie-after", "1000"];
    let provider = Provider::start(&data, &arguments);
    let session = Session::open(&provider, 1);
    let refusal = match Subscriber::open(session, verification, Some(after), state) {
        Err(refusal) => refusal,
        Ok(mut subscriber) => loop {
            if let Err(refusal) = subscriber.poll(256, 1 << 20) {
                break refusal;
            }
        },
    };
    assert_eq!(refusal.code(), Lie::VoidWithoutTransition.verdict());
}
