//! The publisher: claims, order of events, deadlines, and that no index is ever sent twice, wherever it is killed.

mod support;

use std::collections::BTreeMap;

use remuda_bps::broadcast::{judge, Judged};
use remuda_bps::connection::{CloseReason, Dial, Transport, DEADLINE_MS};
use remuda_bps::message::{Broadcast, Join, Status};
use remuda_bps::publisher::{PublishRefused, Publisher, PublisherConfig, PublisherOutput, MAX_QUEUE};
use remuda_bps::signature::LocalSigner;
use remuda_bps::topic::{KIND_AUTH, KIND_DATA};
use remuda_bps::BpsRefusal;
use remuda_wire::Bytes32;
use support::*;

fn publisher(transport: Transport, next_index: u64) -> Publisher {
    let mut publisher = Publisher::new(PublisherConfig { cohort: cohort(), transport, next_index });
    publisher.handle_time(at(0));
    publisher
}

fn outputs(publisher: &mut Publisher) -> Vec<PublisherOutput> {
    std::iter::from_fn(|| publisher.poll_output()).collect()
}

fn challenge(publisher: &mut Publisher, transport: Transport, challenge: Bytes32, now_ms: u64) {
    publisher.handle_connected(at(now_ms));
    match transport {
        Transport::Direct => publisher.handle_message(&ack(Status::Ok, challenge), at(now_ms)),
        Transport::Bridge { .. } => publisher.handle_text(&offer(challenge), at(now_ms)),
    }
}

/// A sent frame as the broker sees it.
fn seen(transport: Transport, frame: &[u8], challenge: Bytes32) -> Broadcast {
    match transport {
        Transport::Direct => Broadcast::from_bytes(frame).expect("a broadcast"),
        Transport::Bridge { .. } => Broadcast {
            kind: frame[0].into(),
            index: u64::from_be_bytes(frame[1..9].try_into().expect("an index")),
            soc: frame[9..].to_vec(),
            challenge: challenge.0.into(),
        },
    }
}

/// Stores and signs whatever is asked for; answers the frames that were sent.
fn settle(publisher: &mut Publisher, transport: Transport, challenge: Bytes32) -> Vec<Broadcast> {
    let mut sent = Vec::new();
    while let Some(output) = publisher.poll_output() {
        match output {
            PublisherOutput::Store { next_index } => publisher.handle_stored(next_index),
            PublisherOutput::Sign { id, message } => {
                publisher.handle_signature(id, &admin().sign(&message).expect("signed"), at(0));
            }
            PublisherOutput::Send(frame) if Join::from_bytes(&frame).is_err() => {
                sent.push(seen(transport, &frame, challenge))
            }
            _ => {}
        }
    }
    sent
}

#[test]
fn without_an_update_the_claim_is_bare() {
    for transport in TRANSPORTS {
        let mut publisher = publisher(transport, 0);
        challenge(&mut publisher, transport, CHALLENGE, 0);
        let sent = settle(&mut publisher, transport, CHALLENGE);
        assert_eq!(sent.len(), 1);
        assert_eq!((sent[0].kind, sent[0].index), (KIND_AUTH.into(), 0));
        assert_eq!(judge(&cohort(), &sent[0], None), Ok(Judged::Claim));
        publisher.publish(b"first".to_vec()).unwrap();
        let sent = settle(&mut publisher, transport, CHALLENGE);
        assert_eq!((sent[0].kind, sent[0].index), (KIND_DATA.into(), 0));
    }
}

#[test]
fn a_waiting_update_is_the_claim() {
    for transport in TRANSPORTS {
        let mut publisher = publisher(transport, 5);
        publisher.publish(b"first".to_vec()).unwrap();
        publisher.publish(b"second".to_vec()).unwrap();
        challenge(&mut publisher, transport, CHALLENGE, 0);
        let sent = settle(&mut publisher, transport, CHALLENGE);
        let judged: Vec<_> = sent.iter().map(|sent| (sent.index, judge(&cohort(), sent, None).unwrap())).collect();
        let delivered = |payload: &[u8]| Judged::Delivered { payload: payload.into(), gap: None };
        assert_eq!(judged, [(5, delivered(b"first")), (6, delivered(b"second"))]);
        assert_eq!(publisher.queued(), 0);
    }
}

#[test]
fn the_publisher_says_who_it_is() {
    let mut over_bridge = publisher(BRIDGE, 0);
    let path = format!("/bps/publish/{}/{TOPIC}?broker={BROKER}", cohort().admin);
    assert_eq!(outputs(&mut over_bridge), [PublisherOutput::Connect(Dial::Bridge(path))]);
    let mut direct = publisher(Transport::Direct, 0);
    direct.handle_connected(at(0));
    let join = Join { cohort: cohort(), addr: cohort().admin }.to_bytes();
    assert_eq!(outputs(&mut direct), [PublisherOutput::Connect(Dial::Direct), PublisherOutput::Send(join)]);
}

#[test]
fn nothing_is_signed_before_its_index_is_stored() {
    let mut publisher = publisher(Transport::Direct, 3);
    challenge(&mut publisher, Transport::Direct, CHALLENGE, 0);
    settle(&mut publisher, Transport::Direct, CHALLENGE);
    publisher.publish(b"update".to_vec()).unwrap();
    assert_eq!(outputs(&mut publisher), [PublisherOutput::Store { next_index: 4 }]);
    publisher.handle_stored(3);
    assert_eq!(outputs(&mut publisher), [], "what was stored does not cover it");
    publisher.handle_stored(4);
    assert!(matches!(outputs(&mut publisher)[..], [PublisherOutput::Sign { .. }]));
}

#[test]
fn a_reset_means_another_claim_and_other_signatures_for_the_same_unsent_index() {
    for transport in TRANSPORTS {
        let mut publisher = publisher(transport, 0);
        publisher.publish(b"update".to_vec()).unwrap();
        challenge(&mut publisher, transport, CHALLENGE, 0);
        publisher.handle_stored(1);
        let Some(PublisherOutput::Sign { id, message }) = outputs(&mut publisher).pop() else { panic!("to sign") };
        publisher.handle_close(1006, at(1));
        let retry = publisher.wake_at().expect("due");
        publisher.handle_time(at(retry));
        let other = Bytes32([0xc2; 32]);
        challenge(&mut publisher, transport, other, retry);
        // The signature for the stream that is gone comes late: it is not wanted.
        publisher.handle_signature(id, &admin().sign(&message).unwrap(), at(retry));
        let sent = settle(&mut publisher, transport, other);
        assert_eq!(sent.len(), 1);
        assert_eq!((sent[0].index, &sent[0].challenge[..]), (0, &other.0[..]));
        assert!(judge(&cohort(), &sent[0], None).is_ok());
    }
}

#[test]
fn an_offer_that_is_not_derived_signs_nothing() {
    let wrong = Bytes32([0xc2; 32]);
    let lies = [
        (offer(CHALLENGE).replace(&CHALLENGE.to_string(), &wrong.to_string()), BpsRefusal::OfferedTopics),
        (offer(CHALLENGE).replace(&BROKER.to_string(), &wrong.to_string()), BpsRefusal::Broker),
        ("{}".into(), BpsRefusal::Frame),
    ];
    for (text, refusal) in lies {
        let mut publisher = publisher(BRIDGE, 0);
        publisher.publish(b"update".to_vec()).unwrap();
        publisher.handle_stored(1);
        publisher.handle_connected(at(0));
        outputs(&mut publisher);
        publisher.handle_text(&text, at(1));
        let reason = CloseReason::Violation(refusal);
        assert_eq!(
            outputs(&mut publisher),
            [PublisherOutput::Disconnect, PublisherOutput::Ended { reason, retry_at_ms: None }]
        );
    }
}

#[test]
fn a_signature_of_another_key_is_not_sent() {
    let mut publisher = publisher(Transport::Direct, 0);
    challenge(&mut publisher, Transport::Direct, CHALLENGE, 0);
    let Some(PublisherOutput::Sign { id, message }) = outputs(&mut publisher).pop() else { panic!("to sign") };
    let stranger = LocalSigner::new(&[0x64; 32]).unwrap();
    publisher.handle_signature(id, &stranger.sign(&message).unwrap(), at(1));
    let told = outputs(&mut publisher);
    assert!(!told.iter().any(|told| matches!(told, PublisherOutput::Send(_))));
    assert!(told.contains(&PublisherOutput::Ended { reason: CloseReason::Signer, retry_at_ms: None }));
}

#[test]
fn a_claim_has_thirty_seconds() {
    let mut publisher = publisher(Transport::Direct, 0);
    challenge(&mut publisher, Transport::Direct, CHALLENGE, 100);
    assert_eq!(publisher.wake_at(), Some(100 + DEADLINE_MS));
    publisher.handle_time(at(100 + DEADLINE_MS));
    assert!(outputs(&mut publisher)
        .iter()
        .any(|told| matches!(told, PublisherOutput::Ended { reason: CloseReason::Deadline, retry_at_ms: Some(_) })));
}

#[test]
fn what_cannot_be_sent_is_not_queued() {
    let mut full = publisher(BRIDGE, 0);
    assert_eq!(full.publish(vec![0; 4_097]), Err(PublishRefused::PayloadTooLong));
    (0..MAX_QUEUE).for_each(|_| full.publish(vec![0; 4_096]).unwrap());
    assert_eq!(full.publish(Vec::new()), Err(PublishRefused::QueueFull));
    let mut last = publisher(BRIDGE, u64::MAX);
    assert_eq!(last.publish(Vec::new()), Err(PublishRefused::IndicesExhausted));
}

/// What one life of a publisher did before it was killed.
struct Life {
    /// Steps that it lived; fewer than it was given when there was nothing left to do.
    steps: usize,
    sent: Vec<Broadcast>,
}

/// Runs one life for `steps` steps at most over what is durable, and breaks the connection at `cut`. One step is one input
/// or one output; killed, it loses everything but `durable`. A store that is told of `forgetful` confirms what it lost.
fn live(transport: Transport, durable: &mut u64, steps: usize, cut: usize, forgetful: bool) -> Life {
    let mut life = Life { steps: 0, sent: Vec::new() };
    let mut publisher = Publisher::new(PublisherConfig { cohort: cohort(), transport, next_index: *durable });
    let (mut now, mut round, mut to_publish) = (0, 0_u8, 2_u8);
    while life.steps < steps {
        life.steps += 1;
        if life.steps == cut {
            publisher.handle_close(1006, at(now));
            continue;
        }
        let current = Bytes32([round; 32]);
        match publisher.poll_output() {
            Some(PublisherOutput::Connect(_)) => {
                round += 1;
                challenge(&mut publisher, transport, Bytes32([round; 32]), now);
            }
            Some(PublisherOutput::Store { next_index }) => {
                if !forgetful {
                    *durable = next_index;
                }
                // Killed between the two, it is durable and nobody knows.
                life.steps += 1;
                if life.steps < steps {
                    publisher.handle_stored(next_index);
                }
            }
            Some(PublisherOutput::Sign { id, message }) => {
                publisher.handle_signature(id, &admin().sign(&message).expect("signed"), at(now));
            }
            Some(PublisherOutput::Send(frame)) if Join::from_bytes(&frame).is_err() => {
                life.sent.push(seen(transport, &frame, current));
            }
            Some(_) => {}
            None if to_publish > 0 => {
                publisher.publish(vec![to_publish]).expect("room");
                to_publish -= 1;
            }
            None => match publisher.wake_at() {
                Some(due) => {
                    now = now.max(due);
                    publisher.handle_time(at(now));
                }
                None => break,
            },
        }
    }
    life
}

/// Kills the first life after every number of steps, cuts its connection at every step, and lets a second one follow.
fn indices_reused(transport: Transport, forgetful: bool) -> usize {
    let whole = live(transport, &mut 0, 1_000, usize::MAX, false);
    assert!(whole.steps < 1_000 && whole.sent.iter().filter(|sent| sent.kind == i32::from(KIND_DATA)).count() == 2);
    let mut reused = 0;
    for killed_after in 0..=whole.steps + 12 {
        for cut in 1..=killed_after + 1 {
            let mut durable = 0;
            let mut sent = live(transport, &mut durable, killed_after, cut, forgetful).sent;
            sent.extend(live(transport, &mut durable, 1_000, usize::MAX, forgetful).sent);
            let mut payloads = BTreeMap::<u64, usize>::new();
            for broadcast in sent.iter().filter(|sent| sent.kind == i32::from(KIND_DATA)) {
                *payloads.entry(broadcast.index).or_default() += 1;
            }
            reused += payloads.values().filter(|count| **count > 1).count();
        }
    }
    reused
}

#[test]
fn killed_at_every_step_no_index_is_sent_twice() {
    for transport in TRANSPORTS {
        assert_eq!(indices_reused(transport, false), 0);
    }
}

#[test]
fn the_simulation_finds_a_store_that_forgets() {
    assert!(indices_reused(Transport::Direct, true) > 0);
}
