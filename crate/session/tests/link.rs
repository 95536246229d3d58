//! The conversation over either transport against a scripted provider, over virtual time.

mod support;

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use remuda_session::{
    ChannelConfig, ChannelOutput, CloseCause, CreditTarget, Link, Output, PostId, RoutedFrame, SessionConfig, Slot,
    SocketId, TransportError, Transports,
};
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::request::RequestBody;
use remuda_wire::Bytes32;
use support::provider::Provider;
use support::{frames, SIGNATURE, T0};

const TARGET: CreditTarget = CreditTarget { records: 8, bytes: 64 };

/// A link, a provider, and what is on its way between them.
struct Rig {
    link: Link,
    provider: Provider,
    now_ms: u64,
    posts: VecDeque<(Slot, PostId, Vec<u8>)>,
    connecting: VecDeque<SocketId>,
    connected: Option<SocketId>,
    sent: VecDeque<Vec<u8>>,
    told: Vec<Output>,
    /// Whether WebSockets pass.
    passes: bool,
}

impl Rig {
    fn new(provider: Provider, offered: Transports) -> Self {
        let session = SessionConfig::new(frames::handshake_config());
        let mut link = Link::new(ChannelConfig { session, credit: TARGET });
        link.handle_start(T0, [1; 32], offered).unwrap();
        let mut rig = Self {
            link,
            provider,
            now_ms: T0,
            posts: VecDeque::new(),
            connecting: VecDeque::new(),
            connected: None,
            sent: VecDeque::new(),
            told: Vec::new(),
            passes: true,
        };
        rig.drain();
        rig
    }

    fn drain(&mut self) {
        while let Some(output) = self.link.poll_output() {
            let ChannelOutput::Session { slot, output } = output else { continue };
            match output {
                Output::Post { post, body } => self.posts.push_back((slot, post, body)),
                Output::Abort { post } => self.posts.retain(|(other, id, _)| (*other, *id) != (slot, post)),
                Output::Connect { socket } => self.connecting.push_back(socket),
                Output::Send { socket, message } => {
                    assert_eq!(Some(socket), self.connected, "sent over a connection that is not open");
                    self.sent.push_back(message);
                }
                Output::Disconnect { socket } => self.forget(socket),
                Output::Sign { digest } => self.link.handle_signature(slot, &digest, SIGNATURE, self.now_ms),
                other => self.told.push(other),
            }
        }
    }

    fn forget(&mut self, socket: SocketId) {
        self.connecting.retain(|other| *other != socket);
        if self.connected == Some(socket) {
            self.connected = None;
            self.sent.clear();
        }
    }

    /// Lets one thing that is on its way arrive. False when nothing is.
    fn step(&mut self) -> bool {
        if let Some(socket) = self.connecting.pop_front() {
            if self.passes {
                self.connected = Some(socket);
                self.link.handle_connected(socket, self.now_ms);
            } else {
                self.link.handle_disconnected(socket, TransportError::Closed { code: 1006 }, self.now_ms);
            }
        } else if let Some(message) = self.sent.pop_front() {
            let socket = self.connected.expect("a connection");
            for frame in self.provider.frames(&message, self.now_ms) {
                self.message(socket, frame);
            }
        } else if let Some((slot, post, body)) = self.posts.pop_front() {
            let answer = self.provider.answer(&body, self.now_ms);
            self.link.handle_body(slot, post, &answer, self.now_ms);
        } else {
            return false;
        }
        self.drain();
        true
    }

    fn message(&mut self, socket: SocketId, message: ServerMessage) {
        self.link.handle_message(socket, &ServerFrame(message).to_bytes(), self.now_ms);
        self.drain();
    }

    /// Everything that is on its way arrives. Over long-poll something always is, so it ends after `most`.
    fn settle(&mut self, most: usize) {
        for _ in 0..most {
            if !self.step() {
                return;
            }
        }
    }

    fn cut(&mut self) {
        if let Some(socket) = self.connected {
            self.forget(socket);
            self.link.handle_disconnected(socket, TransportError::Closed { code: 1006 }, self.now_ms);
        }
        if let Some((slot, post, _)) = self.posts.pop_front() {
            self.link.handle_transport_error(slot, post, TransportError::Aborted, self.now_ms);
        }
        self.drain();
    }

    fn wake(&mut self) {
        let due = self.link.wake_at().expect("nothing to wake for");
        self.now_ms = self.now_ms.max(due);
        self.link.handle_time(self.now_ms);
        self.drain();
    }

    fn submit(&mut self, body: RequestBody) {
        self.link.submit(body, self.now_ms).unwrap();
        self.drain();
    }

    fn delivered(&self) -> BTreeMap<Bytes32, Vec<u64>> {
        let mut by_subscription = BTreeMap::<_, Vec<_>>::new();
        for output in &self.told {
            if let Output::Frame(RoutedFrame::Delivery(delivery)) = output {
                by_subscription.entry(delivery.subscription_id).or_default().push(delivery.record_id.sequence());
            }
        }
        by_subscription
    }

    fn causes(&self) -> Vec<&'static str> {
        let closed = self.told.iter().filter_map(|output| match output {
            Output::Closed { cause, .. } => Some(cause.code()),
            _ => None,
        });
        closed.collect()
    }

    fn answered(&self) -> usize {
        self.told.iter().filter(|output| matches!(output, Output::Answer { result: Ok(_), .. })).count()
    }
}

#[test]
fn one_script_gives_the_same_records_over_both() {
    let mut outcomes = [Transports::WebSocket, Transports::LongPoll].map(|offered| {
        let mut rig = Rig::new(Provider::new(100, 3), offered);
        rig.settle(4);
        rig.submit(frames::open_subscription(1));
        rig.submit(frames::open_subscription(2));
        rig.submit(frames::append());
        rig.settle(120);
        assert_eq!(rig.provider.appends, 1);
        assert_eq!(rig.causes(), Vec::<&str>::new());
        (rig.delivered(), rig.answered())
    });
    let expected: Vec<u64> = (0..100).collect();
    assert_eq!(outcomes[0].0, BTreeMap::from([(frames::id(1), expected.clone()), (frames::id(2), expected)]));
    outcomes[0].1 = outcomes[1].1;
    assert_eq!(outcomes[0], outcomes[1]);
}

#[test]
fn requests_are_pipelined_in_the_order_of_their_counters() {
    let mut rig = Rig::new(Provider::new(0, 1), Transports::WebSocket);
    rig.settle(4);
    for _ in 0..40 {
        rig.submit(frames::append());
    }
    assert_eq!(rig.sent.len(), 32, "as many in flight as allowed");
    rig.settle(100);
    assert_eq!((rig.provider.appends, rig.answered()), (40, 40));
}

#[test]
fn a_cut_settles_what_was_sent_and_keeps_what_was_not() {
    let mut rig = Rig::new(Provider::new(3, 1), Transports::WebSocket);
    rig.settle(4);
    rig.submit(frames::open_subscription(1));
    rig.settle(20);
    for _ in 0..40 {
        rig.submit(frames::append());
    }
    rig.told.clear();
    rig.cut();
    let unanswered = rig.told.iter().filter(|output| matches!(output, Output::Unanswered { .. })).count();
    assert_eq!(unanswered, 32);
    assert_eq!(rig.causes(), ["transport/closed"]);
    assert!(rig.link.subscriptions().is_empty());
    rig.wake();
    rig.settle(100);
    assert_eq!(rig.provider.appends, 8, "what was not sent is sent in the next session");
}

#[test]
fn what_was_not_sent_can_be_taken_back_and_nothing_else() {
    let mut rig = Rig::new(Provider::new(0, 1), Transports::WebSocket);
    rig.settle(4);
    let handles: Vec<_> =
        (0..40).map(|_| rig.link.submit(frames::append(), rig.now_ms).expect("a running link")).collect();
    rig.drain();
    let taken_back = handles.iter().filter(|handle| rig.link.withdraw(**handle)).count();
    assert_eq!(taken_back, 8, "32 are on their way");
    assert!(!rig.link.withdraw(handles[39]), "once");
    rig.settle(100);
    assert_eq!((rig.provider.appends, rig.answered()), (32, 32));
}

#[test]
fn a_silent_connection_is_asked_and_then_given_up() {
    let mut rig = Rig::new(Provider::new(2, 1), Transports::WebSocket);
    rig.settle(4);
    rig.submit(frames::open_subscription(1));
    rig.settle(20);
    let polls = rig.provider.polls.len();
    rig.wake();
    assert_eq!(rig.now_ms, T0 + 30_000);
    rig.settle(20);
    assert_eq!(rig.provider.polls[polls..], [(frames::id(1), 0, 0)], "a sign of life, and it is given");
    rig.wake();
    rig.sent.clear();
    rig.wake();
    assert_eq!(rig.causes(), ["transport/timeout"]);
    assert_eq!(rig.connected, None);
}

#[test]
fn an_expiring_session_is_renewed_while_nothing_is_awaited() {
    let mut rig = Rig::new(Provider::new(2, 1), Transports::WebSocket);
    rig.settle(4);
    rig.now_ms = T0 + 3_600_000 - 30_000;
    rig.link.handle_time(rig.now_ms);
    rig.drain();
    assert_eq!(rig.causes(), ["session/expired"]);
    rig.settle(4);
    assert_eq!(rig.told.iter().filter(|output| matches!(output, Output::Opened { .. })).count(), 2);
}

#[test]
fn a_fault_closes_and_late_messages_are_ignored() {
    let mut rig = Rig::new(Provider::new(2, 1), Transports::Both);
    rig.settle(4);
    let socket = rig.connected.expect("a connection");
    rig.message(socket, frames::delivery(9, 0, 1));
    assert_eq!(rig.causes(), ["protocol/unknown-subscription"]);
    assert!(rig.link.is_closed());
    rig.message(socket, frames::delivery(9, 0, 1));
    rig.link.handle_disconnected(socket, TransportError::Offline, rig.now_ms);
    rig.drain();
    assert_eq!(rig.causes().len(), 1);
    assert_eq!(rig.link.wake_at(), None);
}

#[test]
fn frames_before_anything_was_asked_close_the_session() {
    let mut rig = Rig::new(Provider::new(2, 1), Transports::WebSocket);
    let socket = *rig.connecting.front().expect("connecting");
    rig.message(socket, frames::transition());
    assert_eq!(rig.causes(), ["protocol/unexpected-frame"]);
}

#[test]
fn long_poll_takes_over_where_no_web_socket_passes_and_gives_back_later() {
    let mut rig = Rig::new(Provider::new(50, 1), Transports::Both);
    rig.passes = false;
    rig.submit(frames::append());
    rig.settle(1);
    rig.wake();
    rig.settle(4);
    assert_eq!(rig.causes(), ["transport/closed", "transport/closed"]);
    assert!(matches!(rig.told.last(), Some(Output::Opened { .. })), "over long-poll");
    rig.submit(frames::open_subscription(1));
    rig.settle(30);
    assert_eq!(rig.delivered()[&frames::id(1)].len(), 50);

    // A trial that fails disturbs nothing.
    let told = rig.told.len();
    rig.now_ms += 60_000;
    rig.link.handle_online(rig.now_ms);
    rig.drain();
    rig.settle(10);
    let disturbed =
        rig.told[told..].iter().any(|output| matches!(output, Output::Closed { .. } | Output::Opened { .. }));
    assert!(!disturbed, "{:?}", &rig.told[told..]);
    assert!(rig.link.subscriptions().is_live(&frames::id(1)));

    // One that succeeds takes the conversation over: once no command is awaited over long-poll.
    rig.passes = true;
    rig.submit(frames::append());
    let command = rig.posts.iter().position(|(slot, ..)| *slot == Slot::Command).expect("the append's session");
    let held = rig.posts.remove(command).expect("held back");
    rig.link.handle_online(rig.now_ms);
    rig.drain();
    rig.settle(10);
    assert!(rig.link.subscriptions().is_live(&frames::id(1)), "still over long-poll");
    let appends = rig.provider.appends;
    rig.submit(frames::append());
    rig.settle(10);
    assert_eq!(rig.provider.appends, appends + 1, "a new command takes the WebSocket");
    rig.posts.push_front(held);
    rig.settle(30);
    assert_eq!(rig.provider.appends, appends + 2);
    let changed = rig.told.iter().position(|output| {
        matches!(output, Output::Closed { cause: CloseCause::TransportChanged, retry_at_ms: Some(_) })
    });
    assert!(matches!(rig.told[changed.expect("told") + 1], Output::Opened { .. }));
    rig.submit(frames::open_subscription(2));
    rig.settle(60);
    assert_eq!(rig.delivered()[&frames::id(2)].len(), 50);
    assert!(rig.posts.is_empty(), "nothing is polled any more");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// On any schedule of cuts, waits and blocked WebSockets every request is settled once, and nothing is over credit.
    #[test]
    fn every_request_is_settled_once(schedule in proptest::collection::vec(0_u8..7, 1..120)) {
        let mut rig = Rig::new(Provider::new(1_000, 2), Transports::Both);
        let mut submitted = Vec::new();
        let mut next = 0;
        for step in schedule {
            match step {
                0 => rig.cut(),
                1 => rig.passes = !rig.passes,
                2 if rig.link.wake_at().is_some() => rig.wake(),
                3 => {
                    next += 1;
                    submitted.extend(rig.link.submit(frames::open_subscription(next), rig.now_ms).ok());
                    rig.drain();
                }
                4 => {
                    submitted.extend(rig.link.submit(frames::append(), rig.now_ms).ok());
                    rig.drain();
                }
                _ => { rig.step(); }
            }
        }
        rig.link.close(rig.now_ms);
        rig.drain();
        let settled = |handle| rig.told.iter().filter(|output| match output {
            Output::Answer { handle: it, .. } | Output::PollTimeout { handle: it } | Output::Unanswered { handle: it }
            | Output::Unsent { handle: it } => *it == handle,
            _ => false,
        }).count();
        for handle in submitted {
            prop_assert_eq!(settled(handle), 1, "{:?}", handle);
        }
        for cause in rig.causes() {
            prop_assert!(!cause.starts_with("protocol/"), "{}", cause);
        }
    }
}
