//! Consumer groups: every frame is judged by the verifier of the group's chain as it comes.

mod common;

use common::group::{ack, config, create, extend, full_session, nack, reject, Followed};
use common::standard::{answered, append, standard_id};
use common::{error_code, fresh_directory, Provider, Session};
use remuda_verify::response::AnsweredResult;
use remuda_wire::frame::ServerMessage;
use remuda_wire::group::{DeliveryStateAction as Action, GroupMode, GroupMutableConfig, GroupStart};
use remuda_wire::preimage::keccak256;
use remuda_wire::request::{
    DeleteGroupRequest, OpenSubscriptionRequest, RedriveRequest, RequestBody, StandardGroupSource, SubscriptionSource,
    UpdateGroupRequest, VerificationMode,
};
use remuda_wire::retention::GroupRetentionAnchor;
use remuda_wire::{Bytes32, Canonical};

const STANDARD: [&str; 4] = ["--class", "standard", "--poll-ms", "300"];

fn provider(name: &str) -> Provider {
    Provider::start(&fresh_directory(name), &STANDARD)
}

fn id(text: &str) -> Bytes32 {
    keccak256(text.as_bytes())
}

fn accepted(session: &mut Session, body: RequestBody) -> AnsweredResult {
    answered(session, body).unwrap_or_else(|code| panic!("{code}"))
}

/// A group of the first lane with `count` records in it.
fn filled(
    session: &mut Session,
    mode: GroupMode,
    count: usize,
    change: impl FnOnce(&mut remuda_wire::group::GroupConfig),
) -> remuda_wire::group::GroupConfig {
    let lane = session.stream.lanes[0];
    let mut config = config(lane, id("group"), mode);
    change(&mut config);
    accepted(session, create(session, &config));
    for number in 0..count {
        append(session, lane, &format!("record {number}"));
        append(session, session.stream.lanes[1], &format!("elsewhere {number}"));
    }
    config
}

#[test]
fn strict_order_exposes_one_record_at_a_time_over_both_transports() {
    for socket in [false, true] {
        let provider = provider(&format!("strict-{socket}"));
        let mut session = full_session(&provider, 1, socket, "");
        let config = filled(&mut session, GroupMode::StrictFifo, 3, |_| {});
        let mut group = Followed::open(&mut session, id("sub"), &config);
        group.poll(&mut session, 10).expect("honest");
        group.poll_until(&mut session, |group| !group.delivered.is_empty()).expect("honest");
        assert_eq!(group.sequences(), [0]);
        // Not now: it comes again before any other.
        accepted(&mut session, nack(&group.lease(), 0));
        group.poll_until(&mut session, |group| group.delivered.len() == 2).expect("honest");
        assert_eq!((group.sequences(), group.delivered[1].lease.as_ref().expect("a lease").attempt), (vec![0, 0], 2));
        for sequence in [2, 4] {
            accepted(&mut session, ack(&group.lease()));
            group.poll_until(&mut session, |group| group.sequences().last() == Some(&sequence)).expect("honest");
        }
        accepted(&mut session, ack(&group.lease()));
        group.poll_until(&mut session, |group| group.actions.last() == Some(&Action::Ack)).expect("honest");
        let expected = [
            Action::GroupCreate,
            Action::LeaseIssue,
            Action::Nack,
            Action::LeaseIssue,
            Action::Ack,
            Action::LeaseIssue,
            Action::Ack,
            Action::LeaseIssue,
            Action::Ack,
        ];
        assert_eq!(group.actions, expected);
        assert_eq!((group.verifier.chain().cycles(), group.verifier.chain().terminal()), (3, 3));
    }
}

#[test]
fn concurrent_leases_are_bounded_by_group_and_by_holder() {
    let provider = provider("concurrent");
    let mut one = full_session(&provider, 1, false, ",\"maxInFlight\":2");
    let config = filled(&mut one, GroupMode::Concurrent, 6, |config| config.max_in_flight = 3);
    let mut first = Followed::open(&mut one, id("one"), &config);
    first.poll(&mut one, 10).expect("honest");
    assert_eq!(first.sequences(), [0, 2], "two by the grant");
    // The same holder has the same count on every connection and in every group.
    let source = StandardGroupSource { lane_id: config.lane_id, group_id: config.group_id };
    let mut again = full_session(&provider, 1, true, ",\"maxInFlight\":2");
    let refused =
        Followed::open_source(&mut again, id("again"), &config, SubscriptionSource::StandardGroup(source), None);
    assert_eq!(error_code(&refused.err().expect("refused")), 3940);
    let mut two = full_session(&provider, 2, true, "");
    let mut second = Followed::open(&mut two, id("two"), &config);
    second.poll(&mut two, 1).expect("honest");
    second.poll_until(&mut two, |second| second.delivered.len() == 1).expect("honest");
    assert_eq!(second.sequences(), [4], "one more by the group");
    accepted(&mut one, ack(&first.lease()));
    first.poll_until(&mut one, |first| first.delivered.len() == 3).expect("honest");
    assert_eq!(first.sequences(), [0, 2, 6]);
    assert_eq!(answered(&mut two, ack(&first.lease())).err(), Some(3919), "another holder's lease");
}

#[test]
fn a_lease_runs_out_and_attempts_are_exhausted() {
    let provider = provider("expiry");
    let mut session = full_session(&provider, 1, false, "");
    let config = filled(&mut session, GroupMode::StrictFifo, 2, |config| {
        config.visibility_timeout_ms = 200;
        config.max_attempts = 2;
    });
    let mut group = Followed::open(&mut session, id("sub"), &config);
    group.poll(&mut session, 3).expect("honest");
    let stale = group.lease();
    group.poll_until(&mut session, |group| group.sequences() == [0, 0, 2]).expect("honest");
    let expected = [
        Action::GroupCreate,
        Action::LeaseIssue,
        Action::LeaseExpire,
        Action::LeaseIssue,
        Action::AttemptsExhaust,
        Action::LeaseIssue,
    ];
    assert_eq!(group.actions[..6], expected);
    assert_eq!(answered(&mut session, ack(&stale)).err(), Some(3920), "its cycle is over");
    let other = remuda_wire::group::DeliveryLeaseRef { delivery_cycle_id: id("no cycle"), ..stale };
    assert_eq!(answered(&mut session, ack(&other)).err(), Some(3919));
}

#[test]
fn a_lease_is_extended_never_beyond_the_maximum() {
    let provider = provider("extend");
    let mut session = full_session(&provider, 1, true, "");
    let config = filled(&mut session, GroupMode::StrictFifo, 1, |config| {
        config.visibility_timeout_ms = 60_000;
        config.max_visibility_ms = 90_000;
    });
    let mut group = Followed::open(&mut session, id("sub"), &config);
    group.poll(&mut session, 1).expect("honest");
    group.poll_until(&mut session, |group| !group.delivered.is_empty()).expect("honest");
    let issued = group.delivered[0].lease.as_ref().expect("a lease").issued_at_ms;
    let AnsweredResult::Delivery { state, .. } = accepted(&mut session, extend(&group.lease(), 1_000_000)) else {
        panic!("a delivery state");
    };
    assert_eq!(state.lease_expires_at_ms, Some(issued + 90_000));
    group.poll_until(&mut session, |group| group.actions.last() == Some(&Action::Extend)).expect("honest");
    accepted(&mut session, ack(&group.lease()));
}

#[test]
fn what_dies_is_read_and_brought_back_once() {
    let provider = provider("dead");
    let mut session = full_session(&provider, 1, false, "");
    let config = filled(&mut session, GroupMode::Concurrent, 3, |config| config.max_attempts = 1);
    let mut group = Followed::open(&mut session, id("sub"), &config);
    group.poll(&mut session, 3).expect("honest");
    assert_eq!(group.sequences(), [0, 2, 4]);
    let leases: Vec<_> =
        group.delivered.iter().map(|delivery| delivery.lease.clone().expect("a lease").reference).collect();
    accepted(&mut session, reject(&leases[0], id("reason")));
    let first = accepted(&mut session, nack(&leases[1], 0));
    let again = accepted(&mut session, nack(&leases[1], 0));
    assert_eq!(first.receipt_digest(), again.receipt_digest(), "said again, answered as before");
    accepted(&mut session, ack(&leases[2]));
    let mut other = full_session(&provider, 2, true, "");
    let mut dead = Followed::dead_letters(&mut other, id("dead"), &config, None);
    dead.poll(&mut other, 10).expect("honest");
    dead.poll_until(&mut other, |dead| dead.delivered.len() == 2).expect("honest");
    assert_eq!(dead.sequences(), [0, 2]);
    assert!(dead.delivered.iter().all(|delivery| delivery.lease.is_none()));
    let redrive = |cycle, sequence| {
        RequestBody::Redrive(RedriveRequest {
            stream_id: leases[0].stream_id,
            lane_id: config.lane_id,
            group_id: config.group_id,
            record_id: standard_id(sequence),
            terminal_cycle_id: cycle,
        })
    };
    let once = accepted(&mut session, redrive(leases[0].delivery_cycle_id, 0));
    let twice = accepted(&mut session, redrive(leases[0].delivery_cycle_id, 0));
    assert_eq!(once.receipt_digest(), twice.receipt_digest());
    let AnsweredResult::Delivery { state, .. } = &once else { panic!("{once:?}") };
    assert_eq!(state.group_queue_sequence, 4, "at the tail");
    accepted(&mut session, redrive(leases[2].delivery_cycle_id, 4));
    assert_eq!(answered(&mut session, redrive(id("no cycle"), 0)).err(), Some(3919));
    group.poll(&mut session, 2).expect("honest");
    group.poll_until(&mut session, |group| group.delivered.len() == 5).expect("honest");
    assert_eq!(group.sequences()[3..], [0, 4]);
    let lease = group.delivered[3].lease.clone().expect("a lease");
    assert_eq!((Some(lease.reference.delivery_cycle_id), lease.attempt), (state.successor_cycle_id, 1));
    // From a record on, what died at or before it is left out.
    let mut rest = full_session(&provider, 3, false, "");
    let mut dead = Followed::dead_letters(&mut rest, id("dead"), &config, Some(0));
    dead.poll(&mut rest, 10).expect("honest");
    assert_eq!(dead.sequences(), [2]);
}

#[test]
fn a_deadline_expires_a_record_whatever_its_state() {
    let provider = provider("deadline");
    let mut session = full_session(&provider, 1, true, "");
    let config = filled(&mut session, GroupMode::StrictFifo, 0, |config| config.record_deadline_ms = 2_000);
    let mut group = Followed::open(&mut session, id("sub"), &config);
    group.poll(&mut session, 1).expect("honest");
    // Credit is there, so it is leased as it comes; the second waits behind it.
    append(&mut session, config.lane_id, "leased");
    append(&mut session, config.lane_id, "waiting");
    group.poll_until(&mut session, |group| group.verifier.chain().terminal() == 2).expect("honest");
    assert_eq!(group.actions, [Action::GroupCreate, Action::LeaseIssue, Action::RecordExpire, Action::RecordExpire]);
    let lease = group.lease();
    assert_eq!(answered(&mut session, ack(&lease)).err(), Some(3920));
}

#[test]
fn a_group_lives_once() {
    let provider = provider("lifecycle");
    let mut session = full_session(&provider, 1, true, "");
    let (stream_id, lane) = (session.stream.stream_id, session.stream.lanes[0]);
    let mut config = filled(&mut session, GroupMode::StrictFifo, 1, |_| {});
    let body = create(&session, &config);
    accepted(&mut session, body);
    let other = remuda_wire::group::GroupConfig { max_attempts: 9, ..config.clone() };
    let body = create(&session, &other);
    assert_eq!(answered(&mut session, body).err(), Some(3915));
    let mutable = |config: &remuda_wire::group::GroupConfig| GroupMutableConfig {
        mode: config.mode,
        visibility_timeout_ms: config.visibility_timeout_ms,
        max_visibility_ms: config.max_visibility_ms,
        max_in_flight: config.max_in_flight,
        max_attempts: config.max_attempts,
        record_deadline_ms: config.record_deadline_ms,
        dead_letter_ttl_ms: config.dead_letter_ttl_ms,
        retention_pin_until_ms: config.retention_pin_until_ms,
    };
    let update = |config: &remuda_wire::group::GroupConfig, group_id| {
        let config = mutable(config);
        RequestBody::UpdateGroup(UpdateGroupRequest { stream_id, lane_id: lane, group_id, config })
    };
    let mut group = Followed::open(&mut session, id("sub"), &config);
    group.poll(&mut session, 1).expect("honest");
    group.poll_until(&mut session, |group| group.delivered.len() == 1).expect("honest");
    config.mode = GroupMode::Concurrent;
    assert_eq!(answered(&mut session, update(&config, id("group"))).err(), Some(3939), "a lease is live");
    accepted(&mut session, ack(&group.lease()));
    accepted(&mut session, update(&config, id("group")));
    assert_eq!(answered(&mut session, update(&config, id("nobody"))).err(), Some(3918));
    let delete = |group_id| RequestBody::DeleteGroup(DeleteGroupRequest { stream_id, lane_id: lane, group_id });
    let gone = accepted(&mut session, delete(id("group")));
    assert_eq!(accepted(&mut session, delete(id("group"))).receipt_digest(), gone.receipt_digest());
    assert_eq!(answered(&mut session, delete(id("nobody"))).err(), Some(3918));
    group.poll_until(&mut session, |group| group.actions.last() == Some(&Action::GroupDelete)).expect("honest");
    let body = create(&session, &config);
    assert_eq!(answered(&mut session, body).err(), Some(3915), "a name is never used again");
    assert_eq!(answered(&mut session, ack(&group.lease())).err(), Some(3918));
}

#[test]
fn configurations_that_break_an_inequality_name_their_field() {
    let provider = provider("config");
    let mut session = full_session(&provider, 1, false, "");
    let lane = session.stream.lanes[0];
    type Change = fn(&mut remuda_wire::group::GroupConfig);
    let cases: [(&str, Change); 8] = [
        ("visibility_timeout_ms", |config| config.visibility_timeout_ms = 0),
        ("visibility_timeout_ms", |config| config.visibility_timeout_ms = config.max_visibility_ms + 1),
        ("max_visibility_ms", |config| config.max_visibility_ms = 900_001),
        ("max_attempts", |config| config.max_attempts = 101),
        ("max_in_flight", |config| config.max_in_flight = 0),
        ("record_deadline_ms", |config| config.record_deadline_ms = 0),
        ("dead_letter_ttl_ms", |config| config.dead_letter_ttl_ms = 604_800_001),
        ("retention_pin_until_ms", |config| config.retention_pin_until_ms = u64::MAX),
    ];
    for (field, change) in cases {
        let mut config = config(lane, id("group"), GroupMode::StrictFifo);
        change(&mut config);
        let body = create(&session, &config);
        let frames = session.request(body);
        let [ServerMessage::Error(error)] = &frames[..] else { panic!("{field}: {frames:?}") };
        assert_eq!((error.code, &*error.details), (3939, field.as_bytes()));
    }
    let nowhere = create(&session, &config(id("nowhere"), id("group"), GroupMode::StrictFifo));
    assert_eq!(answered(&mut session, nowhere).err(), Some(3926));
}

#[test]
fn groups_survive_a_kill_with_their_leases() {
    let data = fresh_directory("group-kill");
    let provider = Provider::start(&data, &STANDARD);
    let mut session = full_session(&provider, 1, false, "");
    let config = filled(&mut session, GroupMode::StrictFifo, 2, |_| {});
    let mut group = Followed::open(&mut session, id("sub"), &config);
    group.poll(&mut session, 1).expect("honest");
    let (lease, tail) = (group.lease(), group.verifier.chain().tail());
    provider.kill();
    let provider = Provider::start(&data, &STANDARD);
    let mut session = full_session(&provider, 1, true, "");
    let source = || {
        SubscriptionSource::StandardGroup(StandardGroupSource { lane_id: config.lane_id, group_id: config.group_id })
    };
    accepted(&mut session, ack(&lease));
    let mut after = Followed::open_source(&mut session, id("sub"), &config, source(), Some(tail))
        .unwrap_or_else(|frames| panic!("{frames:?}"));
    after.poll(&mut session, 1).expect("honest");
    after.poll_until(&mut session, |after| after.sequences() == [2]).expect("honest");
    assert_eq!(after.actions, [Action::Ack, Action::LeaseIssue]);
    let mut all = Followed::open(&mut session, id("other"), &config);
    // It shares the session's cursor: nothing is told twice.
    all.poll(&mut session, 0).expect("honest");
    assert!(all.actions.is_empty());
    let unknown = Followed::open_source(&mut session, id("third"), &config, source(), Some(id("no receipt")));
    let frames = unknown.err().expect("refused");
    let [ServerMessage::Error(error), ..] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(error.code, 3917);
    let anchor = GroupRetentionAnchor::from_bytes(&error.details).expect("an anchor");
    assert_eq!(anchor.latest_retained_receipt, after.verifier.chain().tail());
}

#[test]
fn a_start_names_a_record_and_scopes_are_held() {
    let provider = provider("start");
    let mut session = full_session(&provider, 1, false, "");
    let lane = session.stream.lanes[0];
    for number in 0..4 {
        append(&mut session, lane, &format!("record {number}"));
    }
    let mut config = config(lane, id("group"), GroupMode::Concurrent);
    config.start = GroupStart::At(standard_id(2));
    let body = create(&session, &config);
    accepted(&mut session, body);
    let mut group = Followed::open(&mut session, id("sub"), &config);
    group.poll(&mut session, 9).expect("honest");
    assert_eq!(group.sequences(), [2, 3]);
    let narrow = format!(",\"lanes\":[\"{lane}\"],\"group\":\"{}\"", id("group"));
    let mut narrow = full_session(&provider, 2, false, &narrow);
    let other = create(&narrow, &remuda_wire::group::GroupConfig { group_id: id("other"), ..config.clone() });
    assert_eq!(answered(&mut narrow, other).err(), Some(3909));
    let other_lane = narrow.stream.lanes[1];
    let other = create(&narrow, &remuda_wire::group::GroupConfig { lane_id: other_lane, ..config.clone() });
    assert_eq!(answered(&mut narrow, other).err(), Some(3928));
    let mut weak = Session::open(&provider, 3);
    let body = create(&weak, &config);
    assert_eq!(answered(&mut weak, body).err(), Some(3908));
    assert_eq!(answered(&mut weak, ack(&group.lease())).err(), Some(3908));
    let nobody = SubscriptionSource::StandardGroup(StandardGroupSource { lane_id: lane, group_id: id("nobody") });
    let refused = Followed::open_source(&mut weak, id("sub"), &config, nobody, None);
    assert_eq!(error_code(&refused.err().expect("refused")), 3918);
}

#[test]
fn a_backlog_of_updates_is_drained_before_more_is_opened() {
    let provider = provider("backlog");
    let mut session = full_session(&provider, 1, false, "");
    let config = filled(&mut session, GroupMode::Concurrent, 0, |_| {});
    let lane = config.lane_id;
    for number in 0..130 {
        append(&mut session, lane, &format!("record {number}"));
    }
    let mut group = Followed::open(&mut session, id("sub"), &config);
    group.poll(&mut session, 64).expect("honest");
    while group.delivered.len() < 130 {
        for delivery in group.delivered.clone() {
            let lease = delivery.lease.expect("a lease").reference;
            accepted(&mut session, ack(&lease));
        }
        group.poll(&mut session, 64).expect("honest");
    }
    let mut other = full_session(&provider, 2, false, "");
    let open = |text: &str| {
        RequestBody::OpenSubscription(OpenSubscriptionRequest {
            stream_id: lease_stream(&group),
            subscription_id: id(text),
            source: SubscriptionSource::StandardGroup(StandardGroupSource { lane_id: lane, group_id: config.group_id }),
            after_group_receipt: None,
            verification: VerificationMode::None,
        })
    };
    let frames = other.request(open("first"));
    assert_eq!(frames.len(), 256, "as many as a batch carries");
    let counter = other.counter;
    // Refused before anything is spent: even the proof is not looked at.
    assert_eq!(error_code(&other.request(open("second"))), 3947);
    other.counter = counter;
    let drained = other.credit(id("first"), 0, 0);
    assert!(drained.len() > 1, "{drained:?}");
    assert!(matches!(other.request(open("second")).first(), Some(ServerMessage::Response(_))));
}

fn lease_stream(group: &Followed) -> Bytes32 {
    group.lease().stream_id
}
