//! Every error code of §17 can be met: by what a client does, by what happens on the chain, or, for those that no request
//! to a v1 broker can bring about, by name.

mod common;

use common::group::{ack, config, create, full_session, nack, Followed};
use common::keys::{batch, requests};
use common::standard::{answered, append, append_request, replay_request, standard_id};
use common::{error_code, exchange, fresh_directory, holder, sign, Directory, Provider, Session};
use remuda_dev_provider::refusal::Code;
use remuda_wire::frame::ClientMessage;
use remuda_wire::group::GroupMode;
use remuda_wire::preimage::keccak256;
use remuda_wire::record::FastRecordId;
use remuda_wire::request::{
    AppendRequest, CloseLaneRequest, CreateLaneRequest, CreditRequest, DeleteGroupRequest, RedriveRequest, RequestBody,
    StandardGroupSource, SubscriptionSource, UpdateGroupRequest, VerificationMode,
};
use remuda_wire::request::{Credit, OpenSubscriptionRequest};
use remuda_wire::scope::{LaneScope, LaneSet};
use remuda_wire::{Bytes, Bytes32, ProviderEpoch};

/// Providers that one case leaves as the next needs them.
struct Ground {
    fast: Provider,
    standard: Provider,
    _directories: [Directory; 2],
}

impl Ground {
    fn new() -> Self {
        let directories = [fresh_directory("errors-fast"), fresh_directory("errors-standard")];
        let fast = ["--control", "--batch-ms", "20", "--batch-records", "2", "--poll-ms", "2000"];
        let standard = ["--control", "--class", "standard", "--poll-ms", "200", "--max-lanes", "10", "--lanes", "8"];
        let fast = Provider::start(&directories[0], &fast);
        Self { fast, standard: Provider::start(&directories[1], &standard), _directories: directories }
    }

    /// The code of an append to the fast stream that is changed like this.
    fn append_fast(&self, change: impl FnOnce(&mut AppendRequest)) -> u16 {
        let mut session = Session::open(&self.fast, 1);
        let mut body = session.append_body(session.stream.lanes[0], "text");
        change(&mut body);
        error_code(&session.request(RequestBody::Append(body)))
    }

    fn append_standard(&self, change: impl FnOnce(&mut AppendRequest)) -> u16 {
        let mut session = full_session(&self.standard, 1, false, "");
        let mut body = append_request(&session, session.stream.lanes[0], "text");
        change(&mut body);
        error_code(&session.request(RequestBody::Append(body)))
    }

    fn subscribe_fast(&self, scope: LaneScope, mode: VerificationMode, after: Option<FastRecordId>) -> u16 {
        let mut session = Session::open(&self.fast, 1);
        error_code(&session.open_subscription(keccak256(b"id"), scope, mode, after))
    }

    /// A request after something happened, then what undoes it.
    fn while_so(&self, what: &str, body: &str, undo: (&str, &str)) -> u16 {
        let mut session = full_session(&self.standard, 1, false, "");
        self.standard.control(what, body);
        let append = append_request(&session, session.stream.lanes[0], "meanwhile");
        let code = error_code(&session.request(RequestBody::Append(append)));
        self.standard.control(undo.0, undo.1);
        code
    }

    fn told(&self, code: u16) -> u16 {
        self.standard.control("refuse", &format!("{{\"code\":{code}}}"));
        self.append_standard(|_| {})
    }

    fn grant(&self, extra: &str) -> u16 {
        let key = holder(1);
        let refused = Session::with_grant(&self.standard, key.clone(), self.standard.grant(&key, extra));
        error_code(&refused.err().expect("refused"))
    }
}

fn ok(session: &mut Session, body: RequestBody) {
    answered(session, body).unwrap_or_else(|code| panic!("{code}"));
}

/// A group of the first lane, made anew under this name, with one leased record.
fn leased(session: &mut Session, name: &str) -> (remuda_wire::group::GroupConfig, Followed) {
    let lane = session.stream.lanes[0];
    let mut config = config(lane, keccak256(name.as_bytes()), GroupMode::StrictFifo);
    config.max_attempts = 1;
    let body = create(session, &config);
    ok(session, body);
    append(session, lane, name);
    let mut group = Followed::open(session, keccak256(b"sub"), &config);
    group.poll(session, 1).expect("honest");
    group.poll_until(session, |group| !group.delivered.is_empty()).expect("honest");
    (config, group)
}

fn group_source(config: &remuda_wire::group::GroupConfig) -> SubscriptionSource {
    SubscriptionSource::StandardGroup(StandardGroupSource { lane_id: config.lane_id, group_id: config.group_id })
}

type Case = (u16, fn(&Ground) -> u16);

const CASES: &[Case] = &[
    (3900, |ground| ground.append_fast(|body| body.stream_id = keccak256(b"another"))),
    (3902, |ground| {
        let (suspend, resume) = ("{\"operation\":\"suspend\"}", "{\"operation\":\"resume\"}");
        ground.while_so("chain", suspend, ("chain", resume))
    }),
    (3903, |ground| ground.told(3903)),
    (3904, |ground| {
        let bump = "{\"operation\":\"bump-authorization\"}";
        ground.while_so("chain", bump, ("chain", "{\"operation\":\"advance\"}"))
    }),
    (3905, |ground| ground.append_fast(|body| body.encryption_generation = 1)),
    (3906, |ground| {
        let mut grant = ground.fast.grant(&holder(1), "");
        grant.signature = sign(&holder(1), &grant);
        error_code(&Session::with_grant(&ground.fast, holder(1), grant).err().expect("refused"))
    }),
    (3907, |ground| ground.grant(",\"expiresAtMs\":1")),
    (3908, |ground| {
        let grant = ground.fast.grant(&holder(1), ",\"verbs\":[\"CONSUME\"]");
        let mut session = Session::with_grant(&ground.fast, holder(1), grant).expect("a session");
        let body = session.append_body(session.stream.lanes[0], "text");
        error_code(&session.request(RequestBody::Append(body)))
    }),
    (3909, |ground| {
        let extra = format!(",\"group\":\"{}\"", keccak256(b"mine"));
        let mut session = full_session(&ground.standard, 1, false, &extra);
        let body = create(&session, &config(session.stream.lanes[0], keccak256(b"yours"), GroupMode::StrictFifo));
        error_code(&session.request(body))
    }),
    (3910, |ground| {
        let session = Session::open(&ground.fast, 1);
        let body = RequestBody::Append(session.append_body(session.stream.lanes[0], "text"));
        let mut request = session.prepare(1, body);
        request.proof.signature = sign(&holder(2), &request.proof);
        error_code(&exchange(&ground.fast.address, ClientMessage::Request(request)))
    }),
    (3911, |ground| {
        let session = Session::open(&ground.fast, 1);
        let body = RequestBody::Append(session.append_body(session.stream.lanes[0], "text"));
        let request = session.prepare(1, body);
        exchange(&ground.fast.address, ClientMessage::Request(request.clone()));
        error_code(&exchange(&ground.fast.address, ClientMessage::Request(request)))
    }),
    (3912, |ground| ground.append_fast(|body| body.payload = Bytes::new(vec![0; 300_000]).expect("within the codec"))),
    (3913, |ground| {
        let mut session = full_session(&ground.standard, 1, false, ",\"maxAppendBytesPerSec\":3");
        let body = append_request(&session, session.stream.lanes[0], "four");
        error_code(&session.request(RequestBody::Append(body)))
    }),
    (3914, |_| {
        let directory = fresh_directory("errors-full");
        let provider = Provider::start(&directory, &["--class", "standard", "--retained-bytes", "3"]);
        let mut session = Session::open(&provider, 1);
        let body = append_request(&session, session.stream.lanes[0], "four");
        error_code(&session.request(RequestBody::Append(body)))
    }),
    (3915, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        let mut body = append_request(&session, session.stream.lanes[0], "said before");
        ok(&mut session, RequestBody::Append(body.clone()));
        body.client_created_at_ms += 1;
        error_code(&session.request(RequestBody::Append(body)))
    }),
    (3916, |ground| ground.append_standard(|body| body.client_created_at_ms = 1)),
    (3917, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        let (config, _) = leased(&mut session, "too old");
        let unknown = Some(keccak256(b"no receipt"));
        let refused = Followed::open_source(&mut session, keccak256(b"id"), &config, group_source(&config), unknown);
        error_code(&refused.err().expect("refused"))
    }),
    (3918, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        let (stream_id, lane_id) = (session.stream.stream_id, session.stream.lanes[0]);
        let body = DeleteGroupRequest { stream_id, lane_id, group_id: keccak256(b"nobody") };
        error_code(&session.request(RequestBody::DeleteGroup(body)))
    }),
    (3919, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        let (_, group) = leased(&mut session, "stale");
        let mut other = full_session(&ground.standard, 2, false, "");
        error_code(&other.request(ack(&group.lease())))
    }),
    (3920, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        let (_, group) = leased(&mut session, "terminal");
        ok(&mut session, ack(&group.lease()));
        error_code(&session.request(nack(&group.lease(), 0)))
    }),
    (3921, |ground| {
        let mut session = full_session(&ground.fast, 1, false, "");
        let body = create(&session, &config(session.stream.lanes[0], keccak256(b"group"), GroupMode::StrictFifo));
        error_code(&session.request(body))
    }),
    (3923, |ground| ground.told(3923)),
    (3924, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        let (batch, envelopes) = batch(&session.stream, &holder(9), 0, Bytes32::ZERO, 1);
        let [begin, ..] = requests(session.stream.stream_id, &batch, &envelopes);
        error_code(&session.request(begin))
    }),
    (3925, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        ground.standard.control("node", "{\"fault\":\"behind\"}");
        ground.standard.control("chain", "{\"operation\":\"advance\",\"times\":30}");
        let lane = session.stream.lanes[0];
        append(&mut session, lane, "thirty blocks are within the bound");
        ground.standard.control("chain", "{\"operation\":\"advance\"}");
        let body = append_request(&session, session.stream.lanes[0], "thirty-one are not");
        let code = error_code(&session.request(RequestBody::Append(body)));
        ground.standard.control("node", "{\"fault\":null}");
        code
    }),
    (3926, |ground| ground.append_fast(|body| body.lane_id = keccak256(b"no lane"))),
    (3927, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        let (stream_id, lane_id) = (session.stream.stream_id, session.stream.lanes[7]);
        ok(&mut session, RequestBody::CloseLane(CloseLaneRequest { stream_id, lane_id }));
        ground.append_standard(|body| body.lane_id = lane_id)
    }),
    (3928, |ground| {
        let lanes = ground.fast.stream().lanes;
        let grant = ground.fast.grant(&holder(1), &format!(",\"lanes\":[\"{}\"]", lanes[0]));
        let mut session = Session::with_grant(&ground.fast, holder(1), grant).expect("a session");
        let body = session.append_body(lanes[1], "text");
        error_code(&session.request(RequestBody::Append(body)))
    }),
    (3929, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        let (stream_id, metadata_hash) = (session.stream.stream_id, Bytes32::ZERO);
        let create = |nonce: &[u8]| {
            RequestBody::CreateLane(CreateLaneRequest { stream_id, lane_nonce: keccak256(nonce), metadata_hash })
        };
        // The default lane, eight demo lanes and this one are ten.
        ok(&mut session, create(b"tenth"));
        error_code(&session.request(create(b"eleventh")))
    }),
    (3930, |ground| ground.told(3930)),
    (3932, |ground| {
        let mut session = Session::open(&ground.fast, 1);
        let scope = LaneScope::Exact(session.stream.lanes[0]);
        let opened = (0..256u16).all(|number| {
            let id = keccak256(&number.to_be_bytes());
            let frames = session.open_subscription(id, scope.clone(), VerificationMode::None, None);
            matches!(frames[..], [remuda_wire::frame::ServerMessage::Response(_)])
        });
        assert!(opened, "256 are within the bound");
        error_code(&session.open_subscription(keccak256(b"one more"), scope, VerificationMode::None, None))
    }),
    (3933, |ground| ground.told(3933)),
    (3934, |ground| ground.told(3934)),
    (3935, |ground| ground.told(3935)),
    (3936, |ground| ground.told(3936)),
    (3937, |ground| ground.append_fast(|body| body.visible_after_ms = 1)),
    (3938, |ground| {
        let mut grant = ground.fast.grant(&holder(1), "");
        grant.context.chain_id += 1;
        error_code(&Session::with_grant(&ground.fast, holder(1), grant).err().expect("refused"))
    }),
    (3939, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        let mut config = config(session.stream.lanes[0], keccak256(b"invalid"), GroupMode::StrictFifo);
        config.max_attempts = 0;
        let body = create(&session, &config);
        error_code(&session.request(body))
    }),
    (3940, |ground| {
        let mut session = full_session(&ground.standard, 5, false, "");
        let (config, _) = leased(&mut session, "held");
        let mut again = full_session(&ground.standard, 5, false, ",\"maxInFlight\":1");
        let refused = Followed::open_source(&mut again, keccak256(b"id"), &config, group_source(&config), None);
        error_code(&refused.err().expect("refused"))
    }),
    (3941, |ground| ground.while_so("node", "{\"fault\":\"unreachable\"}", ("node", "{\"fault\":null}"))),
    (3942, |ground| ground.while_so("node", "{\"fault\":\"inconsistent\"}", ("node", "{\"fault\":null}"))),
    (3943, |ground| ground.subscribe_fast(LaneScope::Any, VerificationMode::ScopedProofs, None)),
    (3944, |ground| {
        let id = FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: 0, sequence: 1_000_000 };
        ground.subscribe_fast(LaneScope::Any, VerificationMode::FullStream, Some(id))
    }),
    (3945, |ground| {
        let lanes = (0..513u16).map(|number| keccak256(&number.to_be_bytes())).collect();
        let scope = LaneScope::Set(LaneSet::new(lanes).expect("within the codec").expect("some"));
        ground.subscribe_fast(scope, VerificationMode::ScopedProofs, None)
    }),
    (3946, |ground| {
        let mut session = Session::open(&ground.fast, 1);
        let (stream_id, lane) = (session.stream.stream_id, session.stream.lanes[0]);
        session.open_subscription(lane, LaneScope::Exact(lane), VerificationMode::None, None);
        let credit = Credit { subscription_id: lane, records: 1, bytes: 100 };
        let poll = RequestBody::Credit(CreditRequest { stream_id, credit });
        let (held, second) = (session.prepare(2, poll.clone()), session.prepare(3, poll));
        let address = ground.fast.address.clone();
        let holding = std::thread::spawn(move || exchange(&address, ClientMessage::Request(held)));
        let second = exchange(&ground.fast.address, ClientMessage::Request(second));
        // Whichever came first is held for two seconds, and the other refused meanwhile.
        let answers = [second, holding.join().expect("an answer")];
        let refused = answers.iter().find_map(|frames| match &frames[..] {
            [remuda_wire::frame::ServerMessage::Error(error)] => Some(error.code),
            _ => None,
        });
        refused.expect("one of two")
    }),
    (3947, |ground| {
        let mut session = full_session(&ground.standard, 1, false, "");
        let (stream_id, lane_id) = (session.stream.stream_id, session.stream.lanes[1]);
        let config = config(lane_id, keccak256(b"history"), GroupMode::StrictFifo);
        let body = create(&session, &config);
        ok(&mut session, body);
        let update = UpdateGroupRequest {
            stream_id,
            lane_id,
            group_id: config.group_id,
            config: remuda_wire::group::GroupMutableConfig {
                mode: config.mode,
                visibility_timeout_ms: config.visibility_timeout_ms,
                max_visibility_ms: config.max_visibility_ms,
                max_in_flight: config.max_in_flight,
                max_attempts: config.max_attempts,
                record_deadline_ms: config.record_deadline_ms,
                dead_letter_ttl_ms: config.dead_letter_ttl_ms,
                retention_pin_until_ms: config.retention_pin_until_ms,
            },
        };
        for _ in 0..256 {
            ok(&mut session, RequestBody::UpdateGroup(update.clone()));
        }
        let open = |id: &[u8]| {
            RequestBody::OpenSubscription(OpenSubscriptionRequest {
                stream_id,
                subscription_id: keccak256(id),
                source: group_source(&config),
                after_group_receipt: None,
                verification: VerificationMode::None,
            })
        };
        session.request(open(b"first"));
        error_code(&session.request(open(b"second")))
    }),
    // The last: nothing comes after it.
    (3901, |ground| {
        let close = "{\"operation\":\"close\"}";
        ground.while_so("chain", close, ("chain", "{\"operation\":\"advance\"}"))
    }),
];

#[test]
fn every_code_can_be_met() {
    let ground = Ground::new();
    let mut met = Vec::new();
    for (code, bring_about) in CASES {
        assert_eq!(bring_about(&ground), *code);
        met.push(*code);
    }
    met.sort_unstable();
    assert_eq!(met, Code::ALL.iter().map(|code| code.number()).collect::<Vec<_>>());
}

#[test]
fn a_redrive_of_what_is_not_over_is_stale_and_a_replay_needs_its_verb() {
    let directory = fresh_directory("errors-more");
    let provider = Provider::start(&directory, &["--class", "standard", "--poll-ms", "200"]);
    let mut session = full_session(&provider, 1, false, "");
    let (config, group) = leased(&mut session, "live");
    let lease = group.lease();
    let body = RedriveRequest {
        stream_id: lease.stream_id,
        lane_id: config.lane_id,
        group_id: config.group_id,
        record_id: standard_id(0),
        terminal_cycle_id: lease.delivery_cycle_id,
    };
    assert_eq!(error_code(&session.request(RequestBody::Redrive(body))), 3919);
    let grant = provider.grant(&holder(2), ",\"verbs\":[\"CONSUME\"]");
    let mut session = Session::with_grant(&provider, holder(2), grant).expect("a session");
    let request = replay_request(&session, keccak256(b"id"), LaneScope::Any, None);
    assert_eq!(error_code(&session.request(RequestBody::OpenSubscription(request))), 3908);
}
