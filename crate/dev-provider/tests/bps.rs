//! The broker: roles, bounds, deadlines and counters; and both machines over its sockets, honest and lying.

mod common;

use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use common::{bytes32, fresh_directory, Provider};
use remuda_bps::connection::{Dial, Moment, Transport};
use remuda_bps::message::{Join, Status};
use remuda_bps::publisher::{Publisher, PublisherConfig, PublisherOutput};
use remuda_bps::signature::LocalSigner;
use remuda_bps::soc::UnsignedChunk;
use remuda_bps::subscriber::{Subscriber, SubscriberConfig, SubscriberOutput};
use remuda_bps::topic::{session_topic, update_id, KIND_AUTH, KIND_DATA};
use remuda_bps::{Address, Broadcast, Cohort};
use remuda_dev_provider::bps::broker::{Bounds, Broker, Counters, Joined, Violation};
use remuda_dev_provider::bps::lie::BrokerLie;
use remuda_dev_provider::time::Clock;
use remuda_wire::Bytes32;
use tungstenite::{Message, WebSocket};

const TOPIC: Bytes32 = Bytes32([0x7e; 32]);
const READER: Address = Address([0x1d; 20]);

fn admin() -> LocalSigner {
    LocalSigner::new(&[0x63; 32]).expect("a key")
}

fn cohort() -> Cohort {
    Cohort { topic: TOPIC, admin: admin().address() }
}

fn as_reader() -> Join {
    Join { cohort: cohort(), addr: READER }
}

fn as_admin() -> Join {
    Join { cohort: cohort(), addr: cohort().admin }
}

fn signed(kind: u8, challenge: Bytes32, index: u64, payload: &[u8]) -> Broadcast {
    let chunk = UnsignedChunk::new(update_id(&session_topic(&TOPIC, kind, &challenge), index), payload).expect("short");
    let soc = chunk.sign(&admin().address(), &admin().sign(&chunk.message()).expect("signed")).expect("by the admin");
    Broadcast { soc, kind: kind.into(), challenge: challenge.0.into(), index }
}

/// A broker whose clock is set by hand.
fn broker(bounds: Bounds) -> (Broker, Arc<AtomicU64>) {
    let now_ms = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&now_ms);
    (Broker::new(bounds, Clock::Virtual(Arc::new(move || clock.load(Ordering::Relaxed)))), now_ms)
}

fn received(joined: &mut Joined) -> Vec<u64> {
    std::iter::from_fn(|| joined.broadcasts.try_recv().ok()).map(|broadcast| broadcast.index).collect()
}

#[test]
fn a_publisher_speaks_to_readers_and_hears_nothing() {
    let (broker, _) = broker(Bounds::default());
    let mut reader = broker.join(1, &as_reader()).expect("room");
    let mut author = broker.join(2, &as_admin()).expect("room");
    for index in [0, 1, 5] {
        broker.receive(author.stream, &signed(KIND_DATA, author.challenge, index, b"x")).expect("valid");
    }
    // What the broker has already, and a claim: counted or not, never delivered.
    broker.receive(author.stream, &signed(KIND_DATA, author.challenge, 5, b"x")).expect("a retransmit");
    broker.receive(author.stream, &signed(KIND_AUTH, author.challenge, 0, b"")).expect("a claim");
    assert_eq!(received(&mut reader), [0, 1, 5]);
    assert_eq!(received(&mut author), [0; 0]);
    assert_eq!(broker.counters(), Counters { retransmit: 1, ..Counters::default() });
}

#[test]
fn what_was_signed_for_one_stream_counts_on_no_other() {
    let (broker, _) = broker(Bounds::default());
    let mut reader = broker.join(1, &as_reader()).expect("room");
    let (first, second) = (broker.join(2, &as_admin()).expect("room"), broker.join(3, &as_admin()).expect("room"));
    broker.receive(second.stream, &signed(KIND_DATA, first.challenge, 0, b"x")).expect("dropped");
    assert_eq!((received(&mut reader), broker.counters().wrong_challenge), (vec![], 1));
    // Two streams of one author are arbitrated by the cursor.
    broker.receive(first.stream, &signed(KIND_DATA, first.challenge, 3, b"x")).expect("valid");
    broker.receive(second.stream, &signed(KIND_DATA, second.challenge, 2, b"x")).expect("late");
    broker.receive(second.stream, &signed(KIND_DATA, second.challenge, 4, b"x")).expect("valid");
    assert_eq!(received(&mut reader), [3, 4]);
}

#[test]
fn violations_reset_the_stream_and_unknown_kinds_do_not() {
    let (broker, _) = broker(Bounds::default());
    let reader = broker.join(1, &as_reader()).expect("room");
    let frame = signed(KIND_DATA, reader.challenge, 0, b"x");
    assert_eq!(broker.receive(reader.stream, &frame), Err(Violation::WrongStream));
    assert_eq!(broker.receive(reader.stream, &frame), Err(Violation::Gone));

    let author = broker.join(2, &as_admin()).expect("room");
    let valid = signed(KIND_DATA, author.challenge, 0, b"x");
    assert_eq!(broker.receive(author.stream, &Broadcast { kind: 9, ..valid.clone() }), Ok(()));
    assert_eq!(broker.receive(author.stream, &Broadcast { index: 1, ..valid }), Err(Violation::InvalidSoc));
    let author = broker.join(2, &as_admin()).expect("room");
    let loud = signed(KIND_AUTH, author.challenge, 0, b"payload");
    assert_eq!(broker.receive(author.stream, &loud), Err(Violation::InvalidSoc));
    let counters = Counters { wrong_stream: 1, unknown_kind: 1, invalid_soc: 2, ..Counters::default() };
    assert_eq!(broker.counters(), counters);
}

#[test]
fn bounds_are_kept_and_the_author_is_outside_of_them() {
    let (broker, _) = broker(Bounds { subscribers: 2, cohorts: 2, queue: 3, ..Bounds::default() });
    let mut readers: Vec<_> = (0..2).map(|connection| broker.join(connection, &as_reader()).expect("room")).collect();
    assert_eq!(broker.join(9, &as_reader()).map(drop), Err(Status::Full));
    let author = broker.join(3, &as_admin()).expect("outside of the bound");
    broker.join(3, &as_admin()).expect("a second stream of the connection");
    assert_eq!(broker.join(3, &as_admin()).map(drop), Err(Status::Full), "a third");
    let other = |byte| Join { cohort: Cohort { topic: Bytes32([byte; 32]), ..cohort() }, addr: READER };
    broker.join(4, &other(1)).expect("the second cohort");
    assert_eq!(broker.join(4, &other(2)).map(drop), Err(Status::Full), "the third cohort");

    // One reader takes nothing: it is reset, the other goes on.
    for index in 0..5 {
        broker.receive(author.stream, &signed(KIND_DATA, author.challenge, index, b"x")).expect("valid");
        received(&mut readers[0]);
    }
    assert_eq!(broker.counters().queue_reset, 1);
    assert_eq!(received(&mut readers[1]), [0, 1, 2]);
    assert!(readers[1].broadcasts.is_closed());
    assert!(!readers[0].broadcasts.is_closed());
}

#[test]
fn who_does_not_claim_is_cut_off_and_a_silent_cohort_ends() {
    let (broker, now_ms) = broker(Bounds { inactivity_ms: 100_000, claim_ms: 30_000, ..Bounds::default() });
    let reader = broker.join(1, &as_reader()).expect("room");
    let (silent, author) = (broker.join(2, &as_admin()).expect("room"), broker.join(3, &as_admin()).expect("room"));
    now_ms.store(29_999, Ordering::Relaxed);
    broker.expire();
    broker.receive(author.stream, &signed(KIND_AUTH, author.challenge, 0, b"")).expect("a claim, and activity");
    now_ms.store(30_000, Ordering::Relaxed);
    broker.expire();
    assert!(silent.broadcasts.is_closed() && !author.broadcasts.is_closed());
    assert_eq!(broker.counters().claim_timeout, 1);
    now_ms.store(129_998, Ordering::Relaxed);
    broker.expire();
    assert!(!reader.broadcasts.is_closed());
    now_ms.store(129_999, Ordering::Relaxed);
    broker.expire();
    assert!(reader.broadcasts.is_closed() && author.broadcasts.is_closed());
    // A new cohort of the same spec knows nothing of the old one.
    let author = broker.join(3, &as_admin()).expect("room");
    let mut reader = broker.join(1, &as_reader()).expect("room");
    broker.receive(author.stream, &signed(KIND_DATA, author.challenge, 0, b"x")).expect("valid");
    assert_eq!(received(&mut reader), [0]);
}

/// A running broker, and how its sockets are reached.
struct Site {
    provider: Provider,
    broker: Bytes32,
}

fn at() -> Moment {
    Moment { now_ms: 0, random: 1 }
}

impl Site {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let provider = Provider::start(&fresh_directory(name), arguments);
        let broker = bytes32(provider.json("GET", "/demo/bps", "")["broker"].as_str().expect("an address"));
        Self { provider, broker }
    }

    fn transports(&self) -> [Transport; 2] {
        [Transport::Bridge { broker: self.broker }, Transport::Direct]
    }

    fn dial(&self, dial: &Dial) -> WebSocket<TcpStream> {
        let path = match dial {
            Dial::Bridge(path) => path,
            Dial::Direct => "/bps/direct",
        };
        let stream = TcpStream::connect(&self.provider.address).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        let (socket, _) =
            tungstenite::client(format!("ws://{}{path}", self.provider.address), stream).expect("upgraded");
        socket
    }

    /// Waits until the broker has so many streams: the bridge says nothing when it has joined.
    fn await_streams(&self, count: u64) {
        let started = Instant::now();
        while self.provider.json("GET", "/demo/bps", "")["streams"] != count {
            assert!(started.elapsed() < Duration::from_secs(10), "{count} streams");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A publisher over a socket, until it waits for what only the socket can bring.
fn publish(site: &Site, transport: Transport, next_index: u64, payloads: &[&[u8]]) -> (u64, Vec<PublisherOutput>) {
    let mut publisher = Publisher::new(PublisherConfig { cohort: cohort(), transport, next_index });
    payloads.iter().for_each(|payload| publisher.publish(payload.to_vec()).expect("room"));
    publisher.handle_time(at());
    let (mut socket, mut durable, mut told) = (None, next_index, Vec::new());
    loop {
        match publisher.poll_output() {
            Some(PublisherOutput::Connect(dial)) => {
                socket = Some(site.dial(&dial));
                publisher.handle_connected(at());
            }
            Some(PublisherOutput::Send(bytes)) => {
                socket.as_mut().expect("connected").send(Message::Binary(bytes.into())).expect("sent");
            }
            Some(PublisherOutput::Store { next_index }) => {
                durable = next_index;
                publisher.handle_stored(next_index);
            }
            Some(PublisherOutput::Sign { id, message }) => {
                publisher.handle_signature(id, &admin().sign(&message).expect("signed"), at());
            }
            Some(PublisherOutput::Disconnect) => socket = None,
            Some(output) => told.push(output),
            None => {
                let sent = told.iter().filter(|output| matches!(output, PublisherOutput::Sent { .. })).count();
                let Some(open) = socket.as_mut().filter(|_| sent < payloads.len()) else {
                    // A close handshake: everything before it was taken.
                    if let Some(mut open) = socket {
                        open.close(None).expect("closing");
                        while open.read().is_ok() {}
                    }
                    return (durable, told);
                };
                match open.read().expect("a message") {
                    Message::Text(text) => publisher.handle_text(&text, at()),
                    Message::Binary(bytes) => publisher.handle_message(&bytes, at()),
                    Message::Close(frame) => {
                        publisher.handle_close(frame.map_or(1006, |frame| frame.code.into()), at())
                    }
                    _ => {}
                }
            }
        }
    }
}

/// A subscriber over a socket.
struct Reader {
    machine: Subscriber,
    socket: Option<WebSocket<TcpStream>>,
    told: Vec<SubscriberOutput>,
}

impl Reader {
    fn join(site: &Site, transport: Transport, cursor: Option<u64>) -> Self {
        let config = SubscriberConfig { cohort: cohort(), identity: READER, transport, cursor };
        let mut reader = Self { machine: Subscriber::new(config), socket: None, told: Vec::new() };
        reader.machine.handle_time(at());
        reader.settle(site);
        if transport == Transport::Direct {
            reader.read(site);
        }
        reader
    }

    fn settle(&mut self, site: &Site) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                SubscriberOutput::Connect(dial) => {
                    self.socket = Some(site.dial(&dial));
                    self.machine.handle_connected(at());
                }
                SubscriberOutput::Send(bytes) => {
                    self.socket.as_mut().expect("connected").send(Message::Binary(bytes.into())).expect("sent");
                }
                SubscriberOutput::Disconnect => self.socket = None,
                output => self.told.push(output),
            }
        }
    }

    fn read(&mut self, site: &Site) {
        match self.socket.as_mut().expect("connected").read().expect("a message") {
            Message::Binary(bytes) => self.machine.handle_message(&bytes, at()),
            Message::Close(frame) => self.machine.handle_close(frame.map_or(1006, |frame| frame.code.into()), at()),
            _ => {}
        }
        self.settle(site);
    }

    fn delivered(&self) -> Vec<(u64, Vec<u8>)> {
        let deliveries = self.told.iter().filter_map(|output| match output {
            SubscriberOutput::Deliver(delivery) => Some((delivery.broadcast.index, delivery.payload.clone())),
            _ => None,
        });
        deliveries.collect()
    }

    fn ended(&self) -> Option<&'static str> {
        self.told.iter().find_map(|output| match output {
            SubscriberOutput::Ended { reason, .. } => Some(reason.code()),
            _ => None,
        })
    }
}

#[test]
fn updates_go_from_either_socket_to_either_and_indices_go_on() {
    let site = Site::start("bps-honest", &[]);
    let mut readers: Vec<_> =
        site.transports().into_iter().map(|transport| Reader::join(&site, transport, None)).collect();
    site.await_streams(2);
    let [bridge, direct] = site.transports();
    let (next, _) = publish(&site, bridge, 0, &[b"one", b"two"]);
    let (next, _) = publish(&site, direct, next, &[b"three"]);
    assert_eq!(next, 3);
    let expected = [(0, b"one".to_vec()), (1, b"two".to_vec()), (2, b"three".to_vec())];
    for reader in &mut readers {
        while reader.delivered().len() < 3 {
            reader.read(&site);
        }
        assert_eq!(reader.delivered(), expected);
    }
    // A publisher that forgot its index is a retransmit to the broker, and nothing to the readers.
    publish(&site, direct, 1, &[b"again"]);
    let counters = &site.provider.json("GET", "/demo/bps", "")["counters"];
    assert_eq!((&counters["retransmit"], &counters["invalid_soc"]), (&1.into(), &0.into()));
}

#[test]
fn a_reader_that_speaks_and_a_broker_that_nobody_has() {
    let site = Site::start("bps-refused", &[]);
    let dial = |path: String| site.dial(&Dial::Bridge(path));
    let cohort = cohort();
    let path = |broker| format!("/bps/subscribe/{}/{TOPIC}?broker={broker}&identity={READER}", cohort.admin);
    let mut socket = dial(path(site.broker));
    socket.send(Message::Binary(vec![0; 40].into())).expect("sent");
    let Message::Close(Some(close)) = socket.read().expect("an answer") else { panic!("a close") };
    assert_eq!(u16::from(close.code), 4002);
    let (status, ..) = site.provider.http("GET", &path(Bytes32([0; 32])), "", &[]);
    assert_eq!(status, 400);
}

fn caught(lie: BrokerLie) {
    let name = lie.to_possible_value().expect("a name").get_name().to_owned();
    let site = Site::start(&format!("bps-{name}"), &["--bps-lie", &name]);
    if matches!(lie, BrokerLie::OtherBroker | BrokerLie::OtherTopics) {
        let (_, told) = publish(&site, site.transports()[0], 0, &[b"one"]);
        let [PublisherOutput::Ended { reason, retry_at_ms: None }] = told[..] else { panic!("{told:?}") };
        assert_eq!(Some(reason.code()), lie.verdict());
        return;
    }
    for (round, transport) in site.transports().into_iter().enumerate() {
        let before = site.provider.json("GET", "/demo/bps", "")["streams"].as_u64().expect("a number");
        let mut reader = Reader::join(&site, transport, None);
        site.await_streams(before + 1);
        let first = u64::try_from(round).expect("small") * 4;
        publish(&site, transport, first, &[b"a", b"b", b"c", b"d"]);
        let enough = |reader: &Reader| match lie {
            BrokerLie::Replay => reader.machine.dropped().replayed_index == 4,
            BrokerLie::Withhold => reader.delivered().len() == 2,
            _ => reader.ended().is_some(),
        };
        while !enough(&reader) {
            reader.read(&site);
        }
        match lie {
            BrokerLie::Replay => assert_eq!(reader.delivered().len(), 4),
            BrokerLie::Withhold => {
                let Some(SubscriberOutput::Deliver(last)) = reader.told.last() else { panic!("{:?}", reader.told) };
                assert!(last.gap.is_some_and(|gap| (gap.first, gap.last) == (first + 1, first + 1)));
            }
            _ => {
                assert_eq!((reader.ended(), reader.delivered().len()), (lie.verdict(), 0), "{name}");
                assert_eq!(reader.machine.wake_at(), None, "a broker that lies is not asked again by itself");
            }
        }
        drop(reader);
        site.await_streams(0);
    }
}

macro_rules! lies {
    ($($test:ident = $lie:ident,)+) => {
        $(#[test] fn $test() { caught(BrokerLie::$lie); })+

        #[test]
        fn every_lie_has_a_test() {
            assert_eq!(BrokerLie::value_variants(), [$(BrokerLie::$lie,)+]);
        }
    };
}

lies! {
    an_altered_payload_is_caught = AlterPayload,
    a_forged_update_is_caught = ForgeUpdate,
    a_relabelled_index_is_caught = RelabelIndex,
    a_relabelled_challenge_is_caught = RelabelChallenge,
    a_cut_chunk_is_caught = CutChunk,
    a_replay_is_dropped = Replay,
    a_withheld_update_is_reported = Withhold,
    another_broker_is_caught = OtherBroker,
    other_topics_are_caught = OtherTopics,
}
