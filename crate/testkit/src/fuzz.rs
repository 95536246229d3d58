//! Fuzz targets: what must hold for any bytes at all. The same functions run under libFuzzer (`fuzz/`) and under the driver of
//! `cargo xtask fuzz`, which needs no other compiler.
//!
//! A target panics when a decoder takes bytes that it does not encode again, or when an answer depends on what it may not
//! depend on. [`Target::check`] adds the heap: everything that was allocated on the way is bounded by the length of the input.

use remuda_bps::bridge::{read_subscribed, Offer};
use remuda_bps::evidence as bps;
use remuda_bps::message::{Ack, Join};
use remuda_bps::{judge, Address, Broadcast, Cohort, Judged};
use remuda_verify::audit::{audit, Auditor};
use remuda_watchtower::cbor::{map, Value as Cbor};
use remuda_watchtower::evidence as watchtower;
use remuda_watchtower::feed::{Feed, FeedConfig, Moment, Output, Start};
use remuda_watchtower::filter::{Filter, Headers};
use remuda_watchtower::message::Tags;
use remuda_watchtower::schedule::KeyEntry;
use remuda_watchtower::signing::Profile;
use remuda_watchtower::verifier::Cursor;
use remuda_watchtower::{StreamId, StreamMessage, Tag};
use remuda_wire::audit::{AuditHead, AuditItem};
use remuda_wire::{Bytes32, Canonical, Reader};
use serde_json::Value;

use crate::evidence_audit::audit_evidence;
use crate::vector::input::Input;
use crate::vector::op::audit::decode_base64;
use crate::vector::op::decode::{recode_as, type_names};
use crate::vector::op::watchtower::message as watchtower_message;

/// A promise about any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also of its file in `fuzz/fuzz_targets/` and of its folder in `fuzz/fixtures/`.
    pub name: &'static str,
    /// Panics where the promise is broken.
    pub run: fn(&[u8]),
    /// How many bytes may be allocated for each byte of input, those given back again included.
    pub heap_multiple: usize,
}

/// What may be allocated beside [`Target::heap_multiple`]: tables that are computed once, and what an empty answer costs.
const HEAP_CONSTANT: usize = 128 * 1024;

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "server_frame", run: server_frame, heap_multiple: 64 },
    Target { name: "client_frame", run: client_frame, heap_multiple: 64 },
    // A frame as a value is as large as the largest kind, however few bytes it came in.
    Target { name: "batch", run: batch, heap_multiple: 512 },
    Target { name: "broker_state", run: broker_state, heap_multiple: 64 },
    Target { name: "grant", run: grant, heap_multiple: 64 },
    Target { name: "object", run: object, heap_multiple: 64 },
    Target { name: "audit_parts", run: audit_parts, heap_multiple: 64 },
    // Judged twice, and printed.
    Target { name: "audit", run: audit_file, heap_multiple: 1_024 },
    // A value is as large as the largest kind, however few bytes it came in; it is decoded, shaped and encoded again.
    Target { name: "watchtower_cbor", run: watchtower_cbor, heap_multiple: 512 },
    Target { name: "watchtower_answer", run: watchtower_answer, heap_multiple: 512 },
    Target { name: "watchtower_filter", run: watchtower_filter, heap_multiple: 512 },
    Target { name: "bps_message", run: bps_message, heap_multiple: 64 },
    Target { name: "bps_bridge", run: bps_bridge, heap_multiple: 64 },
];

/// The target called `name`.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// Runs it under the heap bound; `allocated` answers all bytes that were ever allocated.
    ///
    /// # Panics
    /// Where the promise is broken.
    pub fn check(&self, bytes: &[u8], allocated: impl Fn() -> usize) {
        let before = allocated();
        (self.run)(bytes);
        let taken = allocated() - before;
        let allowed = self.heap_multiple * bytes.len() + HEAP_CONSTANT;
        assert!(taken <= allowed, "{} bytes of input, {taken} allocated, {allowed} allowed", bytes.len());
    }
}

fn recodes(of: &str, bytes: &[u8]) {
    match recode_as(of, bytes) {
        Some(Ok(again)) => assert_eq!(again, bytes, "{of} encodes to other bytes than it was decoded from"),
        Some(Err(_)) => {}
        None => panic!("no type {of}"),
    }
}

/// `CbqsServerFrameV1`.
pub fn server_frame(bytes: &[u8]) {
    recodes("CbqsServerFrameV1", bytes);
}

/// `CbqsClientFrameV1`.
pub fn client_frame(bytes: &[u8]) {
    recodes("CbqsClientFrameV1", bytes);
}

/// `CbqsServerFrameBatchV1`.
pub fn batch(bytes: &[u8]) {
    recodes("CbqsServerFrameBatchV1", bytes);
}

/// `BrokerStateV1`.
pub fn broker_state(bytes: &[u8]) {
    recodes("BrokerStateV1", bytes);
}

/// `StreamGrantV1`.
pub fn grant(bytes: &[u8]) {
    recodes("StreamGrantV1", bytes);
}

/// Any type: the first byte chooses it.
pub fn object(bytes: &[u8]) {
    if let Some((choice, rest)) = bytes.split_first() {
        let count = type_names().count();
        if let Some(name) = type_names().nth(usize::from(*choice) % count) {
            recodes(name, rest);
        }
    }
}

/// The head of an audit file and its items, decoded as values.
pub fn audit_parts(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let mut again = Vec::new();
    let Ok(head) = AuditHead::decode(&mut reader) else { return };
    again.extend(head.to_bytes());
    let Ok(count) = u32::decode(&mut reader) else { return };
    again.extend(count.to_bytes());
    for _ in 0..count {
        let Ok(item) = AuditItem::decode(&mut reader) else { break };
        again.extend(item.to_bytes());
    }
    assert!(bytes.starts_with(&again), "an audit's parts encode to other bytes than they were decoded from");
}

/// A whole audit: it ends, it never panics, and its report does not depend on how the file is cut.
pub fn audit_file(bytes: &[u8]) {
    let whole = audit(bytes).to_json();
    let mut auditor = Auditor::new();
    let step = bytes.last().map_or(1, |byte| usize::from(*byte) + 1);
    bytes.chunks(step).for_each(|chunk| auditor.push(chunk));
    assert_eq!(auditor.finish().to_json(), whole, "the report depends on how the file is cut");
}

/// A deterministic CBOR item, and a `StreamMessage` of it: what is taken is written and read as the same again, and what
/// would be signed of it is deterministic.
pub fn watchtower_cbor(bytes: &[u8]) {
    accuses_nobody(watchtower::MAGIC, bytes);
    let Ok(value) = remuda_watchtower::cbor::decode(bytes) else { return };
    assert_eq!(value.to_bytes(), bytes, "a value encodes to other bytes than it was decoded from");
    let Ok(message) = StreamMessage::from_value(value) else { return };
    let again = StreamMessage::from_value(message.to_value());
    assert_eq!(again.as_ref(), Ok(&message), "a message is another one once written");
    let signed = Profile::default().signing_bytes(&message);
    assert!(remuda_watchtower::cbor::decode(&signed).is_ok(), "what is signed is not deterministic");
}

/// Any answer to a feed, of any status, to either request: it delivers nothing that nobody signed, and asks, sleeps or stops.
pub fn watchtower_answer(bytes: &[u8]) {
    let start = Start::After(Cursor { last_sequence: 3, last_digest: None });
    let key = KeyEntry { signing_key_id: 1, pubkey: Bytes32([1; 32]), effective_sequence: 1 };
    for (schedule, status) in [(Vec::new(), 200), (vec![key], 200), (vec![key], 409)] {
        let config = FeedConfig { schedule, ..FeedConfig::new(StreamId::Text("feed-1".into()), start) };
        let Ok(mut feed) = Feed::new(config) else { return };
        feed.handle_time(0);
        let asked = feed.poll_output();
        assert!(matches!(asked, Some(Output::Request(_))), "a feed that is due asks");
        feed.handle_answer(status, bytes, Moment { now_ms: 0, random: 0 });
        let outputs: Vec<_> = std::iter::from_fn(|| feed.poll_output()).collect();
        assert!(!outputs.iter().any(|output| matches!(output, Output::Store(_))), "nobody signed this");
        assert!(!outputs.is_empty() || feed.wake_at().is_some(), "nothing will ever happen again");
    }
}

/// A filter as text: its negation, where that is not too deep, wants exactly what it does not want.
pub fn watchtower_filter(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (Ok(filter), Ok(negation)) = (Filter::from_text(text), Filter::from_text(&format!(r#"{{"not":{text}}}"#)))
    else {
        return;
    };
    let tags = [("live", Tag::Bool(true)), ("sym", Tag::Text("ETH".into()))].map(|(name, tag)| (name.to_owned(), tag));
    let mut tags = Tags::from(tags);
    tags.extend(Tag::number(1.5).map(|number| ("px".to_owned(), number)));
    let headers = Headers { kind: "price", sequence: 7, timestamp_unix_ms: 9, tags: &tags };
    assert_ne!(filter.matches(headers), negation.matches(headers), "a filter and its negation agree");
}

/// A protobuf message: the first byte chooses which.
pub fn bps_message(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    match choice % 3 {
        0 => drop(Join::from_bytes(rest).map(|join| assert_eq!(Join::from_bytes(&join.to_bytes()), Ok(join)))),
        1 => drop(Ack::from_bytes(rest).map(|ack| assert_eq!(Ack::from_bytes(&ack.to_bytes()).as_ref(), Ok(&ack)))),
        _ => {
            let Ok(broadcast) = Broadcast::from_bytes(rest) else { return };
            assert_eq!(Broadcast::from_bytes(&broadcast.to_bytes()).as_ref(), Ok(&broadcast));
            judge_unsigned(&broadcast);
        }
    }
}

/// A message of the bridge, binary and as the text of an offer.
pub fn bps_bridge(bytes: &[u8]) {
    if let Ok(broadcast) = read_subscribed(bytes) {
        judge_unsigned(&broadcast);
    }
    accuses_nobody(bps::MAGIC, bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let known = Bytes32([7; 32]);
        let _ = Offer::from_text(text, &known, &known);
    }
}

/// As a file of evidence it is judged, and nobody signed what is in it.
fn accuses_nobody(magic: &[u8], bytes: &[u8]) {
    let report = audit_evidence(&[magic, bytes].concat());
    assert!(report.is_some_and(|report| !report.contradicts), "nobody signed this");
}

/// Nobody signed it as the admin whose address is zero.
fn judge_unsigned(broadcast: &Broadcast) {
    let cohort = Cohort { topic: Bytes32([7; 32]), admin: Address::ZERO };
    let judged = judge(&cohort, broadcast, Some(3));
    assert!(!matches!(judged, Ok(Judged::Delivered { .. } | Judged::Claim)), "nobody signed this");
}

/// The inputs of vectors of the two other protocols.
fn feed_seeds(op: &str, input: &Value) -> Option<(&'static str, Vec<u8>)> {
    let bytes = |of: &Value| Input::new(of).bytes().ok();
    match op {
        "watchtower_cbor" => Some(("watchtower_cbor", bytes(&input["bytes"])?)),
        "watchtower_verify" => {
            let messages = input["messages"].as_array()?.iter();
            let messages = messages.filter_map(|message| watchtower_message(Input::new(message)).ok());
            let page = map([
                ("messages", Cbor::Array(messages.map(|message| message.to_value()).collect())),
                ("head_sequence", 9.into()),
                ("floor_sequence", 1.into()),
            ]);
            Some(("watchtower_answer", page.to_bytes()))
        }
        "watchtower_open" => {
            Some(("watchtower_cbor", watchtower_message(Input::new(&input["message"])).ok()?.to_value().to_bytes()))
        }
        "watchtower_filter" => Some(("watchtower_filter", input["filter"].to_string().into_bytes())),
        "bps_protobuf" => {
            let choice = ["Join", "Ack", "Broadcast"].iter().position(|name| input["type"] == *name)?;
            Some(("bps_message", [vec![u8::try_from(choice).ok()?], bytes(&input["bytes"])?].concat()))
        }
        "bps_bridge_frame" => Some(("bps_bridge", bytes(&input["message"])?)),
        "bps_offer" => Some(("bps_bridge", input["text"].as_str()?.into())),
        _ => None,
    }
}

/// What the vectors have for each target: honest objects and those that are refused.
pub fn seeds(vector_files: &[Value]) -> Vec<(&'static Target, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut add = |name: &str, bytes: Vec<u8>| {
        // What is larger is slow to bend and adds nothing but size.
        if let (Some(target), true) = (find(name), bytes.len() <= 65_536) {
            seeds.push((target, bytes));
        }
    };
    for vector in vector_files.iter().filter_map(|file| file["vectors"].as_array()).flatten() {
        let input = &vector["in"];
        if let Some((name, bytes)) = vector["op"].as_str().and_then(|op| feed_seeds(op, input)) {
            add(name, bytes);
        }
        if let Some(file) = input["file"].as_str().and_then(decode_base64) {
            add("audit", file.clone());
            add("audit_parts", file);
        }
        for frame in input["frames"].as_array().into_iter().flatten() {
            if let Ok(bytes) = Input::new(frame).bytes() {
                add("server_frame", bytes);
            }
        }
        let (Some(of), Ok(bytes)) = (input["type"].as_str(), Input::new(&input["bytes"]).bytes()) else { continue };
        match of {
            "CbqsServerFrameV1" => add("server_frame", bytes.clone()),
            "CbqsClientFrameV1" => add("client_frame", bytes.clone()),
            "CbqsServerFrameBatchV1" => add("batch", bytes.clone()),
            "BrokerStateV1" => add("broker_state", bytes.clone()),
            "StreamGrantV1" => add("grant", bytes.clone()),
            _ => {}
        }
        if let Some(choice) = type_names().position(|name| name == of).and_then(|at| u8::try_from(at).ok()) {
            add("object", [&[choice], &bytes[..]].concat());
        }
    }
    seeds
}

/// A source of choices that is the same in every run: xorshift64*.
#[derive(Debug)]
pub struct Choices(u64);

impl Choices {
    /// From a seed other than zero.
    pub const fn new(seed: u64) -> Self {
        Self(if seed == 0 { 1 } else { seed })
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Less than `bound`; zero for a bound of zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from((self.next() >> 16) % bound).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.next() >> 56).unwrap_or(0)
    }
}

/// Bends an input in one to six places, now and then with a piece of `other`.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], choices: &mut Choices) {
    const LENGTHS: [u32; 8] = [0, 1, 2, 255, 256, 65_536, 0x7fff_ffff, u32::MAX];
    for _ in 0..=choices.below(6) {
        let at = choices.below(bytes.len());
        match choices.below(9) {
            _ if bytes.is_empty() => bytes.push(choices.byte()),
            0 | 1 => bytes[at] ^= 1 << choices.below(8),
            2 => bytes[at] = choices.byte(),
            3 => bytes.insert(at, choices.byte()),
            4 => {
                bytes.remove(at);
            }
            5 => bytes.truncate(at),
            6 => {
                let length = LENGTHS[choices.below(LENGTHS.len())].to_be_bytes();
                bytes.iter_mut().skip(at).zip(length).for_each(|(byte, new)| *byte = new);
            }
            7 => {
                let end = (at + 1 + choices.below(64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = choices.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let start = choices.below(other.len());
                let end = (start + choices.below(256)).min(other.len());
                let until = (at + end - start).min(bytes.len());
                bytes.splice(at..until, other[start..end].iter().copied());
            }
        }
    }
}
