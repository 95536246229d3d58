//! One open session over virtual time: one exchange at a time, answers, subscriptions, credit, faults, reconnects.

mod support;

use remuda_session::{ApiMisuse, CloseCause, CreditWindow, Output, RoutedFrame, SessionConfig, TransportError};
use remuda_wire::frame::{ClientMessage, ServerMessage};
use remuda_wire::request::{Credit, RequestBody, VerificationMode};
use remuda_wire::response::{ResponseBody, SubscriptionState};
use remuda_wire::Bytes32;
use support::{batch, frames, Bench, T0};

const HOUR_MS: u64 = 3_600_000;

fn closed_code(bench: &mut Bench) -> (&'static str, Option<u64>) {
    match bench.told.pop_back() {
        Some(Output::Closed { cause, retry_at_ms }) => (cause.code(), retry_at_ms),
        other => panic!("not closed: {other:?}"),
    }
}

#[test]
fn one_request_is_in_flight_and_counters_are_contiguous() {
    let mut bench = Bench::opened();
    let handles: Vec<_> = (0..3).map(|_| bench.submit(frames::append())).collect();
    let mut ids = Vec::new();
    for (index, handle) in handles.iter().enumerate() {
        let (post, request) = bench.take_request();
        assert!(bench.posts.is_empty());
        assert_eq!(request.proof.counter, u64::try_from(index).unwrap() + 1);
        assert_eq!(request.proof.session_id, frames::SESSION);
        ids.push(request.request_id);
        bench.body(post, vec![frames::answer(&request)]);
        assert!(
            matches!(bench.told.pop_front(), Some(Output::Answer { handle: told, result: Ok(_) }) if told == *handle)
        );
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[test]
fn an_unknown_outcome_takes_the_next_counter() {
    let mut bench = Bench::opened();
    let first = bench.submit(frames::append());
    let (post, request) = bench.take_request();
    assert_eq!(request.proof.counter, 1);
    bench.body(post, vec![]);
    assert_eq!(bench.told.pop_front(), Some(Output::PollTimeout { handle: first }));
    let second = bench.submit(frames::append());
    let (post, request) = bench.take_request();
    assert_eq!(request.proof.counter, 2);
    bench.session.handle_transport_error(post, TransportError::Aborted, bench.now_ms);
    bench.drain();
    assert_eq!(bench.told.pop_front(), Some(Output::Unanswered { handle: second }));
    assert!(bench.told.is_empty(), "nothing is subscribed, so the session goes on");
    bench.submit(frames::append());
    let due = bench.session.wake_at().unwrap();
    bench.time(due);
    assert_eq!(bench.take_request().1.proof.counter, 3);
}

#[test]
fn an_empty_batch_grants_nothing() {
    let mut bench = Bench::opened();
    bench.subscribe(1, 5, 50);
    let poll = bench.submit(frames::credit(1, 7, 70));
    let (post, _) = bench.take_request();
    bench.body(post, vec![]);
    assert_eq!(bench.told.pop_front(), Some(Output::PollTimeout { handle: poll }));
    assert_eq!(bench.session.subscriptions().credit(&frames::id(1)), Some(CreditWindow { records: 5, bytes: 50 }));
}

#[test]
fn credit_is_what_the_response_echoes() {
    let mut bench = Bench::opened();
    bench.subscribe(1, 0, 0);
    bench.submit(frames::credit(1, 7, 70));
    let (post, request) = bench.take_request();
    let echo = Credit { subscription_id: frames::id(1), records: 2, bytes: 30 };
    bench.body(post, vec![frames::response(request.request_id, ResponseBody::Credit(echo))]);
    assert_eq!(bench.session.subscriptions().credit(&frames::id(1)), Some(CreditWindow { records: 2, bytes: 30 }));
}

#[test]
fn frames_follow_the_response_that_opens_or_grants() {
    let mut bench = Bench::opened();
    bench.submit(frames::open_subscription(1));
    let (post, request) = bench.take_request();
    bench.body(post, vec![frames::answer(&request), frames::transition(), frames::checkpoint(1)]);
    assert!(matches!(
        bench.told.pop_front(),
        Some(Output::Answer { result: Ok(ResponseBody::OpenSubscription(_)), .. })
    ));
    assert!(matches!(bench.told.pop_front(), Some(Output::Frame(RoutedFrame::Transition(_)))));
    assert!(matches!(bench.told.pop_front(), Some(Output::Frame(RoutedFrame::Checkpoint(_)))));
    bench.submit(frames::credit(1, 2, 10));
    let (post, request) = bench.take_request();
    bench.body(post, vec![frames::answer(&request), frames::delivery(1, 0, 4), frames::delivery(1, 1, 6)]);
    bench.told.pop_front();
    for _ in 0..2 {
        assert!(matches!(bench.told.pop_front(), Some(Output::Frame(RoutedFrame::Delivery(_)))));
    }
    assert_eq!(bench.session.subscriptions().credit(&frames::id(1)), Some(CreditWindow::default()));
}

/// Sends one credit poll for subscription 1 and answers it with `bend`; the code of the close.
fn fault_of(bend: impl Fn(ServerMessage, Bytes32) -> Vec<ServerMessage>) -> &'static str {
    let mut bench = Bench::opened();
    bench.subscribe(1, 1, 10);
    let handle = bench.submit(frames::credit(1, 1, 10));
    let (post, request) = bench.take_request();
    bench.body(post, bend(frames::answer(&request), request.request_id));
    assert_eq!(bench.told.pop_front(), Some(Output::Unanswered { handle }), "nothing of the body is told");
    assert_eq!(bench.told.len(), 1);
    assert!(bench.session.subscriptions().is_empty());
    let (code, retry_at_ms) = closed_code(&mut bench);
    assert_eq!(retry_at_ms, None);
    code
}

#[test]
fn a_fault_anywhere_applies_none_of_the_batch() {
    let ok = |message, _| vec![message];
    let with = |after: Vec<ServerMessage>| {
        fault_of(move |message, id| {
            let mut all = ok(message, id);
            all.extend(after.clone());
            all
        })
    };
    assert_eq!(with(vec![frames::delivery(1, 0, 10), frames::delivery(2, 1, 0)]), "protocol/unknown-subscription");
    assert_eq!(with(vec![frames::delivery(1, 0, 10), frames::checkpoint(2)]), "protocol/unknown-subscription");
    assert_eq!(with((0..3).map(|s| frames::delivery(1, s, 1)).collect()), "protocol/credit-exceeded");
    assert_eq!(with(vec![frames::delivery(1, 0, 21)]), "protocol/credit-exceeded");
    assert_eq!(with(vec![frames::transition(), frames::opened(frames::id(1), T0)]), "protocol/unexpected-frame");
    let other = frames::id(200);
    assert_eq!(with(vec![frames::error(3913, Some(other), None)]), "protocol/request-id-mismatch");
    let credit = |id: u8| ResponseBody::Credit(Credit { subscription_id: frames::id(id), records: 1, bytes: 10 });
    assert_eq!(fault_of(|message, _| vec![message.clone(), message]), "protocol/request-id-mismatch");
    assert_eq!(fault_of(|_, _| vec![frames::response(other, credit(1))]), "protocol/request-id-mismatch");
    let state = SubscriptionState { stream_id: frames::STREAM, subscription_id: frames::id(1) };
    assert_eq!(
        fault_of(|_, id| vec![frames::response(id, ResponseBody::CloseSubscription(state.clone()))]),
        "protocol/response-method"
    );
    assert_eq!(fault_of(|_, id| vec![frames::response(id, credit(2))]), "verify/result-binding");
    // Credit is granted by the response, so a delivery before it is not covered.
    assert_eq!(
        fault_of(|message, _| vec![frames::delivery(1, 0, 5), frames::delivery(1, 1, 5), message]),
        "protocol/credit-exceeded"
    );
}

#[test]
fn a_body_is_decoded_whole_before_any_frame_is_applied() {
    let mut bench = Bench::opened();
    bench.subscribe(1, 5, 50);
    bench.submit(frames::credit(1, 0, 0));
    let (post, request) = bench.take_request();
    let mut bytes = batch(vec![frames::answer(&request), frames::delivery(1, 0, 4)]);
    bytes.push(0);
    bench.bytes(post, &bytes);
    assert!(matches!(bench.told.pop_front(), Some(Output::Unanswered { .. })));
    assert_eq!(closed_code(&mut bench), ("decode/trailing-bytes", None));
    assert!(bench.told.is_empty());
}

#[test]
fn a_subscription_without_verification_gets_no_checkpoint() {
    let mut bench = Bench::opened();
    bench.submit(frames::subscription_with(1, VerificationMode::None));
    let (post, request) = bench.take_request();
    bench.body(post, vec![frames::answer(&request), frames::checkpoint(1)]);
    assert_eq!(closed_code(&mut bench).0, "protocol/unexpected-checkpoint");
}

#[test]
fn group_states_are_of_a_group_that_is_followed() {
    for (group, legal) in [(8, true), (9, false)] {
        let mut bench = Bench::opened();
        bench.submit(frames::group_subscription(1, 8));
        let (post, request) = bench.take_request();
        bench.body(post, vec![frames::answer(&request), frames::group_deleted(group)]);
        match bench.told.pop_back() {
            Some(Output::Frame(RoutedFrame::GroupState(_))) => assert!(legal),
            Some(Output::Closed { cause, .. }) => assert_eq!((cause.code(), legal), ("protocol/unknown-group", false)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_group_subscription_gets_no_fast_record() {
    let mut bench = Bench::opened();
    bench.submit(frames::group_subscription(1, 8));
    let (post, request) = bench.take_request();
    bench.body(post, vec![frames::answer(&request), frames::delivery(1, 0, 0)]);
    assert_eq!(closed_code(&mut bench).0, "protocol/unexpected-frame");
}

#[test]
fn a_result_for_another_subscription_is_false() {
    let mut bench = Bench::opened();
    bench.submit(frames::open_subscription(1));
    let (post, request) = bench.take_request();
    let state = SubscriptionState { stream_id: frames::STREAM, subscription_id: frames::id(2) };
    bench.body(post, vec![frames::response(request.request_id, ResponseBody::OpenSubscription(state))]);
    assert_eq!(closed_code(&mut bench).0, "verify/result-binding");
}

#[test]
fn errors_reach_what_they_name() {
    let mut bench = Bench::opened();
    bench.subscribe(1, 5, 50);
    bench.subscribe(2, 5, 50);
    // The request, and no subscription.
    let handle = bench.submit(frames::credit(1, 0, 0));
    let (post, request) = bench.take_request();
    bench.body(post, vec![frames::error(3914, Some(request.request_id), None)]);
    assert!(
        matches!(&bench.told.pop_front(), Some(Output::Answer { handle: told, result: Err(error) }) if *told == handle && error.code == 3914)
    );
    assert_eq!(bench.session.subscriptions().ids().count(), 2);
    // A subscription, unprompted, beside an answer.
    bench.submit(frames::credit(2, 0, 0));
    let (post, request) = bench.take_request();
    bench.body(post, vec![frames::error(3917, None, Some(1)), frames::answer(&request), frames::delivery(2, 0, 1)]);
    assert!(
        matches!(&bench.told.pop_front(), Some(Output::SubscriptionEnded { subscription_id, error }) if *subscription_id == frames::id(1) && error.details == [1, 2])
    );
    assert!(matches!(bench.told.pop_front(), Some(Output::Answer { result: Ok(_), .. })));
    assert!(matches!(bench.told.pop_front(), Some(Output::Frame(_))));
    // Both: it ends the subscription and answers the request. Repeated past the end, it changes nothing.
    bench.submit(frames::credit(2, 0, 0));
    let (post, request) = bench.take_request();
    let ends = |request_id| frames::error(3930, request_id, Some(2));
    bench.body(post, vec![ends(Some(request.request_id)), ends(None)]);
    assert!(matches!(bench.told.pop_front(), Some(Output::SubscriptionEnded { .. })));
    assert!(matches!(bench.told.pop_front(), Some(Output::Answer { result: Err(_), .. })));
    assert!(bench.told.is_empty());
    assert!(bench.session.subscriptions().is_empty() && bench.session.is_idle(T0));
}

#[test]
fn frames_of_an_ended_subscription_are_a_fault() {
    let mut bench = Bench::opened();
    bench.subscribe(1, 5, 50);
    bench.submit(frames::close_subscription(1));
    let (post, request) = bench.take_request();
    bench.body(post, vec![frames::answer(&request), frames::delivery(1, 0, 1)]);
    assert_eq!(closed_code(&mut bench).0, "protocol/unknown-subscription");
}

#[test]
fn errors_of_the_session_close_it_by_remedy() {
    for (code, returns) in [(3925, true), (3942, false), (3941, false), (4000, false)] {
        let mut bench = Bench::opened();
        bench.subscribe(1, 5, 50);
        bench.submit(frames::credit(1, 0, 0));
        let (post, request) = bench.take_request();
        bench.body(post, vec![frames::answer(&request), frames::error(code, None, None)]);
        let Some(Output::Closed { cause: CloseCause::Provider(error), retry_at_ms }) = bench.told.pop_back() else {
            panic!("not closed by {code}")
        };
        assert_eq!((error.code, retry_at_ms.is_some()), (code, returns));
    }
}

#[test]
fn refused_proofs_open_a_new_session() {
    let mut bench = Bench::opened();
    bench.submit(frames::append());
    let (post, request) = bench.take_request();
    bench.body(post, vec![frames::error(3910, Some(request.request_id), None)]);
    assert!(matches!(bench.told.pop_front(), Some(Output::Answer { result: Err(_), .. })));
    let (code, retry_at_ms) = closed_code(&mut bench);
    assert_eq!(code, "provider/invalid-proof-of-possession");
    bench.time(retry_at_ms.unwrap());
    bench.handshake();
    assert!(matches!(bench.told.pop_front(), Some(Output::Opened { .. })));
}

#[test]
fn an_open_subscription_without_answer_is_not_guessed_at() {
    for frames_instead in [vec![], vec![frames::transition()]] {
        let mut bench = Bench::opened();
        bench.submit(frames::open_subscription(1));
        let (post, _) = bench.take_request();
        bench.body(post, frames_instead);
        let (code, retry_at_ms) = closed_code(&mut bench);
        assert_eq!((code, retry_at_ms.is_some()), ("session/outcome-unknown", true));
    }
}

#[test]
fn misuse_changes_nothing() {
    let mut bench =
        Bench::with(SessionConfig { max_queued_requests: 2, ..SessionConfig::new(frames::handshake_config()) });
    assert_eq!(bench.session.handle_start(T0, [0; 32]), Err(ApiMisuse::AlreadyStarted));
    assert_eq!(bench.session.submit(frames::credit(1, 0, 0), T0), Err(ApiMisuse::UnknownSubscription));
    assert_eq!(bench.session.submit(frames::close_subscription(1), T0), Err(ApiMisuse::UnknownSubscription));
    bench.submit(frames::open_subscription(1));
    assert_eq!(bench.session.submit(frames::open_subscription(1), T0), Err(ApiMisuse::SubscriptionExists));
    bench.submit(frames::credit(1, 0, 0));
    assert_eq!(bench.session.submit(frames::append(), T0), Err(ApiMisuse::QueueFull));
    bench.handshake();
    assert!(matches!(bench.take_request().1.body, RequestBody::OpenSubscription(_)));
    assert_eq!(bench.session.submit(frames::open_subscription(1), T0), Err(ApiMisuse::SubscriptionExists));
}

#[test]
fn a_lost_body_ends_subscriptions_and_keeps_commands() {
    let mut bench = Bench::opened();
    bench.subscribe(1, 5, 50);
    let poll = bench.submit(frames::credit(1, 0, 0));
    let (append, close) = (bench.submit(frames::append()), bench.submit(frames::close_subscription(1)));
    let (post, _) = bench.take_request();
    bench.session.handle_transport_error(post, TransportError::Http { status: 503 }, bench.now_ms);
    bench.drain();
    assert_eq!(bench.told.pop_front(), Some(Output::Unanswered { handle: poll }));
    assert_eq!(bench.told.pop_front(), Some(Output::Unsent { handle: close }));
    let (code, retry_at_ms) = closed_code(&mut bench);
    assert_eq!(code, "transport/http-status");
    bench.time(retry_at_ms.unwrap());
    bench.handshake();
    let (post, request) = bench.take_request();
    assert_eq!(request.proof.counter, 1, "counters are of a session");
    bench.told.clear();
    bench.body(post, vec![frames::answer(&request)]);
    assert!(matches!(bench.told.pop_front(), Some(Output::Answer { handle, result: Ok(_) }) if handle == append));
}

#[test]
fn reconnects_wait_with_growing_jitter_and_reset_on_success() {
    let mut bench = Bench::opened();
    let mut ceilings = Vec::new();
    for attempt in 0..12 {
        if attempt == 0 {
            bench.subscribe(1, 1, 1);
            bench.submit(frames::credit(1, 0, 0));
        }
        let (post, _) = bench.take_post();
        bench.session.handle_transport_error(post, TransportError::Offline, bench.now_ms);
        // Not drained by the bench: the close comes before the next handshake.
        bench.drain();
        let (_, retry_at_ms) = closed_code(&mut bench);
        let delay_ms = retry_at_ms.unwrap() - bench.now_ms;
        let ceiling_ms = remuda_session::Backoff::DEFAULT.ceiling_ms(attempt);
        assert!(delay_ms <= ceiling_ms, "{delay_ms} over {ceiling_ms}");
        ceilings.push(ceiling_ms);
        bench.time(bench.now_ms + delay_ms);
    }
    assert_eq!((ceilings[0], ceilings[3], ceilings[11]), (500, 4_000, 30_000));
    // A handshake alone is no success: only an answered request is.
    bench.handshake();
    bench.told.clear();
    bench.subscribe(1, 1, 1);
    bench.submit(frames::credit(1, 0, 0));
    let (post, _) = bench.take_request();
    bench.session.handle_transport_error(post, TransportError::Offline, bench.now_ms);
    bench.drain();
    assert!(closed_code(&mut bench).1.unwrap() <= bench.now_ms + 500);
}

#[test]
fn a_request_past_its_deadline_is_given_up_and_its_late_body_ignored() {
    let mut bench = Bench::opened();
    bench.subscribe(1, 5, 50);
    bench.submit(frames::credit(1, 0, 0));
    let (post, request) = bench.take_request();
    assert_eq!(bench.session.wake_at(), Some(T0 + 60_000));
    bench.time(T0 + 59_999);
    assert!(bench.told.is_empty());
    bench.time(T0 + 60_000);
    assert_eq!(bench.told.pop_front(), Some(Output::Abort { post }));
    let (code, retry_at_ms) = closed_code(&mut bench);
    assert_eq!(code, "transport/timeout");
    bench.time(retry_at_ms.unwrap());
    bench.told.clear();
    bench.body(post, vec![frames::answer(&request)]);
    assert!(bench.told.is_empty(), "the late body is of no exchange");
    bench.handshake();
    assert!(matches!(bench.told.pop_front(), Some(Output::Opened { .. })));
}

#[test]
fn after_eight_hours_of_sleep_an_arrived_body_counts_and_the_session_is_renewed() {
    let mut bench = Bench::opened();
    bench.subscribe(1, 5, 50);
    bench.submit(frames::credit(1, 0, 0));
    let (post, request) = bench.take_request();
    bench.now_ms = T0 + 8 * HOUR_MS;
    bench.body(post, vec![frames::answer(&request), frames::delivery(1, 0, 3)]);
    bench.time(bench.now_ms);
    assert!(matches!(bench.told.pop_front(), Some(Output::Answer { .. })));
    assert!(matches!(bench.told.pop_front(), Some(Output::Frame(_))));
    assert!(bench.told.is_empty());
    // The session expired meanwhile: the next request opens another first.
    let handle = bench.submit(frames::credit(1, 0, 0));
    assert_eq!(bench.told.pop_front(), Some(Output::Unsent { handle }));
    assert_eq!(closed_code(&mut bench), ("session/expired", Some(bench.now_ms)));
    bench.handshake();
    assert!(matches!(bench.told.pop_front(), Some(Output::Opened { .. })));
}

#[test]
fn after_eight_hours_of_sleep_without_a_body_the_session_comes_back() {
    let mut bench = Bench::opened();
    bench.subscribe(1, 5, 50);
    let handle = bench.submit(frames::credit(1, 0, 0));
    let _ = bench.take_request();
    bench.time(T0 + 8 * HOUR_MS);
    assert!(matches!(bench.told.pop_front(), Some(Output::Abort { .. })));
    assert_eq!(bench.told.pop_front(), Some(Output::Unanswered { handle }));
    let (code, retry_at_ms) = closed_code(&mut bench);
    assert_eq!(code, "transport/timeout");
    bench.time(retry_at_ms.unwrap());
    bench.handshake();
}

#[test]
fn a_session_is_renewed_before_it_expires() {
    let mut bench = Bench::opened();
    bench.time(T0 + HOUR_MS - 30_001);
    bench.submit(frames::append());
    let (post, request) = bench.take_request();
    bench.body(post, vec![frames::answer(&request)]);
    bench.told.clear();
    bench.time(T0 + HOUR_MS - 30_000);
    bench.submit(frames::append());
    assert_eq!(closed_code(&mut bench), ("session/expired", Some(bench.now_ms)));
    bench.handshake();
    assert_eq!(bench.take_request().1.proof.counter, 1);
}

#[test]
fn a_short_session_is_used_for_half_of_its_life() {
    let mut bench = Bench::new();
    let (post, message) = bench.take_post();
    let ClientMessage::OpenSession(open) = message else { panic!("no OpenSession") };
    bench.body(post, vec![frames::challenge(open.request_id, T0)]);
    let (post, message) = bench.take_post();
    let ClientMessage::CompleteSession(complete) = message else { panic!("no CompleteSession") };
    bench.body(post, vec![frames::opened(complete.request_id, T0 + 1_000)]);
    bench.submit(frames::append());
    assert_eq!(bench.take_request().1.proof.counter, 1);
}

#[test]
fn closing_settles_everything() {
    let mut bench = Bench::opened();
    let (sent, waiting) = (bench.submit(frames::append()), bench.submit(frames::append()));
    let (post, _) = bench.take_request();
    bench.session.close(CloseCause::Requested);
    bench.drain();
    let expected = [
        Output::Abort { post },
        Output::Unanswered { handle: sent },
        Output::Unsent { handle: waiting },
        Output::Closed { cause: CloseCause::Requested, retry_at_ms: None },
    ];
    assert_eq!(bench.told, expected);
    assert_eq!(bench.session.wake_at(), None);
}
