//! What a dishonest actor or author is caught at, and that nothing of a refused answer counts.

mod support;

use remuda_watchtower::cbor::{map, Value};
use remuda_watchtower::evidence::{Claim, Equivocation};
use remuda_watchtower::feed::{Feed, Output, Start};
use remuda_watchtower::message::StreamMessage;
use remuda_watchtower::schedule::KeySchedule;
use remuda_watchtower::transport::Request;
use remuda_watchtower::verifier::Cursor;
use remuda_watchtower::WatchtowerRefusal;
use support::*;

/// Lets a feed take three messages honestly, then answers its next pull with `body`.
fn then(body: impl FnOnce(&Author) -> Vec<u8>) -> (Feed, Vec<Output>) {
    let mut actor = Actor::new(Author::with(3));
    let mut feed = from_zero();
    run(&mut feed, &mut actor, 0);
    let now = feed.wake_at().expect("due");
    feed.handle_time(now);
    assert!(matches!(feed.poll_output(), Some(Output::Request(_))));
    (0..3).for_each(|_| actor.author.publish());
    feed.handle_answer(200, &body(&actor.author), at(now));
    let told = std::iter::from_fn(|| feed.poll_output()).collect();
    (feed, told)
}

fn messages<const N: usize>(author: &Author, sequences: [usize; N]) -> Vec<u8> {
    page(sequences.into_iter().map(|sequence| author.log[sequence - 1].to_value()), 6, 1)
}

#[test]
fn what_comes_before_the_refused_message_counts_and_nothing_after_it() {
    let (feed, told) = then(|author| messages(author, [4, 6]));
    assert_eq!(sequences(&told), [4]);
    assert_eq!(told.last(), Some(&Output::Failed(WatchtowerRefusal::Gap)));
    assert_eq!(feed.verified_cursor().last_sequence, 4);
}

#[test]
fn each_falsehood_has_its_code() {
    type Lie = fn(&Author) -> Vec<u8>;
    let lies: [(Lie, WatchtowerRefusal); 8] = [
        (|author| messages(author, [5]), WatchtowerRefusal::Gap),
        (|author| messages(author, [1]), WatchtowerRefusal::Regression),
        (|_| b"\x9f\xff".to_vec(), WatchtowerRefusal::Cbor),
        (|_| map([("messages", Value::Array(Vec::new()))]).to_bytes(), WatchtowerRefusal::MessageShape),
        (
            |author| {
                let mut message = author.log[3].clone();
                message.payload_inline.push(0);
                page([message.to_value()].into_iter(), 6, 1)
            },
            WatchtowerRefusal::PayloadHash,
        ),
        (
            |author| {
                let mut message = author.log[3].clone();
                message.timestamp_unix_ms += 1;
                page([message.to_value()].into_iter(), 6, 1)
            },
            WatchtowerRefusal::Signature,
        ),
        (
            |author| {
                let mut message = author.log[3].clone();
                message.stream_id = remuda_watchtower::StreamId::Text("feed-2".into());
                page([message.to_value()].into_iter(), 6, 1)
            },
            WatchtowerRefusal::Stream,
        ),
        (|author| page((0..501).map(|_| author.log[3].to_value()), 6, 1), WatchtowerRefusal::MessageShape),
    ];
    for (lie, verdict) in lies {
        let (mut feed, told) = then(lie);
        assert_eq!(told, [Output::Failed(verdict)]);
        assert_eq!(feed.verified_cursor().last_sequence, 3, "{verdict}");
        assert_eq!(feed.wake_at(), None);
        // Asked again, it goes on from where it stood.
        feed.resume();
        assert!(matches!(feed.poll_output(), Some(Output::Request(_))));
    }
}

#[test]
fn an_equivocation_is_a_portable_pair() {
    let mut author = Author::with(2);
    let other = author.sign_alternative("other");
    author.publish();
    let mut actor = Actor::new(author);
    let mut feed = from_zero();
    run(&mut feed, &mut actor, 0);
    feed.handle_time(feed.wake_at().expect("due"));
    assert!(matches!(feed.poll_output(), Some(Output::Request(_))));
    feed.handle_answer(200, &page([other.to_value()].into_iter(), 3, 1), at(0));
    let Some(Output::Equivocation { evidence: Some(evidence), message }) = feed.poll_output() else {
        panic!("evidence")
    };
    assert_eq!(*message, other);
    assert_eq!(feed.poll_output(), Some(Output::Failed(WatchtowerRefusal::Equivocation)));

    // A third party has a file, with the pair and the schedule.
    let file = evidence.to_file(&actor.author.schedule);
    let claim = Claim::from_file(&file).expect("a file of evidence");
    assert_eq!((&claim.stream_id, &claim.schedule), (&stream_id(), &actor.author.schedule));
    assert!(claim.judge(&claim.schedule).unwrap().is_some());
    assert_eq!(claim.judge(&[]), Err(WatchtowerRefusal::KeySchedule), "under a schedule of its own it need not hold");
    assert!((0..file.len()).all(|cut| Claim::from_file(&file[..cut]).is_err()));
    let (first, second) = claim.pair;
    let schedule = KeySchedule::new(actor.author.schedule.iter().copied()).unwrap();
    let judge =
        |a: &StreamMessage, b: &StreamMessage| Equivocation::judge(&stream_id(), &schedule, a.clone(), b.clone());
    assert!(judge(&first, &second).unwrap().is_some());
    assert!(judge(&second, &first).unwrap().is_some(), "the order means nothing");
    assert_eq!(judge(&first, &first), Ok(None));
    assert_eq!(judge(&first, &actor.author.log[0]), Ok(None));
    let mut forged = second;
    forged.kind = "forged".into();
    assert_eq!(judge(&first, &forged), Err(WatchtowerRefusal::Signature));
}

#[test]
fn after_a_restart_the_store_has_the_other_half() {
    let mut author = Author::with(2);
    let other = author.sign_alternative("other");
    author.publish();
    let mut actor = Actor::new(author);
    let mut before = from_zero();
    run(&mut before, &mut actor, 0);
    let mut feed = feed(Start::After(before.verified_cursor()));
    feed.handle_time(0);
    let Some(Output::Request(history)) = feed.poll_output() else { panic!("a request") };
    let (status, body) = actor.answer(history);
    feed.handle_answer(status, &body, at(0));
    feed.handle_answer(200, &page([other.to_value()].into_iter(), 3, 1), at(0));
    let told: Vec<_> = std::iter::from_fn(|| feed.poll_output()).collect();
    assert!(told.contains(&Output::Equivocation { evidence: None, message: Box::new(other) }));
}

#[test]
fn the_last_message_again_is_a_repeat() {
    let (feed, told) = then(|author| messages(author, [3, 3, 4]));
    assert_eq!(sequences(&told), [4]);
    assert_eq!(feed.counters().repeats, 2);
}

#[test]
fn an_actor_that_goes_on_for_ever_is_not_followed() {
    // Full answers of what is known already.
    let (feed, told) = then(|author| page((0..500).map(|_| author.log[2].to_value()), 6, 1));
    assert_eq!((told, feed.counters().repeats), (vec![], 500));
    assert!(feed.wake_at().is_some(), "it waits before it asks again");

    // Histories that are full of the same key.
    let author = Author::with(1);
    let mut feed = from_zero();
    feed.handle_time(0);
    let mut asked = Vec::new();
    while let Some(Output::Request(request @ Request::GetKeyHistory { .. })) = feed.poll_output() {
        asked.push(request);
        feed.handle_answer(200, &history((0..500).map(|_| &author.schedule[0])), at(0));
    }
    assert_eq!(asked.len(), 2);
}

#[test]
fn a_known_key_is_not_rewritten() {
    let mut author = Author::with(3);
    author.rotate();
    author.publish();
    let mut actor = Actor::new(author);
    let honest = actor.author.schedule.clone();
    actor.author.schedule.truncate(1);
    let mut feed = from_zero();
    actor.author.log.truncate(3);
    run(&mut feed, &mut actor, 0);
    let now = feed.wake_at().expect("due");
    feed.handle_time(now);
    let told: Vec<_> = std::iter::from_fn(|| feed.poll_output()).collect();
    assert!(matches!(told[..], [Output::Request(_)]));
    // The page needs key 2; the history answers with another key 1 as well.
    let mut author = Author::with(3);
    author.rotate();
    author.publish();
    feed.handle_answer(200, &page([author.log[3].to_value()].into_iter(), 4, 1), at(now));
    let mut rewritten = honest;
    rewritten[0].effective_sequence = 0;
    feed.handle_answer(200, &history(rewritten.iter()), at(now));
    let told = std::iter::from_fn(|| feed.poll_output()).last();
    assert_eq!(told, Some(Output::Failed(WatchtowerRefusal::KeySchedule)));
}

#[test]
fn an_answer_to_nothing_is_nothing() {
    let mut feed = feed(Start::After(Cursor::default()));
    feed.handle_answer(200, b"\xa0", at(0));
    assert_eq!(feed.poll_output(), None);
    feed.resume();
    assert_eq!(feed.poll_output(), None);
}
