//! The pair of sessions against a scripted provider: nothing lost, nothing over credit, commands beside held polls.

mod support;

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use remuda_session::{
    ChannelConfig, ChannelOutput, CreditTarget, LongPollChannel, Output, PostId, RoutedFrame, SessionConfig, Slot,
    TransportError,
};
use remuda_wire::Bytes32;
use support::provider::Provider;
use support::{frames, SIGNATURE, T0};

const TARGET: CreditTarget = CreditTarget { records: 8, bytes: 64 };

struct Rig {
    channel: LongPollChannel,
    provider: Provider,
    now_ms: u64,
    posts: VecDeque<(Slot, PostId, Vec<u8>)>,
    told: Vec<Output>,
    refused: Vec<u64>,
}

impl Rig {
    fn new(provider: Provider) -> Self {
        let session = SessionConfig::new(frames::handshake_config());
        let mut channel = LongPollChannel::new(ChannelConfig { session, credit: TARGET });
        channel.handle_start(T0, [1; 32]).unwrap();
        let mut rig =
            Self { channel, provider, now_ms: T0, posts: VecDeque::new(), told: Vec::new(), refused: Vec::new() };
        rig.drain();
        rig
    }

    fn drain(&mut self) {
        while let Some(output) = self.channel.poll_output() {
            match output {
                ChannelOutput::Session { slot, output: Output::Post { post, body } } => {
                    assert!(self.posts.iter().all(|(other, ..)| *other != slot), "two exchanges in one session");
                    self.posts.push_back((slot, post, body));
                }
                ChannelOutput::Session { slot, output: Output::Sign { digest } } => {
                    self.channel.handle_signature(slot, &digest, SIGNATURE, self.now_ms);
                }
                ChannelOutput::Session { output: Output::Abort { post }, slot } => {
                    self.posts.retain(|(other, id, _)| (*other, *id) != (slot, post));
                }
                ChannelOutput::Session { output, .. } => self.told.push(output),
                ChannelOutput::PollRefused { resume_at_ms, .. } => self.refused.push(resume_at_ms),
            }
        }
    }

    /// Lets the provider answer the oldest exchange. False when there is none.
    fn exchange(&mut self) -> bool {
        let Some((slot, post, body)) = self.posts.pop_front() else { return false };
        let answer = self.provider.answer(&body, self.now_ms);
        self.channel.handle_body(slot, post, &answer, self.now_ms);
        self.drain();
        true
    }

    /// Cuts the oldest exchange before the provider saw it, or after.
    fn cut(&mut self, seen: bool) {
        if let Some((slot, post, body)) = self.posts.pop_front() {
            if seen {
                self.provider.answer(&body, self.now_ms);
            }
            self.channel.handle_transport_error(slot, post, TransportError::Aborted, self.now_ms);
            self.drain();
        }
    }

    fn wake(&mut self) {
        let due = self.channel.wake_at().expect("nothing to wake for");
        self.now_ms = self.now_ms.max(due);
        self.channel.handle_time(self.now_ms);
        self.drain();
    }

    fn submit(&mut self, body: remuda_wire::request::RequestBody) {
        self.channel.submit(body, self.now_ms).unwrap();
        self.drain();
    }

    fn open(&mut self) {
        assert!(self.exchange() && self.exchange());
        assert!(matches!(self.told.pop(), Some(Output::Opened { .. })));
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
}

#[test]
fn polls_for_everything_and_never_spins() {
    let mut rig = Rig::new(Provider::new(100, 3));
    rig.open();
    assert!(rig.posts.is_empty(), "nothing is subscribed, so nothing is polled");
    rig.submit(frames::open_subscription(1));
    rig.submit(frames::open_subscription(2));
    for _ in 0..60 {
        assert!(rig.exchange());
    }
    let expected: Vec<u64> = (0..100).collect();
    assert_eq!(rig.delivered(), BTreeMap::from([(frames::id(1), expected.clone()), (frames::id(2), expected)]));
    // Outstanding credit is back at its target, so further polls grant nothing, in turn.
    let idle = &rig.provider.polls[rig.provider.polls.len() - 4..];
    let ids: Vec<_> = idle
        .iter()
        .map(|(id, records, bytes)| {
            assert_eq!((*records, *bytes), (0, 0));
            id.0[0]
        })
        .collect();
    assert!(ids == [1, 2, 1, 2] || ids == [2, 1, 2, 1]);
}

#[test]
fn a_command_does_not_wait_for_a_held_poll() {
    let mut rig = Rig::new(Provider::new(0, 3));
    rig.open();
    rig.submit(frames::open_subscription(1));
    assert!(rig.exchange());
    let held = rig.posts.pop_front().expect("a poll is on its way");
    assert_eq!(held.0, Slot::Poll);
    rig.submit(frames::append());
    for _ in 0..3 {
        assert_eq!(rig.posts.front().map(|(slot, ..)| *slot), Some(Slot::Command));
        assert!(rig.exchange());
    }
    assert_eq!(rig.provider.appends, 1);
    assert!(rig.posts.is_empty());
    rig.submit(frames::append());
    assert!(rig.exchange(), "the command session stays open");
    assert_eq!(rig.provider.appends, 2);
    rig.posts.push_back(held);
    assert!(rig.exchange() && rig.posts.len() == 1);
}

#[test]
fn a_target_of_nothing_holds_a_subscription_back() {
    let mut rig = Rig::new(Provider::new(5, 3));
    rig.open();
    rig.channel.set_credit_target(frames::id(1), CreditTarget::NONE, rig.now_ms);
    rig.submit(frames::open_subscription(1));
    for _ in 0..5 {
        assert!(rig.exchange());
    }
    assert!(rig.delivered().is_empty());
    rig.channel.set_credit_target(frames::id(1), TARGET, rig.now_ms);
    for _ in 0..5 {
        assert!(rig.exchange());
    }
    assert_eq!(rig.delivered()[&frames::id(1)], [0, 1, 2, 3, 4]);
}

#[test]
fn a_refused_poll_waits_and_a_final_one_closes() {
    let mut rig = Rig::new(Provider::new(5, 3));
    rig.open();
    rig.submit(frames::open_subscription(1));
    assert!(rig.exchange());
    rig.provider.fail_next = Some(3914);
    assert!(rig.exchange());
    let resume_at_ms = rig.refused[0];
    assert!(resume_at_ms > rig.now_ms && rig.posts.is_empty(), "no poll before its time");
    assert_eq!(rig.channel.wake_at(), Some(resume_at_ms));
    rig.wake();
    rig.provider.fail_next = Some(3907);
    assert!(rig.exchange());
    assert!(matches!(rig.told.last(), Some(Output::Closed { retry_at_ms: None, .. })));
    assert!(rig.channel.is_closed() && rig.channel.wake_at().is_none());
}

#[test]
fn a_restarted_provider_is_met_with_a_new_session() {
    let mut rig = Rig::new(Provider::new(5, 3));
    rig.open();
    rig.submit(frames::open_subscription(1));
    assert!(rig.exchange() && rig.exchange());
    rig.provider.restart();
    assert!(rig.exchange());
    assert!(matches!(rig.told.last(), Some(Output::Closed { retry_at_ms: Some(_), .. })));
    if rig.posts.is_empty() {
        rig.wake();
    }
    rig.open();
    rig.submit(frames::open_subscription(1));
    rig.told.clear();
    assert!(rig.exchange() && rig.exchange());
    assert_eq!(rig.delivered()[&frames::id(1)], [0, 1, 2, 3, 4]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is cut, delayed or restarted: within one session each subscription gets a prefix in order, no honest
    /// provider is accused, and in the end everything came.
    #[test]
    fn survives_any_schedule(steps in prop::collection::vec(0_u8..10, 0..80), payload_bytes in 0_usize..20) {
        let mut rig = Rig::new(Provider::new(30, payload_bytes));
        let mut subscribed = false;
        let mut got: BTreeMap<Bytes32, u64> = BTreeMap::new();
        for step in steps.into_iter().chain(std::iter::repeat_n(7, 200)) {
            match step {
                0 => rig.cut(false),
                5 => rig.cut(true),
                1 => rig.provider.restart(),
                2 => rig.submit(frames::append()),
                3 => rig.now_ms += 20_000,
                4 => rig.now_ms += 8 * 3_600_000,
                _ => if !rig.exchange() && rig.channel.wake_at().is_some() { rig.wake() },
            }
            if rig.channel.wake_at().is_some_and(|due| due <= rig.now_ms) {
                rig.channel.handle_time(rig.now_ms);
                rig.drain();
            }
            for output in std::mem::take(&mut rig.told) {
                match output {
                    Output::Closed { cause, retry_at_ms } => {
                        prop_assert!(retry_at_ms.is_some(), "closed for good: {cause:?}");
                    }
                    Output::Frame(RoutedFrame::Delivery(delivery)) => {
                        let next = got.entry(delivery.subscription_id).or_default();
                        prop_assert_eq!(delivery.record_id.sequence(), *next);
                        *next += 1;
                    }
                    _ => {}
                }
            }
            if rig.channel.subscriptions().is_empty() {
                subscribed = false;
            }
            if !subscribed && rig.posts.iter().all(|(slot, ..)| *slot == Slot::Command) && !rig.channel.is_closed() {
                let ready = [1, 2].map(|id| rig.channel.submit(frames::open_subscription(id), rig.now_ms).is_ok());
                rig.drain();
                if ready[0] {
                    got.clear();
                    subscribed = true;
                }
            }
        }
        prop_assert_eq!(got.get(&frames::id(1)), Some(&30));
        prop_assert_eq!(got.get(&frames::id(2)), Some(&30));
    }
}
