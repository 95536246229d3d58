//! Every lie is caught with its code, after honest batches, and again by a client that comes back.

mod common;

use clap::ValueEnum;
use common::group::{config, create, full_session, Followed};
use common::keys::{batch, key_session, requests};
use common::standard::{answered, append, append_request, judged, replay_request, Replayed};
use common::{batches, fresh_directory, Provider, Session, Subscriber};
use remuda_dev_provider::lie::{Lie, Part};
use remuda_verify::authentic::Authority;
use remuda_verify::evidence::contradiction;
use remuda_verify::fast::{FastState, Verification};
use remuda_verify::key_batch::KeyBatchPosition;
use remuda_verify::response::AnsweredResult;
use remuda_verify::retention::judge_cursor_too_old;
use remuda_wire::frame::ServerMessage;
use remuda_wire::group::GroupMode;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::preimage::{keccak256, key_batch_genesis};
use remuda_wire::request::{CreateLaneRequest, RequestBody};
use remuda_wire::scope::LaneScope;
use remuda_wire::verdict::Contradiction;
use remuda_wire::Bytes32;

fn caught(lie: Lie, name: &str) {
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

fn of(part: Part) -> impl Iterator<Item = (Lie, String)> {
    let name = |lie: &Lie| lie.to_possible_value().expect("a name").get_name().to_owned();
    Lie::value_variants().iter().filter(move |lie| lie.part() == part).map(move |lie| (*lie, name(lie)))
}

#[test]
fn lies_about_batches_are_caught() {
    of(Part::Fast).for_each(|(lie, name)| caught(lie, &name));
}

#[test]
fn lies_about_receipts_are_caught() {
    for (lie, name) in of(Part::Replay) {
        let arguments = ["--class", "standard", "--poll-ms", "200", "--lie", &name, "--lie-after", "3"];
        let provider = Provider::start(&fresh_directory(&name), &arguments);
        let mut session = Session::open(&provider, 1);
        let lane = session.stream.lanes[0];
        for number in 0..6 {
            append(&mut session, lane, &format!("record {number}"));
        }
        let mut replayed = Replayed::open(&mut session, keccak256(b"first"), LaneScope::Any);
        let refusal = replayed.poll_until(&mut session, 6).expect_err("a lie");
        assert_eq!((refusal.code(), replayed.received.len()), (lie.verdict(), 3), "{name}");
        // Whoever comes back to the same place is lied to again, and stands where it stood.
        let (after, state) = (replayed.sequences().last().copied(), replayed.verifier.state().clone());
        let mut again = Replayed::open_at(&mut session, keccak256(b"again"), LaneScope::Any, after, state)
            .unwrap_or_else(|frames| panic!("{frames:?}"));
        let refusal = again.poll_until(&mut session, 3).expect_err("a lie");
        assert_eq!((refusal.code(), again.received.len()), (lie.verdict(), 0), "{name} again");
    }
}

#[test]
fn lies_about_leases_are_caught() {
    for (lie, name) in of(Part::Group) {
        let arguments = ["--class", "standard", "--poll-ms", "200", "--lie", &name, "--lie-after", "2"];
        let provider = Provider::start(&fresh_directory(&name), &arguments);
        let mut session = full_session(&provider, 1, true, "");
        let lane = session.stream.lanes[0];
        let config = config(lane, keccak256(b"group"), GroupMode::Concurrent);
        let body = create(&session, &config);
        answered(&mut session, body).expect("created");
        for number in 0..4 {
            append(&mut session, lane, &format!("record {number}"));
        }
        let mut group = Followed::open(&mut session, keccak256(b"sub"), &config);
        let refusal = (0..20).find_map(|_| group.poll(&mut session, 4).err()).expect("a lie");
        assert_eq!((refusal.code(), group.delivered.len()), (lie.verdict(), 2), "{name}");
    }
}

#[test]
fn lies_about_floors_are_caught() {
    for (lie, name) in of(Part::Floor) {
        let retention = if lie == Lie::UnjustifiedFloor { "3600000" } else { "300" };
        let arguments = ["--class", "standard", "--control", "--retention-ms", retention];
        let provider = Provider::start(&fresh_directory(&name), &arguments);
        let mut session = Session::open(&provider, 1);
        let lane = session.stream.lanes[0];
        for number in 0..3 {
            append(&mut session, lane, &format!("record {number}"));
        }
        let after = (lie == Lie::UnjustifiedFloor).then_some(1);
        let request = replay_request(&session, keccak256(b"id"), LaneScope::Exact(lane), after);
        let ask =
            |session: &mut Session| match session.request(RequestBody::OpenSubscription(request.clone())).remove(0) {
                ServerMessage::Error(error) => Some(error),
                _ => None,
            };
        let keys = session.stream.keys();
        let (context, stream_id) = (session.stream.context.clone(), session.stream.stream_id);
        let authority = Authority { context: &context, stream_id: &stream_id, keys: &keys };
        let judge = |session: &mut Session| {
            let refused = (0..200).find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                ask(session)
            });
            judge_cursor_too_old(&request, &refused.expect("refused").details, &authority)
        };
        if lie != Lie::UnjustifiedFloor {
            while judge(&mut session).expect("an honest floor").floor() < 3 {}
        }
        provider.control("lies", &format!("{{\"lies\":[\"{name}\"],\"after\":0}}"));
        provider.control("chain", "{\"operation\":\"advance\"}");
        if lie != Lie::RegressFloor {
            assert_eq!(judge(&mut session).expect_err("a lie").code(), lie.verdict(), "{name}");
            continue;
        }
        let first = judge(&mut session).expect("the floor as it is").anchor().clone();
        let second = judge(&mut session).expect("each is signed").anchor().clone();
        assert_eq!(contradiction(&first, &second).map(Contradiction::code), Some(lie.verdict()));
    }
}

#[test]
fn lies_in_answers_are_caught() {
    for (lie, name) in of(Part::Answer) {
        let arguments = ["--class", "standard", "--encrypted", "--lie", &name, "--lie-after", "0"];
        let provider = Provider::start(&fresh_directory(&name), &arguments);
        let code = match lie {
            Lie::ForgeKeyReceipt => {
                let (mut session, main, rotation) = key_session(&provider, "\"APPEND\"");
                let genesis = key_batch_genesis(&main.context, &session.stream.stream_id);
                let (batch, envelopes) = batch(&main, &rotation, 1, genesis, 2);
                let results = requests(session.stream.stream_id, &batch, &envelopes)
                    .map(|body| answered(&mut session, body).expect("accepted"));
                let [_, _, AnsweredResult::Committed(receipt)] = results else { panic!("committed") };
                let rotation_key = SigningPublicKey(Bytes32(rotation.verifying_key().to_bytes()));
                let position = KeyBatchPosition {
                    context: &main.context,
                    main_stream_id: &main.stream_id,
                    rotation_key: &rotation_key,
                    active_generation: 0,
                    batch_tail: None,
                    members: &[],
                };
                let verified = position.verify(batch, envelopes).expect("ours");
                verified.verify_receipt(receipt.into_inner(), &main.keys()).expect_err("a lie").code()
            }
            _ => {
                let hpke = format!(",\"hpkeKey\":\"{}\"", keccak256(b"member"));
                let mut session = full_session(&provider, 1, false, &hpke);
                let (stream_id, lane) = (session.stream.stream_id, session.stream.lanes[0]);
                let (lane_nonce, metadata_hash) = (keccak256(b"nonce"), Bytes32::ZERO);
                let body = match lie {
                    Lie::ForgeLaneId => {
                        RequestBody::CreateLane(CreateLaneRequest { stream_id, lane_nonce, metadata_hash })
                    }
                    _ => RequestBody::Append(append_request(&session, lane, "text")),
                };
                judged(&mut session, body).expect_err("a lie").code()
            }
        };
        assert_eq!(code, lie.verdict(), "{name}");
    }
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
