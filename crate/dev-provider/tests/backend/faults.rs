//! Each fault by name, and what must catch it.

use std::time::Duration;

use clap::ValueEnum;
use remuda_dev_provider::backend::fault::Fault;
use remuda_dev_provider::backend::settings::BackendSettings;
use remuda_streaming::static_stream::StaticEvent;
use remuda_streaming::{GrpcCode, StreamRefused};
use tokio::time::timeout;

use crate::reader::{group, serve, Read, Served};

fn faulty(fault: Fault) -> Served {
    let settings =
        BackendSettings { keepalive_ms: 1_000, faults: vec![fault], faulty_streams: 1, ..Default::default() };
    let served = serve(settings);
    served.publish(1, 5);
    served
}

/// How a stream ends that is read to its end; rows that came before it.
async fn read(served: &Served) -> (Result<Read, StreamRefused>, usize) {
    let mut rows = 0;
    let mut subscription = match served.subscribe(&[(group(1), 0), (group(2), 0)]).await {
        Ok(subscription) => subscription,
        Err(refused) => return (Err(refused), rows),
    };
    loop {
        match subscription.next().await {
            Ok(Read::Event(StaticEvent::Rows(prefixes))) => {
                rows += prefixes.iter().map(|prefix| prefix.rows().len()).sum::<usize>();
            }
            Ok(Read::Event(_)) => {}
            ended => return (ended, rows),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_fault_of_a_message_or_body_is_caught_under_its_verdict_with_no_row_of_it() {
    for fault in Fault::value_variants().iter().filter(|fault| fault.verdict().is_some()) {
        let served = faulty(*fault);
        let (ended, rows) = timeout(Duration::from_secs(10), read(&served)).await.expect("an end");
        assert_eq!(ended.map(|_| ()).err(), fault.verdict(), "{fault:?}");
        assert_eq!(rows, 0, "{fault:?}");
        // The stream after it is honest.
        let mut honest = served.subscribe(&[(group(1), 0)]).await.expect("a stream");
        assert_eq!(honest.rows(5).await.len(), 5, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_silence() {
    let served = faulty(Fault::Silence);
    let mut subscription = served.subscribe(&[(group(1), 0)]).await.expect("a stream");
    assert!(matches!(subscription.next().await, Ok(Read::Event(StaticEvent::Started(_)))));
    assert!(timeout(Duration::from_secs(60), subscription.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn without_an_early_head_there_is_no_answer_at_all() {
    let served = faulty(Fault::NoEarlyHeader);
    assert!(timeout(Duration::from_secs(60), served.subscribe(&[(group(1), 0)])).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_head_alone_is_an_answer() {
    let (ended, rows) = read(&faulty(Fault::HeadersOnlyError)).await;
    let Ok(Read::Ended(status)) = ended else { panic!("{ended:?}") };
    assert_eq!((status.code(), status.message.as_str(), rows), (GrpcCode::Unavailable, "not now", 0));
}

#[tokio::test(start_paused = true)]
async fn a_publication_that_races_the_registration_is_above_its_target_and_not_lost() {
    let served = faulty(Fault::RacingPublication);
    let mut subscription = served.subscribe(&[(group(1), 0)]).await.expect("a stream");
    let Read::Event(StaticEvent::Started(started)) = subscription.next().await.expect("honest") else { panic!() };
    let rows = subscription.rows(6).await;
    assert_eq!(started.targets[0].1.through().get(), rows[4].1);
}
