//! The handshake: the way through, every refusal, and what the machine makes of each.

mod support;

use remuda_session::{ApiMisuse, CloseCause, HandshakeConfig, Output, SessionConfig, TransportError};
use remuda_wire::context::SigningContext;
use remuda_wire::frame::{ClientMessage, ServerMessage};
use remuda_wire::key::HpkePublicKey;
use remuda_wire::session::{SessionChallenge, SessionOpened};
use remuda_wire::{Bytes32, Remedy};
use support::{frames, Bench, SIGNATURE, T0};

#[test]
fn opens_a_session() {
    let mut bench = Bench::new();
    let (post, message) = bench.take_post();
    let ClientMessage::OpenSession(open) = message else { panic!("no OpenSession") };
    assert_eq!(open.grant, frames::grant());
    bench.body(post, vec![frames::challenge(open.request_id, T0)]);
    let (post, message) = bench.take_post();
    let ClientMessage::CompleteSession(complete) = message else { panic!("no CompleteSession") };
    assert_ne!(complete.request_id, open.request_id);
    assert_eq!(complete.proof.signature, SIGNATURE);
    assert_eq!(complete.proof.session_id, frames::SESSION);
    bench.body(post, vec![frames::opened(complete.request_id, T0 + 100)]);
    assert_eq!(bench.told, [Output::Opened { session_id: frames::SESSION, expires_at_ms: T0 + 100 }]);
    assert!(bench.session.is_idle(T0));
}

#[test]
fn a_grant_of_another_stream_is_refused() {
    let refused = HandshakeConfig::new(frames::context(), Bytes32([99; 32]), frames::grant());
    assert_eq!(refused.err(), Some(ApiMisuse::GrantMismatch));
}

#[test]
fn a_grant_with_one_key_for_both_purposes_is_refused() {
    let mut grant = frames::grant();
    grant.holder_hpke_key = Some(HpkePublicKey(grant.holder_signing_key.0));
    let refused = HandshakeConfig::new(frames::context(), grant.stream_id, grant);
    assert_eq!(refused.err(), Some(ApiMisuse::HolderKeysEqual));
}

/// Bends one frame of the handshake and gives the code that the session closes with, and whether it returns.
fn closes_with(
    bend_challenge: impl Fn(SessionChallenge) -> ServerMessage,
    bend_opened: impl Fn(SessionOpened) -> ServerMessage,
) -> (&'static str, bool) {
    let mut bench = Bench::new();
    let (post, message) = bench.take_post();
    let ClientMessage::OpenSession(open) = message else { panic!("no OpenSession") };
    let ServerMessage::SessionChallenge(challenge) = frames::challenge(open.request_id, T0) else { unreachable!() };
    bench.body(post, vec![bend_challenge(challenge)]);
    let answers_challenge = bench.told.is_empty();
    if answers_challenge {
        let (post, message) = bench.take_post();
        let ClientMessage::CompleteSession(complete) = message else { panic!("no CompleteSession") };
        let ServerMessage::SessionOpened(opened) = frames::opened(complete.request_id, T0 + 9) else { unreachable!() };
        bench.body(post, vec![bend_opened(opened)]);
    }
    match bench.told.pop_back() {
        Some(Output::Closed { cause, retry_at_ms }) => (cause.code(), retry_at_ms.is_some()),
        other => panic!("not closed: {other:?}"),
    }
}

#[test]
fn each_refusal_closes() {
    let other = Bytes32([77; 32]);
    let elsewhere = || SigningContext { chain_id: 8, ..frames::context() };
    let challenge = |bend: &dyn Fn(&mut SessionChallenge)| {
        closes_with(
            |mut frame| {
                bend(&mut frame);
                ServerMessage::SessionChallenge(frame)
            },
            ServerMessage::SessionOpened,
        )
    };
    let opened = |bend: &dyn Fn(&mut SessionOpened)| {
        closes_with(ServerMessage::SessionChallenge, |mut frame| {
            bend(&mut frame);
            ServerMessage::SessionOpened(frame)
        })
    };
    let halts = |code| (code, false);
    assert_eq!(challenge(&|c| c.request_id = other), halts("protocol/request-id-mismatch"));
    assert_eq!(challenge(&|c| c.grant_id = other), halts("protocol/session-mismatch"));
    assert_eq!(challenge(&|c| c.expires_at_ms = T0 - 1), ("protocol/challenge-expired", true));
    assert_eq!(challenge(&|c| c.context = elsewhere()), halts("verify/context-mismatch"));
    assert_eq!(challenge(&|c| c.stream_id = other), halts("verify/stream-mismatch"));
    assert_eq!(challenge(&|c| c.served_at.chain_instance_id = other), halts("verify/served-at-mismatch"));
    assert_eq!(opened(&|o| o.request_id = other), halts("protocol/request-id-mismatch"));
    assert_eq!(opened(&|o| o.grant_id = other), halts("protocol/session-mismatch"));
    assert_eq!(opened(&|o| o.session_id = other), halts("protocol/session-mismatch"));
    assert_eq!(opened(&|o| o.expires_at_ms = T0 - 1), ("protocol/challenge-expired", true));
    assert_eq!(opened(&|o| o.context = elsewhere()), halts("verify/context-mismatch"));
    assert_eq!(opened(&|o| o.stream_id = other), halts("verify/stream-mismatch"));
    assert_eq!(opened(&|o| o.served_at.chain_instance_id = other), halts("verify/served-at-mismatch"));
    // The first check that fails decides.
    assert_eq!(
        challenge(&|c| (c.grant_id, c.expires_at_ms, c.stream_id) = (other, 0, other)),
        halts("protocol/session-mismatch")
    );
    assert_eq!(
        closes_with(|_| frames::delivery(1, 0, 0), ServerMessage::SessionOpened),
        halts("protocol/unexpected-frame")
    );
    assert_eq!(
        closes_with(ServerMessage::SessionChallenge, |_| frames::challenge(other, T0)),
        halts("protocol/unexpected-frame")
    );
}

#[test]
fn a_frame_after_the_challenge_is_unexpected() {
    let mut bench = Bench::new();
    let (post, message) = bench.take_post();
    let ClientMessage::OpenSession(open) = message else { panic!("no OpenSession") };
    let challenge = frames::challenge(open.request_id, T0);
    bench.body(post, vec![challenge.clone(), challenge]);
    assert!(
        matches!(&bench.told[0], Output::Closed { cause, retry_at_ms: None } if cause.code() == "protocol/unexpected-frame")
    );
}

#[test]
fn an_error_is_an_outcome_not_a_violation() {
    for (code, remedy) in [(3907, Remedy::FixRequest), (3925, Remedy::Retry), (3910, Remedy::FixRequest)] {
        let mut bench = Bench::new();
        let (post, message) = bench.take_post();
        let ClientMessage::OpenSession(open) = message else { panic!("no OpenSession") };
        bench.body(post, vec![frames::error(code, Some(open.request_id), None)]);
        let Some(Output::Closed { cause: CloseCause::Provider(error), retry_at_ms }) = bench.told.pop_front() else {
            panic!("no provider error")
        };
        assert_eq!((error.code, error.remedy()), (code, remedy));
        assert_eq!(retry_at_ms.is_some(), remedy == Remedy::Retry, "{code}");
    }
}

#[test]
fn an_empty_batch_and_a_lost_exchange_are_retried() {
    let mut bench = Bench::new();
    let (post, _) = bench.take_post();
    bench.body(post, vec![]);
    assert!(matches!(
        bench.told.pop_front(),
        Some(Output::Closed { cause: CloseCause::OutcomeUnknown, retry_at_ms: Some(_) })
    ));
    let due = bench.session.wake_at().unwrap();
    bench.time(due);
    let (post, _) = bench.take_post();
    bench.session.handle_transport_error(post, TransportError::Offline, due);
    bench.drain();
    assert!(matches!(
        bench.told.pop_front(),
        Some(Output::Closed { cause: CloseCause::Transport(TransportError::Offline), retry_at_ms: Some(_) })
    ));
}

#[test]
fn a_redirect_is_surfaced_and_final() {
    let mut bench = Bench::new();
    let (post, _) = bench.take_post();
    bench.session.handle_transport_error(post, TransportError::Redirected, T0);
    bench.drain();
    assert!(matches!(bench.told.pop_front(), Some(Output::Closed { retry_at_ms: None, .. })));
    assert!(bench.session.is_closed());
    assert_eq!(bench.session.submit(frames::append(), T0), Err(ApiMisuse::NotStarted));
    bench.session.handle_start(T0, [4; 32]).unwrap();
    bench.drain();
    bench.handshake();
    assert!(matches!(bench.told.pop_front(), Some(Output::Opened { .. })));
}

#[test]
fn a_signature_of_another_digest_is_ignored() {
    let config = SessionConfig::new(frames::handshake_config());
    let mut session = remuda_session::LongPollSession::new(config, remuda_session::Slot::Poll);
    session.handle_start(T0, [3; 32]).unwrap();
    let Some(Output::Post { post, body }) = session.poll_output() else { panic!("no post") };
    let ClientMessage::OpenSession(open) = remuda_wire::frame::ClientFrame::from_bytes(&body).unwrap().0 else {
        panic!("no OpenSession")
    };
    session.handle_body(post, &support::batch(vec![frames::challenge(open.request_id, T0)]), T0);
    let Some(Output::Sign { digest }) = session.poll_output() else { panic!("nothing to sign") };
    session.handle_signature(&Bytes32([1; 32]), SIGNATURE, T0);
    assert_eq!(session.poll_output(), None);
    session.handle_signing_failed(&Bytes32([1; 32]));
    assert_eq!(session.poll_output(), None);
    session.handle_signing_failed(&digest);
    assert_eq!(session.poll_output(), Some(Output::Closed { cause: CloseCause::SigningFailed, retry_at_ms: None }));
}

/// Two handshakes of one machine; gives the code that it closes with when the second session and challenge are these.
fn second_handshake_closes_with(bend: impl Fn(&mut SessionChallenge)) -> Option<&'static str> {
    let mut bench = Bench::new();
    bench.handshake();
    bench.told.clear();
    bench.time(T0 + 3_600_000);
    bench.submit(frames::append());
    bench.told.clear();
    let (post, message) = bench.take_post();
    let ClientMessage::OpenSession(open) = message else { panic!("no OpenSession") };
    let fresh = frames::challenge_of(frames::id(99), open.request_id, bench.now_ms);
    let ServerMessage::SessionChallenge(mut challenge) = fresh else { unreachable!() };
    bend(&mut challenge);
    bench.body(post, vec![ServerMessage::SessionChallenge(challenge)]);
    match bench.told.pop_back() {
        None => {
            assert!(matches!(bench.take_post().1, ClientMessage::CompleteSession(_)));
            None
        }
        Some(Output::Closed { cause, retry_at_ms: None }) => Some(cause.code()),
        Some(other) => panic!("not closed for good: {other:?}"),
    }
}

#[test]
fn a_session_or_challenge_that_was_seen_before_is_not_signed() {
    let ServerMessage::SessionChallenge(first) = frames::challenge(frames::id(1), T0) else { unreachable!() };
    let mismatch = Some("protocol/session-mismatch");
    assert_eq!(second_handshake_closes_with(|_| {}), None);
    assert_eq!(second_handshake_closes_with(|again| again.session_id = first.session_id), mismatch);
    assert_eq!(second_handshake_closes_with(|again| again.challenge = first.challenge), mismatch);
    assert_eq!(second_handshake_closes_with(|again| again.challenge = Bytes32::ZERO), mismatch);
}
